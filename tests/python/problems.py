"""Random convolutions for the Python tests: hypothesis strategies and array views that are anything but dense."""
import numpy as np
from hypothesis import strategies as st

import reference


@st.composite
def arguments(draw, max_rank=3, lhs=True, batch_groups=True, empty=True):
    """Keyword arguments of reference.correlate plus shapes and axis orders."""
    rank = draw(st.integers(1, max_rank))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    by_batch = draw(st.booleans()) if groups > 1 and batch_groups else False
    feature, batch = (1, groups) if by_batch else (groups, 1)
    least = 0 if empty and draw(st.integers(0, 9)) == 0 else 1
    n, inner, k = draw(st.integers(least, 3)) * batch, draw(st.integers(least, 5)), draw(st.integers(least, 4)) * groups
    size = [draw(st.integers(least, 8 if rank < 3 else 5)) for _ in range(rank)]
    window = [draw(st.integers(1, 4 if rank < 3 else 3)) for _ in range(rank)]
    pads = [(draw(st.integers(-2, 4)), draw(st.integers(-2, 4))) for _ in range(rank)]
    three = [[draw(st.integers(1, 3)) for _ in range(rank)] for _ in range(3)]
    axes = [tuple(draw(st.permutations(range(rank + 2)))) for _ in range(3)]
    return dict(x=(n, inner * feature, *size), f=(k, inner, *window), stride=three[0], pads=pads, dilation=three[1],
                in_dilation=three[2] if lhs else [1] * rank, feature_groups=feature, batch_groups=batch,
                reverse=[draw(st.booleans()) for _ in range(rank)], axes=axes, seed=draw(st.integers(0, 2 ** 32 - 1)))


def view(rng, shape, dtype, values=None):
    """An array of `shape` inside a larger block: every axis padded, strided, or reversed."""
    block = np.full([2 * n + 3 for n in shape], 99, dtype)
    cuts = []
    for n in shape:
        step = int(rng.choice([1, 2, -1, -2]))
        start = int(rng.integers(0, 2)) if step > 0 else abs(step) * n + 1
        cuts.append(slice(start, None if step < 0 else start + step * n, step))
    got = block[tuple(cuts)][tuple(slice(0, n) for n in shape)]
    if values is not None:
        got[...] = values
    return got, block


def integers(rng, shape, dtype, low=-4, high=5):
    return rng.integers(low, high, shape).astype(dtype)


def lay(rng, logical, axes, dtype):
    """A logical array (N, C, ..) as a strided view whose logical axis i lies at axes[i]."""
    return view(rng, reference.scatter_axes(logical, axes).shape, dtype, reference.scatter_axes(logical, axes))


def conv_words(p):
    """The same problem as keywords of conv()."""
    return dict(window_strides=p["stride"], padding=p["pads"], lhs_dilation=p["in_dilation"],
                rhs_dilation=p["dilation"], dimension_numbers=p["axes"], feature_group_count=p["feature_groups"],
                batch_group_count=p["batch_groups"], reverse=p["reverse"])


def expected(p, x, f, fill=0):
    return reference.correlate(x, f, p["stride"], p["pads"], p["in_dilation"], p["dilation"], p["feature_groups"],
                               p["batch_groups"], p["reverse"], fill)
