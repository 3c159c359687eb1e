#!/usr/bin/env python3
"""Depthwise Conv1D over filter lengths, widths and channel counts: time over floor, both layouts, a table and a plot.

The floor of a point is the larger of its bytes (x, f and y once) at 4.26 TB/s and its multiplications at 600 TFLOP/s (f32: 51), plus
2 us of launch. One CUDA graph of about 1 ms of launches over inputs rotated past the L2, the median of five replays (bench.py).
A cliff is a step between neighbours of one curve: the larger of the two ratios over the smaller.

usage: sweep.py [--library build/lib/libhankel.so] [--types bf16,f32] [--out TABLE] [--svg PLOT] | sweep.py --from TABLE --svg PLOT
"""
import argparse
import math
import os
import sys
import time

FILTERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 20, 24, 28, 31, 32, 33, 40, 48, 56, 63, 64, 65, 80, 96, 112, 127, 128, 129, 160, 192,
           224, 255, 256, 257, 320, 384, 448, 511, 512]
WIDTHS = [100, 101, 127, 128, 129, 200, 255, 256, 257, 333, 500, 511, 512, 513, 777, 1000, 1023, 1024, 1025, 1500, 2047, 2048, 2049, 3000,
          4095, 4096, 4097, 5000, 6001, 8191, 8192, 8193, 10000, 12001, 16383, 16384, 16385, 20000]
CHANNELS = [63, 64, 65, 66, 68, 72, 96, 100, 127, 128, 129, 144, 250, 255, 256, 257, 384, 500, 511, 512, 513, 514, 640]
WORK = 8 * 4096 * 512  # outputs of a point, about


def points():
    """(sweep, position, n, c, w, s)"""
    for s in FILTERS:
        yield "taps", s, 8, 512, 4096, s
    for s in (4, 31):
        for w in WIDTHS:
            yield f"width, {s} taps", w, max(1, round(WORK / 512 / w)), 512, w, s
    for c in CHANNELS:
        yield "channels, 4 taps", c, max(1, round(WORK / 2048 / c)), c, 2048, 4


def floor_us(n, c, w, s, kind):
    size, rate = (4, 51e12) if kind == "f32" else (2, 600e12)
    out = n * c * (w - s + 1)
    return max((n * c * w + out + c * s) * size / 4.26e12, 2.0 * out * s / rate) * 1e6 + 2


def measure(library, kinds):
    import ctypes as C
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import bench
    import torch
    lib = C.CDLL(library)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    rows = [("sweep", "at", "type", "layout", "n", "c", "w", "s", "us", "floor_us", "ratio", "decision")]
    for kind in kinds:
        for sweep, at, n, c, w, s in points():
            case = bench.Case((n, c, 1, w, c, 1, s, 1, 0, 1, c), bench.TORCH[kind])
            sides, plans = {}, {}
            for layout in ("last", "first"):
                plans[layout], sides[layout], _ = case.hankel(lib, kind, layout, bench.MATH.get(kind, 0))
            t = bench.contest(sides, 5)
            for layout, us in t.items():
                least = floor_us(n, c, w, s, kind)
                rows.append((sweep, at, kind, layout, n, c, w, s, f"{us:.1f}", f"{least:.1f}", f"{us / least:.2f}", plans[layout].decision))
                plans[layout].close()
            del case, sides
            torch.cuda.empty_cache()
    head = [f"# command: bench/gpu/sweep.py {' '.join(sys.argv[1:])}",
            f"# gpu: {torch.cuda.get_device_name()}; commit: {os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}"]
    return head, rows


def curves(rows):
    """{(sweep, type): {layout: [(at, ratio)]}}, points in order."""
    out = {}
    for r in rows[1:]:
        out.setdefault((r[0], r[2]), {}).setdefault(r[3], []).append((float(r[1]), float(r[10])))
    return out


def cliffs(rows):
    lines = []
    for (sweep, kind), by in curves(rows).items():
        for layout, line in by.items():
            steps = [(max(a[1], b[1]) / min(a[1], b[1]), a[0], b[0]) for a, b in zip(line, line[1:])]
            worst = max(steps)
            mean = math.exp(sum(math.log(p[1]) for p in line) / len(line))
            lines.append(f"# {sweep}, {kind}, {layout}: geometric mean {mean:.2f} of the floor, most {max(p[1] for p in line):.2f}, "
                         f"worst step {worst[0]:.2f} between {worst[1]:g} and {worst[2]:g}")
    return lines


def svg(rows):
    """One panel a sweep and type; logarithmic both ways."""
    panels, wide, high, left, top = list(curves(rows).items()), 420, 220, 46, 30
    columns = 2
    height = (len(panels) + columns - 1) // columns * (high + 62) + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * (wide + 70) + 10}" height="{height}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>']
    colour = {"last": "#1f6fb4", "first": "#d1521d"}
    for i, ((sweep, kind), by) in enumerate(panels):
        x0, y0 = left + i % columns * (wide + 70), top + i // columns * (high + 62)
        every = [p for line in by.values() for p in line]
        lo, hi = math.log(min(p[0] for p in every)), math.log(max(p[0] for p in every))
        most = max(8.0, max(p[1] for p in every))

        def place(p):
            return (x0 + wide * (math.log(p[0]) - lo) / (hi - lo), y0 + high * (1 - math.log(max(p[1], 1) / 1.0) / math.log(most)))
        out.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">time / floor over {sweep}: {kind}</text>')
        for v in (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32):
            if v <= most:
                y = place((math.exp(lo), v))[1]
                out.append(f'<line x1="{x0}" x2="{x0 + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                           f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{v:g}</text>')
        ticks = [t for t in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384) if lo <= math.log(t) <= hi]
        for t in ticks:
            x = place((t, 1))[0]
            out.append(f'<text x="{x:.1f}" y="{y0 + high + 14}" text-anchor="middle">{t}</text>'
                       f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y0}" y2="{y0 + high}" stroke="#eee"/>')
        for layout, line in by.items():
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line))
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour[layout]}" stroke-width="1.5"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour[layout]}"/>' for x, y in map(place, line)]
        for j, layout in enumerate(by):
            out.append(f'<text x="{x0 + wide - 110}" y="{y0 + 14 + 14 * j}" fill="{colour[layout]}">channels-{layout}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--library", dest="shared_object", default=os.path.join(root, "build/lib/libhankel.so"))
    parser.add_argument("--types", default="bf16,f32")
    parser.add_argument("--out")
    parser.add_argument("--svg")
    parser.add_argument("--from", dest="table")
    a = parser.parse_args()
    if a.table:
        lines = open(a.table).read().splitlines()
        head, rows = [], [tuple(x.split("\t")) for x in lines if x and not x.startswith("#")]
    else:
        head, rows = measure(a.shared_object, a.types.split(","))
    text = "\n".join(head + ["\t".join(map(str, r)) for r in rows] + cliffs(rows)) + "\n"
    print("\n".join(cliffs(rows)) if a.table or a.out else text)
    if a.out:
        open(a.out, "w").write(text)
    if a.svg:
        open(a.svg, "w").write(svg(rows))


if __name__ == "__main__":
    main()
