#!/usr/bin/env python3
"""Sweeps depthwise Conv1D over taps, channels, width, dilation and stride in both layouts, and draws how near each point
comes to its floor: the larger of the products at the measured FMA peak and the bytes at the bandwidth of a copy of that size (between the
measured sizes by interpolation), plus 25 ns for the call. Needs numpy (bandwidths are measured with its copies).

usage: sweep.py HANKEL OUT.csv OUT.svg [--isa NAME] [--seconds S] [--only AXIS] [--runs N]
A point is the least of N runs' medians (default 1): on a busy machine whole runs are disturbed.
Prints the steps between neighbours that exceed 1.5 in percent of floor."""
import argparse, csv, io, subprocess, sys, tempfile, time

import numpy as np

LAYOUTS = ("last", "first")


def problem(layout, c=64, w=1024, s=4, dilation=1, stride=1):
    text = f"1d_n1_c{c}_i{w}_k{c}_w{s}"
    if stride > 1:
        text += f"_s{stride}"
    if dilation > 1:
        text += f"_d{dilation}"
    return f"{text}_g{c}_f32_{layout}" if c > 1 else f"{text}_f32_{layout}"


def axes():
    """name, label, points, keyword arguments of a point"""
    taps = sorted(set(list(range(1, 41)) + list(range(44, 150, 5)) + list(range(150, 601, 18))))
    width = sorted(set(list(range(1, 40, 3)) + [int(1.17**i) for i in range(20, 55)] + [4093, 4096, 4097, 5000]))
    return [
        ("taps", "taps S (C = 64, W = 1024)", taps, lambda v: dict(s=v)),
        ("channels", "channels C (W = 1024, S = 4)", list(range(1, 131)), lambda v: dict(c=v)),
        ("channels7", "channels C (W = 1024, S = 31)", list(range(1, 131, 3)), lambda v: dict(c=v, s=31)),
        ("width", "width W (C = 64, S = 7)", [w for w in width if 7 <= w <= 5000], lambda v: dict(w=v, s=7)),
        ("dilation", "dilation (C = 64, W = 4096, S = 7)", [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 31, 32, 48, 64, 96, 100, 128,
                                                          192, 255, 256, 300, 384, 512], lambda v: dict(w=4096, s=7, dilation=v)),
        ("stride", "stride (C = 64, W = 4096, S = 7)", list(range(1, 9)), lambda v: dict(w=4096, s=7, stride=v)),
    ]


def bandwidths():
    """bytes a second of copies whose source and target together have so many bytes"""
    rows = []
    for size in (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
        x, y = np.ones(size // 8, np.float32), np.zeros(size // 8, np.float32)
        best = 1e9
        for _ in range(40):
            repeats = max(1, (1 << 23) // size)
            start = time.thread_time()
            for _ in range(repeats):
                np.copyto(y, x)
            best = min(best, (time.thread_time() - start) / repeats)
        rows.append((size, size / best))
    return rows


def floor(row, size, rates):
    peak = float(row["gflops"]) / float(row["pct_peak"]) * 1e11
    flops = float(row["gflops"]) * 1e3 * float(row["us"])
    rate = np.interp(np.log(size), [np.log(b) for b, _ in rates], [r for _, r in rates]) # a cache fills by and by
    return max(flops / peak, size / rate) + 25e-9


def run(hankel, points, isa, seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write("\n".join(points) + "\n")
        f.flush()
        command = [hankel, "bench", "--batch", f.name, "--threads", "1", "--rounds", "7", "--seconds", str(seconds), "--own-time", "--csv"]
        text = subprocess.run(command + (["--isa", isa] if isa else []), check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def least(runs):
    """of every point the run that took it least time"""
    return [min(rows, key=lambda row: float(row["us"])) for rows in zip(*runs)]


def draw(path, panels):
    """panels: (label, {layout: [(value, percent)]})"""
    wide, high, left, top = 420, 190, 50, 34
    total_w, total_h = 2 * (wide + left) + 20, ((len(panels) + 1) // 2) * (high + 62) + 40
    color = {"last": "#0b6e99", "first": "#c2571a"}
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_w} {total_h}" font-family="sans-serif" font-size="11">',
           f'<rect width="{total_w}" height="{total_h}" fill="white"/>',
           '<text x="10" y="18" font-size="13">Depthwise Conv1D, one thread: percent of the floor (products at the FMA peak or bytes at the cache\'s bandwidth)</text>']
    for i, (label, lines) in enumerate(panels):
        x0, y0 = left + (i % 2) * (wide + left), top + 20 + (i // 2) * (high + 62)
        values = [v for points in lines.values() for v, _ in points]
        lo, hi = min(values), max(values)
        def px(v):
            return x0 + wide * (np.log(v / lo) / np.log(hi / lo) if hi > 8 * lo else (v - lo) / (hi - lo))
        def py(p):
            return y0 + high - high * min(p, 120) / 120
        out.append(f'<text x="{x0}" y="{y0 - 6}">{label}</text><rect x="{x0}" y="{y0}" width="{wide}" height="{high}" fill="none" stroke="#999"/>')
        for p in (20, 40, 60, 80, 100):
            out.append(f'<line x1="{x0}" x2="{x0 + wide}" y1="{py(p):.1f}" y2="{py(p):.1f}" stroke="#ddd"/><text x="{x0 - 26}" y="{py(p) + 4:.1f}">{p}</text>')
        ticks = [v for v in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096) if lo <= v <= hi]
        for v in ticks:
            out.append(f'<text x="{px(v):.1f}" y="{y0 + high + 14}" text-anchor="middle">{v}</text>')
        for layout, points in lines.items():
            path_text = " ".join(f"{px(v):.1f},{py(p):.1f}" for v, p in points)
            out.append(f'<polyline points="{path_text}" fill="none" stroke="{color[layout]}" stroke-width="1.4"/>')
    out.append(f'<text x="10" y="{total_h - 10}"><tspan fill="{color["last"]}">channels-last</tspan>  <tspan fill="{color["first"]}">channels-first</tspan></text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("hankel"), a.add_argument("csv"), a.add_argument("svg")
    a.add_argument("--isa"), a.add_argument("--seconds", type=float, default=0.01)
    a.add_argument("--only"), a.add_argument("--runs", type=int, default=1)
    o = a.parse_args()
    rates, panels, rows_out, cliffs = bandwidths(), [], [], 0
    for name, label, points, arguments in axes():
        if o.only and o.only != name:
            continue
        lines = {}
        for layout in LAYOUTS:
            rows = least([run(o.hankel, [problem(layout, **arguments(v)) for v in points], o.isa, o.seconds) for _ in range(o.runs)])
            line = []
            for v, row in zip(points, rows):
                k = dict(c=64, w=1024, s=4, dilation=1, stride=1) | arguments(v)
                outputs = (k["w"] - (k["s"] - 1) * k["dilation"] - 1) // k["stride"] + 1
                percent = 100 * floor(row, 4 * k["c"] * (k["w"] + outputs + k["s"]), rates) / (float(row["us"]) * 1e-6)
                line.append((v, percent))
                rows_out.append([name, v, layout, row["problem"], row["us"], row["gflops"], f"{percent:.1f}", row["decision"]])
            lines[layout] = line
            for (v, p), (u, q) in zip(line, line[1:]):
                if max(p, q) > 1.5 * min(p, q):
                    cliffs += 1
                    print(f"{name} {layout}: {v} at {p:.0f} %, {u} at {q:.0f} %")
        panels.append((label, lines))
    with open(o.csv, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["axis", "value", "layout", "problem", "us", "gflops", "percent_of_floor", "decision"])
        w.writerows(rows_out)
    draw(o.svg, panels)
    print(f"{len(rows_out)} points, {cliffs} steps of more than 1.5 between neighbours", file=sys.stderr)


if __name__ == "__main__":
    main()
