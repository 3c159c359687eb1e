#!/usr/bin/env python3
"""libhankel.causal_conv1d.long_conv beside the same by PyTorch's FFT: irfft(rfft(u, 2L) * rfft(f, 2L)), in one process.

Filters are as long as the sequence unless the row says otherwise, and change from call to call, so both sides transform
them each time. f32 on both sides; with --type bf16 PyTorch converts x to f32 and back, as models do, and filters stay
f32. forward: out. backward: out.backward(dy) alone, gradients of x and the filters (and of the gates in a gated row).
CPU: process time, the sides alternating, medians. CUDA: events around enough calls for 5 ms, alternating, medians. Errors
are ||out - exact|| / ||out||, exact in f64.

usage: long_conv.py [--library FILE] [--device cpu|cuda] [--type f32|bf16] [--threads N] [--rounds N] [--match TEXT,..]
                    [--csv FILE]
"""
import argparse
import csv
import math
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
#: n, c on the CPU, c on CUDA, length, taps, layout, gated
ROWS = [(1, 256, 4096, 1024, 0, "first", 0), (1, 256, 2048, 4096, 0, "first", 0), (1, 64, 1024, 16384, 0, "first", 0),
        (1, 64, 512, 65536, 0, "first", 0), (1, 16, 128, 262144, 0, "first", 0), (4, 64, 1024, 1024, 0, "first", 0),
        (4, 64, 512, 8192, 0, "first", 0), (4, 16, 256, 32768, 0, "first", 0), (4, 4, 64, 131072, 0, "first", 0),
        (1, 64, 1024, 1000, 0, "first", 0), (1, 64, 1024, 10000, 0, "first", 0), (1, 16, 256, 100000, 0, "first", 0),
        (1, 64, 1024, 2048, 0, "last", 0), (1, 64, 512, 16384, 0, "last", 0), (1, 16, 128, 262144, 0, "last", 0),
        (2, 64, 768, 2048, 0, "first", 1), (2, 64, 768, 16384, 0, "first", 1), (1, 16, 256, 131072, 0, "first", 1),
        (1, 16, 256, 65536, 4096, "first", 0), (1, 16, 128, 262144, 2048, "first", 0)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", dest="shared_object")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--type", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--match", default="")
    parser.add_argument("--csv")
    return parser.parse_args()


def by_torch(torch, x, f, pre, post):
    length, dtype = x.shape[-1], x.dtype
    x = (x if pre is None else pre * x).to(f.dtype)
    n = length + f.shape[-1]
    y = torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(f, n=n), n=n)[..., :length].to(dtype)
    return y if post is None else post * y


def seconds_cpu(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def seconds_cuda(torch, call, repeats):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats / 1e3


def measure(torch, options, ours, theirs):
    """Median seconds of both, alternating after a call of their own."""
    for call in (ours, theirs):
        call()
    if options.device == "cuda":
        torch.cuda.synchronize()
        repeats = max(3, int(5e-3 / max(seconds_cuda(torch, theirs, 2), 1e-5)))
    times = ([], [])
    for _ in range(options.rounds):
        for i, call in enumerate((ours, theirs)):
            times[i].append(seconds_cpu(call) if options.device == "cpu" else seconds_cuda(torch, call, repeats))
    return [statistics.median(t) for t in times]


def make(torch, options, row):
    n, c_cpu, c_cuda, length, taps, layout, gated = row
    c = c_cpu if options.device == "cpu" else c_cuda
    dtype = torch.float32 if options.type == "f32" else torch.bfloat16

    def one():
        t = torch.randn((n, length, c) if layout == "last" else (n, c, length), device=options.device).to(dtype)
        return t.transpose(1, 2) if layout == "last" else t

    taps = taps or length
    f = torch.randn(c, taps, device=options.device) * torch.exp(-3 * torch.arange(taps, device=options.device) / taps)
    name = f"n{n}_c{c}_L{length}" + (f"_w{taps}" if taps != length else "") + f" {layout}" + (" gated" if gated else "")
    return name, [one(), f, one() if gated else None, one() if gated else None], one()


def run_row(torch, long_conv, options, row, write):
    name, given, dy = make(torch, options, row)
    if not any(part in name for part in options.match.split(",")):
        return []
    plain = (lambda: long_conv(given[0], given[1], None, given[2], given[3]), lambda: by_torch(torch, *given))
    with torch.no_grad():
        part = [t if t is None else t[:1, :2].double() for t in (given[0], given[2], given[3])]
        exact = by_torch(torch, part[0], given[1][:2].double(), part[1], part[2])
        errors = [float((y[:1, :2].double() - exact).norm() / exact.norm()) for y in (plain[0](), plain[1]())]
        found = [("forward", measure(torch, options, *plain))]
    leaves = [t if t is None else t.detach().requires_grad_() for t in given]
    outs = (long_conv(leaves[0], leaves[1], None, leaves[2], leaves[3]), by_torch(torch, *leaves))
    wanted = [t for t in leaves if t is not None]
    back = [lambda out=out: torch.autograd.grad(out, wanted, dy, retain_graph=True) for out in outs]
    found.append(("backward", measure(torch, options, *back)))
    for kind, (ours, theirs) in found:
        note = f"  errors {errors[0]:.1e} {errors[1]:.1e}" if kind == "forward" else ""
        print(f"{name:32s} {kind:8s} hankel {ours * 1e6:10.1f} us  torch {theirs * 1e6:10.1f} us  "
              f"{theirs / ours:6.2f}x{note}", flush=True)
        write([name, options.type, kind, f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}", f"{theirs / ours:.2f}"]
              + ([f"{e:.2e}" for e in errors] if kind == "forward" else ["", ""]))
    return [(kind, theirs / ours) for kind, (ours, theirs) in found]


def main():
    options = arguments()
    os.environ["HANKEL_NUM_THREADS"] = str(options.threads)
    if options.shared_object:
        os.environ["LIBHANKEL"] = os.path.abspath(options.shared_object)
    import torch
    from libhankel.causal_conv1d import long_conv
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    table = [["row", "type", "kind", "hankel_us", "torch_us", "ratio", "hankel_error", "torch_error"]]
    ratios = []
    for row in ROWS:
        ratios += run_row(torch, long_conv, options, row, table.append)
    for kind in ("forward", "backward"):
        some = [r for k, r in ratios if k == kind]
        if some:
            mean = math.exp(statistics.fmean(map(math.log, some)))
            print(f"{kind}: {len(some)} rows, geometric mean {mean:.2f}x, least {min(some):.2f}x")
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows(table)


if __name__ == "__main__":
    main()
