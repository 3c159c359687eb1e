#!/usr/bin/env python3
"""The depthwise, grouped and stem shapes of bench/shapes/gpu.tsv: hankel in both layouts, cuDNN in both, and a copy.

One process, random normal data, inputs rotated over more than three times the L2, one CUDA graph of enough launches
for 2 ms a side, replays of all sides alternating, the median of nine (bench.py). The copy is a device-to-device copy
kernel over the same least bytes (x, f and y once), timed among the others. cuDNN runs through PyTorch, cudnn.benchmark,
benchmark_limit = 0; the better layout counts.

usage: depthwise.py [--library build/lib/libhankel.so] [--out FILE] [--only NAME,..] [--types bf16,f32] [--no-cudnn]
"""
import argparse
import ctypes as C
import math
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import torch  # noqa: E402

NAMES = ("rn50_stem", "resnext_g32", "mbv2_dw3", "mbv2_dw3s2", "convnext_dw7", "dw1d_512_4096_s4", "dw1d_768_2048_s4",
         "dw1d_1024_4096_s31", "dw1d_512_8192_s128", "dw1d_256_16384_s1024")


def copy_side(count):
    """A kernel that reads and writes count bytes in all, rotated like the others."""
    half = int(count) // 8 * 4
    sets = max(2, min(24, int(2.0e8 // count) + 1))
    source = [torch.randn(half // 4, device="cuda") for _ in range(sets)]
    target = [torch.empty_like(t) for t in source]
    return bench.graph(lambda i: torch.add(source[i], 0.0, out=target[i]), sets, 0)


def sides_of(lib, case, kind, cudnn):
    sides, plans = {}, {}
    for layout in ("last", "first"):
        try:
            plans[layout], sides[layout], _ = case.hankel(lib, kind, layout, bench.MATH.get(kind, 0))
        except RuntimeError as e:
            print(f"# {layout}: {e}", flush=True)
        if cudnn:
            sides["cudnn " + layout] = case.torch_side(layout)
    sides["copy"] = copy_side(case.bytes + case.f.numel() * case.f.element_size())
    return sides, plans


def row(name, kind, case, t, plans):
    bytes_once = case.bytes + case.f.numel() * case.f.element_size()
    peers = {k: v for k, v in t.items() if k.startswith("cudnn")}
    peer = min(peers, key=peers.get) if peers else None
    rows = []
    for layout in plans:
        us = t[layout]
        rows.append((name, kind, layout, f"{us:.1f}", f"{bytes_once / us / 1e3:.0f}", f"{100 * t['copy'] / us:.0f}",
                     f"{t['copy']:.1f}", f"{peers[peer]:.1f}" if peer else "-", (peer or "-").replace("cudnn ", ""),
                     f"{peers[peer] / us:.2f}" if peer else "-", plans[layout].decision))
    return rows, (peers[peer] / min(t[x] for x in plans) if peer and plans else None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--shapes", default=os.path.join(bench.ROOT, "bench/shapes/gpu.tsv"))
    parser.add_argument("--out")
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--types", default="")
    parser.add_argument("--no-cudnn", action="store_true")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0
    torch.backends.cudnn.allow_tf32 = False
    commit = subprocess.run(["git", "-C", bench.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# command: bench/gpu/depthwise.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}",
             f"# commit: {commit or os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}",
             "shape\ttype\tlayout\tus\tGB/s\tpct_copy\tcopy_us\tcudnn_us\tcudnn_layout\tspeedup\tdecision"]
    print("\n".join(lines), flush=True)
    gains = []
    for name, v, types in bench.read_shapes(a.shapes):
        if name not in a.only.split(","):
            continue
        for kind in types:
            if kind not in ("bf16", "f16", "f32") or (a.types and kind not in a.types.split(",")):
                continue
            case = bench.Case(v, bench.TORCH[kind])
            sides, plans = sides_of(lib, case, kind, not a.no_cudnn)
            rows, gain = row(name, kind, case, bench.contest(sides), plans)
            gains += [gain] if gain else []
            for r in rows:
                lines.append("\t".join(r))
                print(lines[-1], flush=True)
            for p in plans.values():
                p.close()
            del case, sides
            torch.cuda.empty_cache()
    if gains:
        lines.append(f"# geometric mean over the better cuDNN layout, better layout of hankel: {math.exp(sum(map(math.log, gains)) / len(gains)):.2f}")
        print(lines[-1])
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
