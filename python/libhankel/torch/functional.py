"""torch.nn.functional's convolutions with an epilogue: conv1d to conv3d, conv_transpose1d to 3d.

A call goes the shortest way: straight to the library where no gradient is wanted, through Convolution where one is,
and as an operator of torch.ops.libhankel under torch.compile. Through act and residual gradients flow by torch's own
operators, behind the convolution.
"""
from __future__ import annotations

from typing import Optional, Tuple, Union

import torch
from torch import Tensor

from .._native import invalid
from . import eager, ops
from .spec import Numbers, Spec, act_text, activate, compiling, spec_of

Act = Union[str, Tuple, None]
_compiled = ops.register()


def _autocast_type(x: Tensor) -> Optional[torch.dtype]:
    """The type that autocast gives a convolution on x's device, None where it is off."""
    if x.is_cuda:
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None
    on = torch.is_autocast_enabled("cpu") if _compiled else torch.is_autocast_cpu_enabled()
    if not on:
        return None
    return torch.get_autocast_dtype("cpu") if _compiled else torch.get_autocast_cpu_dtype()


def apply(x: Tensor, weight: Tensor, bias: Optional[Tensor], spec: Spec, act: str = "",
          residual: Optional[Tensor] = None) -> Tensor:
    """act(conv(x) + bias + residual) of a batch."""
    cast = _autocast_type(x)
    if cast is not None and x.is_floating_point() and x.dtype is not torch.float64:
        x, weight = x.to(cast), weight.to(cast)
        bias, residual = (None if t is None else t.to(cast) for t in (bias, residual))
    if not (x.dtype is weight.dtype and (bias is None or bias.dtype is x.dtype)):
        raise invalid(f"x is {x.dtype}, weight {weight.dtype}"
                      f"{'' if bias is None else f', bias {bias.dtype}'}; one type is required")
    wanted = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias, residual))
    if not wanted:
        if compiling():
            return ops.conv(x, weight, bias, residual, act, spec)
        return eager.forward(x, weight, bias, residual, spec, act)
    y = ops.conv(x, weight, bias, None, "", spec) if compiling() else \
        eager.Convolution.apply(x, weight, bias, spec)
    return activate(y if residual is None else y + residual, act)


def _call(rank, x, weight, bias, spec, act, residual):
    if x.dim() not in (rank + 1, rank + 2):
        raise invalid(f"x has {x.dim()} dimensions; {rank + 2} are required, or {rank + 1} without a batch")
    if weight.dim() != rank + 2:
        raise invalid(f"weight has {weight.dim()} dimensions; {rank + 2} are required")
    text = act_text(act)
    if x.dim() == rank + 2:
        return apply(x, weight, bias, spec, text, residual)
    return apply(x[None], weight, bias, spec, text, None if residual is None else residual[None])[0]


def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
           padding: Union[str, Numbers] = 0, dilation: Numbers = 1, groups: int = 1, *, act: Act = None,
           residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv1d; then residual is added and act applied."""
    return _call(1, input, weight, bias, spec_of(1, weight, stride, padding, dilation, groups), act, residual)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
           padding: Union[str, Numbers] = 0, dilation: Numbers = 1, groups: int = 1, *, act: Act = None,
           residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv2d; then residual is added and act applied."""
    return _call(2, input, weight, bias, spec_of(2, weight, stride, padding, dilation, groups), act, residual)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
           padding: Union[str, Numbers] = 0, dilation: Numbers = 1, groups: int = 1, *, act: Act = None,
           residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv3d; then residual is added and act applied."""
    return _call(3, input, weight, bias, spec_of(3, weight, stride, padding, dilation, groups), act, residual)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
                     padding: Numbers = 0, output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1, *,
                     act: Act = None, residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv_transpose1d; then residual is added and act applied."""
    spec = spec_of(1, weight, stride, padding, dilation, groups, True, output_padding)
    return _call(1, input, weight, bias, spec, act, residual)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
                     padding: Numbers = 0, output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1, *,
                     act: Act = None, residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv_transpose2d; then residual is added and act applied."""
    spec = spec_of(2, weight, stride, padding, dilation, groups, True, output_padding)
    return _call(2, input, weight, bias, spec, act, residual)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Numbers = 1,
                     padding: Numbers = 0, output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1, *,
                     act: Act = None, residual: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.conv_transpose3d; then residual is added and act applied."""
    spec = spec_of(3, weight, stride, padding, dilation, groups, True, output_padding)
    return _call(3, input, weight, bias, spec, act, residual)
