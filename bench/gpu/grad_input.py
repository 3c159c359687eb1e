#!/usr/bin/env python3
"""Input gradients of strided layers and transposed convolutions: hankel and cuDNN side by side.

Random normal data, bf16, channels-last, inputs rotated over more than three times the L2, one CUDA graph of enough
launches for 2 ms a side, the sides' replays alternating, the median of nine (bench.py). cuDNN runs through PyTorch,
aten.convolution_backward with the mask of the input or conv_transpose2d, cudnn.benchmark, benchmark_limit = 0. Results
must agree. hankel: weights packed at creation; with --late given at execute, and packed in the call. --tiles times every
decision that begins with polyphase or subpixel instead, best first, with the estimate before it and the distance from cuDNN's result.

usage: grad_input.py [--library build/lib/libhankel.so] [--out FILE] [--only NAME,..] [--late] [--decision TEXT] [--no-cudnn] [--tiles]
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

# name, n, c, h, k, window, stride, pad, output_pad; dx: c -> k is the forward layer; transposed: c -> k itself
DX = (("s3_3x3s2", 64, 128, 56, 128, 3, 2, 1), ("s4_3x3s2", 64, 256, 28, 256, 3, 2, 1), ("stem_7x7s2", 64, 3, 224, 64, 7, 2, 3),
      ("down_1x1s2", 64, 256, 56, 512, 1, 2, 0), ("patch_2x2s2", 64, 96, 56, 192, 2, 2, 0), ("unet_3x3s2", 4, 320, 64, 320, 3, 2, 1),
      ("s2_3x3s1", 64, 64, 56, 64, 3, 1, 1))
TRANSPOSED = (("t4x4s2", 8, 256, 64, 128, 4, 2, 1), ("t2x2s2", 8, 256, 64, 128, 2, 2, 0), ("t3x3s2", 8, 128, 64, 64, 3, 2, 1),
              ("t4x4s2_64", 8, 128, 128, 64, 4, 2, 1), ("t4x4s2_rgb", 8, 64, 128, 3, 4, 2, 1))


class Case:
    """Tensors of one layer: what both sides read (source), the filter, and what they write, as in the call to PyTorch."""

    def __init__(self, name, n, c, h, k, window, stride, pad):
        self.transposed = name in [row[0] for row in TRANSPOSED]
        self.window, self.stride, self.pad = window, stride, pad
        small = h if self.transposed else (h + 2 * pad - window) // stride + 1
        large = (h - 1) * stride - 2 * pad + window if self.transposed else h
        many, few = (c, k) if self.transposed else (k, c)
        self.outputs = n * large * large * few
        count = max(2, min(24, int(2.0e8 // (2 * (n * small * small * many + self.outputs))) + 1))

        def make(*size):
            return (torch.randn(*size, device="cuda")).to(torch.bfloat16).contiguous(memory_format=torch.channels_last)
        self.source = [make(n, many, small, small) for _ in range(count)]
        self.y = [torch.empty(n, few, large, large, device="cuda", dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
                  for _ in range(count)]
        self.f = make(many, few, window, window) / (many * window * window) ** 0.5
        self.f = self.f.contiguous(memory_format=torch.channels_last)
        self.flops = 2.0 * n * small * small * many * few * window * window
        # the forward problem that both are a gradient of
        self.text = (f"2d_n{n}_c{few}_i{large}x{large}_k{many}_w{window}x{window}_s{stride}_p{pad}_bf16_last")

    def peer(self, i):
        p, s = [self.pad] * 2, [self.stride] * 2
        if self.transposed:
            return torch.nn.functional.conv_transpose2d(self.source[i], self.f, stride=s, padding=p)
        return torch.ops.aten.convolution_backward(self.source[i], self.y[i], self.f, None, s, p, [1, 1], False, [0, 0], 1,
                                                   [True, False, False])[0]


class Gradient(bench.Hankel):
    """A plan of the input gradient; late: f is given at execute."""

    def __init__(self, lib, case, late, decision):
        abi = bench.abi
        self.lib, self.f, self.late = lib, case.f, late
        forward, problem = abi.RawProblem(), abi.RawProblem()
        self.check(lib.hk_problem_parse(C.byref(forward), case.text.encode()))
        self.check(lib.hk_problem_grad_input(C.byref(forward), C.byref(problem)))
        options = abi.Options(device=abi.CUDA, decision=decision)
        weights = abi.Weights(f=None if late else case.f.data_ptr())
        self.plan = C.c_void_p()
        self.check(lib.hk_plan_create(C.byref(self.plan), C.byref(problem), None, C.byref(options), C.byref(weights)))
        text = C.create_string_buffer(512)
        self.check(lib.hk_plan_decision(self.plan, text, 512, None))
        self.decision = text.value.decode()
        lib.hk_plan_workspace.restype = C.c_size_t
        self.need = lib.hk_plan_workspace(self.plan)
        self.workspace = torch.empty(max(self.need, 1), dtype=torch.uint8, device="cuda")

    def __call__(self, x, y):
        args = bench.abi.Args(x=x.data_ptr(), y=y.data_ptr(), f=self.f.data_ptr() if self.late else None,
                              workspace=self.workspace.data_ptr() if self.need else None, workspace_bytes=self.need,
                              stream=torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.hk_plan_execute(self.plan, C.byref(args)))


def apart(case, plan):
    """The largest relative distance of the results of several calls one after another: parts that overlap wrongly show."""
    worst = 0.0
    for y in case.y:
        y.fill_(math.nan)
    for i in range(len(case.source)):
        plan(case.source[i], case.y[i])
    torch.cuda.synchronize()
    for i in range(min(3, len(case.source))):
        theirs = case.peer(i).float()
        worst = max(worst, float((theirs - case.y[i].float()).norm() / theirs.norm()))
    return worst


def candidates(lib, case):
    """The decisions by phases and what the planner expects of them, in us."""
    abi, found = bench.abi, []

    @abi.CandidateFn
    def collect(_, c):
        if not c.contents.refusal and c.contents.decision.startswith((b"polyphase", b"subpixel")):
            found.append((c.contents.decision, c.contents.predicted_s * 1e6))
    forward, problem, epilogue = abi.RawProblem(), abi.RawProblem(), abi.Epilogue()
    options = abi.Options(device=abi.CUDA, rigor=2)
    if lib.hk_problem_parse(C.byref(forward), case.text.encode()) or lib.hk_problem_grad_input(C.byref(forward), C.byref(problem)):
        raise RuntimeError(f"no gradient of {case.text}")
    lib.hk_plan_candidates(C.byref(problem), C.byref(epilogue), C.byref(options), collect, None)
    return found


def tiles(lib, name, case, late):
    """One line per candidate: layer, us, estimate, distance, decision."""
    times = []
    for decision, guess in candidates(lib, case):
        try:
            plan = Gradient(lib, case, late, decision)
        except RuntimeError as e:
            print(f"# {name}: {decision.decode()}: {e}", flush=True)
            continue
        off = apart(case, plan)
        side = bench.graph(lambda i, p=plan: p(case.source[i], case.y[i]), len(case.source), case.flops)
        times.append((bench.contest({"one": side}, 5)["one"], guess, off, decision.decode()))
        plan.close()
    return [f"{name}\t{us:.1f}\t{guess:.1f}\t{off:.1e}\t{decision}" for us, guess, off, decision in sorted(times)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--decision")
    parser.add_argument("--no-cudnn", action="store_true")
    parser.add_argument("--tiles", action="store_true")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0
    commit = subprocess.run(["git", "-C", bench.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# command: bench/gpu/grad_input.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}",
             f"# commit: {commit or os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}",
             "layer\tus\testimate\tapart\tdecision" if a.tiles else "layer\tus\tTFLOP/s\tcudnn_us\tspeedup\tapart\tdecision"]
    print("\n".join(lines), flush=True)
    gains = []
    for row in DX + TRANSPOSED:
        if a.only and row[0] not in a.only.split(","):
            continue
        case = Case(*row)
        if a.tiles:
            lines += tiles(lib, row[0], case, a.late)
            print("\n".join(line for line in lines if line.startswith(f"{row[0]}\t")), flush=True)
            continue
        try:
            plan = Gradient(lib, case, a.late, a.decision.encode() if a.decision else None)
        except RuntimeError as e:
            print(f"# {row[0]}: {e}", flush=True)
            continue
        off = apart(case, plan)
        sides = {"hankel": bench.graph(lambda i: plan(case.source[i], case.y[i]), len(case.source), case.flops)}
        if not a.no_cudnn:
            sides["cudnn"] = bench.graph(case.peer, len(case.source), case.flops)
        t = bench.contest(sides)
        theirs = t.get("cudnn", math.nan)
        gains.append(theirs / t["hankel"])
        lines.append(f"{row[0]}\t{t['hankel']:.1f}\t{case.flops / t['hankel'] / 1e6:.0f}\t{theirs:.1f}\t{gains[-1]:.2f}\t{off:.1e}\t"
                     f"{plan.decision}" + ("" if off < 1e-2 else "\tWRONG"))
        print(lines[-1], flush=True)
        plan.close()
        del case, sides
        torch.cuda.empty_cache()
    if gains:
        lines.append(f"# geometric mean {math.exp(sum(map(math.log, gains)) / len(gains)):.2f}, least {min(gains):.2f}")
        print(lines[-1])
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
