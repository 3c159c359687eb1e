"""SGLang's causal Conv1D on hk_causal: the compiled operators, which write into x, and the Triton functions.

causal_conv1d_fwd, causal_conv1d_update_inplace   sglang.kernels.ops.mamba.causal_conv1d (its causal_conv1d_update)
causal_conv1d_fn, causal_conv1d_update            sglang.kernels.ops.mamba.causal_conv1d_triton
causal_conv1d_fwd_cpu, causal_conv1d_update_cpu,  torch.ops.sgl_kernel
causal_conv1d_weight_pack

Longer states than width - 1 hold the newest token at their end, as the compiled operators have it. Tree speculation and
per-token snapshots of the state are refused.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import torch
from torch import Tensor

from .._abi_causal import BATCH, OFFSETS
from .._causal.eager import dense, int32, run
from .._native import HankelError, _abi, invalid
from .vllm_conv1d import PAD_SLOT_ID, act_of, has_state, refuse, slots_of, states_of


def _prefill(x, weight, bias, conv_states, query_start_loc, cache_indices, has_initial_state, act, pad_slot_id, out,
             longest=0):
    """out of x (batch, dim, seqlen), or (dim, tokens) with query_start_loc."""
    if conv_states is not None and conv_states.shape[-1] != weight.shape[1] - 1:
        raise invalid(f"conv_states has {conv_states.shape[-1]} entries; width - 1 = {weight.shape[1] - 1} are "
                      "required")
    state, slots = states_of(conv_states, weight.shape[1] - 1), slots_of(cache_indices)
    begins = None if has_initial_state is None else state
    return run(x, weight, dense(bias), out, act, BATCH if query_start_loc is None else OFFSETS, begins, state, slots,
               has_state=None if begins is None else has_state(has_initial_state), index=int32(query_start_loc),
               in_place=out is x, longest=longest, skip=None if slots is None else pad_slot_id)


def _decode(x, conv_state, weight, bias, act, cache_seqlens, indices, pad_slot_id, out, accepted=None):
    if cache_seqlens is not None:
        cache_seqlens = int32(cache_seqlens) + conv_state.shape[-1]  # a round more: older entries of a ring count
    state, slots = conv_state if conv_state.shape[-1] else None, slots_of(indices)
    return run(x, weight, dense(bias), out, act, BATCH, state, state, slots, positions=cache_seqlens, in_place=out is x,
               accepted=int32(accepted), skip=None if slots is None else pad_slot_id)


def _check_operator(x, weight):
    """What the compiled operators refuse, in their words; libhankel.causal_conv1d takes any width."""
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise HankelError(_abi.UNSUPPORTED, f"Unsupported dtype {x.dtype}. Supported: float16, bfloat16, float32")
    if not 2 <= weight.shape[1] <= 4:
        raise HankelError(_abi.UNSUPPORTED, "this operator only supports width between 2 and 4, the width is "
                          f"{weight.shape[1]}; libhankel.causal_conv1d takes 1 to 256")


def causal_conv1d_fwd(x: Tensor, weight: Tensor, bias_: Optional[Tensor], conv_states: Optional[Tensor],
                      query_start_loc: Optional[Tensor], cache_indices: Optional[Tensor],
                      has_initial_state: Optional[Tensor], silu_activation: bool, pad_slot_id: int) -> None:
    """Prefill, written back into x (batch, dim, seqlen), or (dim, tokens) with query_start_loc."""
    _check_operator(x, weight)
    if has_initial_state is not None and has_initial_state.dtype != torch.bool:
        raise invalid(f"has_initial_state must be a bool tensor; its elements are {has_initial_state.dtype}")
    _prefill(x, weight, bias_, conv_states, query_start_loc, cache_indices, has_initial_state,
             act_of(bool(silu_activation)), pad_slot_id, x)


def causal_conv1d_update_inplace(x: Tensor, conv_state: Tensor, weight: Tensor, bias_: Optional[Tensor],
                                 silu_activation: bool, cache_seqlens: Optional[Tensor],
                                 conv_state_indices: Optional[Tensor], pad_slot_id: int) -> None:
    """Decode, written back into x (batch, dim, seqlen)."""
    _check_operator(x, weight)
    _decode(x, conv_state, weight, bias_, act_of(bool(silu_activation)), cache_seqlens, conv_state_indices,
            pad_slot_id, x)


def causal_conv1d_fn(x: Tensor, weight: Tensor, bias: Optional[Tensor], conv_states: Optional[Tensor],
                     query_start_loc: Tensor, seq_lens_cpu: Optional[Sequence[int]] = None,
                     cache_indices: Optional[Tensor] = None, has_initial_state: Optional[Tensor] = None,
                     activation: Union[bool, str, None] = "silu", pad_slot_id: Optional[int] = PAD_SLOT_ID,
                     validate_data: bool = False) -> Tensor:
    """Prefill of packed sequences, x (dim, tokens). Returns out like x; a skipped sequence's part is undefined."""
    longest = 0 if seq_lens_cpu is None else int(max(seq_lens_cpu))
    return _prefill(x, weight, bias, conv_states, query_start_loc, cache_indices, has_initial_state,
                    act_of(activation), pad_slot_id, torch.empty_like(x), longest)


def causal_conv1d_update(x: Tensor, conv_state: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                         activation: Union[bool, str, None] = None, cache_seqlens: Optional[Tensor] = None,
                         conv_state_indices: Optional[Tensor] = None, num_accept_tokens: Optional[Tensor] = None,
                         intermediate_conv_window: Optional[Tensor] = None,
                         intermediate_state_indices: Optional[Tensor] = None,
                         retrieve_next_token: Optional[Tensor] = None, retrieve_next_sibling: Optional[Tensor] = None,
                         retrieve_parent_token: Optional[Tensor] = None, pad_slot_id: Optional[int] = PAD_SLOT_ID,
                         metadata: Any = None, validate_data: bool = False) -> Tensor:
    """Decode of x (batch, dim) or (batch, dim, seqlen). num_accept_tokens rolls rejected draft tokens back, in the
    first width - 2 + seqlen entries of conv_state. Returns out like x; a skipped sequence's part is undefined."""
    refuse("the state after each token is not kept; leave it out", intermediate_conv_window=intermediate_conv_window,
           intermediate_state_indices=intermediate_state_indices)
    refuse("tokens in a tree are not supported; leave it out", retrieve_next_token=retrieve_next_token,
           retrieve_next_sibling=retrieve_next_sibling, retrieve_parent_token=retrieve_parent_token)
    if num_accept_tokens is not None:
        conv_state = conv_state[..., :weight.shape[1] - 2 + (1 if x.dim() == 2 else x.shape[2])]
    return _decode(x, conv_state, weight, bias, act_of(activation), cache_seqlens, conv_state_indices, pad_slot_id,
                   torch.empty_like(x), num_accept_tokens)


def causal_conv1d_weight_pack(weight: Tensor) -> Tensor:
    """weight itself: nothing is packed here."""
    return weight


def causal_conv1d_fwd_cpu(x: Tensor, weight: Tensor, bias: Optional[Tensor], conv_states: Optional[Tensor],
                          query_start_loc: Optional[Tensor], cache_indices: Optional[Tensor],
                          has_initial_state: Optional[Tensor], silu_activation: bool, pad_slot_id: int,
                          is_vnni: bool = False) -> Tensor:
    """Prefill; weight as it is or from causal_conv1d_weight_pack. Returns out like x."""
    return _prefill(x, weight, bias, conv_states, query_start_loc, cache_indices, has_initial_state,
                    act_of(bool(silu_activation)), pad_slot_id, torch.empty_like(x))


def causal_conv1d_update_cpu(x: Tensor, conv_states: Tensor, weight: Tensor, bias: Optional[Tensor],
                             silu_activation: bool, cache_seqlens: Optional[Tensor],
                             conv_state_indices: Optional[Tensor], pad_slot_id: int, is_vnni: bool = False) -> Tensor:
    """Decode of x (batch, dim) or (batch, dim, seqlen). Returns out like x."""
    return _decode(x, conv_states, weight, bias, act_of(bool(silu_activation)), cache_seqlens, conv_state_indices,
                   pad_slot_id, torch.empty_like(x))
