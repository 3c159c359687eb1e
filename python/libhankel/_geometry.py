"""Problems from arrays and the usual arguments: axis orders, strides, padding, groups."""
from typing import NamedTuple, Tuple

from . import _abi
from ._arguments import integer, integers, is_single, per_axis
from ._array import type_of
from ._native import call, invalid
from ._problem import Problem, set_axes


class Dims(NamedTuple):
    """Where the axes of x (N, C, spatial..), f (O, I, spatial..) and y (N, C, spatial..) lie in their arrays."""
    x: Tuple[int, ...]
    f: Tuple[int, ...]
    y: Tuple[int, ...]


def dimension_numbers(spec, rank):
    """Dims from None (channels first), "NHWC" alone, ("NHWC", "HWIO", "NHWC"), or three tuples of axis numbers."""
    if spec is None:
        return Dims(*[tuple(range(rank + 2))] * 3)
    if isinstance(spec, str):
        first = spec.upper().index("C") == 1 if "C" in spec.upper() else True
        letters = spec.upper().replace("N", "").replace("C", "")
        spec = (spec, ("OI" + letters) if first else (letters + "IO"), spec)
    if not isinstance(spec, (tuple, list)):
        raise invalid(f"dimension_numbers is {spec!r}; a string, or a tuple for x, f and y, is required")
    if len(spec) != 3:
        raise invalid(f"dimension_numbers has {len(spec)} parts; x, f and y are required")
    if not any(isinstance(part, str) for part in spec):
        dims = Dims(*[integers(part, "dimension_numbers") for part in spec])
    else:
        x, f, y = (str(part).upper() for part in spec)
        spatial = [letter for letter in f if letter not in "OI"]
        places = []
        for part, head in ((x, "NC"), (f, "OI"), (y, "NC")):
            if sorted(part) != sorted(head + "".join(spatial)):
                raise invalid(f"dimension_numbers has {part!r}; {head}{''.join(spatial)} in some order is required")
            places.append(tuple(part.index(letter) for letter in [*head, *spatial]))
        dims = Dims(*places)
    for part in dims:
        if sorted(part) != list(range(rank + 2)):
            raise invalid(f"dimension_numbers has {part}; a permutation of 0..{rank + 1} is required")
    return dims


def pad_pairs(padding, rank):
    """("name", None) for a named padding, or ("explicit", ((lo, hi), ..)) from an integer, integers or pairs."""
    if isinstance(padding, str):
        name = padding.lower()
        if name not in _abi.PADDING or name == "explicit":
            raise invalid(f"padding is {padding!r}; VALID, SAME, SAME_LOWER, CAUSAL or numbers are required")
        return name, None
    if is_single(padding):
        return "explicit", (per_axis(padding, 2, "padding"),) * rank
    if len(padding) != rank:
        raise invalid(f"padding is {padding!r}; {rank} entries are required")
    return "explicit", tuple(per_axis(p, 2, f"padding[{i}]") for i, p in enumerate(padding))


def place(strides, tensor, axes, per_group, grouped):
    """Fills hk_strides from a tensor whose logical axes lie at `axes`; `grouped` is the logical axis (0 or 1) that the
    groups split, per_group how many of it each holds."""
    moved = [tensor.strides[a] for a in axes]
    strides.offset, strides.outer, strides.channel = 0, moved[0], moved[1]
    strides.group = moved[grouped] * per_group
    set_axes(strides.at, moved[2:])


class Geometry(NamedTuple):
    """The arguments of a convolution that do not depend on its arrays."""
    stride: Tuple[int, ...]
    padding: Tuple
    lhs_dilation: Tuple[int, ...]
    rhs_dilation: Tuple[int, ...]
    reverse: Tuple[int, ...]
    feature_groups: int
    batch_groups: int
    dims: Dims


def geometry(rank, stride, padding, lhs_dilation, rhs_dilation, reverse, feature_groups, batch_groups, spec):
    return Geometry(per_axis(stride, rank, "window_strides"), pad_pairs(padding, rank),
                    per_axis(lhs_dilation, rank, "lhs_dilation"), per_axis(rhs_dilation, rank, "rhs_dilation"),
                    per_axis(reverse, rank, "reverse"), integer(feature_groups, "feature_group_count"),
                    integer(batch_groups, "batch_group_count"), dimension_numbers(spec, rank))


def forward(geom, x_shape, x_type, f_shape, f_type, y_type):
    """A Problem with everything set but the strides. Shapes are those of the arrays, axes as geom.dims says."""
    rank = len(geom.stride)
    if len(x_shape) != rank + 2 or len(f_shape) != rank + 2:
        raise invalid(f"x has {len(x_shape)} dimensions and f {len(f_shape)}; both need {rank + 2}")
    for name, groups in (("feature_group_count", geom.feature_groups), ("batch_group_count", geom.batch_groups)):
        if groups < 1:
            raise invalid(f"{name} is {groups}; at least 1 is required")
    problem = Problem()
    raw = problem.raw
    xs, fs = [x_shape[a] for a in geom.dims.x], [f_shape[a] for a in geom.dims.f]
    if fs[1] * geom.feature_groups != xs[1]:
        raise invalid(f"f has {fs[1]} input channels and feature_group_count is {geom.feature_groups}; their product "
                      f"must be the {xs[1]} channels of x")
    raw.rank, raw.x_type, raw.f_type, raw.y_type = rank, x_type, f_type, y_type
    raw.n, raw.c, raw.k = xs[0], xs[1], fs[0]
    raw.feature_groups, raw.batch_groups = geom.feature_groups, geom.batch_groups
    set_axes(raw.in_, xs[2:])
    set_axes(raw.window, fs[2:])
    set_axes(raw.stride, geom.stride)
    set_axes(raw.dilation, geom.rhs_dilation)
    set_axes(raw.in_dilation, geom.lhs_dilation)
    set_axes(raw.reverse, [bool(r) for r in geom.reverse])
    name, pairs = geom.padding
    if pairs is not None:
        set_axes(raw.pad_lo, [lo for lo, _ in pairs])
        set_axes(raw.pad_hi, [hi for _, hi in pairs])
    call("hk_problem_dense", raw, _abi.CHANNELS_FIRST)
    if pairs is None:
        call("hk_problem_pad", raw, _abi.PADDING[name])
    return problem


def output_shape(problem, axes, gated=False):
    """Shape of the array of y."""
    batch, spatial = problem.output()
    logical = (batch, problem.raw.k // (2 if gated else 1)) + spatial
    shape = [0] * len(logical)
    for size, axis in zip(logical, axes):
        shape[axis] = size
    return tuple(shape)


def place_all(problem, dims, x=None, f=None, y=None):
    """Lays x, f, y of a forward problem as the given tensors lie."""
    raw = problem.raw
    groups = max(raw.feature_groups, raw.batch_groups, 1)
    if x is not None:
        by_batch = raw.batch_groups > 1
        place(raw.x, x, dims.x, (raw.n if by_batch else raw.c) // groups, 0 if by_batch else 1)
    if f is not None:
        place(raw.f, f, dims.f, raw.k // groups, 0)
    if y is not None:
        place(raw.y, y, dims.y, raw.k // groups, 1)


def output_type(dtype, fallback):
    return fallback if dtype is None else type_of(dtype)
