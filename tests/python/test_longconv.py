"""libhankel.causal_conv1d.long_conv on the CPU: values, gradients, layouts, refusals, torch.compile."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from libhankel import HankelError  # noqa: E402
from libhankel.causal_conv1d import long_conv  # noqa: E402
from longconv_suite import check_all, close, formula, tensors  # noqa: E402


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("n, c, length, taps", [(1, 1, 1, 1), (2, 3, 17, 5), (2, 20, 1000, 1000), (1, 3, 3000, 200),
                                                (1, 2, 1024, 2048), (1, 17, 4096, 4096)])
def test_formula(n, c, length, taps, last):
    check_all(n, c, length, taps, last=last)


@pytest.mark.parametrize("dtype, f_dtype", [(torch.bfloat16, torch.float32), (torch.float16, torch.float16),
                                            (torch.float32, torch.bfloat16)])
def test_types(dtype, f_dtype):
    check_all(2, 5, 700, 700, dtype=dtype, f_dtype=f_dtype)


@pytest.mark.parametrize("length, taps", [(20000, 20000), (65536, 65536), (100001, 3000)])
def test_long(length, taps):
    x, f, skip, pre, post, _ = tensors(1, 2, length, taps)
    close(long_conv(x, f, skip, pre, post), formula(x, f, skip, pre, post))


def test_strides():
    x, f, skip, pre, post, dy = tensors(2, 6, 500, 500)
    packed = torch.stack((x, pre, post), 1).reshape(2, 18, 500)  # views of one projection
    views = packed.chunk(3, 1)
    close(long_conv(views[0], f.t().contiguous().t(), skip, *views[1:]), formula(x, f, skip, pre, post))
    close(long_conv(x[:, :1].expand_as(x), f), formula(x[:, :1].expand_as(x), f))
    x.requires_grad_()
    long_conv(x, f).sum().backward()  # dy of stride 0
    close(x.grad, f.cumsum(-1).flip(-1).expand_as(x))


def test_numpy():
    x, f, skip, pre, post, _ = tensors(2, 5, 300, 300)
    out = long_conv(*(t.numpy() for t in (x, f, skip, pre, post)))
    assert isinstance(out, np.ndarray)
    close(torch.from_numpy(out), formula(x, f, skip, pre, post))


def test_same_bits():
    x, f, skip, pre, post, dy = tensors(3, 40, 900, 900)
    results = []
    for _ in range(2):
        leaves = [t.clone().requires_grad_() for t in (x, f, skip, pre, post)]
        long_conv(*leaves).backward(dy)
        results.append([t.grad for t in leaves])
    assert all(torch.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("change, word", [
    (dict(f=torch.ones(4, 8)), "filters has shape"), (dict(D=torch.ones(4)), "D has shape"),
    (dict(gate_in=torch.ones(1, 3, 9)), "gate_in has shape"), (dict(gate_out=torch.ones(1, 3, 8).half()), "gate_out"),
    (dict(x=torch.ones(3, 8)), "x has shape"), (dict(x=torch.ones(1, 3, 8).double()), "x has elements")])
def test_refusals(change, word):
    given = dict(x=torch.ones(1, 3, 8), f=torch.ones(3, 8), D=None, gate_in=None, gate_out=None)
    given.update(change)
    with pytest.raises((HankelError, ValueError), match=word):
        long_conv(given["x"], given["f"], given["D"], given["gate_in"], given["gate_out"])


@pytest.mark.skipif(not hasattr(torch, "compile") or not hasattr(torch.library, "register_autograd"),
                    reason="torch is too old")
def test_compile():
    x, f, skip, pre, post, dy = tensors(1, 4, 256, 256)
    f.requires_grad_()
    compiled = torch.compile(lambda *a: long_conv(*a) * 2, backend="aot_eager", fullgraph=True)
    out = compiled(x, f, skip, pre, post)
    close(out, 2 * formula(x, f, skip, pre, post))
    out.backward(dy)
    want = f.detach().double().requires_grad_()
    (2 * formula(x, want, skip, pre, post)).backward(dy.double())
    close(f.grad, want.grad)
