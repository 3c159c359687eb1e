#!/usr/bin/env python3
"""Filter gradients of depthwise, grouped and few-channel convolutions on the GPU: hankel and cuDNN side by side.

Measured as bench.py does: one process, inputs rotated over more than three times the L2, one CUDA graph a side, replays
alternating, the median of nine. cuDNN is torch.ops.aten.convolution_backward with cudnn.benchmark, benchmark_limit = 0,
in both layouts; the better counts. The floor is the larger of the bytes of x and dy at 4.3 TB/s and the products at 33.5e12
per second (f32 FMA); for rows of tensor cores at 400e12. With --ways every decision of cuda_tapsum is timed instead.

usage: grad_narrow.py [--library build/lib/libhankel.so] [--out FILE] [--only NAME,..] [--types bf16,f32] [--no-cudnn] [--ways]
"""
import argparse
import ctypes as C
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import torch  # noqa: E402
from bench import abi  # noqa: E402

# n c h w k r s stride pad dil groups
LAYERS = {
    "convnext_96": (64, 96, 56, 56, 96, 7, 7, 1, 3, 1, 96),
    "convnext_192": (64, 192, 28, 28, 192, 7, 7, 1, 3, 1, 192),
    "convnext_384": (64, 384, 14, 14, 384, 7, 7, 1, 3, 1, 384),
    "convnext_768": (64, 768, 7, 7, 768, 7, 7, 1, 3, 1, 768),
    "mbv2_dw3": (64, 144, 56, 56, 144, 3, 3, 1, 1, 1, 144),
    "mbv2_dw3s2": (64, 144, 56, 56, 144, 3, 3, 2, 1, 1, 144),
    "effnet_dw5": (64, 240, 28, 28, 240, 5, 5, 1, 2, 1, 240),
    "dw1d_2048": (8, 2048, 1, 4096, 2048, 1, 4, 1, 3, 1, 2048),
    "dw1d_512_s31": (8, 512, 1, 4096, 512, 1, 31, 1, 15, 1, 512),
    "resnext_256": (64, 256, 28, 28, 256, 3, 3, 1, 1, 1, 32),
    "resnext_128": (64, 128, 56, 56, 128, 3, 3, 1, 1, 1, 32),
    "resnext_512": (64, 512, 14, 14, 512, 3, 3, 1, 1, 1, 32),
    "resnext_1024": (64, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 32),
    "stem_7x7": (64, 3, 224, 224, 64, 7, 7, 2, 3, 1, 1),
    "stem_3x3": (64, 3, 224, 224, 32, 3, 3, 2, 1, 1, 1),
    "stem_4x4": (64, 3, 224, 224, 96, 4, 4, 4, 0, 1, 1),
    "dense_3x3": (16, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1),
}
MATRIX = ("resnext", "stem", "dense")


class Gradient(bench.Hankel):
    """A plan of the filter gradient of a forward problem; dy comes with each call."""

    def __init__(self, lib, text, decision=None):
        self.lib = lib
        forward, problem = abi.RawProblem(), abi.RawProblem()
        self.check(lib.hk_problem_parse(C.byref(forward), text.encode()))
        self.check(lib.hk_problem_grad_filter(C.byref(forward), C.byref(problem)))
        self.problem, self.options = problem, abi.Options(device=abi.CUDA, decision=decision)
        self.plan = C.c_void_p()
        self.check(lib.hk_plan_create(C.byref(self.plan), C.byref(problem), None, C.byref(self.options), None))
        name = C.create_string_buffer(512)
        self.check(lib.hk_plan_decision(self.plan, name, 512, None))
        self.decision = name.value.decode()
        lib.hk_plan_workspace.restype = C.c_size_t
        self.need = lib.hk_plan_workspace(self.plan)
        self.workspace = torch.empty(max(self.need, 1), dtype=torch.uint8, device="cuda")

    def __call__(self, x, dy, dw):
        args = abi.Args(x=x.data_ptr(), f=dy.data_ptr(), y=dw.data_ptr(),
                        workspace=self.workspace.data_ptr() if self.need else None, workspace_bytes=self.need,
                        stream=torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.hk_plan_execute(self.plan, C.byref(args)))

    def ways(self):
        """The decisions of cuda_tapsum for the problem."""
        found, options = [], abi.Options(device=abi.CUDA, rigor=2)

        @abi.CandidateFn
        def collect(_, c):
            if not c.contents.refusal and c.contents.decision.startswith(b"cuda_tapsum"):
                found.append((c.contents.decision, c.contents.predicted_s * 1e6))
        self.lib.hk_plan_candidates(C.byref(self.problem), None, C.byref(options), collect, None)
        return found


class Layer:
    def __init__(self, v, kind):
        n, c, h, w, k, r, s, stride, pad, dil, groups = v
        dtype = bench.TORCH[kind]
        self.v, self.kind = v, kind
        if h == 1:  # causal: padded before alone
            self.p, self.q = 1, w
        else:
            self.p, self.q, _ = bench.sizes(v)
        self.bytes = (n * c * h * w + n * k * self.p * self.q) * dtype.itemsize
        self.products = n * k * self.p * self.q * (c // groups) * r * s
        self.sets = max(2, min(24, int(2.0e8 // self.bytes) + 1))
        left = pad if h == 1 else 0
        self.x = [torch.randn(n, c, h, w, device="cuda").to(dtype) for _ in range(self.sets)]
        self.left = left
        self.dy = [torch.randn(n, k, self.p, self.q, device="cuda").to(dtype) for _ in range(self.sets)]
        self.w = torch.randn(k, c // groups, r, s, device="cuda").to(dtype)

    def text(self, layout):
        n, c, h, w, k, r, s, stride, pad, dil, groups = self.v
        if h == 1:
            return f"1d_n{n}_c{c}_i{w}_k{k}_w{s}_p{pad}:{s - 1 - pad}_g{groups}_{self.kind}_{layout}"
        return bench.text_of(self.v, self.kind, layout)

    def tensors(self, layout):
        form = torch.channels_last if layout == "last" else torch.contiguous_format
        return [[t.contiguous(memory_format=form) for t in many] for many in (self.x, self.dy)]

    def hankel(self, lib, layout, decision=None):
        x, dy = self.tensors(layout)
        dw = torch.zeros(self.w.numel(), dtype=self.w.dtype, device="cuda")
        plan = Gradient(lib, self.text(layout), decision)
        return plan, bench.graph(lambda i: plan(x[i], dy[i], dw), self.sets, 0), dw

    def cudnn(self, layout):
        n, c, h, w, k, r, s, stride, pad, dil, groups = self.v
        x, dy = self.tensors(layout)
        weights = self.w.contiguous(memory_format=torch.channels_last if layout == "last" else torch.contiguous_format)
        if h == 1:  # cuDNN pads both sides alike: the input is padded beforehand, which is not timed
            form = torch.channels_last if layout == "last" else torch.contiguous_format
            x = [torch.nn.functional.pad(t, (pad, s - 1 - pad)).contiguous(memory_format=form) for t in x]
            st, pd, dl = [1, 1], [0, 0], [1, 1]
        else:
            st, pd, dl = [stride] * 2, [pad] * 2, [dil] * 2
        out = [None]

        def run(i):
            out[0] = torch.ops.aten.convolution_backward(dy[i], x[i], weights, None, st, pd, dl, False, [0, 0], groups,
                                                         [False, True, False])[1]
        side = bench.graph(run, self.sets, 0)
        run(0)
        return side, out[0]


def error(layer, plan_dw, peer, layout):
    """The largest difference of two gradients by the larger's largest value; both of the last or first set."""
    k, c, r, s = layer.w.shape
    mine = plan_dw.view(k, r, s, c).permute(0, 3, 1, 2) if layout == "last" else plan_dw.view(k, c, r, s)
    return ((mine.float() - peer.float()).abs().max() / peer.float().abs().max()).item()


def measure(lib, a, name, kind, emit):
    layer = Layer(LAYERS[name], kind)
    sides, plans, results = {}, {}, {}
    for layout in ("last", "first"):
        try:
            plans[layout], sides[layout], results[layout] = layer.hankel(lib, layout)
        except RuntimeError as e:
            print(f"# {name} {layout}: {e}", flush=True)
        if a.ways and layout in plans:
            for decision, guess in plans[layout].ways():
                plan, side, _ = layer.hankel(lib, layout, decision)
                emit(name, kind, layout, f"{bench.contest({'one': side}, 5)['one']:.1f}", f"{guess:.1f}", decision.decode())
                plan.close()
        if not a.no_cudnn and not a.ways:
            sides["cudnn " + layout], peer = layer.cudnn(layout)
            if layout in plans:
                x, dy = layer.tensors(layout)
                plans[layout](x[0], dy[0], results[layout])
                torch.cuda.synchronize()
                wrong = error(layer, results[layout], peer, layout)
                if not wrong < 0.02:
                    print(f"# WRONG {name} {kind} {layout}: differs by {wrong:.3g} of the largest value", flush=True)
    if a.ways:
        return
    t = bench.contest(sides)
    rate = 4e14 if name.startswith(MATRIX) and kind != "f32" else 3.35e13
    floor = max(layer.bytes / 4.3e12, layer.products / rate) * 1e6
    peers = [v for k, v in t.items() if k.startswith("cudnn")]
    for layout, plan in plans.items():
        us = t[layout]
        peer = min(peers) if peers else None
        emit(name, kind, layout, f"{us:.1f}", f"{floor:.1f}", f"{us / floor:.2f}", f"{peer:.1f}" if peer else "-",
             f"{peer / us:.2f}" if peer else "-", plan.decision)
        plan.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--out")
    parser.add_argument("--only", default=",".join(LAYERS))
    parser.add_argument("--types", default="bf16")
    parser.add_argument("--no-cudnn", action="store_true")
    parser.add_argument("--ways", action="store_true")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0
    torch.backends.cudnn.allow_tf32 = False
    lines = [f"# command: bench/gpu/grad_narrow.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}",
             f"# commit: {os.environ.get('HANKEL_COMMIT', 'unknown')}; {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}",
             "layer\ttype\tlayout\tus\t" + ("guess_us" if a.ways else "floor_us\tof_floor\tcudnn_us\tspeedup") + "\tdecision"]
    print("\n".join(lines), flush=True)

    def emit(*fields):
        lines.append("\t".join(fields))
        print(lines[-1], flush=True)

    for name in a.only.split(","):
        for kind in a.types.split(","):
            measure(lib, a, name, kind, emit)
            torch.cuda.empty_cache()
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        with open(a.out, "w") as out:
            out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
