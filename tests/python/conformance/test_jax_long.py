"""conv() against jax.lax.conv_general_dilated on random problems over all its arguments."""
import os

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax suite: jax is not installed")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_enable_x64", True)
import ml_dtypes  # noqa: E402  (comes with jax)

import libhankel as hk  # noqa: E402
from suite import Suite, distance  # noqa: E402

PROBLEMS, SEED = 2400, 20240229
#: (x and f, result, share)
TYPES = [(np.float32, None, 6), (np.float64, None, 3), (np.float16, None, 3), (ml_dtypes.bfloat16, None, 3),
         (np.float16, np.float32, 1), (ml_dtypes.bfloat16, np.float32, 1), (np.int8, np.int32, 3)]


def draw_type(rng):
    picks = [t for t in TYPES for _ in range(t[2])]
    return picks[rng.integers(len(picks))][:2]


def draw_problem(rng):
    """A dict of arguments, all of them varied, sizes small enough that one compile is the cost."""
    rank = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 2, 3, 4]))
    kind = rng.choice(["feature", "batch"]) if groups > 1 else "none"
    feature, batch = (groups if kind == "feature" else 1), (groups if kind == "batch" else 1)
    inner, n = int(rng.integers(1, 6)), int(rng.integers(1, 4)) * batch
    k = int(rng.integers(1, 5)) * groups
    if rng.random() < 0.06:
        which = rng.integers(3)
        n, inner, k = (0 if which == 0 else n), (0 if which == 1 else inner), (0 if which == 2 else k)
    size = [int(rng.integers(0 if rng.random() < 0.05 else 1, 9 if rank < 3 else 6)) for _ in range(rank)]
    window = [int(rng.integers(1, 5 if rank < 3 else 4)) for _ in range(rank)]
    ones = [1] * rank
    lhs_dilation = [int(rng.integers(1, 4)) for _ in ones] if rng.random() < 0.4 else ones
    padding = [tuple(int(v) for v in rng.integers(-2, 5, 2)) for _ in range(rank)]
    for d, (lo, hi) in enumerate(padding):  # jax refuses to crop more than there is
        span = lhs_dilation[d] * (size[d] - 1) + 1 if size[d] else 0
        padding[d] = (lo, max(hi, -span - lo))
    if rng.random() < 0.15:
        padding = str(rng.choice(["SAME", "VALID", "SAME_LOWER"]))
    dims = tuple(tuple(int(a) for a in rng.permutation(rank + 2)) for _ in range(3))
    return dict(x=(n, inner * feature, *size), f=(k, inner, *window),
                window_strides=[int(rng.integers(1, 4)) for _ in ones], padding=padding, lhs_dilation=lhs_dilation,
                rhs_dilation=[int(rng.integers(1, 4)) for _ in ones] if rng.random() < 0.5 else ones, dims=dims,
                feature_group_count=feature, batch_group_count=batch)


def lay(shape, axes):
    laid = [0] * len(shape)
    for size, axis in zip(shape, axes):
        laid[axis] = size
    return laid


def data(rng, shape, dtype, whole):
    if dtype == np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return (rng.integers(-3, 4, shape) if whole else rng.standard_normal(shape)).astype(dtype)


def compare(p, rng):
    """None or what differs between conv() and jax on one problem."""
    dtype, result = draw_type(rng)
    whole = bool(rng.random() < 0.5)
    x, f = data(rng, lay(p["x"], p["dims"][0]), dtype, whole), data(rng, lay(p["f"], p["dims"][1]), dtype, whole)
    words = {name: p[name] for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation",
                                        "feature_group_count", "batch_group_count")}
    if isinstance(words["padding"], str):
        words["lhs_dilation"] = [1] * len(words["lhs_dilation"])  # jax refuses a named padding beside it
    dims = jax.lax.ConvDimensionNumbers(*p["dims"])

    def theirs(a, b, kind):
        y = jax.lax.conv_general_dilated(a, b, dimension_numbers=dims, preferred_element_type=kind, **words)
        return np.asarray(y)

    got = hk.conv(x, f, dimension_numbers=p["dims"], preferred_element_type=result, **words)
    if got.dtype.kind == "i":
        return distance(got, theirs(x, f, result))
    # The answer is what is exact in f64, rounded once: XLA adds f16 and bf16 in the narrow type, and its f32 code for
    # CPUs reads outside x under negative padding (jaxlib 0.4.38).
    want = theirs(x.astype(np.float64), f.astype(np.float64), None).astype(got.dtype)
    if whole:
        return None if got.shape == want.shape and (got == want).all() else distance(got, want, 0) or "integers differ"
    terms = int(np.prod(p["f"][1:]))
    size = theirs(np.abs(x).astype(np.float64), np.abs(f).astype(np.float64), None)
    return distance(got, want, size, terms, np.dtype(dtype).name)


def test_conv_general_dilated():
    suite = Suite("jax.lax.conv_general_dilated", least=2000)
    for index in range(PROBLEMS):
        rng = np.random.default_rng([SEED, index])
        problem = draw_problem(rng)
        suite.check(f"[{SEED}, {index}] {problem}", lambda: compare(problem, rng))
    suite.finish()


