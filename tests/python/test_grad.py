"""Gradients of the general convolution by the identity that defines them: <conv(x, f), dy> = <x, dx> = <f, df> for
every x, f and dy; integers, so both sides are exact."""
import numpy as np
from hypothesis import HealthCheck, given, settings

import libhankel as hk
from problems import arguments, conv_words, integers, lay

common = settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def inner(a, b):
    return float((np.asarray(a, np.float64) * np.asarray(b, np.float64)).sum())


@common
@given(arguments())
def test_adjoint_identities(p):
    rng = np.random.default_rng(p["seed"])
    words = conv_words(p)
    x = lay(rng, integers(rng, p["x"], np.float64), p["axes"][0], np.float64)[0]
    f = lay(rng, integers(rng, p["f"], np.float64), p["axes"][1], np.float64)[0]
    y = hk.conv(x, f, **words)
    for _ in range(2):
        dy = integers(rng, y.shape, np.float64)
        dx = hk.conv_grad_input(dy, f, x.shape, **words)
        df = hk.conv_grad_filter(x, dy, f.shape, **words)
        assert dx.shape == x.shape and df.shape == f.shape
        probe, probe_f = integers(rng, x.shape, np.float64), integers(rng, f.shape, np.float64)
        assert inner(hk.conv(probe, f, **words), dy) == inner(probe, dx)
        assert inner(hk.conv(x, probe_f, **words), dy) == inner(probe_f, df)


def test_broadcast_gradient_and_out():
    rng = np.random.default_rng(0)
    x, f = integers(rng, (2, 4, 9), np.float32), integers(rng, (6, 2, 3), np.float32)
    words = dict(window_strides=2, padding=1, feature_group_count=2)
    dy = np.broadcast_to(np.float32(3), (2, 6, 5))
    dx = np.empty((2, 9, 4), np.float32).transpose(0, 2, 1)
    assert hk.conv_grad_input(dy, f, x.shape, out=dx, **words) is dx
    np.testing.assert_array_equal(dx, hk.conv_grad_input(dy.copy(), f, x.shape, **words))
    np.testing.assert_array_equal(hk.conv_grad_filter(x, dy, f.shape, **words),
                                  hk.conv_grad_filter(x, dy.copy(), f.shape, **words))
    np.testing.assert_array_equal(hk.conv_grad_bias(dy), np.full(6, 30))


def test_bias_gradient_of_any_layout():
    rng = np.random.default_rng(0)
    dy = integers(rng, (2, 5, 6, 7), np.float32)
    np.testing.assert_array_equal(hk.conv_grad_bias(dy), dy.sum((0, 2, 3)))
    np.testing.assert_array_equal(hk.conv_grad_bias(dy, "NHWC"), dy.sum((0, 1, 2)))
    got = hk.conv_grad_bias(dy.astype(np.float64)[:, ::-1, ::2])
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, dy[:, ::-1, ::2].sum((0, 2, 3)))


def test_half_precision_gradients():
    rng = np.random.default_rng(0)
    x, f, dy = (integers(rng, s, np.float16, -2, 3) for s in ((2, 3, 9), (4, 3, 3), (2, 4, 7)))
    dx, df = hk.conv_grad_input(dy, f, x.shape), hk.conv_grad_filter(x, dy, f.shape)
    assert dx.dtype == df.dtype == np.float16
    np.testing.assert_array_equal(dx, hk.conv_grad_input(dy.astype(np.float32), f.astype(np.float32), x.shape))
    np.testing.assert_array_equal(df, hk.conv_grad_filter(x.astype(np.float32), dy.astype(np.float32), f.shape))


def test_wrong_gradient_shape_is_refused():
    try:
        hk.conv_grad_input(np.ones((1, 2, 3), np.float32), np.ones((2, 1, 3), np.float32), (1, 1, 9))
    except hk.HankelError as error:
        assert error.status == 1 and "dy" in error.message
    else:
        raise AssertionError("accepted")
