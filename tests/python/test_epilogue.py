"""Epilogue arguments of conv(): order, parameters, gates, residuals, user functions. The convolution is zero or exact
where positions matter, so that a wrong coordinate cannot hide."""
import math

import numpy as np
import pytest

import libhankel as hk
from reference import correlate

ACTS = {
    "relu": lambda v: np.maximum(v, 0), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "silu": lambda v: v / (1 + np.exp(-v)), "tanh": np.tanh,
    "gelu": lambda v: 0.5 * v * (1 + np.vectorize(math.erf)(v / math.sqrt(2))),
    "gelu_tanh": lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))),
    "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6, "softsign": lambda v: v / (1 + np.abs(v)),
    ("clip", -0.5, 1.5): lambda v: np.clip(v, -0.5, 1.5), ("leaky", 0.1): lambda v: np.where(v < 0, 0.1 * v, v),
    "hardtanh": lambda v: np.clip(v, -1, 1), ("hardtanh", -2, 0.5): lambda v: np.clip(v, -2, 0.5)}


@pytest.fixture(params=["NCW", "NWC"])
def problem(request):
    rng = np.random.default_rng(5)
    x, f = rng.standard_normal((2, 6, 40)), rng.standard_normal((8, 6, 3)) / 3
    acc = correlate(x, f, [1], [(1, 1)], [1], [1])
    last = request.param == "NWC"
    order = (0, 2, 1)
    arrays = (x.transpose(order).copy(), f.transpose(2, 1, 0).copy()) if last else (x, f)
    return dict(spec=request.param, x=arrays[0], f=arrays[1], acc=acc, rng=rng,
                lay=(lambda a: np.ascontiguousarray(a.transpose(order))) if last else np.ascontiguousarray)


def run(problem, dtype=np.float32, **words):
    x, f = problem["x"].astype(dtype), problem["f"].astype(dtype)
    return hk.conv(x, f, 1, 1, dimension_numbers=problem["spec"], **words)


def near(got, want, dtype=np.float32):
    np.testing.assert_allclose(got, want, rtol=0, atol={np.float32: 2e-5, np.float64: 1e-6, np.float16: 2e-2}[dtype])


@pytest.mark.parametrize("act", list(ACTS), ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
def test_activation_after_scale_and_bias(problem, act, dtype):
    scale, bias = problem["rng"].uniform(0.5, 2, 8), problem["rng"].standard_normal(8)
    want = ACTS[act](problem["acc"] * scale[:, None] + bias[:, None])
    near(run(problem, dtype, scale=scale, bias=bias, act=act), problem["lay"](want), dtype)


def test_one_scale_for_all(problem):
    near(run(problem, scale=0.25), problem["lay"](problem["acc"] * 0.25))


def test_prelu(problem):
    slopes = np.linspace(-0.5, 0.5, 8)
    want = np.where(problem["acc"] < 0, slopes[:, None] * problem["acc"], problem["acc"])
    near(run(problem, act="prelu", slopes=slopes), problem["lay"](want))


@pytest.mark.parametrize("order", ["after", "before"])
def test_residual_order_and_beta(problem, order):
    c = problem["rng"].standard_normal(problem["acc"].shape).astype(np.float32)
    want = np.maximum(problem["acc"], 0) + 0.5 * c if order == "after" else np.maximum(problem["acc"] + 0.5 * c, 0)
    got = run(problem, act="relu", residual=problem["lay"](c), beta=0.5, residual_order=order)
    near(got, problem["lay"](want))


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("order", ["after", "before"])
def test_beta_zero_reads_no_residual(problem, order, dtype, poison):
    bias = problem["rng"].standard_normal(8)
    want = problem["lay"](np.tanh(problem["acc"] + bias[:, None]))
    c = np.full(want.shape, poison, dtype)
    words = dict(bias=bias, act="tanh", beta=0, residual_order=order)
    near(run(problem, dtype, residual=c, **words), want, dtype)
    near(run(problem, dtype, residual=c.transpose(0, 2, 1).copy().transpose(0, 2, 1), threads=2, **words), want, dtype)
    near(run(problem, dtype, residual=np.broadcast_to(dtype(poison), c.shape), **words), want, dtype)
    assert run(problem, dtype, residual=c, out=c, **words) is c  # y in the residual's place
    near(c, want, dtype)
    c[...] = poison
    x, f = problem["x"].astype(dtype), problem["f"].astype(dtype)
    plan = hk.plan(x, f, 1, 1, dimension_numbers=problem["spec"], residual=c, **words)
    near(plan(x, residual=c), want, dtype)
    c[...] = 1
    near(run(problem, dtype, residual=c, bias=bias, act="tanh"), want + 1, dtype)  # beta is 1 where it is not given


def test_beta_zero_under_a_gate_and_by_every_decision(problem):
    v = problem["acc"]
    want = problem["lay"](np.tanh(v[:, :4]) / (1 + np.exp(-v[:, 4:])))
    poison = np.full(want.shape, np.nan, np.float32)
    near(run(problem, act="tanh", act2="sigmoid", gate="gated", residual=poison, beta=0.0), want)
    poison, want = np.full(problem["lay"](v).shape, np.nan, np.float32), problem["lay"](np.maximum(v, 0))
    x, f = problem["x"].astype(np.float32), problem["f"].astype(np.float32)
    words = dict(dimension_numbers=problem["spec"], act="relu", residual=poison, beta=0.0)
    plan = hk.plan(x, f, 1, 1, **words)
    usable = [c["decision"] for c in hk.candidates(plan.problem, plan.epilogue) if c["refusal"] is None]
    assert len(usable) > 1
    for decision in usable:
        near(hk.plan(x, f, 1, 1, decision=decision, **words)(x, residual=poison), want)


def test_residual_of_another_layout_and_in_place(problem):
    shape = problem["acc"].shape
    coded = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    zero = dict(problem, f=np.zeros_like(problem["f"]))
    wanted = problem["lay"](coded)
    strided = np.zeros([2 * n for n in wanted.shape], np.float32)[::2, ::-2, 1::2]
    strided[...] = wanted
    np.testing.assert_array_equal(run(zero, residual=strided), wanted)
    y = wanted.copy()
    assert run(zero, residual=y, out=y, beta=2.0) is y
    np.testing.assert_array_equal(y, 2 * wanted)


@pytest.mark.parametrize("gate", ["gated", "blended"])
def test_gate(problem, gate):
    bias = problem["rng"].standard_normal(8)
    v = problem["acc"] + bias[:, None]
    t, b = v[:, :4], 1 / (1 + np.exp(-v[:, 4:]))
    want = np.tanh(t) * b if gate == "gated" else b * np.tanh(t) + (1 - b) * t
    got = run(problem, bias=bias, act="tanh", act2="sigmoid", gate=gate)
    near(got, problem["lay"](want))
    c = problem["rng"].standard_normal(want.shape).astype(np.float32)
    out = np.empty_like(got)
    got = run(problem, bias=bias, act="tanh", act2="sigmoid", gate=gate, residual=problem["lay"](c), out=out)
    near(got, problem["lay"](want + c))


def coordinates(at, values):
    """Codes each value's coordinates (n, k, p) of a rank 1 result into a number."""
    steps = np.arange(len(values))
    k, p = (at.k + steps, at.p[0]) if at.along_k else (at.k, at.p[0] + steps)
    return at.n * 10000 + k * 100 + p


def test_user_function_sees_every_coordinate_once(problem):
    n, k, p = np.meshgrid(np.arange(2), np.arange(8), np.arange(40), indexing="ij")
    want = problem["lay"](n * 10000.0 + k * 100 + p)
    np.testing.assert_array_equal(run(problem, act=coordinates), want)
    np.testing.assert_array_equal(run(problem, user2=coordinates, act="relu"), want)


def test_user_function_changes_values_in_place(problem):
    def double(_at, values):
        values *= 2

    near(run(problem, act=double), problem["lay"](2 * problem["acc"]))
    want = problem["lay"](2 * np.maximum(problem["acc"], 0))
    near(run(problem, np.float64, user2=double, act="relu"), want, np.float64)


def test_user_store_owns_the_write(problem):
    stored, times = np.zeros((2, 8, 40)), np.zeros((2, 8, 40), int)

    def store(at, values):
        spot = (at.n, slice(at.k, at.k + len(values)), at.p[0]) if at.along_k else \
            (at.n, at.k, slice(at.p[0], at.p[0] + len(values)))
        stored[spot], times[spot] = values, times[spot] + 1

    out = problem["lay"](np.full((2, 8, 40), 5, np.float32))
    run(problem, store=store, out=out, threads=2)
    assert (out == 5).all() and (times == 1).all()
    near(stored, problem["acc"])


def test_exception_in_a_user_function_comes_back(problem):
    def wrong(_at, _values):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(problem, act=wrong)


def test_text_form():
    assert "bias" in str(hk.Epilogue("bias+silu"))
    with pytest.raises(hk.HankelError) as caught:
        hk.Epilogue("bias+nosuch")
    assert caught.value.name == "HK_SYNTAX"


@pytest.mark.parametrize("words", [dict(act="swoosh"), dict(gate="half"), dict(bias=np.ones(3)), dict(scale=np.ones(9)),
                                   dict(residual=np.ones((1, 2, 3), np.float32)), dict(act=("clip", 1, 2, 3)),
                                   dict(residual=np.ones((2, 8, 40), np.float32), residual_order="sideways")], ids=str)
def test_refused(words):
    x, f = np.ones((2, 6, 40), np.float32), np.ones((8, 6, 3), np.float32)
    with pytest.raises(hk.HankelError) as caught:
        hk.conv(x, f, 1, 1, **words)
    assert caught.value.status == 1


def test_unknown_word_is_a_type_error():
    with pytest.raises(TypeError, match="colour"):
        hk.conv(np.ones((1, 1, 3), np.float32), np.ones((1, 1, 1), np.float32), colour=3)
