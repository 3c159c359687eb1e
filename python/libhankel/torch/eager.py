"""One convolution and its gradients on tensors, by the library; autograd by Convolution. No broadcasting of types: x and
weight have one type, as torch asks for."""
from __future__ import annotations

from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .. import _grad, _nn
from .._conv import conv
from .._repeat import keep, remembered
from .._repeat_torch import KINDS
from .spec import Spec, act_value

_calls: dict = {}  # of forward(), by how its tensors lie


def _threads(x):
    """As many threads of the library's pool as torch may use of its own; a device has no such option."""
    return {"threads": torch.get_num_threads()} if x.is_cpu else {}


def _wide(bias):
    """A bias as the library reads it: f32 beside the narrow types."""
    return bias if bias is None or bias.dtype not in (torch.float16, torch.bfloat16) else bias.float()


def _lies(tensor):
    """Part of a key: how a tensor lies; False for one that must be looked at."""
    if tensor is None:
        return None
    if type(tensor) not in KINDS or not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_neg():
        return False
    return tensor.shape, tensor.stride(), tensor.dtype


def _forward(x, weight, bias, residual, spec, act, words):
    """forward() the long way."""
    words = dict(words)
    if act:
        words["act"] = act_value(act)
    if residual is not None:
        words.update(residual=residual, residual_order="before")
    if spec.transposed:
        return _nn.transposed(spec.rank, x, weight, bias, spec.stride, spec.padding, spec.output_padding, spec.groups,
                              spec.dilation, None, words)
    return _nn.convolve(spec.rank, x, weight, bias, spec.stride, spec.padding, spec.dilation, spec.groups, None, words)


def forward(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], spec: Spec,
            act: str = "") -> Tensor:
    """act(conv(x) + bias + residual)."""
    bias, words = _wide(bias), _threads(x)
    key = (_lies(x), _lies(weight), _lies(bias), _lies(residual), spec, act, words.get("threads"))
    found = _calls.get(key)
    if found is not None:
        y = found[0]((x, weight, residual, None, bias), None)
        if y is not None:
            return y
    with torch.no_grad():
        y, found = remembered(_forward, x, weight, bias, residual, spec, act, words)
    if found is not None and False not in key:
        keep(_calls, key, found)
    return y


def _cropped(spec):
    """The padding of the convolution whose transpose this is: what output_padding adds beyond a whole stride is never
    read."""
    return tuple((lo, hi - more // step * step) for (lo, hi), more, step in
                 zip(spec.padding, spec.output_padding, spec.stride))


def gradient(dy: Tensor, x: Tensor, weight: Tensor, spec: Spec,
             mask: Tuple[bool, bool, bool]) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    """(dx, dweight, dbias), those that mask asks for; dbias is of weight's type. The transposed convolution is the
    gradient of a convolution from its y to its x, so its own gradients are that convolution and its filter's gradient."""
    words, dilation, dx, dw = _threads(x), spec.dilation, None, None
    with torch.no_grad():
        if spec.transposed:
            pads = _cropped(spec)
            if mask[0]:
                dx = conv(dy, weight, spec.stride, pads, rhs_dilation=dilation, feature_group_count=spec.groups,
                          **words)
            if mask[1]:
                dw = _grad.conv_grad_filter(dy, x, tuple(weight.shape), spec.stride, pads, rhs_dilation=dilation,
                                            feature_group_count=spec.groups, out=torch.empty_like(weight), **words)
        else:
            if mask[0]:
                dx = _grad.conv_grad_input(dy, weight, tuple(x.shape), spec.stride, spec.padding, rhs_dilation=dilation,
                                           feature_group_count=spec.groups, out=torch.empty_like(x), **words)
            if mask[1]:
                dw = _grad.conv_grad_filter(x, dy, tuple(weight.shape), spec.stride, spec.padding,
                                            rhs_dilation=dilation, feature_group_count=spec.groups,
                                            out=torch.empty_like(weight), **words)
        db = _grad.conv_grad_bias(dy).to(weight.dtype) if mask[2] else None
    return dx, dw, db


class Convolution(torch.autograd.Function):
    """forward() without act and residual, with its gradients."""

    @staticmethod
    def forward(ctx, x, weight, bias, spec):
        ctx.save_for_backward(x, weight)
        ctx.spec = spec
        return forward(x, weight, bias, None, spec)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        need = ctx.needs_input_grad
        return (*gradient(dy, x, weight, ctx.spec, (need[0], need[1], need[2])), None)
