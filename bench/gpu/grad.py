#!/usr/bin/env python3
"""Gradients of hankel and of cuDNN side by side, in one process.

The layers of bench/shapes/grad_gpu.tsv, channels-last: dx and dw, the weights given at execute as a training step must.
cuDNN runs through torch.ops.aten.convolution_backward with cudnn.benchmark and benchmark_limit = 0 (every plan that
PyTorch offers), atomic ones included; hankel's results have the same bits every time. Graphs, rotation of operands
and interleaving are those of bench.py.

--tiles times every decision of wgmma_outer for dw instead, best first, with the estimate in brackets.
--check compares hankel's dw with the plain sums in f64 before it is timed.

usage: grad.py [--library build/lib/libhankel.so] [--only NAME,..] [--of dw,dx] [--tiles] [--check] [--no-cudnn]
               [--out FILE]
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
from libhankel import _abi as abi  # noqa: E402


class Gradient:
    """A plan of one gradient of a forward problem, the filter (dy for dw) given at execute."""

    def __init__(self, lib, text, of, decision=None):
        self.lib = lib
        forward, problem = abi.RawProblem(), abi.RawProblem()
        forward.size = problem.size = C.sizeof(abi.RawProblem)
        epi = abi.Epilogue()
        self.check(lib.hk_problem_parse(C.byref(forward), text.encode()))
        make = lib.hk_problem_grad_filter if of == "dw" else lib.hk_problem_grad_input
        self.check(make(C.byref(forward), C.byref(problem)))
        self.problem, self.epi = problem, epi
        options = abi.Options(device=abi.CUDA, decision=decision)
        self.plan = C.c_void_p()
        self.check(lib.hk_plan_create(C.byref(self.plan), C.byref(problem), C.byref(epi), C.byref(options), None))
        line = C.create_string_buffer(512)
        self.check(lib.hk_plan_decision(self.plan, line, 512, None))
        self.decision = line.value.decode()
        lib.hk_plan_workspace.restype = C.c_size_t
        self.need = lib.hk_plan_workspace(self.plan)
        self.workspace = torch.empty(max(self.need, 1), dtype=torch.uint8, device="cuda")

    def check(self, status):
        if status:
            self.lib.hk_last_error.restype = C.c_char_p
            raise RuntimeError(self.lib.hk_last_error().decode())

    def __call__(self, x, f, y):
        args = abi.Args(x=x.data_ptr(), f=f.data_ptr(), y=y.data_ptr(),
                        workspace=self.workspace.data_ptr() if self.need else None, workspace_bytes=self.need,
                        stream=torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.hk_plan_execute(self.plan, C.byref(args)))

    def candidates(self):
        found = []

        @abi.CandidateFn
        def collect(_, c):
            if not c.contents.refusal and c.contents.decision.startswith(b"wgmma_outer"):
                found.append((c.contents.decision.decode(), c.contents.predicted_s * 1e6))
        options = abi.Options(device=abi.CUDA, rigor=2)
        self.check(self.lib.hk_plan_candidates(C.byref(self.problem), C.byref(self.epi), C.byref(options), collect,
                                               None))
        return found

    def close(self):
        self.lib.hk_plan_destroy(self.plan)


class Layer:
    """Operands of one layer: x, dy (rotated), w, and results, channels-last."""

    def __init__(self, v, kind):
        n, c, h, w, k, r, s, stride, pad, dil, groups = v
        self.v, self.kind, dtype = v, kind, bench.TORCH[kind]
        self.p, self.q, self.flops = bench.sizes(v)
        each = (n * c * h * w + n * k * self.p * self.q) * dtype.itemsize
        self.sets = max(2, min(24, int(2.0e8 // each) + 1))
        last = torch.channels_last

        def normal(*size):
            return torch.randn(*size, device="cuda").to(dtype).contiguous(memory_format=last)
        self.x = [normal(n, c, h, w) for _ in range(self.sets)]
        self.dy = [normal(n, k, self.p, self.q) for _ in range(self.sets)]
        self.w = normal(k, c // groups, r, s)
        self.dx = [torch.empty_like(t) for t in self.x]
        self.dw = torch.empty(k, r, s, c // groups, device="cuda", dtype=dtype)
        self.krsc = self.w.permute(0, 2, 3, 1).contiguous()
        self.text = bench.text_of(v, kind, "last")

    def hankel(self, plan, of):
        if of == "dw":
            return bench.graph(lambda i: plan(self.x[i], self.dy[i], self.dw), self.sets, self.flops)
        return bench.graph(lambda i: plan(self.dy[i], self.krsc, self.dx[i]), self.sets, self.flops)

    def cudnn(self, of):
        n, c, h, w, k, r, s, stride, pad, dil, groups = self.v
        st, pd, dl = ([1, stride], [0, pad], [1, dil]) if h == 1 else ([stride] * 2, [pad] * 2, [dil] * 2)
        mask, out = [of == "dx", of == "dw", False], [None]

        def run(i):
            out[0] = torch.ops.aten.convolution_backward(self.dy[i], self.x[i], self.w, None, st, pd, dl, False, [0, 0],
                                                         groups, mask)
        return bench.graph(run, self.sets, self.flops)

    def error(self, plan):
        """Largest difference of hankel's dw from the sums in f64 over their root mean square."""
        n, c, h, w, k, r, s, stride, pad, dil, groups = self.v
        st, pd, dl = ([1, stride], [0, pad], [1, dil]) if h == 1 else ([stride] * 2, [pad] * 2, [dil] * 2)
        self.dw.fill_(float("nan"))
        plan(self.x[0], self.dy[0], self.dw)
        first = self.dw.clone()
        plan(self.x[0], self.dy[0], self.dw)
        same = torch.equal(first, self.dw)
        want = torch.ops.aten.convolution_backward(self.dy[0].float(), self.x[0].float(), self.w.float(), None, st, pd,
                                                   dl, False, [0, 0], groups, [False, True, False])[1]
        unit = want.square().mean().sqrt()
        wrong = (self.dw.permute(0, 3, 1, 2).float() - want).abs().max() / unit
        return f"{wrong.item():.1e}{'' if same else ' UNSTABLE'}"


def short(decision):
    knob = dict(word.split("=") for word in decision.split()[1:])
    tail = "".join(f"_{t}{knob[name]}" for name, t in (("cm", "m"), ("cn", "n")) if knob[name] != "1")
    tail += "s" if knob["strip"] == "1" else ""
    return f"{knob['bm']}x{knob['bn']}{tail}/{knob['slices']}"


def tiles(lib, layer, emit, name):
    first = Gradient(lib, layer.text, "dw")
    found, times = first.candidates(), []
    for decision, guess in found:
        plan = Gradient(lib, layer.text, "dw", decision.encode())
        times.append((bench.contest({"one": layer.hankel(plan, "dw")}, 5)["one"], guess, decision))
        plan.close()
    times.sort()
    emit(name, layer.kind, f"pick {first.decision}", " ".join(f"{short(d)}:{t:.1f}({g:.0f})" for t, g, d in times[:24]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--shapes", default=os.path.join(bench.ROOT, "bench/shapes/grad_gpu.tsv"))
    parser.add_argument("--only", default="")
    parser.add_argument("--of", default="dw,dx")
    parser.add_argument("--types", default="")
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-cudnn", action="store_true")
    parser.add_argument("--out")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = False
    commit = subprocess.run(["git", "-C", bench.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    lines = [f"# command: bench/gpu/grad.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()} through PyTorch "
             f"{torch.__version__}, aten.convolution_backward, cudnn.benchmark, benchmark_limit = 0",
             f"# commit: {commit.stdout.strip() or os.environ.get('HANKEL_COMMIT', 'unknown')}",
             f"# date: {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}"]
    print("\n".join(lines), flush=True)

    def emit(*fields):
        lines.append("\t".join(str(f) for f in fields))
        print(lines[-1], flush=True)

    ratios = {}
    emit("shape", "type", "of", "us", "TFLOP/s", "cudnn_us", "speedup", "error", "decision")
    for name, v, types in bench.read_shapes(a.shapes):
        for kind in types if not a.only or name in a.only.split(",") else []:
            if a.types and kind not in a.types.split(","):
                continue
            layer = Layer(v, kind)
            if a.tiles:
                tiles(lib, layer, emit, name)
                continue
            for of in a.of.split(","):
                try:
                    plan = Gradient(lib, layer.text, of)
                    error = layer.error(plan) if a.check and of == "dw" else "-"
                    sides = {"hankel": layer.hankel(plan, of)}
                except RuntimeError as e:
                    emit(name, kind, of, "-", "-", "-", "-", "-", str(e))
                    continue
                if not a.no_cudnn:
                    sides["cudnn"] = layer.cudnn(of)
                t = bench.contest(sides)
                us, peer = t["hankel"], t.get("cudnn")
                if peer:
                    ratios.setdefault(of, []).append(peer / us)
                emit(name, kind, of, f"{us:.2f}", f"{layer.flops / us / 1e6:.1f}", f"{peer:.2f}" if peer else "-",
                     f"{peer / us:.3f}" if peer else "-", error, plan.decision)
                plan.close()
                del sides
            del layer
    for of, all_of in ratios.items():
        emit(f"# {of}: geometric mean {math.exp(sum(map(math.log, all_of)) / len(all_of)):.3f}, least {min(all_of):.3f}")
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
