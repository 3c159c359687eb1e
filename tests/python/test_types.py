"""Every mix of the types of x, f and y with every vector and function of the epilogue, against numpy in f64. Scale,
bias, slopes and what user functions see are f64 when x, f or y is f64, else f32; int8 problems use f32 and an s32
bias. The vectors hold values that f32 rounds, and x and f small integers, so that an f64 problem computed in f32, or
doubles read as floats, cannot pass."""
import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi
from libhankel._array import NAMES, numpy_dtype, type_of
from libhankel._native import call
from reference import correlate

FLOATS, BYTES = ("f32", "f64", "f16", "bf16", "f8e4m3"), ("s8", "u8")
MIXES = [(x, f) for x in FLOATS for f in FLOATS] + [(x, f) for x in BYTES for f in BYTES]
ROUNDING = {"f64": 2.0 ** -53, "f32": 2.0 ** -24, "f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f8e4m3": 2.0 ** -4}
LIMITS = {"s8": (-128, 127), "u8": (0, 255), "s32": (-2 ** 31, 2 ** 31 - 1)}
K = 6


def convert(values, name):
    """The values in the named type, as the library rounds them."""
    values = np.ascontiguousarray(values, np.float64)
    got = np.empty(values.shape, numpy_dtype(type_of(name)))
    call("hk_convert", _abi.F64, values.ctypes.data, type_of(name), got.ctypes.data, values.size)
    return got


def widen(array, name):
    """An array of the named type in f64."""
    array = np.ascontiguousarray(array)
    got = np.empty(array.shape)
    call("hk_convert", type_of(name), array.ctypes.data, _abi.F64, got.ctypes.data, array.size)
    return got


class Mix:
    """x and f of two types, their sums, and epilogue vectors of f64 values."""

    def __init__(self, x, f):
        rng = np.random.default_rng(11)
        low = 0 if "u8" in (x, f) else -2
        self.types, self.integer = (x, f), x in BYTES
        values = rng.integers(low, 3, (2, 4, 19)), rng.integers(low, 3, (K, 4, 3))
        self.acc = correlate(*(v.astype(np.float64) for v in values), [1], [(1, 1)], [1], [1])
        self.x, self.f = convert(values[0], x), convert(values[1], f)
        self.words = dict(padding=1, x_dtype=x, f_dtype=f)
        self.scale, self.slopes = rng.uniform(0.2, 0.9, K), rng.uniform(-0.5, 0.5, K)
        self.bias = rng.integers(-9, 9, K) if self.integer else rng.uniform(-2, 2, K)

    def outputs(self, bias_alone=False):
        """Every type of y; s32 is the plain sum of int8 and takes a bias alone."""
        return [name for name in NAMES if name != "s32" or self.integer and bias_alone]

    def wide(self, y):
        return "f64" in (*self.types, y) and not self.integer

    def affine(self, scale, bias):
        """acc*scale + bias; an int8 bias belongs to the integer sums."""
        scale, bias = np.reshape(scale, (-1, 1)), np.reshape(bias, (-1, 1))
        return (self.acc + bias) * scale if self.integer else self.acc * scale + bias

    def near(self, got, want, y):
        got = widen(got, y)
        assert got.shape == want.shape
        compute = 40 * (2.0 ** -53 if self.wide(y) else 2.0 ** -24)
        if y in LIMITS:
            want = np.clip(want, *LIMITS[y])
            bound = 0.5 + compute * np.abs(want)
        else:
            bound = compute * (np.abs(want) + 8) + ROUNDING[y] * np.maximum(np.abs(want), 2.0 ** -6)
        wrong = np.abs(got - want) > bound
        assert not wrong.any(), f"{self.types} {y}: {got[wrong][:3]} for {want[wrong][:3]}"


@pytest.fixture(params=MIXES, ids="-".join)
def mix(request):
    return Mix(*request.param)


def prelu(v, slopes):
    return np.where(v < 0, slopes[:, None] * v, v)


def ways(mix, y, **epilogue):
    """The same result by each way that names y's type."""
    words = dict(mix.words, **epilogue)
    yield hk.conv(mix.x, mix.f, preferred_element_type=y, **words)
    yield hk.conv1d(mix.x, mix.f, out_dtype=y, **words)
    if numpy_dtype(type_of(y)).kind != "u" or y == "u8":
        yield hk.conv(mix.x, mix.f, out=np.empty((2, K, 19), numpy_dtype(type_of(y))), **words)
    yield hk.plan(mix.x, mix.f, preferred_element_type=y, **words)(mix.x)
    yield hk.plan(mix.x, mix.f, preferred_element_type=y, hold_weights=False, **words)(mix.x, mix.f)


def test_scale_bias_and_slopes(mix):
    want = prelu(mix.affine(mix.scale, mix.bias), mix.slopes)
    for y in mix.outputs():
        for got in ways(mix, y, scale=mix.scale, bias=mix.bias, act="prelu", slopes=mix.slopes):
            mix.near(got, want, y)


def test_each_vector_alone(mix):
    for y in mix.outputs(bias_alone=True):
        for got in ways(mix, y, bias=mix.bias):
            mix.near(got, mix.affine(1, mix.bias), y)
    for y in mix.outputs():
        for got in ways(mix, y, scale=mix.scale):
            mix.near(got, mix.affine(mix.scale, 0), y)
        for got in ways(mix, y, scale=1 / 3):
            mix.near(got, mix.affine(1 / 3, 0), y)


def test_user_functions(mix):
    for y in mix.outputs():
        wide, seen = mix.wide(y), set()

        def third(_at, values):
            seen.add(values.dtype)
            values /= 3

        for got in ways(mix, y, bias=mix.bias, act=third):
            mix.near(got, mix.affine(1, mix.bias) / 3, y)
        for got in ways(mix, y, scale=mix.scale, act="relu", user2=third):
            mix.near(got, np.maximum(mix.affine(mix.scale, 0), 0) / 3, y)
        assert seen == {np.dtype(np.float64 if wide else np.float32)}, (mix.types, y)


def test_user_store(mix):
    for y in mix.outputs():
        stored = np.zeros((2, K, 19))

        def store(at, values):
            steps = np.arange(len(values))
            stored[(at.n, at.k + steps, at.p[0]) if at.along_k else (at.n, at.k, at.p[0] + steps)] = values

        hk.conv(mix.x, mix.f, preferred_element_type=y, bias=mix.bias, scale=mix.scale, store=store, **mix.words)
        mix.near(stored if mix.wide(y) else stored.astype(np.float32), mix.affine(mix.scale, mix.bias),
                 "f64" if mix.wide(y) else "f32")


def test_gate_and_residual(mix):
    v = mix.affine(mix.scale, mix.bias)
    want = np.tanh(v[:, :K // 2]) / (1 + np.exp(-v[:, K // 2:]))
    for y in ("f32", "f64"):
        c = np.random.default_rng(1).standard_normal(want.shape).astype(np.float32)
        got = hk.conv(mix.x, mix.f, preferred_element_type=y, scale=mix.scale, bias=mix.bias, act="tanh",
                      act2="sigmoid", gate="gated", residual=convert(c, y), beta=0.5, **mix.words)
        np.testing.assert_allclose(got, want + 0.5 * c, rtol=0, atol=2e-6)


def test_plan_of_a_problem_text():
    mix = Mix("f32", "f32")
    want = prelu(mix.affine(mix.scale, mix.bias), mix.slopes)
    for y in ("f32", "f64"):
        problem = hk.plan(mix.x, mix.f, padding=1, preferred_element_type=y).problem
        held = hk.Plan(str(problem), "scale+bias+prelu", f=mix.f, scale=mix.scale, bias=mix.bias, slopes=mix.slopes)
        mix.near(held(mix.x), want, y)
        late = hk.Plan(problem, "scale+bias+prelu", slopes=mix.slopes)
        mix.near(late(mix.x, mix.f, scale=mix.scale, bias=mix.bias), want, y)


def test_epilogue_of_another_problem():
    """Vectors of an epilogue follow the plan that uses them; functions whose values would change type are refused."""
    mix = Mix("f32", "f32")
    first = hk.plan(mix.x, mix.f, padding=1, bias=mix.bias, act="prelu", slopes=mix.slopes, hold_weights=False)
    wide = hk.plan(mix.x, mix.f, padding=1, preferred_element_type="f64").problem
    want = prelu(mix.affine(1, mix.bias), mix.slopes)
    mix.near(hk.Plan(wide, first.epilogue)(mix.x, mix.f), want, "f64")
    function = hk.plan(mix.x, mix.f, padding=1, act=lambda _at, values: -values)
    with pytest.raises(hk.HankelError, match="float32.*float64"):
        hk.Plan(wide, function.epilogue)
    shared = hk.Epilogue("bias")
    hk.Plan(wide, shared, bias=mix.bias)
    with pytest.raises(hk.HankelError, match="bias"):
        hk.Plan(wide, shared)(mix.x, mix.f)


def test_bias_gradient():
    for name in FLOATS:
        dy = convert(np.random.default_rng(2).integers(-2, 3, (2, K, 9)), name)
        got = hk.conv_grad_bias(dy, dy_dtype=name)
        assert got.dtype == (np.float64 if name == "f64" else np.float32)
        np.testing.assert_array_equal(got, widen(dy, name).sum((0, 2)))
