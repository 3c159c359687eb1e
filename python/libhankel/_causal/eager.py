"""The causal Conv1D on torch tensors: one forward, one gradient, one decode step. All the interfaces of other packages
(causal_conv1d, compat.vllm_conv1d, compat.sglang_conv1d, compat.fla_conv1d) end here.

Eager calls go straight to the library, through torch.autograd.Function only where a gradient is wanted. Under
torch.compile the same functions are operators of torch.ops.libhankel, whose results' layouts are known without running.
"""
from __future__ import annotations

import contextlib
from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._abi_causal import BATCH, IDS, OFFSETS
from .._native import HankelError, _abi
from . import execute, gradient, step as decode
from .formula import gradient_by_formula

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_current_device = getattr(torch._C, "_cuda_getDevice", None)
_nowhere = contextlib.nullcontext()
#: not empty once the library has refused to write over x on CUDA
_beside: list = []
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


def _stream(device):
    """torch's current stream of a device, as an address."""
    if device < 0:
        return 0
    return _raw_stream(device) if _raw_stream else torch.cuda.current_stream(device).cuda_stream


def _is_current(device):
    """Whether work on a device needs no switch: the host, and CUDA's current device."""
    return device < 0 or _current_device is not None and _current_device() == device


def run(x: Tensor, f: Tensor, bias: Optional[Tensor], y: Tensor, *args: Any, **words: Any) -> Tensor:
    """execute() on torch's current stream of x's device. Returns y. Where the library has no kernel that writes over x
    (CUDA today), the result is computed beside x and copied into it."""
    device = x.get_device()
    over = words.get("in_place") and not (device >= 0 and _beside)
    with _nowhere if _is_current(device) else torch.cuda.device(device):
        try:
            if over or not words.get("in_place"):
                execute(x, f, bias, y, *args, stream=_stream(device), **words)
                return y
        except HankelError as error:
            if not over or error.status != _abi.UNSUPPORTED:
                raise
            if device >= 0:
                _beside.append(device)
        aside = x.clone() if words.get("skip") is not None else torch.empty_like(x)
        execute(x, f, bias, aside, *args, stream=_stream(device), **{**words, "in_place": False})
        return y.copy_(aside)


def int32(t: Optional[Tensor]) -> Optional[Tensor]:
    """Indices as the library takes them: int32, dense. Copied only where they are not."""
    if t is None or t.dtype is torch.int32 and t.is_contiguous():
        return t
    return t.to(torch.int32).contiguous()


def dense(t: Optional[Tensor]) -> Optional[Tensor]:
    """A vector without gaps."""
    return t if t is None or t.is_contiguous() else t.contiguous()


def _solid(t):
    """Whether no two elements share memory by a stride of zero."""
    return all(s or n <= 1 for n, s in zip(t.shape, t.stride()))


def packing_of(ids: Optional[Tensor], offsets: Optional[Tensor]) -> int:
    return IDS if ids is not None else OFFSETS if offsets is not None else BATCH


def _empty_state(x, initial, offsets, entries):
    """Memory for the final states: as the initial ones lie, else as x does."""
    if initial is not None:
        return torch.empty_like(initial)
    n = x.shape[0] if offsets is None else offsets.shape[0] - 1
    if x.stride(1) == 1:
        return x.new_empty(n, entries, x.shape[1]).transpose(1, 2)
    return x.new_empty(n, x.shape[1], entries)


def forward(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], initial: Optional[Tensor],
            ids: Optional[Tensor], offsets: Optional[Tensor], act: int, entries: int, longest: int = 0,
            final: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """(y, final states) of x (n, c, time), or (1, c, tokens) with offsets. entries > 0: final states of so many
    entries are computed, into `final` where given. Without them an empty tensor takes their place."""
    y = torch.empty_like(x)
    keep = entries > 0
    if not keep:
        final = x.new_empty(0)
    elif final is None:
        final = _empty_state(x, initial, offsets, entries)
    if x.numel() == 0:
        if keep:
            final.zero_() if initial is None else final.copy_(initial)
        return y, final
    if keep and initial is not None and initial.stride() != final.stride():
        initial = final.copy_(initial)  # states in and out lie alike
    run(x, weight, dense(bias), y, act, packing_of(ids, offsets), initial, final if keep else None,
        index=offsets if ids is None else ids, residual=residual, longest=longest)
    return y, final


def backward(x: Tensor, weight: Tensor, bias: Optional[Tensor], dy: Tensor, initial: Optional[Tensor],
             dfinal: Optional[Tensor], ids: Optional[Tensor], offsets: Optional[Tensor], act: int, longest: int,
             want_initial: bool, dx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """(dx, dweight, dbias, dinitial); the last two are empty where there is nothing to differentiate. The same bits
    every time."""
    c, window = weight.shape
    if not _solid(dy):
        dy = torch.empty_like(x).copy_(dy)
    dx = torch.empty_like(x) if dx is None else dx
    dweight = torch.empty(c, window, dtype=torch.float32, device=x.device)
    dbias = torch.empty(c if bias is not None else 0, dtype=torch.float32, device=x.device)
    state, dinitial = initial, x.new_empty(0)
    want_initial = want_initial and initial is not None
    if initial is not None and want_initial:
        dinitial = torch.empty_like(initial)
        if initial.stride() != dinitial.stride():
            state = torch.empty_like(dinitial).copy_(initial)
    if dfinal is not None and state is not None and dfinal.stride() != state.stride():
        dfinal = torch.empty_strided(state.shape, state.stride(), dtype=dfinal.dtype, device=x.device).copy_(dfinal)
    elif dfinal is not None and not _solid(dfinal):
        dfinal = dfinal.contiguous()
    if x.numel() == 0:
        if want_initial:
            dinitial.zero_() if dfinal is None else dinitial.copy_(dfinal)
        return dx, dweight.zero_(), dbias.zero_(), dinitial
    device = x.get_device()
    with _nowhere if _is_current(device) else torch.cuda.device(device):
        try:
            gradient(x, weight, dense(bias), dy, act, packing_of(ids, offsets), state, dfinal,
                     offsets if ids is None else ids, dx=dx, df=dweight, dbias=None if bias is None else dbias,
                     dstate_in=dinitial if want_initial else None, longest=longest, stream=_stream(device),
                     scratch=lambda count: torch.empty(count, dtype=torch.uint8, device=x.device))
        except HankelError as error:
            if error.status != _abi.UNSUPPORTED:
                raise
            gradient_by_formula(x, weight, bias, dy, state, dfinal, ids, offsets, act, dx, dweight, dbias,
                                dinitial if want_initial else None)
    return dx, dweight, dbias, dinitial


def update(x: Tensor, state: Tensor, weight: Tensor, bias: Optional[Tensor], act: int, positions: Optional[Tensor],
           slots: Optional[Tensor], skip: Optional[int]) -> Tensor:
    """One decode step; the state moves on in place. The result is zero for sequences whose slot is `skip`."""
    y = torch.empty_like(x) if skip is None else torch.zeros_like(x)
    if not state.shape[-1]:
        return run(x, weight, bias, y, act)
    if positions is not None:
        positions = positions + state.shape[-1]  # a round more: what lay in a ring before its first token counts
    device = x.get_device()
    if _is_current(device):
        decode(x, weight, bias, y, act, state, slots, positions, skip, _stream(device))
    else:
        with torch.cuda.device(device):
            decode(x, weight, bias, y, act, state, slots, positions, skip, _stream(device))
    return y


class Causal(torch.autograd.Function):
    """forward() with a gradient. The residual's is dy."""

    @staticmethod
    def forward(ctx, x, weight, bias, residual, initial, ids, offsets, act, entries, longest):
        if initial is not None and not _solid(initial):
            initial = initial.contiguous()
        y, last = forward(x, weight, bias, residual, initial, ids, offsets, act, entries, longest)
        ctx.save_for_backward(x, weight, bias, initial, ids, offsets)
        ctx.act, ctx.entries, ctx.longest = act, entries, longest
        ctx.set_materialize_grads(False)
        if not entries:
            ctx.mark_non_differentiable(last)
        return y, last

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, dfinal):
        x, weight, bias, initial, ids, offsets = ctx.saved_tensors
        need = ctx.needs_input_grad
        dresidual = dy if need[3] else None
        if dy is None:
            dy = torch.zeros_like(x)
        dx, dweight, dbias, dinitial = backward(x, weight, bias, dy, initial, dfinal if ctx.entries else None, ids,
                                                offsets, ctx.act, ctx.longest, need[4])
        return (dx, dweight.to(weight.dtype), None if bias is None else dbias.to(bias.dtype), dresidual,
                dinitial if need[4] else None, None, None, None, None, None)


def causal(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], initial: Optional[Tensor],
           ids: Optional[Tensor], offsets: Optional[Tensor], act: int, entries: int, longest: int = 0,
           final: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """forward(), by the way that the surroundings ask for: compiled, with gradients, or plain."""
    if is_compiling():
        way: Any = torch.ops.libhankel.causal
    elif torch.is_grad_enabled() and any(
            t is not None and t.requires_grad for t in (x, weight, bias, residual, initial)):
        way = Causal.apply
    else:
        return forward(x, weight, bias, residual, initial, ids, offsets, act, entries, longest, final)
    y, last = way(x, weight, bias, residual, initial, ids, offsets, act, entries, longest)
    return y, last if final is None else final.copy_(last)


def step(x: Tensor, state: Tensor, weight: Tensor, bias: Optional[Tensor], act: int, positions: Optional[Tensor],
         slots: Optional[Tensor], skip: Optional[int]) -> Tensor:
    """update(), compiled or plain."""
    if is_compiling():
        return torch.ops.libhankel.causal_update(x, state, weight, bias, act, positions, slots, skip)
    return update(x, state, weight, bias, act, positions, slots, skip)
