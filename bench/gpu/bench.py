#!/usr/bin/env python3
"""hankel and cuDNN side by side on the shapes of bench/shapes/gpu.tsv, in one process.

Random normal data, inputs rotated over more than three times the L2, one CUDA graph of enough launches for 2 ms a
side, the sides' replays alternating, the median of nine. cuDNN runs through PyTorch with cudnn.benchmark and
benchmark_limit = 0 (every plan that PyTorch offers is tried), channels-last and channels-first; the better counts.
Flops are 2*N*K*P*Q*(C/groups)*R*S, padded taps included, for both.

--tiles times every wgmma tile of the first type of each shape instead, best first, with the cost model's guess in brackets.

usage: bench.py [--library build/lib/libhankel.so] [--out FILE] [--only NAME,..] [--groups] [--extra] [--no-cudnn] [--tiles]
"""
import argparse
import ctypes as C
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
for word, after in zip(sys.argv, sys.argv[1:]):  # the package loads its library on import: the one that is asked for
    if word == "--library":
        os.environ["LIBHANKEL"] = os.path.abspath(after)
import torch  # noqa: E402
from libhankel import _abi as abi  # noqa: E402

TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32, "f32": torch.float32,
         "f8e4m3": torch.float8_e4m3fn}
KIND = {"tf32": "f32"}
USER = b"float hk_user(hk_at at, float v, const void *user) { return v * (1.0f + 0.01f * at.k); }"
MATH = {"tf32": abi.MATH["tf32"], "f32": abi.MATH["split_f32"]}


class Hankel:
    """A plan of libhankel on torch tensors, weights packed at creation."""

    def __init__(self, lib, text, epilogue, filters, bias, math, decision=None):
        self.lib = lib
        problem, epi = abi.RawProblem(), abi.Epilogue()
        self.check(lib.hk_problem_parse(C.byref(problem), text.encode()))
        if epilogue == "user":
            epi.act, epi.cuda_user = abi.ACT["user"], USER
        else:
            self.check(lib.hk_epilogue_parse(C.byref(epi), epilogue.encode()))
        options = abi.Options(device=abi.CUDA, math=math, decision=decision)
        weights = abi.Weights(f=filters.data_ptr(), bias=bias.data_ptr() if bias is not None else None)
        self.plan = C.c_void_p()
        self.check(lib.hk_plan_create(C.byref(self.plan), C.byref(problem), C.byref(epi), C.byref(options),
                                      C.byref(weights)))
        text = C.create_string_buffer(512)
        self.check(lib.hk_plan_decision(self.plan, text, 512, None))
        self.decision = text.value.decode()
        lib.hk_plan_workspace.restype = C.c_size_t
        need = lib.hk_plan_workspace(self.plan)
        self.workspace = torch.empty(max(need, 1), dtype=torch.uint8, device="cuda")
        self.need = need

    def check(self, status):
        if status:
            self.lib.hk_last_error.restype = C.c_char_p
            raise RuntimeError(self.lib.hk_last_error().decode())

    def __call__(self, x, y, c=None):
        args = abi.Args(x=x.data_ptr(), y=y.data_ptr(), c=c.data_ptr() if c is not None else None,
                        workspace=self.workspace.data_ptr() if self.need else None, workspace_bytes=self.need,
                        stream=torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.hk_plan_execute(self.plan, C.byref(args)))

    def close(self):
        self.lib.hk_plan_destroy(self.plan)


def graph(run, sets, flops):
    """A graph of enough launches for 2 ms, after a first estimate."""
    for i in range(2):
        run(i % sets)
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run(0)
    end.record()
    torch.cuda.synchronize()
    count = max(3, min(400, int(2.0 / max(begin.elapsed_time(end), 0.004))))
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(count):
            run(i % sets)
    g.replay()
    torch.cuda.synchronize()
    return g, count, run  # run keeps the tensors alive that the graph only points to


def contest(sides, rounds=9):
    """Median microseconds of one launch of each side, replays alternating."""
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (g, count, _) in sides.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            g.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / count)
    return {name: statistics.median(t) for name, t in times.items()}


def read_shapes(path):
    for line in open(path):
        w = line.split()
        if w and not w[0].startswith("#"):
            yield w[0], list(map(int, w[1:12])), (w[12].split(",") if len(w) > 12 else ["bf16", "f16"])


def text_of(v, kind, layout, y_kind=None):
    n, c, h, w, k, r, s, stride, pad, dil, groups = v
    y = y_kind or kind
    space, window = ("1d", f"i{w}_k{k}_w{s}") if h == 1 else ("2d", f"i{h}x{w}_k{k}_w{r}x{s}")
    size = f"n{n}_c{c}_{window}_s{stride}_p{pad}_d{dil}_g{groups}"
    return f"{space}_{size}_{kind}:{kind}:{y}_{layout}"


def sizes(v):
    n, c, h, w, k, r, s, stride, pad, dil, groups = v
    p = 1 if h == 1 else (h + 2 * pad - dil * (r - 1) - 1) // stride + 1
    q = (w + 2 * pad - dil * (s - 1) - 1) // stride + 1
    return p, q, 2.0 * n * k * p * q * (c // groups) * r * s


class Case:
    """Data of one shape and type, for both sides and both layouts."""

    def __init__(self, v, dtype, y_dtype=None):
        n, c, h, w, k, r, s, stride, pad, dil, groups = v
        self.v = v
        self.p, self.q, self.flops = sizes(v)
        self.bytes = (n * c * h * w + n * k * self.p * self.q) * dtype.itemsize
        self.sets = max(2, min(24, int(2.0e8 // self.bytes) + 1))
        self.x = [torch.randn(n, c, h, w, device="cuda").to(dtype) for _ in range(self.sets)]
        self.f = (torch.randn(k, c // groups, r, s, device="cuda") / (c // groups * r * s) ** 0.5).to(dtype)
        self.y = [torch.empty(n, k, self.p, self.q, device="cuda", dtype=y_dtype or dtype) for _ in range(self.sets)]

    def hankel(self, lib, kind, layout, math, epilogue="none", bias=None, residual=None, decision=None):
        form = torch.channels_last if layout == "last" else torch.contiguous_format
        x = [t.contiguous(memory_format=form) for t in self.x]
        y = [torch.empty_like(t, memory_format=form) for t in self.y]
        f = self.f.permute(0, 2, 3, 1).contiguous() if layout == "last" else self.f
        y_kind = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}.get(self.y[0].dtype, kind)
        plan = Hankel(lib, text_of(self.v, kind, layout, y_kind), epilogue, f, bias, math, decision)
        return plan, graph(lambda i: plan(x[i], y[i], residual), self.sets, self.flops), y

    def torch_side(self, layout):
        n, c, h, w, k, r, s, stride, pad, dil, groups = self.v
        form = torch.channels_last if layout == "last" else torch.contiguous_format
        x = [t.contiguous(memory_format=form) for t in self.x]
        f = self.f.contiguous(memory_format=form)
        st, pd, dl = ((1, stride), (0, pad), (1, dil)) if h == 1 else ((stride,) * 2, (pad,) * 2, (dil,) * 2)
        out = [None]

        def run(i):
            out[0] = torch.nn.functional.conv2d(x[i], f, stride=st, padding=pd, dilation=dl, groups=groups)
        return graph(run, self.sets, self.flops)


def matmul_rate(dtype):
    a, b = (torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
    t = contest({"mm": graph(lambda i: torch.matmul(a, b), 1, 0)}, 5)["mm"]
    return 2 * 8192.0 ** 3 / t / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--shapes", default=os.path.join(ROOT, "bench/shapes/gpu.tsv"))
    parser.add_argument("--out")
    parser.add_argument("--only", default="")
    parser.add_argument("--types", default="")
    parser.add_argument("--groups", action="store_true", help="the grouped and depthwise shapes too")
    parser.add_argument("--extra", action="store_true", help="channels-first, epilogue costs, a 3D and an e4m3 shape")
    parser.add_argument("--no-cudnn", action="store_true")
    parser.add_argument("--tiles", action="store_true", help="every wgmma tile of each shape")
    parser.add_argument("--layout", default="last", choices=("last", "first"), help="of --tiles")
    a = parser.parse_args()
    lib = C.CDLL(a.shared_object)
    lib.hk_plan_destroy.argtypes = [C.c_void_p]
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [f"# command: bench/gpu/bench.py {' '.join(sys.argv[1:])}",
             f"# gpu: {torch.cuda.get_device_name()}; cuDNN {torch.backends.cudnn.version()} through PyTorch "
             f"{torch.__version__}, cudnn.benchmark, benchmark_limit = 0",
             f"# commit: {commit or os.environ.get('HANKEL_COMMIT', 'unknown')}",
             f"# date: {time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}"]
    rates = {}
    print("\n".join(lines), flush=True)

    def emit(*fields):
        lines.append("\t".join(str(f) for f in fields))
        print("\t".join(str(f) for f in fields), flush=True)

    emit("shape", "type", "layout", "us", "TFLOP/s", "pct_matmul", "cudnn_us", "cudnn_layout", "speedup", "decision")
    for name, v, types in read_shapes(a.shapes):
        if (v[10] > 1 and not a.groups) or (a.only and name not in a.only.split(",")):
            continue
        if a.tiles:
            tiles(lib, a, emit, name, v, (a.types.split(",") if a.types else types)[0])
            continue
        for kind in types:
            if a.types and kind not in a.types.split(","):
                continue
            dtype = TORCH[kind]
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            if kind not in rates:
                rates[kind] = matmul_rate(dtype)
                lines.append(f"# matmul {kind}: {rates[kind]:.1f} TFLOP/s")
            case = Case(v, dtype)
            sides = {}
            try:
                plan, sides["hankel"], _ = case.hankel(lib, KIND.get(kind, kind), "last", MATH.get(kind, 0))
            except RuntimeError as e:
                emit(name, kind, "nhwc", "-", "-", "-", "-", "-", "-", str(e))
                continue
            if not a.no_cudnn:
                sides["nhwc"] = case.torch_side("last")
                if kind in ("f32", "tf32"):
                    sides["nchw"] = case.torch_side("first")
            t = contest(sides)
            us = t.pop("hankel")
            best = min(t, key=t.get) if t else None
            rate = case.flops / us / 1e6
            emit(name, kind, "nhwc", f"{us:.2f}", f"{rate:.1f}", f"{100 * rate / rates[kind]:.1f}",
                 f"{t[best]:.2f}" if best else "-", best or "-", f"{t[best] / us:.3f}" if best else "-", plan.decision)
            plan.close()
            del case, sides
    if a.extra:
        extra(lib, a, emit)
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        open(a.out, "w").write("\n".join(lines) + "\n")


def tiles(lib, a, emit, name, v, kind):
    """Every wgmma decision of a shape, one line."""
    found = []

    @abi.CandidateFn
    def collect(_, c):
        if not c.contents.refusal and c.contents.decision.startswith(b"wgmma"):
            found.append((c.contents.decision.decode(), c.contents.predicted_s * 1e6))
    problem, epi = abi.RawProblem(), abi.Epilogue()
    options = abi.Options(device=abi.CUDA, math=MATH.get(kind, 0), rigor=2)
    lib.hk_problem_parse(C.byref(problem), text_of(v, KIND.get(kind, kind), a.layout).encode())
    lib.hk_plan_candidates(C.byref(problem), C.byref(epi), C.byref(options), collect, None)
    case = Case(v, TORCH[kind])
    times, pick = [], found[0][0] if found else "none"
    for decision, guess in found:
        plan, side, _ = case.hankel(lib, KIND.get(kind, kind), a.layout, MATH.get(kind, 0), decision=decision.encode())
        times.append((contest({"one": side}, 5)["one"], guess, decision))
        plan.close()
    times.sort()

    def short(decision):
        k = dict(w.split("=") for w in decision.split()[1:])
        tail = "".join(f"_{t}{k[n]}" for n, t in (("cm", "m"), ("cn", "n"), ("split", "s")) if k.get(n, "1") != "1")
        way = next((short for word, short in (("relaid", "r:"), ("halo", "h:"), ("planes", "p:")) if word in decision), "")
        return way + f"{k['bm']}x{k['bn']}{tail}" + ("_t2" if k["turns"] == "1" else "")
    emit(name, kind, a.layout, f"pick {short(pick)}", " ".join(f"{short(d)}:{t:.1f}({g:.0f})" for t, g, d in times[:12]))


def extra(lib, a, emit):
    """What the issue asks beside the list: layouts, epilogues, e4m3, 3D."""
    shapes = {name: v for name, v, _ in read_shapes(a.shapes)}
    for name in ("rn50_s2_3x3", "rn50_s3_3x3", "rn50_s4_3x3", "rn50_s5_3x3", "sd_320_64", "sd_640_32", "vae_256_256", "vae_512_128", "vae_128_512"):
        case = Case(shapes[name], torch.bfloat16)
        sides = {}
        last, sides["last"], _ = case.hankel(lib, "bf16", "last", 0)
        first, sides["first"], _ = case.hankel(lib, "bf16", "first", 0)
        t = contest(sides)
        emit("# layouts", name, f"last {t['last']:.2f} us", f"first {t['first']:.2f} us",
             f"first/last {t['last'] / t['first']:.3f}", first.decision)
    case = Case(shapes["vae_256_256"], torch.bfloat16)
    bias = torch.randn(case.v[4], device="cuda")
    residual = torch.randn_like(case.y[0], dtype=torch.float32).bfloat16().contiguous(memory_format=torch.channels_last)
    sides, decisions, keep = {}, {}, []
    for epilogue in ("none", "bias+relu", "bias+silu", "gelu", "sum:0.5", "bias+presum:1+relu", "bias+silu+sum:0.5", "user"):
        plan, sides[epilogue], _ = case.hankel(lib, "bf16", "last", 0, epilogue, bias, residual)
        keep.append(plan)
        decisions[epilogue] = plan.decision
    t = contest(sides)
    for epilogue, us in t.items():
        emit("# epilogue", "vae_256_256 bf16", epilogue, f"{us:.2f} us", f"{100 * (us / t['none'] - 1):+.1f} %",
             decisions[epilogue])
    for name in ("vae_256_256", "rn50_s4_3x3"):
        case = Case(shapes[name], torch.float8_e4m3fn, torch.bfloat16)
        plan, side, _ = case.hankel(lib, "f8e4m3", "last", 0)
        us = contest({"f8": side})["f8"]
        emit("# e4m3 to bf16", name, f"{us:.2f} us", f"{case.flops / us / 1e6:.1f} TFLOP/s", plan.decision)
    volume(lib, emit)
    accuracy(lib, emit)


def accuracy(lib, emit):
    """f32 by tf32 parts, plain f32 (the direct kernel) and cuDNN's f32 against f64, normal data, over the results' root mean square."""
    torch.backends.cudnn.allow_tf32 = False
    for v in ((4, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1), (4, 512, 14, 14, 128, 3, 3, 1, 1, 1, 1)):
        n, c, h, w, k, r, s, stride, pad, dil, groups = v
        x = torch.randn(n, c, h, w, device="cuda").contiguous(memory_format=torch.channels_last)
        f = torch.randn(k, c, r, s, device="cuda")
        want = torch.nn.functional.conv2d(x.double(), f.double(), padding=pad)
        unit, found, decisions = want.square().mean().sqrt(), {}, []
        for name, math in (("split", MATH["f32"]), ("plain", 0)):
            y = torch.empty_like(want, dtype=torch.float32, memory_format=torch.channels_last)
            plan = Hankel(lib, text_of(v, "f32", "last"), "none", f.permute(0, 2, 3, 1).contiguous(), None, math)
            plan(x, y)
            torch.cuda.synchronize()
            found[name] = (y.double() - want) / unit
            decisions.append(plan.decision.split(" bm=")[0])
            plan.close()
        found["cudnn"] = (torch.nn.functional.conv2d(x, f, padding=pad).double() - want) / unit
        of = {name: (e.abs().max().item(), e.square().mean().sqrt().item()) for name, e in found.items()}
        emit("# f32 error", f"gk {c * r * s}", *(f"{name} max {a:.2e} rms {b:.2e}" for name, (a, b) in of.items()),
             f"split/plain max {of['split'][0] / of['plain'][0]:.2f} rms {of['split'][1] / of['plain'][1]:.2f}", " ".join(decisions))


def volume(lib, emit):
    """64 channels of a 2 x 32 x 64 x 64 volume, 3x3x3, against conv3d."""
    x = [torch.randn(2, 64, 32, 64, 64, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last_3d) for _ in range(4)]
    f = (torch.randn(64, 64, 3, 3, 3, device="cuda") / 40).bfloat16()
    y = [torch.empty_like(t) for t in x]
    plan = Hankel(lib, "3d_n2_c64_i32x64x64_k64_w3_p1_bf16_last", "none", f.permute(0, 2, 3, 4, 1).contiguous(), None, 0)
    fl = f.contiguous(memory_format=torch.channels_last_3d)
    sides = {"hankel": graph(lambda i: plan(x[i], y[i]), 4, 0),
             "cudnn": graph(lambda i: torch.nn.functional.conv3d(x[i], fl, padding=1), 4, 0)}
    t = contest(sides)
    flops = 2.0 * 2 * 64 * 32 * 64 * 64 * 64 * 27
    emit("# 3D", "n2_c64_i32x64x64_k64_w3 bf16", f"{t['hankel']:.2f} us", f"{flops / t['hankel'] / 1e6:.1f} TFLOP/s",
         f"cudnn {t['cudnn']:.2f} us", f"{t['cudnn'] / t['hankel']:.3f}", plan.decision)


if __name__ == "__main__":
    main()
