"""The long convolution on torch tensors, with gradients; under torch.compile as operators of torch.ops.libhankel."""
from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._operators import define
from .eager import _is_current, _nowhere, _solid, _stream, dense, is_compiling
from .long import execute, gradient


def _scratch(x):
    """Memory to work in, at an aligned address."""
    def give(count):
        block = torch.empty(count + 64, dtype=torch.uint8, device=x.device)
        return block.data_ptr() + -block.data_ptr() % 64, block
    return give


def forward(x: Tensor, f: Tensor, skip: Optional[Tensor], pre: Optional[Tensor], post: Optional[Tensor]) -> Tensor:
    y = torch.empty_like(x)
    if x.numel():
        with _nowhere if _is_current(x.get_device()) else torch.cuda.device(x.get_device()):
            execute(x, f, dense(skip), pre, post, y, _scratch(x), _stream(x.get_device()))
    return y


def backward(x: Tensor, f: Tensor, skip: Optional[Tensor], pre: Optional[Tensor], post: Optional[Tensor], dy: Tensor,
             need: List[bool]) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(dx, df, dskip, dpre, dpost), those that `need` asks for and empty tensors in place of the others."""
    none = x.new_empty(0)
    dx, dpre, dpost = [torch.empty_like(t) if n and t is not None else None
                       for n, t in ((need[0], x), (need[3], pre), (need[4], post))]
    df = torch.empty(f.shape, dtype=torch.float32, device=x.device) if need[1] else None
    dskip = (torch.empty(skip.shape, dtype=torch.float32, device=x.device)
             if need[2] and skip is not None else None)
    if not _solid(dy):
        dy = torch.empty_like(x).copy_(dy)
    if x.numel():
        with _nowhere if _is_current(x.get_device()) else torch.cuda.device(x.get_device()):
            gradient(x, f, dense(skip), pre, post, dy, _scratch(x), _stream(x.get_device()), dx=dx, dpre=dpre,
                     dpost=dpost, df=df, dskip=dskip)
    else:
        for t in (df, dskip):
            if t is not None:
                t.zero_()
    return tuple(none if t is None else t for t in (dx, df, dskip, dpre, dpost))


def _given(tensors, need, results):
    """Gradients of the types of what was given; None where none is wanted."""
    return tuple(r.to(t.dtype) if n and t is not None else None for t, n, r in zip(tensors, need, results))


class LongConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, skip, pre, post):
        ctx.save_for_backward(x, f, skip, pre, post)
        return forward(x, f, skip, pre, post)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        need = list(ctx.needs_input_grad)
        return _given(ctx.saved_tensors, need, backward(*ctx.saved_tensors, dy, need))


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _compiled_backward(ctx, dy):
    need = list(ctx.needs_input_grad)
    return _given(ctx.saved_tensors, need, torch.ops.libhankel.long_conv_gradient(*ctx.saved_tensors, dy, need))


def _fake_backward(x, f, skip, pre, post, dy, need):
    none = x.new_empty(0)
    return (torch.empty_like(x) if need[0] else none, f.new_empty(f.shape, dtype=torch.float32) if need[1] else none,
            skip.new_empty(skip.shape, dtype=torch.float32) if need[2] and skip is not None else none,
            torch.empty_like(pre) if need[3] and pre is not None else none,
            torch.empty_like(post) if need[4] and post is not None else none)


def register() -> bool:
    """Defines the operators once. False where torch is too old to know fake kernels."""
    given = "Tensor x, Tensor filters, Tensor? skip, Tensor? pre, Tensor? post"
    define("long_conv_gradient", f"({given}, Tensor dy, bool[] need) -> (Tensor, Tensor, Tensor, Tensor, Tensor)", backward,
           _fake_backward)
    return define("long_conv", f"({given}) -> Tensor", forward, lambda x, *others: torch.empty_like(x),
                  _compiled_backward, _setup)


def long_conv(x: Tensor, f: Tensor, skip: Optional[Tensor], pre: Optional[Tensor], post: Optional[Tensor]) -> Tensor:
    """forward(), by the way that the surroundings ask for: compiled, with gradients, or plain."""
    if is_compiling():
        return torch.ops.libhankel.long_conv(x, f, skip, pre, post)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, f, skip, pre, post)):
        return LongConv.apply(x, f, skip, pre, post)
    return forward(x, f, skip, pre, post)
