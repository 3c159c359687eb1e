#!/usr/bin/env python3
"""Gradients of hankel and PyTorch (oneDNN) side by side on the CPU, one thread, f32, on bench/shapes/grad.tsv.

Random normal data. hankel: a plan made once, dx or df given. PyTorch: aten.convolution_backward with the same output
mask. Both alternate in rounds, each warmed by a call of its own; medians of the thread's own time. Results must agree.
The FMA peak is measured beside each layer.

usage: grad_cpu.py [--library FILE] [--grad filter,input] [--layout last,first] [--only PREFIX,..] [--isa NAME]
                   [--seconds S] [--rounds N]
"""
import argparse
import ctypes as C
import math
import os
import sys
import time
from pathlib import Path

import torch_cpu
from torch_cpu import ROOT, Shape, geomean, out_size

def read_shapes(only):
    lines = (line.split() for line in (ROOT / "bench/shapes/grad.tsv").read_text().splitlines() if line[0] != "#")
    return [Shape(name, *map(int, sizes)) for name, *sizes in lines if any(name.startswith(p) for p in only)]

def sizes_of(s):
    """Sizes of x, f and y without a height where the layer is 1D."""
    h = [] if s.h == s.r == 1 else [(s.h, s.r)]
    dims = h + [(s.w, s.s)]
    return ([s.n, s.c] + [size for size, _ in dims], [s.k, s.c // s.groups] + [window for _, window in dims],
            [s.n, s.k] + [out_size(s, size, window) for size, window in dims])

def flops_of(s):
    _, f, y = sizes_of(s)
    return 2.0 * math.prod(y) * math.prod(f[1:])

def problem_text(s, layout):
    text = torch_cpu.problem_text(s, layout)
    return text if len(sizes_of(s)[0]) == 4 else text.replace("2d_", "1d_").replace("_i1x", "_i").replace("_w1x", "_w")

class Gradient(torch_cpu.Hankel):
    """A plan of the input's or the filter's gradient, ready to run on fixed memory."""

    def __init__(self, options, text, which, x, f, y):
        from libhankel import _abi as abi
        self.lib = C.CDLL(options.shared_object)
        for name, (result, arguments) in abi.PROTOTYPES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = C.c_int if result is None else result, arguments
        self.lib.hk_measure_peak.restype, self.lib.hk_measure_peak.argtypes = C.c_double, [C.c_int, C.c_int]
        forward, raw, opts = abi.RawProblem(), abi.RawProblem(), abi.Options()
        self.check(self.lib.hk_problem_parse(forward, text.encode()))
        self.check(getattr(self.lib, f"hk_problem_grad_{which}")(forward, raw))
        opts.threads, opts.isa = 1, abi.ISA[options.isa]
        weights = abi.Weights(f=f.data_ptr() if which == "input" else None)
        self.handle = C.c_void_p()
        self.check(self.lib.hk_plan_create(C.byref(self.handle), raw, None, opts, weights))
        size = self.lib.hk_plan_workspace(self.handle)
        self.room = C.create_string_buffer(size + 64)
        at = -C.addressof(self.room) % 64 + C.addressof(self.room)
        self.args = abi.Args(x=x.data_ptr(), f=f.data_ptr(), y=y.data_ptr(), workspace=at if size else None,
                             workspace_bytes=size)
        self.keep = (x, f, y)
        text = C.create_string_buffer(512)
        self.check(self.lib.hk_plan_decision(self.handle, text, 512, C.byref(C.c_size_t())))
        self.decision = text.value.decode()
        self.execute, self.reference = self.lib.hk_plan_execute, C.byref(self.args)

def bench(torch, options, s, layout, which):
    x_size, f_size, y_size = sizes_of(s)
    rank = len(x_size) - 2
    last = [0, *range(2, rank + 2), 1]

    def place(size, fill=None):
        """A tensor of the layer's layout; torch knows no channels-last form of 3-dimensional tensors."""
        t = torch.randn(size) if fill is None else torch.full(size, fill)
        return t.permute(last).contiguous().permute([0, rank + 1, *range(1, rank + 1)]) if layout == "last" else t
    x, f, dy = place(x_size), place(f_size), place(y_size)
    made = place(f_size if which == "filter" else x_size, math.nan)
    mask = [which == "input", which == "filter", False]
    pad, stride, dil = [s.pad] * rank, [s.stride] * rank, [s.dil] * rank

    def peer():
        return torch.ops.aten.convolution_backward(dy, x, f, None, stride, pad, dil, False, [0] * rank, s.groups, mask)
    plan = Gradient(options, problem_text(s, layout), which, *((x, dy) if which == "filter" else (dy, f)), made)
    plan()
    theirs = peer()[mask.index(True)]
    apart, terms = float((theirs - made).norm() / theirs.norm()), math.prod(y_size) / s.k
    if not apart < 2e-6 * math.sqrt(terms if which == "filter" else s.k * s.r * s.s):
        raise RuntimeError(f"{s.name} {layout} {which}: hankel and PyTorch differ by {apart:.1e}")
    options.own_time = True
    times = torch_cpu.rounds_of({"hankel": plan, "torch": peer}, options)
    return plan, times, plan.lib.hk_measure_peak(0, 0)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=str(ROOT / "build/lib/libhankel.so"))
    parser.add_argument("--grad", default="filter,input")
    parser.add_argument("--layout", default="last,first")
    parser.add_argument("--only", default="")
    parser.add_argument("--isa")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    options.shared_object = str(Path(options.shared_object).absolute())
    os.environ.setdefault("LIBHANKEL", options.shared_object)
    import torch
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {time.strftime('%Y-%m-%d')}\n")
    print("| layer | gradient | layout | hankel us | % of peak | PyTorch us | ratio | decision |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for which in options.grad.split(","):
        for s in read_shapes(options.only.split(",")):
            for layout in options.layout.split(","):
                plan, times, peak = bench(torch, options, s, layout, which)
                ratios.append(times["torch"] / times["hankel"])
                print(f"| {s.name} | {which} | {layout} | {times['hankel'] * 1e6:.1f} "
                      f"| {100 * flops_of(s) / times['hankel'] / peak:.0f} | {times['torch'] * 1e6:.1f} "
                      f"| {ratios[-1]:.2f} | {plan.decision} |", flush=True)
    print(f"\n{len(ratios)} rows: geometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}")

if __name__ == "__main__":
    sys.exit(main())
