"""conv(): every argument, every type, arrays that lie anyhow, against the definition in numpy."""
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import libhankel as hk
from problems import arguments, conv_words, expected, integers, lay
from reference import correlate, scatter_axes

common = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@common
@given(arguments(), st.sampled_from([np.float32, np.float64, np.float16]))
def test_views_match_the_definition(p, dtype):
    rng = np.random.default_rng(p["seed"])
    x, f = integers(rng, p["x"], np.float64, -2, 3), integers(rng, p["f"], np.float64, -2, 3)
    want = expected(p, x, f)
    xv, x_block = lay(rng, x, p["axes"][0], dtype)
    fv, f_block = lay(rng, f, p["axes"][1], dtype)
    before = x_block.copy(), f_block.copy()
    out, y_block = lay(rng, want * 0, p["axes"][2], dtype)
    y_block[...] = 77
    got = hk.conv(xv, fv, out=out, **conv_words(p))
    assert got is out
    np.testing.assert_array_equal(got, scatter_axes(want, p["axes"][2]))
    np.testing.assert_array_equal(x_block, before[0])
    np.testing.assert_array_equal(f_block, before[1])
    got[...] = 77
    assert (y_block == 77).all(), "something outside the view was written"
    np.testing.assert_array_equal(hk.conv(xv, fv, **conv_words(p)), scatter_axes(want, p["axes"][2]))


@common
@given(arguments(), st.sampled_from([np.int8, np.uint8]), st.sampled_from([np.int8, np.uint8]))
def test_int8_with_zero_points(p, x_kind, f_kind):
    rng = np.random.default_rng(p["seed"])
    x, f = (integers(rng, p[name], np.int64, np.iinfo(kind).min, np.iinfo(kind).max + 1)
            for name, kind in (("x", x_kind), ("f", f_kind)))
    x_zero = int(rng.integers(np.iinfo(x_kind).min, np.iinfo(x_kind).max + 1))
    f_zero = integers(rng, (p["f"][0],), np.int64, np.iinfo(f_kind).min, np.iinfo(f_kind).max + 1)
    shaped = f_zero.reshape(-1, *[1] * (f.ndim - 1))
    bias = integers(rng, (p["f"][0],), np.int32, -9999, 9999)
    want = expected(p, x - x_zero, f - shaped) + bias.reshape(1, -1, *[1] * (x.ndim - 2))
    xv, fv = lay(rng, x.astype(x_kind), p["axes"][0], x_kind)[0], lay(rng, f.astype(f_kind), p["axes"][1], f_kind)[0]
    got = hk.conv(xv, fv, x_zero=x_zero, f_zero=f_zero, bias=bias, **conv_words(p))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, scatter_axes(want, p["axes"][2]))


def test_requantised_int8():
    rng = np.random.default_rng(3)
    x, f = integers(rng, (2, 6, 9), np.int64, -128, 128), integers(rng, (5, 6, 3), np.int64, -128, 128)
    scale = rng.uniform(0.0002, 0.002, 5).astype(np.float32)
    bias = integers(rng, (5,), np.int32, -500, 500)
    acc = correlate(x - 7, f, [1], [(1, 1)], [1], [1]) + bias[:, None]
    want = np.clip(np.rint(acc * scale[:, None].astype(np.float64)) - 11, -128, 127)
    got = hk.conv(x.astype(np.int8), f.astype(np.int8), 1, 1, scale=scale, bias=bias, x_zero=7, y_zero=-11,
                  preferred_element_type="s8")
    assert got.dtype == np.int8
    assert np.abs(got - want).max() <= 1 and np.mean(got != want) < 0.02  # f32 and f64 may round a tie apart


def test_bf16_through_uint16_and_ml_dtypes():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 12)
    f = np.ones((3, 2, 3), np.float32)
    want = correlate(x, f, [1], [(0, 0)], [1], [1])
    bits = [(a.view(np.uint32) >> 16).astype(np.uint16) for a in (x, f)]
    got = hk.conv(*bits, x_dtype="bf16", f_dtype="bf16", preferred_element_type="f32")
    np.testing.assert_array_equal(got, want)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    got = hk.conv(x.astype(ml_dtypes.bfloat16), f.astype(ml_dtypes.bfloat16))
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, want.astype(ml_dtypes.bfloat16))


def test_broadcast_input_and_filter_are_not_copied():
    row = np.arange(8, dtype=np.float32)
    x = np.broadcast_to(row, (2, 3, 8))
    f = np.broadcast_to(np.float32([1, 2, 3]), (4, 3, 3))
    np.testing.assert_array_equal(hk.conv(x, f), correlate(x.copy(), f.copy(), [1], [(0, 0)], [1], [1]))


@pytest.mark.parametrize("padding,lo,hi", [("SAME", 2, 3), ("SAME_LOWER", 3, 2), ("CAUSAL", 6, 0), ("VALID", 0, 0)])
def test_named_padding(padding, lo, hi):
    rng = np.random.default_rng(0)
    x, f = integers(rng, (1, 2, 12), np.float32), integers(rng, (3, 2, 4), np.float32)
    stride = 1 if padding in ("CAUSAL", "VALID") else 2
    want = correlate(x, f, [stride], [(lo, hi)], [1], [2])
    np.testing.assert_array_equal(hk.conv(x, f, stride, padding, rhs_dilation=2), want)


@pytest.mark.parametrize("spec", ["NHWC", ("NHWC", "HWIO", "NHWC"), ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))])
def test_dimension_numbers(spec):
    rng = np.random.default_rng(0)
    x, f = integers(rng, (2, 5, 6, 3), np.float32), integers(rng, (2, 3, 3, 4), np.float32)
    want = correlate(x.transpose(0, 3, 1, 2), f.transpose(3, 2, 0, 1), [1, 1], [(0, 0)] * 2, [1, 1], [1, 1])
    np.testing.assert_array_equal(hk.conv(x, f, dimension_numbers=spec), want.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_give_the_same_bits(threads):
    rng = np.random.default_rng(1)
    x, f = rng.standard_normal((3, 7, 20, 21)).astype(np.float32), rng.standard_normal((9, 7, 3, 3)).astype(np.float32)
    assert (hk.conv(x, f, 1, 1, threads=threads) == hk.conv(x, f, 1, 1, threads=1)).all()


def test_nan_and_inf_propagate():
    x = np.zeros((1, 1, 9), np.float32)
    x[0, 0, 4] = np.nan
    assert np.isnan(hk.conv(x, np.ones((1, 1, 3), np.float32))).sum() == 3
    x[0, 0, 4] = np.inf
    assert np.isinf(hk.conv(x, np.ones((1, 1, 3), np.float32))).sum() == 3


def test_lists_and_default_types():
    assert hk.conv([[[1.0, 2.0, 3.0]]], [[[1.0, 1.0]]]).tolist() == [[[3.0, 5.0]]]
    x = np.ones((1, 1, 4), np.float16)
    assert hk.conv(x, np.ones((1, 1, 2), np.float16)).dtype == np.float16
    assert hk.conv(x, np.ones((1, 1, 2), np.float32)).dtype == np.float32
    assert hk.conv(x, np.ones((1, 1, 2), np.float16), preferred_element_type=np.float32).dtype == np.float32
