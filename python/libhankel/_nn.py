"""Convolutions with PyTorch's arguments, by position or by torch's names (x is also `input`): channels first in shape,
any strides in memory, batch axis optional.

They refuse what torch refuses: a window larger than the padded input, negative padding, "same" with a stride.
"""
import numpy as np

from . import _abi
from ._arguments import also_named, integer
from ._array import default_output_type, intake
from ._conv import run, y_type_for
from ._native import call, invalid
from ._problem import Problem, dimension_numbers, pad_pairs, per_axis, set_axes


def _batched(x, out, keywords, rank, what):
    """Adds the batch axis where x lacks it, to out and residual too; says whether it did."""
    x = x if isinstance(x, np.ndarray) else np.asarray(x)
    if x.ndim == rank + 2:
        return x, out, False
    if x.ndim != rank + 1:
        raise invalid(f"x has {x.ndim} dimensions; {what} needs {rank + 2}, or {rank + 1} without a batch")
    if keywords.get("residual") is not None:
        keywords["residual"] = np.asarray(keywords["residual"])[None]
    return x[None], out[None] if isinstance(out, np.ndarray) else out, True  # intake() refuses what is no array


def _unbatched(y, out):
    """The result without the batch axis that _batched() added: `out` itself where it was given."""
    return y[0] if out is None and y is not None else out


def _desc(rank, x, f, y_type, c, k, groups, stride, padding, dilation):
    """hk_conv_desc of torch's arguments."""
    desc = _abi.ConvDesc(rank=rank, layout=_abi.CHANNELS_FIRST, x_type=x.type, f_type=f.type, y_type=y_type,
                         n=x.shape[0], c=c, k=k, groups=groups)
    for name, values in (("stride", stride), ("dilation", dilation)):
        if min(values) < 1:
            raise invalid(f"{name} is {values}; at least 1 is required")
        set_axes(getattr(desc, name), values)
    set_axes(desc.in_, x.shape[2:])
    set_axes(desc.window, f.shape[2:])
    name, pairs = pad_pairs(padding, rank)
    desc.padding = _abi.PADDING[name]
    if pairs is not None:
        set_axes(desc.pad_lo, [lo for lo, _ in pairs])
        set_axes(desc.pad_hi, [hi for _, hi in pairs])
    elif name in ("same", "same_lower") and max(stride) > 1:
        raise invalid(f"padding is {padding!r} and stride {stride}; \"same\" needs stride 1")
    return desc


def _convnd(rank, x, weight, bias, stride, padding, dilation, groups, out, keywords):
    given, groups = out, integer(groups, "groups", least=1)
    x, out, added = _batched(x, out, keywords, rank, f"conv{rank}d")
    x, f = intake(x, "x", keywords.pop("x_dtype", None)), intake(weight, "weight", keywords.pop("f_dtype", None))
    if len(f.shape) != rank + 2:
        raise invalid(f"weight has {len(f.shape)} dimensions; conv{rank}d needs {rank + 2}")
    y_type = y_type_for(out, keywords.pop("out_dtype", None), default_output_type(x.type, f.type))
    desc = _desc(rank, x, f, y_type, x.shape[1], f.shape[0], groups, per_axis(stride, rank, "stride"), padding,
                 per_axis(dilation, rank, "dilation"))
    if f.shape[1] * groups != x.shape[1]:
        raise invalid(f"weight has {f.shape[1]} input channels in {groups} groups; x has {x.shape[1]} channels")
    problem = Problem()
    call("hk_problem_conv", problem.raw, desc)
    taken = _taken(problem, keywords)
    y = run(problem, dimension_numbers(None, rank), x, f, dict(keywords, bias=bias), out,
            batch_added=added, **taken)
    return _unbatched(y, given) if added else y


def _taken(problem, keywords):
    """Moves the keywords that run() takes itself out of the rest; sets the zero points."""
    for name in ("x_zero", "y_zero"):
        setattr(problem.raw, name, integer(keywords.pop(name, 0), name, 32))
    return {name: keywords.pop(name) for name in ("residual", "f_zero") if name in keywords}


def _transposend(rank, x, weight, bias, stride, padding, output_padding, groups, dilation, out, keywords):
    given, groups = out, integer(groups, "groups", least=1)
    x, out, added = _batched(x, out, keywords, rank, f"conv_transpose{rank}d")
    x, f = intake(x, "x", keywords.pop("x_dtype", None)), intake(weight, "weight", keywords.pop("f_dtype", None))
    if len(f.shape) != rank + 2 or f.shape[0] != x.shape[1]:
        raise invalid(f"weight has shape {f.shape}; {rank + 2} dimensions, the first of x's {x.shape[1]} channels, are "
                      "required")
    y_type = y_type_for(out, keywords.pop("out_dtype", None), default_output_type(x.type, f.type))
    desc = _desc(rank, x, f, y_type, x.shape[1], f.shape[1] * groups, groups, per_axis(stride, rank, "stride"),
                 padding, per_axis(dilation, rank, "dilation"))
    set_axes(desc.output_padding, per_axis(output_padding, rank, "output_padding"))
    problem = Problem()
    call("hk_problem_conv_transpose", problem.raw, desc)

    def lay_filter(raw, weight):
        # weight[c][k in group][..] read as f[k][c][..]; the problem's reversal says which way its windows run
        raw.f.offset, raw.f.outer, raw.f.channel = 0, weight.strides[1], weight.strides[0]
        raw.f.group = weight.strides[0] * (raw.c // groups)
        set_axes(raw.f.at, weight.strides[2:])

    taken = _taken(problem, keywords)
    y = run(problem, dimension_numbers(None, rank), x, f, dict(keywords, bias=bias), out, lay_filter=lay_filter,
            batch_added=added, **taken)
    return _unbatched(y, given) if added else y


@also_named(input="x")
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, **keywords):
    """torch.nn.functional.conv1d; x (N, C, L) or (C, L), weight (K, C/groups, S). Keywords as of conv()."""
    return _convnd(1, x, weight, bias, stride, padding, dilation, groups, out, keywords)


@also_named(input="x")
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, **keywords):
    """torch.nn.functional.conv2d; x (N, C, H, W) or (C, H, W), weight (K, C/groups, R, S). Keywords as of conv()."""
    return _convnd(2, x, weight, bias, stride, padding, dilation, groups, out, keywords)


@also_named(input="x")
def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None, **keywords):
    """torch.nn.functional.conv3d; x (N, C, D, H, W) or (C, D, H, W), weight (K, C/groups, Q, R, S)."""
    return _convnd(3, x, weight, bias, stride, padding, dilation, groups, out, keywords)


@also_named(input="x")
def depthwise_conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, *, out=None, **keywords):
    """conv1d with one group a channel: x (N, C, L), weight (C*multiplier, 1, S), or (C, S) for multiplier 1."""
    weight = weight if isinstance(weight, np.ndarray) else np.asarray(weight)
    if weight.ndim == 2:
        weight = weight[:, None, :]
    channels = np.shape(x)[-2] if np.ndim(x) >= 2 else 0
    return _convnd(1, x, weight, bias, stride, padding, dilation, max(channels, 1), out, keywords)


@also_named(input="x")
def conv_transpose1d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, out=None,
                     **keywords):
    """torch.nn.functional.conv_transpose1d; weight (C, K/groups, S). padding may also be (lo, hi) pairs."""
    return _transposend(1, x, weight, bias, stride, padding, output_padding, groups, dilation, out, keywords)


@also_named(input="x")
def conv_transpose2d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, out=None,
                     **keywords):
    """torch.nn.functional.conv_transpose2d; weight (C, K/groups, R, S)."""
    return _transposend(2, x, weight, bias, stride, padding, output_padding, groups, dilation, out, keywords)


@also_named(input="x")
def conv_transpose3d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, *, out=None,
                     **keywords):
    """torch.nn.functional.conv_transpose3d; weight (C, K/groups, Q, R, S)."""
    return _transposend(3, x, weight, bias, stride, padding, output_padding, groups, dilation, out, keywords)
