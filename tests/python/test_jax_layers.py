"""libhankel.jax: conv_general_dilated inside XLA's programs, against jax.lax's."""
import os

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax suite: jax is not installed")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax
from pathlib import Path  # noqa: E402

import libhankel as hk  # noqa: E402
from conformance.test_jax_long import draw_problem  # noqa: E402

if not Path(hk.library_path).with_name("libhankel-jax.so").exists():
    pytest.skip("jax suite: libhankel-jax was not built", allow_module_level=True)
import libhankel.jax as hj  # noqa: E402


def integers(rng, shape, dtype):
    return jnp.asarray(rng.integers(-2, 3, shape).astype("f4")).astype(dtype)


def drawn(seed, dtype):
    """(x, f, keywords) of a random convolution with small integers; axes in any order."""
    rng = np.random.default_rng(seed)
    p = draw_problem(rng)
    dims = lax.ConvDimensionNumbers(*p["dims"])
    shapes = [tuple(p[name][list(axes).index(a)] for a in range(len(axes)))
              for name, axes in (("x", dims.lhs_spec), ("f", dims.rhs_spec))]
    words = {name: p[name] for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation")}
    words.update(dimension_numbers=dims, feature_group_count=p["feature_group_count"],
                 batch_group_count=p["batch_group_count"])
    return integers(rng, shapes[0], dtype), integers(rng, shapes[1], dtype), words


def result(function, *arguments):
    try:
        return function(*arguments)
    except (TypeError, ValueError, NotImplementedError):  # what jax.lax itself refuses
        return None


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_like_jax(dtype):
    """Forward and both gradients, exact on integers, under jit."""
    count = 0
    for seed in range(24 if dtype == "float32" else 8):
        x, f, words = drawn(1000 + seed, dtype)
        wide = x.astype("float64"), f.astype("float64")  # XLA's f32 code reads outside x under negative padding
        want = result(lambda: lax.conv_general_dilated(*wide, **words))
        if want is None:
            continue
        want = want.astype(dtype)
        run = jax.jit(lambda x, f: hj.conv_general_dilated(x, f, **words))
        y = run(x, f)
        assert y.dtype == want.dtype and jnp.array_equal(y, want), words
        if not want.size or not x.size:
            continue
        dy = integers(np.random.default_rng(seed), want.shape, dtype)
        theirs = result(lambda: jax.vjp(lambda x, f: lax.conv_general_dilated(x, f, **words), *wide)[1](
            dy.astype("float64")))
        if theirs is None:
            continue
        got = jax.vjp(run, x, f)[1](dy)
        for ours, expected in zip(got, theirs):
            assert ours.dtype == dtype and jnp.array_equal(ours, expected.astype(dtype)), words
        count += 1
    assert count >= 4


def test_padding_words_and_types():
    x, f = jnp.ones((2, 3, 9)), jnp.ones((4, 3, 4))
    for padding in ("SAME", "VALID", "SAME_LOWER"):
        for stride in (1, 2):
            want = lax.conv_general_dilated(x, f, (stride,), padding, rhs_dilation=(2,))
            assert jnp.array_equal(hj.conv_general_dilated(x, f, (stride,), padding, rhs_dilation=(2,)), want)
    y = hj.conv_general_dilated(x.astype("int8"), f.astype("int8"), (1,), "VALID", preferred_element_type="int32")
    assert y.dtype == jnp.int32 and int(y[0, 0, 0]) == 12
    wide = hj.conv_general_dilated(x.astype("bfloat16"), f.astype("bfloat16"), (1,), "VALID",
                                   preferred_element_type="float32")
    assert wide.dtype == jnp.float32


def test_transformations_compose():
    rng = np.random.default_rng(3)
    x, f = integers(rng, (5, 2, 4, 9), "float32"), integers(rng, (6, 2, 3), "float32")

    def ours(x, f):
        return hj.conv_general_dilated(x, f, (1,), "SAME", feature_group_count=2)

    def theirs(x, f):
        return lax.conv_general_dilated(x, f, (1,), "SAME", feature_group_count=2)
    many = jnp.stack([f, 2 * f, -f, f + 1, f])
    for axes, second in (((0, None), f), ((0, 0), many)):
        assert jnp.array_equal(jax.vmap(ours, axes)(x, second), jax.vmap(theirs, axes)(x, second))

    def loss(conv):
        return jax.jit(jax.grad(lambda f: jax.vmap(conv, (0, None))(x, f).astype("float64").sum()))
    assert jnp.array_equal(loss(ours)(f), loss(theirs)(f))
    scanned, _ = lax.scan(lambda s, v: (s + ours(v, f), None), jnp.zeros((2, 6, 9)), x)
    assert jnp.array_equal(scanned, sum(theirs(v, f) for v in x))


def test_large_enough_for_threads():
    """Several threads of XLA's pool give the same bits as one."""
    rng = np.random.default_rng(4)
    x = jnp.asarray(rng.standard_normal((2, 32, 32, 32)).astype("f4"))
    f = jnp.asarray(rng.standard_normal((3, 3, 32, 48)).astype("f4"))
    numbers = ("NHWC", "HWIO", "NHWC")
    y = jax.jit(lambda x, f: hj.conv_general_dilated(x, f, (1, 1), "SAME", dimension_numbers=numbers))(x, f)
    plan = hk.plan(np.asarray(x), np.asarray(f), padding="SAME", dimension_numbers=numbers, threads=1,
                   hold_weights=False)
    np.testing.assert_allclose(np.asarray(y), plan(np.asarray(x), np.asarray(f)), rtol=1e-4, atol=1e-4)
    for _ in range(20):
        assert jnp.array_equal(y, jax.jit(lambda x, f: hj.conv_general_dilated(
            x, f, (1, 1), "SAME", dimension_numbers=numbers))(x, f))


def test_refusals():
    x, f = jnp.ones((1, 2, 5)), jnp.ones((3, 2, 3))
    for bad, sentence in ((lambda: hj.conv_general_dilated(x, f.astype("float16"), (1,), "VALID"), "one type"),
                          (lambda: hj.conv_general_dilated(x[0], f, (1,), "VALID"), "dimensions"),
                          (lambda: hj.conv_general_dilated(x.astype("int64"), f.astype("int64"), (1,), "VALID"), "int64"),
                          (lambda: hj.conv_general_dilated(x.astype("int8"), f.astype("int8"), (1,), "VALID"), "int32"),
                          (lambda: hj.conv_general_dilated(x, f, (0,), [(0, 0)]), "stride")):
        with pytest.raises(hk.HankelError, match=sentence):
            bad()
