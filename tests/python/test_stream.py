"""Chains and streams: blocks of any length give what the whole signal gives; every kind of step."""
import numpy as np
import pytest

import libhankel as hk
from libhankel import stream
from libhankel.stream import Act, Chain, conv, fir, lstm, mapped, scaled

rng = np.random.default_rng(5)


def ints(*shape):
    return rng.integers(-2, 3, shape).astype("f4")


def causal(x, f, dilation=1, groups=1):
    """(frames, channels) through f [k][c/groups][window]."""
    return hk.conv(x.T[None], f, padding="CAUSAL", rhs_dilation=dilation, feature_group_count=groups)[0].T


def in_blocks(chain, x, sizes=(1, 5, 0, 13, 7)):
    """The signal through one stream, in blocks of these sizes."""
    run, made, at, axis = chain.stream(), [], 0, 0 if chain.layout == "last" else 1
    for size in list(sizes) + [x.shape[axis]]:
        part = x[at:at + size] if axis == 0 else x[:, at:at + size]
        made.append(run.process(part))
        at += size
    return np.concatenate(made, axis)


@pytest.mark.parametrize("layout", ["last", "first"])
def test_convolution_over_blocks(layout):
    x, f, b = ints(50, 3), ints(4, 3, 3), ints(4)
    chain = Chain(3, [conv(1, f, b, dilation=4)], max_block=8, layout=layout)
    want = causal(x, f, 4) + b
    got = in_blocks(chain, x if layout == "last" else x.T)
    np.testing.assert_array_equal(got if layout == "last" else got.T, want)
    assert chain.facts["receptive_field"] == 9 and chain.facts["y_channels"] == 4 and not chain.facts["recurrent"]


def test_steps():
    x, f, g, m = ints(40, 4), ints(6, 2, 2), ints(6, 4, 1), ints(6, 4)
    chain = Chain(4, [conv(1, f, groups=2, mix=1, mix_f=m, act="relu"), conv(1, g, add=2, order="before", beta=0.5,
                                                                             act=Act("leaky", 0.25)),
                      mapped(3, act="relu", act2="relu", gate="gated"), scaled(4, 4), mapped(4, add=5)], max_block=16)
    a = np.maximum(causal(x, f, groups=2) + x @ m.T, 0)
    b = x @ g[:, :, 0].T + 0.5 * a
    b = np.where(b < 0, 0.25 * b, b)
    c = np.maximum(b[:, :3], 0) * np.maximum(b[:, 3:], 0)
    np.testing.assert_array_equal(in_blocks(chain, x), c + c * c)
    assert in_blocks(Chain(4, [conv(1, g, stride=4)], max_block=8), x).shape == (10, 6)
    slopes = Act("prelu", slopes=[0.5, 2, -1, 3])
    np.testing.assert_array_equal(in_blocks(Chain(4, [mapped(1, act=slopes)], max_block=8), x),
                                  np.where(x < 0, x * np.float32([0.5, 2, -1, 3]), x))


def test_lstm():
    x, f, b = ints(12, 1), rng.standard_normal((8, 3)).astype("f4"), rng.standard_normal(8).astype("f4")
    h, c, want = np.array([0.5, -0.5]), np.zeros(2), []

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    for sample in x:
        i, k, g, o = np.split(f @ np.concatenate([sample, h]) + b, 4)
        c = sigmoid(k) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        want.append(h)
    chain = Chain(1, [lstm(1, f, b, h0=[0.5, -0.5])], max_block=4)
    np.testing.assert_allclose(in_blocks(chain, x), want, atol=1e-5)
    assert chain.facts["recurrent"]


def test_a_problem_as_a_chain():
    f, b, x = ints(4, 3, 2), ints(4), ints(30, 2)
    chain = Chain.of_problem("1d_n1_c2_i8_k4_w3_p2:0_f32_last", "bias+relu", f=f, bias=b)
    np.testing.assert_array_equal(in_blocks(chain, x), np.maximum(causal(x, f.transpose(0, 2, 1).copy()) + b, 0))
    with pytest.raises(ValueError, match="not channels last"):
        Chain.of_problem("1d_n1_c2_i8_k4_w3_p2:0_f32", f=ints(4, 2, 3))


def test_fir():
    rng = np.random.default_rng(7)
    f, x = rng.standard_normal((2, 1, 3000)).astype("f4"), rng.standard_normal((5000, 2)).astype("f4")
    chain = Chain(2, [fir(1, f, groups=2, act="relu", add=1)], max_block=64)
    want = np.stack([np.convolve(x[:, c].astype("f8"), f[c, 0, ::-1].astype("f8"))[:5000] for c in range(2)], 1)
    got = chain.stream().process(x)
    assert np.abs(got - (np.maximum(want, 0) + x)).max() <= 1e-6 * np.abs(want).max()
    assert (chain.facts["receptive_field"], chain.facts["flops"]) == (3000, 12000)
    np.testing.assert_array_equal(np.concatenate([chain.stream().process(x[:1])]), got[:1])
    with pytest.raises(ValueError, match="FIR takes at most 2097152 taps"):
        Chain(1, [fir(1, np.zeros((1, 1, 2**21 + 1), "f4"))], max_block=8)


def test_state():
    chain = Chain(1, [conv(1, ints(2, 1, 5), dilation=3)], max_block=16)
    x, run = ints(40, 1), chain.stream()
    first = run.process(x[:20])
    state, rest = run.save(), run.process(x[20:])
    run.restore(state)
    np.testing.assert_array_equal(run.process(x[20:]), rest)
    run.reset()
    np.testing.assert_array_equal(run.process(x[:20]), first)
    run.prewarm(100)
    np.testing.assert_array_equal(run.process(x[:20]), first)


def test_arrays_in_and_out():
    chain, x = Chain(2, [conv(1, ints(3, 2, 2))], max_block=16), ints(20, 2)
    want, out = chain.stream().process(x), np.zeros((20, 3), "f4")
    assert chain.stream().process(x[::-1][::-1], out=out) is out
    np.testing.assert_array_equal(out, want)
    torch = pytest.importorskip("torch")
    y = chain.stream().process(torch.from_numpy(x))
    assert type(y) is torch.Tensor
    np.testing.assert_array_equal(y.numpy(), want)


@pytest.mark.parametrize("call, words", [
    (lambda: Chain(1, [3], max_block=8), r"steps\[0\] is 3"),
    (lambda: Chain(1, [conv(1, np.ones(3))], max_block=8), r"steps\[0\]'s f has shape \(3,\)"),
    (lambda: Chain(1, [conv(1, np.ones((2, 1, 3)), [1, 2, 3])], max_block=8), r"steps\[0\]'s bias has shape \(3,\)"),
    (lambda: Chain(1, [conv(1, np.ones((2, 1, 3)), act="swoosh")], max_block=8), "activation"),
    (lambda: Chain(1, [conv(1, np.ones((2, 1, 3)), gate="half")], max_block=8), "gate is 'half'"),
    (lambda: Chain(1, [conv(1, np.ones((2, 1, 3)), dilation=1.5)], max_block=8), "dilation is 1.5"),
    (lambda: Chain(1, [conv(7, np.ones((2, 1, 3)))], max_block=8), "7"),
    (lambda: Chain(1, [mapped(1)], max_block=8, layout="middle"), "layout is 'middle'"),
    (lambda: Chain(1, [mapped(1)], max_block=8).stream().process(np.ones((4, 2), "f4")), r"x has shape \(4, 2\)"),
    (lambda: Chain(1, [mapped(1)], max_block=8).stream().process(np.ones((4, 1))), "x is f64; f32 is required"),
    (lambda: Chain(1, [mapped(1)], max_block=8).stream().process(np.ones((4, 1), "f4"), out=np.ones((4, 2), "f4")),
     r"out has shape \(4, 2\)"),
])
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    assert stream.Stream
