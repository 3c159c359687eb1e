"""Problems, epilogues, plans and chains as Python objects: repr, equality, pickles, attributes."""
import pickle

import numpy as np
import pytest

import libhankel as hk
from libhankel import stream

x, f = np.ones((2, 4, 9, 9), "f4"), np.ones((6, 4, 3, 3), "f4")


def copied(thing):
    return pickle.loads(pickle.dumps(thing))


def shifted(_at, values):
    return values + 1


@pytest.mark.parametrize("text", ["2d_n2_c4_i9x8_k6_w3x1_s2_p1:0_d2_bf16_last", "1d_n3_c6_i20_k6_w3_g6_flip_f64",
                                  "3d_n1_c2_i5_k3_w2_u8:s8:s32_xz3_fz2", "g2mb2_ic4ih5iw6_oc6oh5ow6_kh3kw3ph1pw1"])
def test_problem(text):
    p = hk.Problem(text)
    again = copied(p)
    assert again == p and str(again) == str(p) and bytes(again.raw) == bytes(p.raw)
    assert eval(repr(p), {"Problem": hk.Problem}) == p and p != hk.Problem("1d_n1_c1_i1_k1_w1_f32") and p != text
    again.raw.n += 1
    assert again != p
    with pytest.raises(TypeError):
        hash(p)


def test_problems_of_the_same_elements_are_equal():
    for shape, taps in (((1, 4, 9, 9), (6, 4, 1, 1)), ((2, 1, 9, 9), (6, 1, 3, 1))):
        plan = hk.plan(np.ones(shape, "f4"), np.ones(taps, "f4"))
        n, c, *size = shape
        same = hk.Problem.conv(n=n, c=c, size=size, k=6, window=taps[2:])
        assert plan.problem == same and same == hk.Problem(str(same)) and plan.problem != hk.Problem()
    assert hk.Problem() == hk.Problem()


def test_problem_by_numbers():
    p = hk.Problem.conv(n=2, c=4, size=(9, 8), k=6, window=(3, 1), stride=2, padding=(1, 0), layout="last",
                        dtype="bf16", y_dtype="f32")
    assert (p.rank, p.n, p.c, p.k, p.size, p.window, p.stride, p.pad_lo) == (2, 2, 4, 6, (9, 8), (3, 1), (2, 2), (1, 0))
    assert (p.x_type, p.f_type, p.y_type) == ("bf16", "bf16", "f32")
    assert p == hk.Problem(str(p)) and p.output() == (2, (5, 4))
    t = hk.Problem.conv_transpose(n=1, c=4, size=[5], k=6, window=3, stride=2, output_padding=1)
    assert t.output() == (1, (12,))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        p.nosuch
    for words, match in ((dict(layout="middle"), "layout is 'middle'"), (dict(window=2.5), "window is 2.5"),
                         (dict(stride=0), "stride is 0"), (dict(dtype="f7"), "dtype is 'f7'"), (dict(groups=3), "3")):
        with pytest.raises(ValueError, match=match):
            hk.Problem.conv(**dict(dict(n=2, c=4, size=(9, 8), k=6, window=3), **words))


@pytest.mark.parametrize("text", ["none", "bias+silu+sum:0.5", "presum:0.5+relu", "scale1+clip:-1:2",
                                  "bias+gated:tanh:sigmoid"])
def test_epilogue(text):
    e = hk.Epilogue(text)
    assert copied(e) == e and str(copied(e)) == str(e) == text and repr(e) == f"Epilogue({text!r})"
    assert e != hk.Epilogue("bias+gelu") and e != text


@pytest.mark.parametrize("words", [
    dict(), dict(bias=np.arange(6.0)), dict(scale=0.5, act="prelu", slopes=np.arange(6)), dict(threads=1, isa="scalar"),
    dict(act=shifted), dict(residual=True, beta=0.5, act="relu"), dict(padding=1, rhs_dilation=2, workspace_limit=0)])
def test_plan(words):
    plan = hk.plan(x, f, **words)
    again = copied(plan)
    assert again == plan and hash(again) == hash(plan) and repr(again) == repr(plan)
    residual = {"residual": np.ones(plan.layout["out"][0], "f4")} if words.get("residual") else {}
    np.testing.assert_array_equal(again(x, f, **residual), plan(x, **residual))
    with pytest.raises(ValueError, match="f is None and the plan holds none"):
        again(x, **residual)
    assert plan != hk.plan(x, f, **dict(words, workspace_limit=1 << 20)) and plan != 3


def test_plan_with_zero_points():
    plan = hk.plan(x.astype("i1"), f.astype("i1"), f_zero=np.arange(6), bias=np.arange(6))
    again = copied(plan)
    np.testing.assert_array_equal(again(x.astype("i1"), f.astype("i1")), plan(x.astype("i1")))
    assert plan != hk.plan(x.astype("i1"), f.astype("i1"), f_zero=np.arange(1, 7), bias=np.arange(6))


def test_plan_repr_tells_how_it_was_made():
    plan = hk.Plan("1d_n1_c1_i5_k1_w3_f32", "bias+relu", f=np.ones((1, 1, 3), "f4"), bias=[1], threads=1)
    assert repr(plan) == "Plan('1d_n1_c1_i5_k1_w3_f32_first', 'bias+relu', threads=1)"
    assert eval(repr(plan), {"Plan": hk.Plan}).problem == plan.problem


def test_vectors_are_the_plans_own():
    bias = np.zeros(6, "f4")
    plan = hk.plan(x, f, bias=bias, hold_weights=False)
    want = plan(x, f)
    bias[:] = 100
    np.testing.assert_array_equal(plan(x, f), want)


def test_chain_and_stream():
    steps = [stream.conv(1, np.ones((2, 1, 3)), act="tanh"), stream.mapped(2, gate="gated", act="relu", act2="relu")]
    chain = hk.Chain(1, steps, max_block=16)
    assert copied(chain) == chain and repr(copied(chain)) == repr(chain) and "2 frames" not in repr(chain)
    assert chain != hk.Chain(1, steps, max_block=17)
    signal = np.linspace(-1, 1, 40, dtype="f4")[:, None]
    one = chain.stream()
    one.process(signal[:20])
    two = copied(one)
    np.testing.assert_array_equal(two.process(signal[20:]), one.process(signal[20:]))


def test_errors():
    for error in (hk.HankelError(1, "sentence"), hk.HankelError(2, "sentence")):
        assert type(copied(error)) is type(error) and str(copied(error)) == str(error)
    assert issubclass(hk.ArgumentError, ValueError) and not isinstance(hk.HankelError(2, ""), ValueError)
