"""torch.ops.libhankel: the causal Conv1D as operators that torch.compile and torch.export see through. Each has a fake
kernel that says shapes and strides without running; causal has a gradient; causal_update says that it changes state."""
from __future__ import annotations

import torch

from .._operators import define
from . import eager


def _fake_forward(x, weight, bias, residual, initial, ids, offsets, act, entries, longest):
    if entries == 0:
        return torch.empty_like(x), x.new_empty(0)
    return torch.empty_like(x), eager._empty_state(x, initial, offsets, entries)


def _backward(x, weight, bias, dy, initial, dfinal, ids, offsets, act, longest, want_initial):
    return eager.backward(x, weight, bias, dy, initial, dfinal, ids, offsets, act, longest, want_initial)


def _fake_backward(x, weight, bias, dy, initial, dfinal, ids, offsets, act, longest, want_initial):
    c, window = weight.shape
    return (torch.empty_like(x), weight.new_empty(c, window, dtype=torch.float32),
            weight.new_empty(c if bias is not None else 0, dtype=torch.float32),
            torch.empty_like(initial) if want_initial and initial is not None else x.new_empty(0))


def _fake_update(x, state, weight, bias, act, positions, slots, skip):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, weight, bias, residual, initial, ids, offsets, act, entries, longest = inputs
    ctx.save_for_backward(x, weight, bias, initial, ids, offsets)
    ctx.act, ctx.entries, ctx.longest = act, entries, longest


def _gradient(ctx, dy, dfinal):
    x, weight, bias, initial, ids, offsets = ctx.saved_tensors
    need = ctx.needs_input_grad
    dx, dweight, dbias, dinitial = torch.ops.libhankel.causal_gradient(
        x, weight, bias, dy, initial, dfinal if ctx.entries else None, ids, offsets, ctx.act, ctx.longest, need[4])
    return (dx, dweight.to(weight.dtype), None if bias is None else dbias.to(bias.dtype), dy if need[3] else None,
            dinitial if need[4] else None, None, None, None, None, None)


def register() -> bool:
    """Defines the operators once. False where torch is too old to know fake kernels."""
    given = "Tensor x, Tensor weight, Tensor? bias"
    packed = "Tensor? ids, Tensor? offsets, int act"
    define("causal_gradient", f"({given}, Tensor dy, Tensor? initial, Tensor? dfinal, {packed}, int longest, "
           "bool want_initial) -> (Tensor, Tensor, Tensor, Tensor)", _backward, _fake_backward)
    define("causal_update", "(Tensor x, Tensor(a!) state, Tensor weight, Tensor? bias, int act, Tensor? positions, "
           "Tensor? slots, int? skip) -> Tensor", eager.update, _fake_update)
    return define("causal", f"({given}, Tensor? residual, Tensor? initial, {packed}, int entries, int longest) -> "
                  "(Tensor, Tensor)", eager.forward, _fake_forward, _gradient, _setup)
