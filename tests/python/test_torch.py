"""torch tensors on the CPU: tensors in, tensors out, bf16 included, and nothing copied."""
import numpy as np
import pytest

import libhankel as hk
from standin import Device

torch = pytest.importorskip("torch")
F = torch.nn.functional


def ints(*shape, dtype=torch.float32):
    return torch.randint(-3, 4, shape).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_float_type(dtype):
    x, w, b, c = ints(2, 4, 7, 6), ints(6, 4, 3, 3), ints(6), ints(2, 6, 7, 6)
    want = torch.relu(F.conv2d(x, w, b, padding=1)) + c
    y = hk.conv2d(x.to(dtype), w.to(dtype), b.to(dtype), padding=1, act="relu", residual=c.to(dtype))
    assert type(y) is torch.Tensor and y.dtype == dtype
    assert torch.equal(y.float(), want.to(dtype).float())


def test_int8():
    x, w = ints(1, 4, 9, dtype=torch.int8), ints(3, 4, 3, dtype=torch.int8)
    y = hk.conv1d(x, w, torch.arange(3), x_zero=1)
    assert y.dtype == torch.int32
    assert torch.equal(y.float(), F.conv1d(x.float() - 1, w.float(), torch.arange(3.0)))


def test_out_gradients_and_transposes():
    x, w = ints(2, 4, 7, 6), ints(6, 4, 3, 3)
    want = F.conv2d(x, w)
    out = torch.empty_like(want)
    assert hk.conv2d(x, w, out=out) is out and torch.equal(out, want)
    x.requires_grad_(), w.requires_grad_()
    y, dy = F.conv2d(x, w), ints(2, 6, 5, 4)
    dx, dw = torch.autograd.grad(y, (x, w), dy)
    with torch.no_grad():
        assert torch.equal(hk.conv_grad_input(dy, w, x.shape), dx)
        assert torch.equal(hk.conv_grad_filter(x, dy, w.shape), dw)
        assert torch.equal(hk.conv_grad_bias(dy), dy.sum((0, 2, 3)))
        assert torch.equal(hk.conv_transpose2d(dy, w, stride=2), F.conv_transpose2d(dy, w, stride=2))
        assert torch.equal(hk.conv_grad_bias(torch.ones(()).expand(2, 3, 4)), torch.full((3,), 8.0))


def test_nothing_is_copied(monkeypatch):
    """The library gets the tensors' own addresses and strides, also of views and of channels-last memory."""
    device = Device(monkeypatch)
    x = ints(2, 8, 7, 9).contiguous(memory_format=torch.channels_last)[:, :, :, 1:]
    w, out = ints(6, 8, 3, 3)[:, :, :, ::1], torch.empty(2, 6, 5, 6)
    hk.conv2d(x, w, out=out)
    args, raw = device.executed[-1], device.created[-1].problem
    assert (args.x, args.f, args.y) == (x.data_ptr(), w.data_ptr(), out.data_ptr())
    assert (raw.x.outer, raw.x.channel, *raw.x.at[:2]) == x.stride()
    assert torch.equal(out, F.conv2d(x, w))


def test_memory_format_follows_x():
    x, w = ints(2, 8, 7, 9), ints(6, 8, 3, 3)
    last = x.contiguous(memory_format=torch.channels_last)
    assert hk.conv2d(x, w).is_contiguous()
    y = hk.conv2d(last, w)
    assert y.is_contiguous(memory_format=torch.channels_last) and torch.equal(y, hk.conv2d(x, w))
    plan = hk.plan(last, w)
    assert plan(last).stride() == y.stride() and torch.equal(plan(last), y)


def test_parameters_and_gradients():
    """A module's weights work under no_grad; with gradients enabled they are refused, as none would flow."""
    layer, x = torch.nn.Conv2d(4, 6, 3), ints(2, 4, 7, 6)
    with torch.no_grad():
        torch.testing.assert_close(hk.conv2d(x, layer.weight, layer.bias), layer(x))
    with pytest.raises(ValueError, match="weight requires a gradient, which would be lost"):
        hk.conv2d(x, layer.weight)
    with pytest.raises(ValueError, match="x requires a gradient"):
        hk.conv2d(ints(2, 4, 7, 6).requires_grad_(), layer.weight.detach())


def test_plans_and_problem_plans():
    x, w = ints(2, 4, 9), ints(6, 4, 3)
    plan = hk.plan(x, w, bias=ints(6), hold_weights=False)
    assert type(plan(x, w)) is torch.Tensor
    y = hk.Plan("1d_n2_c4_i9_k6_w3_f32", f=w)(x)
    assert type(y) is torch.Tensor and torch.equal(y, F.conv1d(x, w))
    bf = hk.Plan("1d_n2_c4_i9_k6_w3_bf16", f=w.to(torch.bfloat16))(x.to(torch.bfloat16))
    assert bf.dtype == torch.bfloat16 and torch.equal(bf.float(), F.conv1d(x, w))


def test_mixed_frameworks():
    """x decides what comes back; the others may be of another framework on the same device."""
    x, w = ints(2, 4, 9), ints(6, 4, 3)
    want = F.conv1d(x, w)
    assert torch.equal(hk.conv1d(x, w.numpy()), want)
    y = hk.conv1d(x.numpy(), w, bias=torch.zeros(6, dtype=torch.bfloat16))
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, want.numpy())
    out = np.empty((2, 6, 7), "f4")
    assert hk.conv1d(x, w, out=out) is out


def test_bf16_vectors_without_ml_dtypes():
    x, w, v = ints(2, 4, 9), ints(6, 4, 3), torch.tensor([0.5, -1, 2, 3, 4, -0.25]).to(torch.bfloat16)
    torch.testing.assert_close(hk.conv1d(x, w, v, scale=v), F.conv1d(x, w) * v.float()[:, None] + v.float()[:, None])


@pytest.mark.parametrize("call, words", [
    (lambda x, w: hk.conv1d(x, w.long()), "weight has DLPack type"),
    (lambda x, w: hk.conv1d(x, w, residual=torch.zeros(2, 6, 7, dtype=torch.float16)), "residual is f16; f32"),
    (lambda x, w: hk.conv1d(x, w, out=torch.zeros(2, 6, 8)), r"out has shape \(2, 6, 8\); \(2, 6, 7\)"),
    (lambda x, w: hk.conv1d(x, w, out=torch.zeros(2, 6, 7), out_dtype="f64"), "out is f32; f64 is required"),
    (lambda x, w: hk.conv1d(x, w[:, :, :1], out=x.new_zeros(1).expand(2, 6, 9)), "y"),
    (lambda x, w: hk.conv1d(x.to_sparse(), w), "x is a Tensor that cannot be exported"),
    (lambda x, w: hk.conv1d(torch.empty(2, 4, 9, device="meta"), w), "x is a Tensor that lies on no device"),
    (lambda x, w: hk.conv1d(x[:, :, :7], w[:, :, :1], out=x.new_zeros(2, 6, 7).requires_grad_()), "gradient"),
])
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call(ints(2, 4, 9), ints(6, 4, 3))
