"""The long convolution against its formula in f64, by torch's own FFT; for CPU and CUDA tensors."""
import torch

from libhankel.causal_conv1d import long_conv

#: largest ||out - want|| / ||want|| of a result rounded to the type
ERROR = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


def formula(x, f, skip=None, pre=None, post=None):
    """In f64."""
    x, f, skip, pre, post = [t if t is None else t.double() for t in (x, f, skip, pre, post)]
    u, length = x if pre is None else pre * x, x.shape[-1]
    f = f[:, :length]
    n = length + f.shape[-1]
    y = torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(f, n=n), n=n)[..., :length]
    if skip is not None:
        y = y + skip[:, None] * u
    return y if post is None else post * y


def close(got, want, dtype=None, loose=1.0):
    got, want = got.detach(), want.detach()
    error = float((got.double() - want.double()).norm() / want.double().norm().clamp(min=1e-30))
    assert error <= loose * ERROR[dtype or got.dtype], error


def tensors(n, c, length, taps, dtype=torch.float32, f_dtype=None, last=False, device="cpu", seed=0):
    """x, filters, D, gate_in, gate_out and dy; filters decay as learned ones do."""
    g = torch.Generator().manual_seed(seed)

    def row():
        t = torch.randn(n, length, c, generator=g) if last else torch.randn(n, c, length, generator=g)
        return (t.transpose(1, 2) if last else t).to(dtype).to(device)

    f = torch.randn(c, taps, generator=g) * torch.exp(-3 * torch.arange(taps) / taps)
    skip = torch.randn(c, generator=g)
    f, skip = [t.to(f_dtype or dtype).to(device) for t in (f, skip)]
    return row(), f, skip, row(), row(), row()


def check_all(n, c, length, taps, **words):
    """Forward and every gradient, with and without what is optional."""
    x, f, skip, pre, post, dy = tensors(n, c, length, taps, **words)
    for given in ((None, None, None), (skip, pre, post), (skip, None, post), (None, pre, None)):
        leaves = [t if t is None else t.clone().requires_grad_() for t in (x, f) + given]
        out = long_conv(*leaves)
        assert out.dtype == x.dtype and out.shape == x.shape and out.stride() == torch.empty_like(x).stride()
        want = [t if t is None else t.detach().double().requires_grad_() for t in leaves]
        expected = formula(*want)
        close(out, expected)
        out.backward(dy)
        expected.backward(dy.double())
        for got, exact in zip(leaves, want):
            if got is not None:
                assert got.grad.dtype == got.dtype
                # one sum of few values may be small beside the row that it is transformed with
                close(got.grad, exact.grad, got.dtype, loose=1.0 if got.dim() > 1 else 20.0)
