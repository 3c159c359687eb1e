"""One API, the device follows the tensor: every function on numpy, torch, CuPy and plain DLPack arrays gives the same,
and hands the library the tensors' own pointers, strides and stream. The device is the stand-in of standin.py."""
import gc
import pickle

import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi
from standin import STREAM, Device, OnDevice, values

rng = np.random.default_rng(7)


def ints(*shape, dtype="f4"):
    return rng.integers(-3, 4, shape).astype(dtype)


x, f, y = ints(2, 4, 9, 8), ints(6, 4, 3, 3), ints(2, 6, 9, 8)
KINDS = ["torch", "cupy", "torch_cuda", "dlpack", "interface"]
ALLOCATED = ["dlpack", "interface"]  # nothing can be allocated beside these: they need out

#: name -> (function, arrays by position, arrays by keyword, other keywords)
CALLS = {
    "conv2d": (hk.conv2d, (x, f), dict(bias=ints(6)), dict(padding=1, act="relu")),
    "asymmetric padding": (hk.conv, (x, f), {}, dict(padding=[(2, 0), (1, 3)], window_strides=(2, 1))),
    "input dilation": (hk.conv, (x, f), {}, dict(lhs_dilation=(2, 3), rhs_dilation=2, padding=2)),
    "batch groups": (hk.conv, (ints(4, 4, 9), ints(6, 4, 3)), {}, dict(batch_group_count=2)),
    "feature groups": (hk.conv, (x, ints(6, 2, 3, 3)), {}, dict(feature_group_count=2, reverse=True)),
    "dimension numbers": (hk.conv, (ints(2, 9, 8, 4), ints(3, 3, 4, 6)), {},
                          dict(dimension_numbers=("NHWC", "HWIO", "NHWC"), padding="SAME")),
    "scale and bias": (hk.conv, (x, f), dict(scale=ints(6), bias=ints(6)), dict(padding="SAME")),
    "one scale": (hk.conv, (x, f), {}, dict(scale=0.5, padding="SAME")),
    "residual after": (hk.conv, (x, f), dict(residual=y), dict(padding=1, act="relu", beta=0.5)),
    "residual before": (hk.conv2d, (x, f), dict(residual=y), dict(padding=1, act="relu", beta=2,
                                                                  residual_order="before")),
    "an epilogue's text": (hk.conv2d, (x, f), dict(residual=y, bias=ints(6)), dict(padding=1,
                                                                                  act="bias+presum:0.5+relu")),
    "gate": (hk.conv2d, (x, f), {}, dict(padding=1, act="relu", act2="hardtanh", gate="gated")),
    "prelu": (hk.conv2d, (x, f), dict(slopes=ints(6)), dict(act="prelu")),
    "int8": (hk.conv2d, (ints(2, 4, 9, 8, dtype="i1"), ints(6, 4, 3, 3, dtype="i1")), dict(bias=ints(6, dtype="i4")),
             dict(x_zero=1, f_zero=[0, 1, 2, 0, 1, 2], padding=1)),
    "conv1d": (hk.conv1d, (ints(2, 3, 20), ints(4, 3, 3)), {}, dict(dilation=2)),
    "conv3d": (hk.conv3d, (ints(1, 2, 5, 6, 7), ints(3, 2, 2, 3, 2)), {}, {}),
    "without a batch": (hk.conv2d, (x[0], f), dict(residual=y[0]), dict(padding=1)),
    "depthwise": (hk.depthwise_conv1d, (ints(2, 3, 20), ints(3, 4)), dict(bias=ints(3)), {}),
    "transpose": (hk.conv_transpose2d, (ints(2, 6, 5, 4), ints(6, 3, 3, 3)), {}, dict(stride=2, output_padding=1)),
    "input gradient": (hk.conv_grad_input, (ints(2, 6, 7, 6), f), {}, dict(x_shape=(2, 4, 9, 8))),
    "filter gradient": (hk.conv_grad_filter, (x, ints(2, 6, 7, 6)), {}, dict(f_shape=(6, 4, 3, 3))),
}


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch)


def need(kind):
    if kind.startswith("torch"):
        pytest.importorskip("torch")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(CALLS))
def test_same_as_numpy(device, kind, name):
    need(kind)
    function, arrays, named, words = CALLS[name]
    want = function(*arrays, **named, **words)
    device.created.clear(), device.executed.clear()
    make = device.maker(kind)
    given = [make(a) for a in arrays]
    keywords = {k: make(v) for k, v in named.items()}
    out = np.full(want.shape, 99, want.dtype)
    if kind in ALLOCATED:
        keywords["out"] = make(out)
    got = function(*given, **keywords, **words)
    assert type(got) is type(given[0])
    np.testing.assert_array_equal(values(got), want)
    on_device = kind != "torch"
    for created in device.created:
        assert created.device == (_abi.CUDA if on_device else _abi.CPU)
    args = device.executed[-1]
    assert args.x == arrays[0].ctypes.data and args.stream == (
        None if not on_device or kind == "dlpack" else STREAM)
    assert args.f == arrays[1].ctypes.data
    if kind in ALLOCATED:
        assert got is keywords["out"] and args.y == out.ctypes.data
    if "residual" in named:
        assert args.c == named["residual"].ctypes.data


@pytest.mark.parametrize("kind", KINDS)
def test_plan_keeps_the_filter(device, kind):
    need(kind)
    bias, r = ints(6), ints(2, 6, 7, 6)
    want = hk.conv(x, f, bias=bias, residual=r, beta=0.5)
    make = device.maker(kind)
    device.created.clear()
    out = np.zeros_like(want)
    plan = hk.plan(make(x), make(f), bias=make(bias), residual=True, beta=0.5, out=make(out))
    created, = device.created
    assert created.weights.f == f.ctypes.data and (created.weights.bias == bias.ctypes.data or kind == "torch")
    assert plan.device == ("cpu" if kind == "torch" else "cuda")
    assert plan(make(x), out=make(out), residual=make(r)) is not None
    np.testing.assert_array_equal(out, want)
    assert not device.executed[-1].f and not device.executed[-1].bias
    if kind not in ALLOCATED:
        np.testing.assert_array_equal(values(plan(make(x), residual=make(r))), want)


@pytest.mark.parametrize("kind", ["cupy", "torch_cuda", "interface"])
def test_vectors_of_another_type_and_from_the_host(device, kind):
    """A bf16 model's bias, a list, a numpy vector: brought to the device as what the library reads."""
    need(kind)
    bias, out = ints(6), np.zeros((2, 6, 7, 6), "f4")
    want = hk.conv(x, f, bias=bias)
    make = device.maker(kind)
    given = [bias, bias.tolist(), bias.astype("f8")] + ([] if kind == "interface" else [make(bias.astype("f2"))])
    for values_ in given:
        hk.conv(make(x), make(f), bias=values_, out=make(out))
        np.testing.assert_array_equal(out, want)
        assert device.executed[-1].bias
        assert kind == "torch_cuda" or device.executed[-1].bias != bias.ctypes.data  # brought to the device
    with pytest.raises(hk.ArgumentError, match=r"bias has shape \(5,\)"):
        hk.conv(make(x), make(f), bias=make(ints(5)), out=make(out))
    if kind == "interface":
        with pytest.raises(hk.ArgumentError, match="bias has elements of f16; a dense vector of f32"):
            hk.conv(make(x), make(f), bias=make(bias.astype("f2")), out=make(out))


@pytest.mark.parametrize("kind", ["cupy", "torch_cuda"])
def test_bias_gradient_on_the_device(device, kind):
    need(kind)
    dy = ints(2, 3, 5, 4)
    want, last = dy.sum((0, 2, 3)), np.ascontiguousarray(dy.transpose(0, 2, 3, 1))
    make = device.maker(kind)
    np.testing.assert_array_equal(values(hk.conv_grad_bias(make(dy))), want)
    np.testing.assert_array_equal(values(hk.conv_grad_bias(make(last), "NHWC")), want)


@pytest.mark.parametrize("kind", ["cupy", "torch_cuda", "interface"])
def test_state_on_the_device(device, kind):
    need(kind)
    signal, taps = ints(1, 3, 30), ints(4, 3, 3)
    want = hk.conv(signal, taps, padding="CAUSAL", rhs_dilation=2)
    make = device.maker(kind)
    state, parts = np.zeros((1, 3, 4), "f4"), []
    for block in np.split(signal, 3, axis=2):
        block, out = np.ascontiguousarray(block), np.zeros((1, 4, 10), "f4")
        plan = hk.plan(make(block), make(taps), padding="CAUSAL", rhs_dilation=2, stateful=True, out=make(out))
        assert plan.state_shape == state.shape
        plan(make(block), out=make(out), state_in=make(state), state_out=make(state))
        parts.append(out)
    np.testing.assert_array_equal(np.concatenate(parts, 2), want)


def test_workspace_follows_the_stream(device):
    """Objects that cannot allocate share one block per stream; it grows."""
    make = device.maker("interface")
    big = ints(8, 16, 24, 24)
    for image, taps in ((x, f), (big, ints(16, 16, 3, 3)), (x, f)):
        n, _, h, w = image.shape
        out = np.zeros((n, taps.shape[0], h - 2, w - 2), "f4")
        hk.conv(make(image), make(taps), out=make(out), decision=None)
        np.testing.assert_array_equal(out, hk.conv(image, taps))
        assert device.executed[-1].workspace is None or device.executed[-1].workspace % 64 == 0


@pytest.mark.parametrize("kind", ["cupy", "torch_cuda", "interface"])
def test_pickles_bring_vectors_to_the_host(device, kind):
    need(kind)
    bias, make = ints(6), device.maker(kind)
    out = np.zeros((2, 6, 7, 6), "f4")
    for hold in (True, False):
        plan = hk.plan(make(x), make(f), bias=make(bias), act="prelu", slopes=make(bias), out=make(out),
                       hold_weights=hold)
        again = pickle.loads(pickle.dumps(plan))
        assert again == plan and again.device == "cuda" and again.epilogue == pickle.loads(pickle.dumps(plan.epilogue))
        again(make(x), make(f), out=make(out))
        np.testing.assert_array_equal(out, hk.conv(x, f, bias=bias, act="prelu", slopes=bias))


def test_views_and_alignment(device):
    """Strides go to the library as they are; tensors off 16 bytes make an unaligned plan."""
    block = ints(2, 5, 12, 12)
    part = block[:, 1:, ::2, 1:9]
    out = np.zeros((2, 6, 4, 6), "f4")
    hk.conv(OnDevice(part), OnDevice(f), out=OnDevice(out))
    np.testing.assert_array_equal(out, hk.conv(part, f))
    created = next(c for c in device.created if c.device == _abi.CUDA)
    raw = created.problem
    assert (raw.x.outer, raw.x.channel, *raw.x.at[:2]) == tuple(s // 4 for s in part.strides)
    assert created.options.unaligned == int(part.ctypes.data % 16 != 0 or out.ctypes.data % 16 != 0)


@pytest.mark.parametrize("call, words", [
    (lambda: hk.conv(OnDevice(x), f), "f lies on the host and x on CUDA device 0; both must lie on one device"),
    (lambda: hk.conv(x, OnDevice(f)), "f lies on CUDA device 0 and x on the host"),
    (lambda: hk.conv(x, f, bias=OnDevice(ints(6))), "bias lies on a CUDA device and x on the host"),
    (lambda: hk.conv(OnDevice(x), OnDevice(f)), r"give out, a tensor of shape \(2, 6, 7, 6\) and type f32"),
    (lambda: hk.conv(OnDevice(x), OnDevice(f), act=lambda at, v: v), "user is a Python function, which a CUDA device"),
    (lambda: hk.conv(x, f, act=hk.Function(cuda="float hk_user()")), "CUDA source alone, which the CPU cannot run"),
    (lambda: hk.conv(OnDevice(x.astype("c8")), OnDevice(f)), r"x has DLPack type \(5, 64\)"),
    (lambda: hk.conv_grad_bias(OnDevice(x)), "dy is a OnDevice, for which nothing can be allocated"),
])
def test_refusals(device, call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert caught.value.name == "HK_INVALID"


def test_other_devices_and_read_only_memory(device):
    from standin import ByInterface

    class Elsewhere(OnDevice):
        def __dlpack_device__(self):
            return 10, 0

    with pytest.raises(ValueError, match="x lies on a device of DLPack type 10"):
        hk.conv(Elsewhere(x), f)
    with pytest.raises(ValueError, match="out is read-only"):
        hk.conv(ByInterface(x), ByInterface(f), out=ByInterface(np.zeros((2, 6, 7, 6), "f4"), read_only=True))
    plan = hk.plan(OnDevice(x), OnDevice(f), out=OnDevice(np.zeros((2, 6, 7, 6), "f4")))
    with pytest.raises(ValueError, match="x lies on the host; the plan was made for cuda"):
        plan(x, out=np.zeros((2, 6, 7, 6), "f4"))


def test_a_plan_waits_for_the_device_before_it_goes(device):
    order = []
    real = hk._native.lib.hk_plan_destroy
    device.monkeypatch.setattr(hk._native.lib, "hk_gpu_sync", lambda stream: order.append("sync") or _abi.OK)
    device.monkeypatch.setattr(hk._native.lib, "hk_plan_destroy", lambda h: (order.append("destroy"), real(h)))
    out = OnDevice(np.zeros((2, 6, 7, 6), "f4"))
    for used in (True, False):
        plan = hk.plan(OnDevice(x), OnDevice(f), out=out)
        order.clear()
        if used:
            plan(OnDevice(x), out=out)
        del plan
        gc.collect()
        assert order[-2:] == (["sync", "destroy"] if used else ["destroy"])


def test_functions_travel_as_source(device):
    """The CUDA text and the caller's data reach hk_epilogue and hk_args; the launch itself is the device's."""
    def create(handle, problem, epilogue, options, weights):
        device.created.append((epilogue, options))
        return _abi.OK
    device.monkeypatch.setattr(hk._native.lib, "hk_plan_create", create)
    source = "float hk_user(hk_at at, float v, const void *user) { return v; }"
    store = "void hk_user_store(hk_at at, float v, void *user) { }"
    hk.plan(OnDevice(x), OnDevice(f), act=hk.Function(cuda=source), store=hk.Function(cuda=store))
    (epilogue, options), = device.created
    assert epilogue.act == _abi.ACT["user"] and options.device == _abi.CUDA
    assert epilogue.cuda_user == source.encode() and epilogue.cuda_store == store.encode()
    assert not epilogue.user and not epilogue.store
