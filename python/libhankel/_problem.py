"""Problems: hk_problem as a Python object."""
import ctypes as C
from typing import Optional, Sequence, Tuple, Union

from . import _abi
from ._arguments import integer, per_axis
from ._array import NAMES, type_of
from ._native import HankelError, call, invalid, text

_LAYOUTS = {"first": _abi.CHANNELS_FIRST, "last": _abi.CHANNELS_LAST}
_TYPES = ("x_type", "f_type", "y_type")


def set_axes(field, values):
    for i, value in enumerate(values):
        field[i] = value


class Problem:
    """What to compute: sizes, types, strides, padding, dilations, groups (hk_problem).

    Problem(text) parses hankel's own form or benchdnn's; Problem.conv() and Problem.conv_transpose() take numbers. The
    fields of hk_problem are attributes, types as names; str() prints the text that Problem() reads.

    >>> p = Problem("2d_n2_c3_i8_k4_w3_p1_f32_last")
    >>> p.k, p.window, p.x_type, p.output()
    (4, (3, 3), 'f32', (2, (8, 8)))
    >>> p == Problem.conv(n=2, c=3, size=(8, 8), k=4, window=3, padding=1, layout="last")
    True
    """
    raw: _abi.RawProblem

    def __init__(self, source: Union[str, _abi.RawProblem, "Problem", None] = None, deconv: bool = False) -> None:
        self.raw = _abi.RawProblem()
        if isinstance(source, str):
            call("hk_problem_parse_deconv" if deconv else "hk_problem_parse", self.raw, source.encode())
        elif source is not None:
            raw = source.raw if isinstance(source, Problem) else source
            C.memmove(C.byref(self.raw), C.byref(raw), C.sizeof(self.raw))

    @classmethod
    def conv(cls, *, n: int, c: int, size: Sequence[int], k: int, window: Union[int, Sequence[int]],
             stride: Union[int, Sequence[int]] = 1, padding: Union[int, Sequence[int]] = 0,
             dilation: Union[int, Sequence[int]] = 1, groups: int = 1, layout: str = "first", dtype: object = "f32",
             f_dtype: Optional[object] = None, y_dtype: Optional[object] = None) -> "Problem":
        """A convolution of dense tensors: n images of c channels of `size` into k channels. layout: channels "first" or
        "last"; dtype is x's type, and f's and y's where they are not given."""
        desc = cls._desc(size, window, stride, padding, dilation, layout, (dtype, f_dtype, y_dtype), n, c, k, groups)
        problem = cls()
        call("hk_problem_conv", problem.raw, desc)
        return problem

    @classmethod
    def conv_transpose(cls, *, n: int, c: int, size: Sequence[int], k: int, window: Union[int, Sequence[int]],
                       stride: Union[int, Sequence[int]] = 1, padding: Union[int, Sequence[int]] = 0,
                       output_padding: Union[int, Sequence[int]] = 0, dilation: Union[int, Sequence[int]] = 1,
                       groups: int = 1, layout: str = "first", dtype: object = "f32",
                       f_dtype: Optional[object] = None, y_dtype: Optional[object] = None) -> "Problem":
        """A transposed convolution; weights are [c][k/groups][window..], or [c][window..][k/groups] channels last."""
        desc = cls._desc(size, window, stride, padding, dilation, layout, (dtype, f_dtype, y_dtype), n, c, k, groups)
        set_axes(desc.output_padding, per_axis(output_padding, len(size), "output_padding"))
        problem = cls()
        call("hk_problem_conv_transpose", problem.raw, desc)
        return problem

    @staticmethod
    def _desc(size, window, stride, padding, dilation, layout, dtypes, n, c, k, groups):
        if layout not in _LAYOUTS:
            raise invalid(f"layout is {layout!r}; \"first\" or \"last\" is required")
        rank = len(size)
        types = [type_of(dtypes[0] if dtype is None else dtype) for dtype in dtypes]
        desc = _abi.ConvDesc(rank=rank, layout=_LAYOUTS[layout], x_type=types[0], f_type=types[1], y_type=types[2],
                             n=integer(n, "n"), c=integer(c, "c"), k=integer(k, "k"),
                             groups=integer(groups, "groups", least=1))
        for name, values in (("in_", size), ("window", window), ("stride", stride), ("dilation", dilation),
                             ("pad_lo", padding), ("pad_hi", padding)):
            least = 1 if name in ("stride", "dilation") else None
            set_axes(getattr(desc, name), [integer(v, name.strip("_"), least=least)
                                           for v in per_axis(values, rank, name.strip("_"))])
        return desc

    def __getattr__(self, name: str):
        """Fields of hk_problem by name: integers, tuples of `rank` integers, and type names."""
        field = {"size": "in_"}.get(name, name)
        if name == "raw" or field not in [f[0] for f in _abi.RawProblem._fields_]:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self.raw, field)
        if field in _TYPES:
            return NAMES[value] if 0 <= value < len(NAMES) else value
        return tuple(value[:self.raw.rank]) if isinstance(value, C.Array) else value

    def check(self) -> "Problem":
        """Raises HankelError if anything is wrong with the problem."""
        call("hk_problem_check", self.raw)
        return self

    def output(self) -> Tuple[int, Tuple[int, ...]]:
        """(batch, spatial sizes) of y."""
        sizes, batch = _abi.Axes(), C.c_int64()
        call("hk_problem_output", self.raw, sizes, C.byref(batch))
        return batch.value, tuple(sizes[:self.raw.rank])

    def extents(self, gated=False):
        """((elements, below) of x, of f, of y): how much memory each touches, and how much of it below its pointer.
        Under a gate y has half the channels, and its strides need not leave room for all of them."""
        whole = Problem(self.raw)
        if gated:
            call("hk_problem_dense", whole.raw, _abi.CHANNELS_FIRST)
            whole.raw.x, whole.raw.f = self.raw.x, self.raw.f
        three = [_abi.Extent() for _ in range(3)]
        call("hk_problem_extents", whole.raw, *three)
        x, f, y = ((e.elements, e.below) for e in three)
        return x, f, self.reach(self.raw.y, gated) if gated else y

    def reach(self, strides, gated=False):
        """(elements, below) of a tensor of y's shape that lies as `strides` say."""
        batch, spatial = self.output()
        groups = max(self.raw.feature_groups, self.raw.batch_groups, 1)
        counts = (groups, self.raw.k // groups) if not gated else (1, self.raw.k // 2)
        sizes = (batch,) + counts + spatial
        if 0 in sizes:
            return 0, 0
        steps = (strides.outer, strides.group, strides.channel, *strides.at[:self.raw.rank])
        ends = [step * (n - 1) for step, n in zip(steps, sizes)]
        low = strides.offset + sum(e for e in ends if e < 0)
        return 1 + sum(abs(e) for e in ends), -low

    def work(self) -> Tuple[float, float]:
        """(flops, least bytes moved)."""
        flops, moved = C.c_double(), C.c_double()
        call("hk_problem_work", self.raw, C.byref(flops), C.byref(moved))
        return flops.value, moved.value

    def grad_input(self) -> "Problem":
        """The problem of the input's gradient: x = dy, f = f, y = dx."""
        grad = Problem()
        call("hk_problem_grad_input", self.raw, grad.raw)
        return grad

    def grad_filter(self) -> "Problem":
        """The problem of the filter's gradient: x = x, f = dy, y = df."""
        grad = Problem()
        call("hk_problem_grad_filter", self.raw, grad.raw)
        return grad

    def empty_output(self, home, gated=False):
        """(memory, view): a new block that holds y, and y in it as (batch, channels, spatial..) with the problem's
        strides. Channels whose groups do not follow on each other come as two axes."""
        raw, (batch, spatial) = self.raw, self.output()
        groups = max(raw.feature_groups, raw.batch_groups, 1)
        elements, below = self.reach(raw.y, gated)
        flat = home.empty((elements,), raw.y_type, (0,))
        inner, y = raw.k // groups, raw.y
        channels, steps = (groups, inner), (y.group, y.channel)
        if gated or groups == 1 or y.group == inner * y.channel:
            channels, steps = (raw.k // 2 if gated else raw.k,), (y.channel,)
        strides = (y.outer, *steps, *y.at[:raw.rank])
        return flat, home.strided(flat, below + y.offset if elements else 0, (batch,) + channels + spatial, strides)

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same from the same elements: strides of axes of size 1 do not count."""
        if not isinstance(other, Problem):
            return NotImplemented
        try:
            return str(self) == str(other)
        except HankelError:  # a problem that breaks a rule has no text
            return _abi.fields(self.raw) == _abi.fields(other.raw)

    __hash__ = None  # type: ignore[assignment]  # the fields may change

    def __reduce__(self):
        return _restored, (type(self), _abi.fields(self.raw, _abi.MAX_RANK))

    def __str__(self) -> str:
        return text("hk_problem_print", self.raw)

    def __repr__(self) -> str:
        return f"Problem({str(self)!r})"


def _restored(cls, fields):
    problem = cls()
    _abi.fill(problem.raw, fields)
    return problem
