#!/usr/bin/env python3
"""hk_causal beside causal-conv1d (Dao-AILab) and a copy of the same bytes, in one process.

bf16 x, f, y and state, bias and SiLU, random normal data, inputs rotated over more than three times the L2, one CUDA
graph of enough launches for 2 ms a side, replays of all sides alternating, the median of nine (bench.py). The copy moves
x to y; of a decode step also the state; of a gradient it reads x and dy and writes dx. Layouts: first = [n][c][time],
last = [n][time][c]. floor: the longer of these bytes at 4.3 TB/s and the products at 67 TFLOP/s (three times as many for
a gradient).

usage: causal_bench.py [--library build/lib/libhankel.so] [--peer DIR] [--only forward,decode,gradient,windows]
                       [--match TEXT] [--type bf16] [--out FILE]
  --peer DIR: holds causal_conv1d_cuda*.so; without it hankel and the copy run alone
"""
import argparse
import ctypes as C
import glob
import importlib.util
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402
import torch  # noqa: E402

TYPE = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 3}
SILU, CUDA = 6, 1
ROWS = [(8, 4096, 2048, 4), (1, 8192, 8192, 4), (16, 1536, 512, 4), (2, 5120, 16384, 4), (8, 2048, 4096, 2)]
MORE = [(8, 4097, 2048, 4), (8, 4096, 2047, 4), (8, 4100, 2048, 4), (8, 4096, 2048, 3)]
WINDOWS = [(8, 2048, 2048, w) for w in (3, 5, 7, 31, 128)]
ODD = [(8, 4096, 2047, 4), (8, 2048, 2047, 7), (8, 2049, 2047, 7)]
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
STEPS = [(64, 4096, 3), (256, 8192, 3), (256, 8192, 4), (1024, 4096, 3), (1, 4096, 3)]


class Strides(C.Structure):
    _fields_ = [("outer", C.c_int64), ("channel", C.c_int64), ("time", C.c_int64)]


class Desc(C.Structure):
    _fields_ = ([("size", C.c_size_t)] + [(k, C.c_int) for k in ("x_type", "f_type", "y_type", "state_type")]
                + [(k, C.c_int64) for k in ("n", "c", "length", "longest", "window", "dilation")] + [("packing", C.c_int)]
                + [(k, Strides) for k in ("x", "y", "pre", "post", "residual")]
                + [("f_channel", C.c_int64), ("f_tap", C.c_int64)]
                + [(k, C.c_int32) for k in ("has_bias", "has_pre", "has_post", "has_residual")]
                + [("act", C.c_int), ("a", C.c_float), ("b", C.c_float), ("state_length", C.c_int64), ("state", Strides),
                   ("ring", C.c_int32), ("skip", C.c_int64), ("has_skip", C.c_int32), ("in_place", C.c_int32),
                   ("gradient", C.c_int32)])


class Args(C.Structure):
    _fields_ = ([("size", C.c_size_t)]
                + [(k, C.c_void_p) for k in ("x", "f", "bias", "pre", "post", "residual", "y", "state_in", "state_out",
                                             "slots_in", "slots_out", "has_state", "positions", "accepted", "offsets",
                                             "ids", "workspace")]
                + [("workspace_bytes", C.c_size_t), ("stream", C.c_void_p)])


class Grads(C.Structure):
    _fields_ = [("size", C.c_size_t), ("dy", C.c_void_p), ("dstate_out", C.c_void_p), ("dx", C.c_void_p),
                ("dx_at", Strides), ("df", C.c_void_p), ("dbias", C.c_void_p), ("dstate_in", C.c_void_p)]


def strides(t):
    return Strides(*t.stride())


class Causal:
    def __init__(self, lib, x, y, f, state=None, gradient=False, **more):
        n, c, length = x.shape
        self.lib = lib
        d = Desc(size=C.sizeof(Desc), x_type=TYPE[x.dtype], f_type=TYPE[f.dtype], y_type=TYPE[y.dtype],
                 state_type=TYPE[x.dtype], n=n, c=c, length=length, window=f.shape[1], x=strides(x), y=strides(y),
                 f_channel=f.stride(0), f_tap=f.stride(1), has_bias=1, act=SILU, gradient=gradient, **more)
        if state is not None:
            d.state_length, d.state = state.shape[2], strides(state)
        o = bench.abi.Options(device=CUDA)
        self.causal = C.c_void_p()
        self.check(lib.hk_causal_create(C.byref(self.causal), C.byref(d), C.byref(o)))
        text = C.create_string_buffer(256)
        lib.hk_causal_print(self.causal, text, 256, None)
        self.text = text.value.decode()
        lib.hk_causal_workspace.restype = C.c_size_t
        self.need = lib.hk_causal_workspace(self.causal)
        self.workspace = torch.empty(max(self.need, 1), dtype=torch.uint8, device="cuda")

    def check(self, status):
        if status:
            self.lib.hk_last_error.restype = C.c_char_p
            raise RuntimeError(self.lib.hk_last_error().decode())

    def args(self, x, f, bias, y=None, **more):
        p = {k: v.data_ptr() for k, v in more.items() if v is not None}
        return Args(size=C.sizeof(Args), x=x.data_ptr(), f=f.data_ptr(), bias=bias.data_ptr(),
                    y=y.data_ptr() if y is not None else None, workspace=self.workspace.data_ptr(),
                    workspace_bytes=self.need, stream=torch.cuda.current_stream().cuda_stream, **p)

    def __call__(self, x, f, bias, y, **more):
        self.check(self.lib.hk_causal_execute(self.causal, C.byref(self.args(x, f, bias, y, **more))))

    def gradient(self, x, f, bias, dy, dx, df, dbias):
        g = Grads(size=C.sizeof(Grads), dy=dy.data_ptr(), dx=dx.data_ptr(), df=df.data_ptr(), dbias=dbias.data_ptr())
        self.check(self.lib.hk_causal_gradient(self.causal, C.byref(self.args(x, f, bias)), C.byref(g)))


def load_peer(folder):
    if not folder:
        return None
    path = (glob.glob(os.path.join(folder, "**/causal_conv1d_cuda*.so"), recursive=True) + [None])[0]
    if not path:
        print(f"# no causal_conv1d_cuda*.so under {folder}")
        return None
    spec = importlib.util.spec_from_file_location("causal_conv1d_cuda", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def floor_us(shape, moved, passes=1):
    n, c, length, w = shape
    return max(moved / 4.3e6, 2 * passes * n * c * length * w / 67e6)


def sets_of(count):
    return max(2, min(40, int(2.0e8 // count) + 1))


def tensors(sets, n, c, length, layout, dtype):
    if layout == "last":
        return [torch.randn(n, length, c, device="cuda").to(dtype).transpose(1, 2) for _ in range(sets)]
    return [torch.randn(n, c, length, device="cuda").to(dtype) for _ in range(sets)]


def flat(t):
    return t if t.is_contiguous() else t.transpose(1, 2)


def weights(c, w, dtype):
    return torch.randn(c, w, device="cuda").to(dtype) / w, torch.randn(c, device="cuda").to(dtype)


def error(got, want):
    return ((got.float() - want.float()).abs().max() / want.float().abs().max()).item()


def reference(x, f, bias):
    y = torch.nn.functional.conv1d(x.float(), f.float().unsqueeze(1), bias.float(), padding=f.shape[1] - 1, groups=x.shape[1])
    return torch.nn.functional.silu(y[..., :x.shape[2]])


def forward(lib, peer, shape, layout, states, dtype=torch.bfloat16):
    n, c, length, w = shape
    sets = sets_of(2 * n * c * length * 2)
    x = tensors(sets, n, c, length, layout, dtype)
    y = [torch.empty_like(t) for t in x]
    f, bias = weights(c, w, dtype)
    state = final = None
    if states:  # as the peer wants them: (n, c, w-1) with channels contiguous
        state = torch.randn(n, w - 1, c, device="cuda").to(dtype).transpose(1, 2)
        final = torch.empty_like(state)
    k = Causal(lib, x[0], y[0], f, state)
    sides = {"hankel": bench.graph(lambda i: k(x[i], f, bias, y[i], state_in=state, state_out=final), sets, 0),
             "copy": bench.graph(lambda i: flat(y[i]).copy_(flat(x[i])), sets, 0)}
    if peer and w <= 4 and (layout == "last" or not states) and (layout == "first" or c % 8 == 0):
        sides["peer"] = bench.graph(lambda i: peer.causal_conv1d_fwd(x[i], f, bias, None, state, y[i], final, True), sets, 0)
    k(x[0], f, bias, y[0])
    wrong = error(y[0][:1, :, :512], reference(x[0][:1, :, :512], f, bias))
    moved = 2 * n * c * length * x[0].element_size()
    return bench.contest(sides), moved, wrong, k.text, floor_us(shape, moved)


def decode(lib, peer, shape, dtype=torch.bfloat16):
    n, c, s = shape
    w, sets = 4, sets_of(2 * n * c * (s + 1) * 2)
    x = [torch.randn(n, c, 1, device="cuda").to(dtype) for _ in range(sets)]
    y = [torch.empty_like(t) for t in x]
    state = [torch.randn(n, c, s, device="cuda").to(dtype) for _ in range(sets)]
    f, bias = weights(c, w, dtype)
    slots = torch.randperm(n, device="cuda").to(torch.int32)
    k = Causal(lib, x[0], y[0], f, state[0])
    sides = {"hankel": bench.graph(lambda i: k(x[i], f, bias, y[i], state_in=state[i], state_out=state[i], slots_in=slots), sets, 0),
             "copy": bench.graph(lambda i: state[i].copy_(state[(i + 1) % sets]), sets, 0)}
    if peer:
        sides["peer"] = bench.graph(lambda i: peer.causal_conv1d_update(x[i], state[i], f, bias, y[i], True, None, slots), sets, 0)
    old = state[0].clone()
    k(x[0], f, bias, y[0], state_in=state[0], state_out=state[0], slots_in=slots)
    history = torch.cat([old[slots.long()][:, :, s - 3:], x[0]], 2)
    wrong = error(y[0][:, :, 0], reference(history, f, bias)[:, :, 3])
    moved = 2 * n * c * (s + 1) * x[0].element_size()
    return bench.contest(sides), moved, wrong, k.text, floor_us((n, c, 1, w), moved)


def backward(lib, peer, shape, layout, dtype=torch.bfloat16):
    n, c, length, w = shape
    sets = sets_of(3 * n * c * length * 2)
    x, dy = tensors(sets, n, c, length, layout, dtype), tensors(sets, n, c, length, layout, dtype)
    dx = [torch.empty_like(t) for t in x]
    f, bias = weights(c, w, dtype)
    df, dbias = torch.zeros(c, w, device="cuda"), torch.zeros(c, device="cuda")
    k = Causal(lib, x[0], x[0], f, gradient=True)
    sides = {"hankel": bench.graph(lambda i: k.gradient(x[i], f, bias, dy[i], dx[i], df, dbias), sets, 0),
             "copy": bench.graph(lambda i: torch.add(flat(x[i]), flat(dy[i]), out=flat(dx[i])), sets, 0)}
    if peer:
        pf, pbias = torch.zeros(c, w, device="cuda"), torch.zeros(c, device="cuda")
        sides["peer"] = bench.graph(
            lambda i: peer.causal_conv1d_bwd(x[i], f, bias, dy[i], None, None, None, dx[i], pf, pbias, None, True), sets, 0)
    k.gradient(x[0], f, bias, dy[0], dx[0], df, dbias)
    xs, fs, bs = (t.float().detach().requires_grad_() for t in (x[0][:, :64, :], f[:64], bias[:64]))
    reference(xs, fs, bs).backward(dy[0][:, :64, :].float())
    wrong = max(error(dx[0][:, :64, :], xs.grad), error(df[:64], fs.grad), error(dbias[:64], bs.grad))
    moved, again = 3 * n * c * length * x[0].element_size(), df.clone()
    k.gradient(x[0], f, bias, dy[0], dx[0], df, dbias)
    assert torch.equal(again, df), "two runs give other bits"
    return bench.contest(sides), moved, wrong, k.text, floor_us(shape, moved, 3)


def report(lines, gains, what, t, moved, wrong, text, floor):
    gain = t["peer"] / t["hankel"] if "peer" in t else None
    if gain:
        gains.append(gain)
    lines.append(f"{what}\t{t['hankel']:.1f}\t{moved / t['hankel'] / 1e3:.0f}\t{floor:.1f}\t{t['copy']:.1f}\t{t['hankel'] / t['copy']:.2f}\t"
                 + (f"{t['peer']:.1f}\t{gain:.2f}" if gain else "-\t-") + f"\t{wrong:.1e}\t{text.split(': ', 1)[-1]}")
    print(lines[-1], flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", dest="shared_object", default=os.path.join(bench.ROOT, "build/lib/libhankel.so"))
    parser.add_argument("--peer")
    parser.add_argument("--only", default="forward,decode,gradient,windows")
    parser.add_argument("--match", default="", help="only problems whose name holds this")
    parser.add_argument("--type", default="bf16", choices=TYPES)
    parser.add_argument("--out")
    a = parser.parse_args()
    dtype = TYPES[a.type]
    lib, peer, only = C.CDLL(a.shared_object), load_peer(a.peer), a.only.split(",")
    lines, gains = [f"# gpu: {torch.cuda.get_device_name()}; PyTorch {torch.__version__}",
                    "problem\tus\tGB/s\tfloor_us\tcopy_us\tof_copy\tpeer_us\tspeedup\terror\tkernel"], []
    print("\n".join(lines), flush=True)

    def row(what, make, *args):
        if a.match not in what:
            return
        try:
            report(lines, gains, what, *make(lib, peer, *args, dtype=dtype))
        except RuntimeError as e:
            print(f"# {what}: {e}", flush=True)
        torch.cuda.empty_cache()
    for shape in ROWS + MORE if "forward" in only else []:
        name = "n{}_c{}_L{}_w{}".format(*shape)
        for layout in ("first", "last"):
            row(f"{name} {layout}", forward, shape, layout, False)
            if shape in ROWS:
                row(f"{name} {layout} state", forward, shape, layout, True)
    for shape in STEPS if "decode" in only else []:
        row("decode n{} c{} S{}".format(*shape), decode, shape)
    for shape in ROWS + WINDOWS + ODD[:1] if "gradient" in only else []:
        for layout in ("first", "last"):
            row("gradient n{}_c{}_L{}_w{} ".format(*shape) + layout, backward, shape, layout)
    for shape in WINDOWS + ODD if "windows" in only else []:
        for layout in ("first", "last"):
            row("n{}_c{}_L{}_w{} ".format(*shape) + layout, forward, shape, layout, False)
            row("n{}_c{}_L{}_w{} ".format(*shape) + layout + " state", forward, shape, layout, True)
    if gains:
        lines.append(f"# geometric mean over the peer: {math.exp(sum(map(math.log, gains)) / len(gains)):.2f}")
        print(lines[-1])
    if a.out:
        os.makedirs(os.path.dirname(os.path.abspath(a.out)), exist_ok=True)
        open(a.out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
