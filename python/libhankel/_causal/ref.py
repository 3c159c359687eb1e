"""What the functions of causal_conv1d compute, in plain torch: slow, differentiable, on any device and in any type."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .._native import invalid


def _finish(sums, bias, activation):
    if activation not in (None, "silu", "swish"):
        raise NotImplementedError(f"activation is {activation!r}; None, silu or swish is required")
    if bias is not None:
        sums = sums + bias[:, None]
    return sums if activation is None else sums * torch.sigmoid(sums)


def _convolve(joined, weight):
    """Sums over each window of the last axis; in the type of weight, f32 at least."""
    wide = torch.promote_types(weight.dtype, torch.float32)
    windows = joined.to(wide).unfold(-1, weight.shape[1], 1)
    return (windows * weight.to(wide)[:, None, :]).sum(-1)


def causal_conv1d_ref(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                      initial_states: Optional[Tensor] = None, return_final_states: bool = False,
                      final_states_out: Optional[Tensor] = None, activation: Optional[str] = None) -> Any:
    """What causal_conv1d_fn computes, as a formula: each window of tokens times the filter, summed."""
    before = weight.shape[1] - 1
    if initial_states is None:
        initial_states = x.new_zeros(x.shape[0], x.shape[1], before)
    joined = torch.cat([initial_states.to(x.dtype), x], dim=-1)
    out = _finish(_convolve(joined, weight), bias, activation).to(x.dtype)
    if not return_final_states:
        return out
    final = joined[..., joined.shape[-1] - before:]
    return out, final if final_states_out is None else final_states_out.copy_(final)


def causal_conv1d_update_ref(x: Tensor, conv_state: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                             activation: Optional[str] = None, cache_seqlens: Optional[Tensor] = None) -> Tensor:
    """What causal_conv1d_update computes, as a formula; conv_state is changed in place."""
    if x.dim() == 2:
        return causal_conv1d_update_ref(x.unsqueeze(-1), conv_state, weight, bias, activation,
                                        cache_seqlens).squeeze(-1)
    before, entries, tokens = weight.shape[1] - 1, conv_state.shape[-1], x.shape[-1]
    if entries < before:
        raise invalid(f"conv_state has {entries} entries; width - 1 = {before} are required")
    if cache_seqlens is None:
        joined = torch.cat([conv_state, x.to(conv_state.dtype)], dim=-1)
        conv_state.copy_(joined[..., tokens:].clone())
        joined = torch.cat([joined[..., entries - before:entries].to(x.dtype), x], dim=-1)
    else:
        count = cache_seqlens.long()[:, None]
        at = torch.remainder(count + torch.arange(-before, 0, device=x.device), entries)
        history = conv_state.gather(2, at[:, None].expand(-1, x.shape[1], -1)).to(x.dtype)
        joined = torch.cat([history, x], dim=-1)
        kept = x[..., -entries:]  # of more tokens than entries the newest stay
        at = torch.remainder(count + torch.arange(tokens - kept.shape[-1], tokens, device=x.device), entries)
        conv_state.scatter_(2, at[:, None].expand(-1, x.shape[1], -1), kept.to(conv_state.dtype))
    return _finish(_convolve(joined, weight), bias, activation).to(x.dtype)


def causal_conv1d_varlen_states_ref(x: Tensor, cu_seqlens: Tensor, state_len: int) -> Tensor:
    """What causal_conv1d_varlen_states computes, one sequence at a time."""
    bounds = cu_seqlens.tolist()
    states = x.new_zeros(len(bounds) - 1, x.shape[1], state_len)
    for state, begin, end in zip(states, bounds, bounds[1:]):
        last = x[max(begin, end - state_len):end]
        state[:, state_len - last.shape[0]:] = last.T
    return states
