#!/usr/bin/env python3
"""hk_causal on the CPU beside PyTorch's conv1d + silu and ONNX Runtime, in one process.

Bias and SiLU, random normal data. hankel: hk_causal_execute, y given, timed from C's side of ctypes (a call of it costs
under 1 us). PyTorch: conv1d with groups = c on an x that is padded beforehand, then silu; for one token a product with
the joined window and silu, as models write it. ONNX Runtime: Pad, Conv, Sigmoid, Mul. All alternate in rounds after a
call of their own; medians, and the best of each in brackets. Results must agree.

usage: causal_cpu.py [--library build/lib/libhankel.so] [--threads N] [--seconds S] [--match TEXT] [--csv FILE]
"""
import argparse
import csv
import ctypes as C
import math
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
SILU = 6
#: n, c, length, window, layout of x
ROWS = [(1, 2048, 2048, 4, "first"), (1, 2048, 2048, 4, "last"), (1, 1536, 512, 4, "first"), (1, 1536, 512, 4, "last"),
        (8, 768, 256, 4, "first"), (8, 768, 256, 4, "last"), (2, 1024, 2048, 3, "first"), (2, 1024, 2048, 2, "last"),
        (1, 512, 4096, 7, "first"), (1, 512, 4096, 31, "first"), (1, 512, 4096, 31, "last"), (1, 256, 2048, 128, "first"),
        (1, 4096, 1, 4, "step"), (16, 4096, 1, 4, "step"), (1, 8192, 1, 4, "step")]


def load(path):
    """The library, and the structs that mirror the header."""
    os.environ.setdefault("LIBHANKEL", str(path))
    from libhankel import _abi, _abi_causal
    lib = C.CDLL(str(path))
    for name, (result, arguments) in _abi_causal.PROTOTYPES.items():
        getattr(lib, name).argtypes = arguments
    lib.hk_last_error.restype = C.c_char_p
    return lib, _abi, _abi_causal


def hankel(lib, abi, structs, row, data, threads):
    """A function that runs one call, and y."""
    import torch
    n, c, length, window, layout = row
    x, f, bias, state = data
    kind = {torch.float32: 0, torch.bfloat16: 3}[x.dtype]
    y = torch.empty_like(x)
    desc = structs.CausalDesc(x_type=kind, f_type=kind, y_type=kind, state_type=kind, n=n, c=c, length=length,
                              window=window, has_bias=1, act=SILU)
    desc.x = structs.CausalStrides(*x.stride())
    if state is not None:
        desc.state_length = state.shape[2]
    pointer = C.c_void_p()
    if lib.hk_causal_create(C.byref(pointer), C.byref(desc), C.byref(abi.Options(threads=threads))):
        raise SystemExit(lib.hk_last_error().decode())
    given = structs.CausalArgs(x=x.data_ptr(), f=f.data_ptr(), bias=bias.data_ptr(), y=y.data_ptr())
    if state is not None:
        given.state_in = given.state_out = state.data_ptr()
    block = bytes(given)
    return (lambda: lib.hk_causal_execute(pointer, block)), y, (given, desc)


def torch_way(row, data):
    import torch
    import torch.nn.functional as F
    n, c, length, window, layout = row
    x, f, bias, state = data
    if state is not None:
        def step():
            joined = torch.cat((state, x), dim=2)
            state.copy_(joined[:, :, 1:])
            return F.silu(torch.sum(joined * f, dim=2) + bias)
        return step
    padded = F.pad(x, (window - 1, 0))
    if layout == "last":
        padded = F.pad(x.transpose(1, 2), (0, 0, window - 1, 0)).transpose(1, 2)
    weight = f.unsqueeze(1)
    return lambda: F.silu(F.conv1d(padded, weight, bias, groups=c))


def onnx_way(row, data, threads):
    """None where onnxruntime is not installed, for bf16, and for steps."""
    import torch
    n, c, length, window, layout = row
    x, f, bias, state = data
    if x.dtype != torch.float32 or state is not None or layout == "last":
        return None
    try:
        import onnxruntime as ort
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    nodes = [helper.make_node("Conv", ["x", "f", "b"], ["z"], group=c, pads=[window - 1, 0]),
             helper.make_node("Sigmoid", ["z"], ["s"]), helper.make_node("Mul", ["z", "s"], ["y"])]
    shape = [n, c, length]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(f.unsqueeze(1).numpy(), "f"), numpy_helper.from_array(bias.numpy(), "b")])
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {"x": x.numpy()}
    return lambda: session.run(None, feed)


def measure(ways, seconds):
    """Microseconds of each: median and best."""
    times = {name: [] for name in ways}
    repeats = {}
    for name, run in ways.items():
        run()
        start = time.perf_counter()
        run()
        repeats[name] = max(1, min(1000, int(2e-3 / (time.perf_counter() - start + 1e-9))))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[name]) < 5:
        for name, run in ways.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            times[name].append((time.perf_counter() - start) / repeats[name] * 1e6)
    return {name: (statistics.median(t), min(t)) for name, t in times.items()}


def main():
    import torch
    import torch.nn.functional as F
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", dest="shared_object", default=str(ROOT / "build/lib/libhankel.so"))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--match", default="")
    p.add_argument("--csv")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    lib, abi, structs = load(a.shared_object)
    rows, ratios = [], {"f32": [], "bf16": []}
    print(f"threads {a.threads}, PyTorch {torch.__version__}; microseconds: median [best]")
    for row in ROWS:
        for dtype in (torch.float32, torch.bfloat16):
            n, c, length, window, layout = row
            name = f"n{n} c{c} l{length} w{window} {layout} {'f32' if dtype == torch.float32 else 'bf16'}"
            if a.match not in name:
                continue
            torch.manual_seed(0)
            x = torch.randn(n, c, length).to(dtype)
            if layout == "last":
                x = torch.randn(n, length, c).to(dtype).transpose(1, 2)
            f, bias = (torch.randn(c, window) * 0.3).to(dtype), torch.randn(c).to(dtype)
            state = torch.zeros(n, c, window - 1).to(dtype) if layout == "step" else None
            data = (x, f, bias, state)
            run, y, keep = hankel(lib, abi, structs, row, data, a.threads)
            run()
            want = F.silu(F.conv1d(F.pad(x.float(), (window - 1, 0)), f.float().unsqueeze(1), bias.float(), groups=c))
            worst = (y.float() - want).abs().max().item()
            if not worst < (1e-4 if dtype == torch.float32 else 0.1):
                raise SystemExit(f"{name}: off by {worst}")
            ways = {"hankel": run, "torch": torch_way(row, data), "onnxruntime": onnx_way(row, data, a.threads)}
            t = measure({k: v for k, v in ways.items() if v}, a.seconds)
            ratio = t["torch"][0] / t["hankel"][0]
            ratios[name.split()[-1]].append(ratio)
            print(f"{name:36s}" + "".join(f" {k} {v[0]:9.1f} [{v[1]:9.1f}]" for k, v in t.items()) + f"  torch/hankel {ratio:.1f}")
            rows.append([name, a.threads] + [f"{v:.2f}" for k in ("hankel", "torch", "onnxruntime") for v in t.get(k, (0, 0))])
    for kind, r in ratios.items():
        if r:
            print(f"{kind}: geometric mean {math.exp(sum(map(math.log, r)) / len(r)):.2f}x PyTorch, worst {min(r):.2f}x")
    if a.csv:
        with open(a.csv, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["row", "threads", "hankel_us", "hankel_best", "torch_us", "torch_best", "onnxruntime_us", "onnxruntime_best"])
            out.writerows(rows)


if __name__ == "__main__":
    main()
