"""torch.ops.libhankel.conv, conv_gradient and fused: the convolution as operators that torch.compile and torch.export see
through. Fake kernels say shapes and memory formats without running; conv has a gradient; fused is a layer of optimize(),
by its number. Registered when first asked for; torch before 2.4 has no fake kernels and goes without."""
from __future__ import annotations

from typing import Callable, List, Optional

import torch
from torch import Tensor

from .._operators import define
from . import eager
from .spec import Spec, channels_last, empty_output

_ARGUMENTS = "int[] stride, int[] low, int[] high, int[] dilation, bool transposed, int[] output_padding, int groups"


def flat(spec: Spec) -> tuple:
    """A Spec as the arguments of an operator."""
    return (list(spec.stride), [lo for lo, _ in spec.padding], [hi for _, hi in spec.padding], list(spec.dilation),
            spec.transposed, list(spec.output_padding), spec.groups)


def _spec(stride: List[int], low: List[int], high: List[int], dilation: List[int], transposed: bool,
          output_padding: List[int], groups: int) -> Spec:
    return Spec(tuple(stride), tuple(zip(low, high)), tuple(dilation), transposed, tuple(output_padding), groups)


def _conv(x, weight, bias, residual, act, *arguments):
    return eager.forward(x, weight, bias, residual, _spec(*arguments), act)


def _fake_conv(x, weight, bias, residual, act, *arguments):
    return empty_output(x, weight, _spec(*arguments))


def _gradient(dy, x, weight, mask, *arguments):
    return tuple(x.new_empty(0) if g is None else g for g in eager.gradient(dy, x, weight, _spec(*arguments), mask))


def _fake_gradient(dy, x, weight, mask, *arguments):
    spec = _spec(*arguments)
    dx = torch.empty_like(x)
    if spec.transposed:  # a convolution of dy, which lies as dy does
        dx = x.new_empty([x.shape[0], *x.shape[2:], x.shape[1]]).movedim(-1, 1) if channels_last(dy) else \
            x.new_empty(x.shape)
    channels = weight.shape[1] * spec.groups if spec.transposed else weight.shape[0]
    wanted = (dx, torch.empty_like(weight), weight.new_empty(channels))
    return tuple(g if m else x.new_empty(0) for g, m in zip(wanted, mask))


def _setup(ctx, inputs, output):
    x, weight, bias, residual, act, *ctx.arguments = inputs
    if act or residual is not None:
        raise RuntimeError("torch.ops.libhankel.conv has no gradient through act and residual; libhankel.torch.conv1d to "
                           "conv3d apply them behind it where a gradient is needed")
    ctx.save_for_backward(x, weight)


def _backward(ctx, dy):
    x, weight = ctx.saved_tensors
    need = list(ctx.needs_input_grad[:3])
    got = torch.ops.libhankel.conv_gradient(dy, x, weight, need, *ctx.arguments)
    dx, dw, db = (g if n else None for g, n in zip(got, need))
    return (dx, dw, db) + (None,) * (2 + len(ctx.arguments))


def conv(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], act: str,
         spec: Spec) -> Tensor:
    """The operator on a Spec."""
    return torch.ops.libhankel.conv(x, weight, bias, residual, act, *flat(spec))


def register_fused(real: Callable, fake: Callable) -> bool:
    """Defines fused, whose kernels fused.py has."""
    return define("fused", "(Tensor x, Tensor? residual, int layer) -> Tensor", real, fake)


def register() -> bool:
    """Defines conv and conv_gradient once. False where torch is too old."""
    define("conv_gradient", f"(Tensor dy, Tensor x, Tensor weight, bool[] mask, {_ARGUMENTS}) -> (Tensor, Tensor, Tensor)",
           _gradient, _fake_gradient)
    return define("conv", f"(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str act, {_ARGUMENTS}) -> Tensor",
                  _conv, _fake_conv, _backward, _setup)
