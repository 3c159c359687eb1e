"""The arguments of a convolution that are no tensors, read once: Spec. Shapes and memory formats that follow from them."""
from __future__ import annotations

import functools
from typing import NamedTuple, Sequence, Tuple, Union

import torch
from torch import Tensor

from .._arguments import integer, per_axis
from .._native import invalid

#: whether torch.compile or torch.export is tracing
compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
Numbers = Union[int, Sequence[int]]


class Spec(NamedTuple):
    """Padding is (lo, hi) per axis; output_padding counts for transposed convolutions only."""
    stride: Tuple[int, ...]
    padding: Tuple[Tuple[int, int], ...]
    dilation: Tuple[int, ...]
    transposed: bool
    output_padding: Tuple[int, ...]
    groups: int

    @property
    def rank(self) -> int:
        return len(self.stride)


def spec_of(rank: int, weight: Tensor, stride: Numbers, padding: Union[str, Numbers], dilation: Numbers, groups: int,
            transposed: bool = False, output_padding: Numbers = 0) -> Spec:
    """A Spec of torch's arguments."""
    window = tuple(weight.shape[2:]) if isinstance(padding, str) else ()
    given = rank, window, stride, padding, dilation, groups, transposed, output_padding
    if compiling():  # which does not see through the cache
        return _read(*given)
    try:
        return _kept(*given)
    except TypeError:  # lists
        return _read(*given)


def _read(rank, window, stride, padding, dilation, groups, transposed, output_padding):
    groups = integer(groups, "groups", least=1)
    stride, dilation = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    if not isinstance(padding, str):
        pairs = tuple((p, p) for p in per_axis(padding, rank, "padding"))
    elif padding == "valid":
        pairs = ((0, 0),) * rank
    elif padding == "same" and max(stride) == 1:
        reach = [d * (n - 1) for d, n in zip(dilation, window)]
        pairs = tuple((r // 2, r - r // 2) for r in reach)
    else:
        raise invalid(f"padding is {padding!r} with stride {stride}; numbers, \"valid\", or \"same\" with stride 1 are "
                      "required")
    return Spec(stride, pairs, dilation, transposed, per_axis(output_padding, rank, "output_padding"), groups)


_kept = functools.lru_cache(maxsize=1024, typed=True)(_read)


def output_size(spec: Spec, x: Sequence[int], window: Sequence[int]) -> list:
    """Spatial sizes of the result for those of x and of the window."""
    sizes = []
    for i, n in enumerate(x):
        lo, hi = spec.padding[i]
        reach = spec.dilation[i] * (window[i] - 1) + 1
        if spec.transposed:
            sizes.append((n - 1) * spec.stride[i] - lo - hi + reach + spec.output_padding[i])
        else:
            sizes.append((n + lo + hi - reach) // spec.stride[i] + 1)
    return sizes


def channels_last(x: Tensor) -> bool:
    """Whether a result should lie with its channels innermost, as x does."""
    return x.shape[1] > 1 and x.stride(1) == 1 and any(n > 1 for n in x.shape[2:])


def empty_output(x: Tensor, weight: Tensor, spec: Spec) -> Tensor:
    """Memory for the result of x."""
    channels = weight.shape[1] * spec.groups if spec.transposed else weight.shape[0]
    sizes = output_size(spec, x.shape[2:], weight.shape[2:])
    if channels_last(x):
        return x.new_empty([x.shape[0], *sizes, channels]).movedim(-1, 1)
    return x.new_empty([x.shape[0], channels, *sizes])


def act_text(act: Union[str, Tuple, None]) -> str:
    """An activation as one word, "leaky:0.1", so that an operator can take it."""
    if act is None or isinstance(act, str):
        return act or ""
    name, *parameters = act
    return ":".join([name, *(repr(float(p)) for p in parameters)])


def act_value(text: str) -> Union[str, Tuple, None]:
    """act_text() read back, as the package's functions take it."""
    name, *parameters = text.split(":")
    return (name, *map(float, parameters)) if parameters else name or None


#: the activations that torch can compute where a gradient has to flow through them
_TORCH = {
    "relu": torch.relu, "silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "hardswish": torch.nn.functional.hardswish, "softsign": torch.nn.functional.softsign,
    "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "leaky": torch.nn.functional.leaky_relu, "clip": lambda x, low, high: torch.clamp(x, low, high)}


def activate(x: Tensor, text: str) -> Tensor:
    """The activation by torch's own operators."""
    if not text:
        return x
    name, *parameters = text.split(":")
    if name not in _TORCH:
        raise invalid(f"act is {text!r}; with gradients one of {', '.join(_TORCH)} is required")
    return _TORCH[name](x, *map(float, parameters))
