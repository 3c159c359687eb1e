"""libhankel.cuda without a GPU, on the stand-in device: what its plans hand to the library, and what they refuse. The
rest needs the device (test_cuda_device.py)."""
import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi, cuda
from standin import Device, OnDevice

rng = np.random.default_rng(3)
x, w = rng.integers(-3, 4, (2, 4, 9)).astype("f4"), rng.integers(-3, 4, (6, 4, 3)).astype("f4")
c, b = rng.integers(-9, 10, (2, 6, 9)).astype("f4"), rng.integers(-9, 10, 6).astype("f4")
acc = hk.conv1d(x, w, padding=1)


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch)


def run(words, with_bias=False, with_residual=False, out=None):
    """y of a cuda.Plan of x and w, and the hk_epilogue that it was made with."""
    y = np.zeros_like(acc) if out is None else out
    plan = cuda.Plan(OnDevice(x), OnDevice(w), OnDevice(b) if with_bias else None, padding=1, out=OnDevice(y), **words)
    plan(OnDevice(x), out=OnDevice(y), residual=OnDevice(c) if with_residual else None)
    return y


@pytest.mark.parametrize("act, residual, order, beta, want", [
    ("presum:0.5+relu", True, "before", 0.5, np.maximum(acc + 0.5 * c, 0)),
    ("presum:0.5+relu", None, "before", 0.5, np.maximum(acc + 0.5 * c, 0)),
    ("sum:0.5", True, "after", 0.5, acc + 0.5 * c),
    ("relu+sum:0.5", None, "after", 0.5, np.maximum(acc, 0) + 0.5 * c),
    ("relu", True, "after", 1, np.maximum(acc, 0) + c),
    ("sum", True, "after", 1, acc + c),
    (None, True, "after", 1, acc + c),
])
def test_residual_order_and_beta_are_kept(device, act, residual, order, beta, want):
    got = run(dict(act=act, residual=residual), with_residual=True)
    raw = device.created[-1].epilogue
    assert (raw.residual, raw.beta) == (_abi.RESIDUAL[order], beta) and device.created[-1].device == _abi.CUDA
    np.testing.assert_array_equal(got, want)


def test_a_residual_is_given_exactly_when_it_is_read(device):
    for act in ("sum:0.5", "presum+relu"):
        with pytest.raises(ValueError, match="residual is None; the plan's epilogue .* adds one"):
            run(dict(act=act))
    with pytest.raises(ValueError, match="residual is given and the plan's epilogue"):
        run(dict(act="relu"), with_residual=True)


def test_bias_in_the_text(device):
    np.testing.assert_array_equal(run(dict(act="bias+relu"), with_bias=True), np.maximum(acc + b[:, None], 0))
    np.testing.assert_array_equal(run(dict(act="relu"), with_bias=True), np.maximum(acc + b[:, None], 0))
    for text, name in (("bias+relu", "bias"), ("scale+relu", "scale"), ("scale1+relu", "scale"), ("prelu", "slopes")):
        with pytest.raises(ValueError, match=f"has a {name} and {name} is None"):
            run(dict(act=text))


def test_gates_have_half_the_channels(device):
    half = np.zeros((2, 3, 9), "f4")
    np.testing.assert_array_equal(run(dict(act="relu", act2="relu", gate="gated"), out=half),
                                  np.maximum(acc[:, :3], 0) * np.maximum(acc[:, 3:], 0))
    torch = pytest.importorskip("torch")
    device.pretend_torch()
    plan = cuda.Plan(torch.from_numpy(x), torch.from_numpy(w), padding=1, act="gated:relu:relu")
    assert tuple(plan(torch.from_numpy(x)).shape) == half.shape
    np.testing.assert_array_equal(plan(torch.from_numpy(x)).numpy(), half)


def test_words_that_plans_lacked(device):
    """scale, beta, order, asymmetric padding, slopes."""
    scale, y = np.arange(6, dtype="f4"), np.zeros_like(acc)
    plan = cuda.Plan(OnDevice(x), OnDevice(w), padding=[(2, 0)], scale=OnDevice(scale), act="prelu",
                     slopes=[0.5] * 6, residual=True, beta=2, residual_order="before", out=OnDevice(y))
    plan(OnDevice(x), OnDevice(y), OnDevice(c))
    v = hk.conv1d(x, w, padding=[(2, 0)]) * scale[:, None] + 2 * c
    np.testing.assert_array_equal(y, np.where(v < 0, 0.5 * v, v))


def test_state(device):
    taps, got = np.ones((2, 4, 3), "f4"), []
    state = OnDevice(np.zeros((2, 4, 2), "f4"))
    for part in np.split(x, 3, axis=2):
        part, y = OnDevice(np.ascontiguousarray(part)), OnDevice(np.zeros((2, 2, 3), "f4"))
        plan = cuda.Plan(part, OnDevice(taps), stateful=True, out=y)
        assert plan.state_shape == (2, 4, 2)
        plan(part, out=y, state=state)
        got.append(y.array)
    np.testing.assert_array_equal(np.concatenate(got, 2), hk.conv(x, taps, padding="CAUSAL"))
    with pytest.raises(ValueError, match="state must be given exactly when the plan is stateful"):
        plan(part, out=y)


def test_channels_last_tensors_stay_so(device):
    torch = pytest.importorskip("torch")
    device.pretend_torch()
    image = torch.ones(2, 8, 5, 6, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    taps = torch.ones(4, 8, 3, 3, dtype=torch.bfloat16)
    for y in (cuda.conv(image, taps, padding=1), cuda.Plan(image, taps, padding=1)(image),
              hk.conv2d(image, taps, padding=1)):
        assert tuple(y.shape) == (2, 4, 5, 6) and y.stride(1) == 1 and y.dtype == torch.bfloat16
    assert cuda.conv(image.contiguous(), taps).stride() == (48, 12, 4, 1)
    assert cuda.view(image, "x").strides == image.stride() and cuda.view(image, "x").pointer == image.data_ptr()


@pytest.mark.parametrize("call, word", [
    (lambda: cuda.conv(x, w), "CUDA device"), (lambda: cuda.conv(OnDevice(x), w), "CUDA device"),
    (lambda: cuda.conv([1.0], w), "CUDA device"), (lambda: cuda.view(OnDevice(x), "x", _abi.CPU), "host"),
    (lambda: cuda.conv(OnDevice(x[0, 0]), OnDevice(w)), "x has shape"),
    (lambda: cuda.Plan(OnDevice(x), OnDevice(w), padding=1, stateful=True), "padding"),
])
def test_refusals(call, word):
    with pytest.raises(hk.ArgumentError, match=word):
        call()


@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_floats_for_integers(name):
    for value in (1.5, 1.0):
        with pytest.raises(ValueError, match=f"{name} is {value}; an integer is required"):
            cuda.Plan(OnDevice(x), OnDevice(w), **{name: value})


def test_without_a_device_the_library_says_so():
    try:
        cuda.info()
    except hk.HankelError:
        pass
    else:
        pytest.skip("there is a CUDA device")
    for call in (cuda.info, lambda: cuda.conv(OnDevice(x), OnDevice(w), out=OnDevice(np.zeros((2, 6, 7), "f4")))):
        with pytest.raises(hk.HankelError) as caught:
            call()
        assert caught.value.name in ("HK_DEVICE", "HK_UNSUPPORTED") and not isinstance(caught.value, ValueError)
