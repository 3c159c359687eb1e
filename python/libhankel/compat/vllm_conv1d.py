"""vLLM's causal_conv1d_fn and causal_conv1d_update (vllm.model_executor.layers.mamba.ops.causal_conv1d) on hk_causal.

    import libhankel.compat.vllm_conv1d as ours, vllm.model_executor.layers.mamba.ops.causal_conv1d as theirs
    theirs.causal_conv1d_fn, theirs.causal_conv1d_update = ours.causal_conv1d_fn, ours.causal_conv1d_update

Any width from 1 to 256, on CPU and CUDA; x and conv_states may differ in type. State snapshots at block boundaries
(prefix caching) are refused.
"""
from __future__ import annotations

from typing import Any, Optional, Union

import torch
from torch import Tensor

from .._abi_causal import BATCH, OFFSETS
from .._array import intake, overlap
from .._causal import ACT
from .._causal.eager import dense, int32, run
from .._native import HankelError, _abi, invalid

PAD_SLOT_ID = -1
NULL_BLOCK_ID = 0


def act_of(activation: Union[bool, str, None]) -> int:
    """hk_act of None, False, True, "silu" or "swish"."""
    if isinstance(activation, bool):
        activation = "silu" if activation else None
    if activation not in ACT:
        raise invalid(f"activation is {activation!r}; None, silu or swish is required")
    return ACT[activation]


def refuse(why: str, **given: Any) -> None:
    """Refuses arguments that this adapter has no meaning for."""
    for name, value in given.items():
        if value is not None:
            raise HankelError(_abi.UNSUPPORTED, f"{name} is given; {why}")


def has_state(mask: Optional[Tensor]) -> Optional[Tensor]:
    """has_initial_state as the library reads it: one byte per sequence."""
    if mask is not None and mask.dtype not in (torch.bool, torch.uint8):
        raise invalid(f"has_initial_state must be a bool tensor; its elements are {mask.dtype}")
    return dense(mask)


def slots_of(indices: Optional[Tensor]) -> Optional[Tensor]:
    """One slot per sequence; of (batch, blocks) the first column."""
    return int32(indices if indices is None or indices.dim() == 1 else indices[:, 0])


def states_of(states: Optional[Tensor], entries: int) -> Optional[Tensor]:
    """The first `entries` entries of each state; None where there are none."""
    if states is None or entries == 0:
        return None
    return states if states.shape[-1] == entries else states[..., :entries]


def _storage(t):
    return (t.untyped_storage if hasattr(t, "untyped_storage") else t.storage)().data_ptr()


_SNAPSHOTS = "states at block boundaries (prefix caching) are not supported; leave it out"


def causal_conv1d_fn(x: Tensor, weight: Tensor, bias: Optional[Tensor], conv_states: Tensor, query_start_loc: Tensor,
                     cache_indices: Optional[Tensor] = None, has_initial_state: Optional[Tensor] = None,
                     activation: Union[bool, str, None] = "silu", pad_slot_id: int = PAD_SLOT_ID,
                     null_block_id: Optional[int] = NULL_BLOCK_ID,
                     block_idx_first_scheduled_token: Optional[Tensor] = None,
                     block_idx_last_scheduled_token: Optional[Tensor] = None,
                     initial_state_idx: Optional[Tensor] = None, num_computed_tokens: Optional[Tensor] = None,
                     block_size_to_align: int = 0, metadata: Any = None, validate_data: bool = False) -> Tensor:
    """Prefill of packed sequences. x (dim, tokens); conv_states (slots, dim, >= width - 1), changed in place;
    query_start_loc (batch + 1,) int32; cache_indices (batch,) int32, null_block_id leaves a sequence out, its part of
    the result undefined; has_initial_state (batch,) bool, without it every sequence begins with zeros. metadata and
    validate_data change nothing: offsets are read on the device, and everything is checked. Returns out like x."""
    refuse(_SNAPSHOTS, block_idx_first_scheduled_token=block_idx_first_scheduled_token,
           block_idx_last_scheduled_token=block_idx_last_scheduled_token, initial_state_idx=initial_state_idx,
           num_computed_tokens=num_computed_tokens)
    out = torch.empty_like(x)
    state = states_of(conv_states, weight.shape[1] - 1)
    slots = slots_of(cache_indices)
    begins = None if has_initial_state is None else state
    return run(x, weight, dense(bias), out, act_of(activation), OFFSETS, begins, state, slots,
               has_state=None if begins is None else has_state(has_initial_state), index=int32(query_start_loc),
               skip=None if slots is None else null_block_id)


def causal_conv1d_update(x: Tensor, conv_state: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
                         activation: Union[bool, str, None] = None, conv_state_indices: Optional[Tensor] = None,
                         num_accepted_tokens: Optional[Tensor] = None, query_start_loc: Optional[Tensor] = None,
                         max_query_len: int = -1, null_block_id: Optional[int] = NULL_BLOCK_ID,
                         block_idx_last_scheduled_token: Optional[Tensor] = None,
                         initial_state_idx: Optional[Tensor] = None, validate_data: bool = False,
                         out: Optional[Tensor] = None) -> Tensor:
    """Decode. x (batch, dim), (batch, dim, seqlen), or (tokens, dim) with query_start_loc; it is overwritten where out
    is None. conv_state (slots, dim, entries): its first width - 1 entries, or with num_accepted_tokens (batch,) its
    first width - 2 + seqlen, from which rejected draft tokens are rolled back. Returns out."""
    refuse(_SNAPSHOTS, block_idx_last_scheduled_token=block_idx_last_scheduled_token,
           initial_state_idx=initial_state_idx)
    y = x if out is None else out
    if out is not None and (out.shape != x.shape or out.dtype != x.dtype):
        raise invalid(f"out has shape {tuple(out.shape)} and elements of {out.dtype}; {tuple(x.shape)} and {x.dtype}, "
                      "as x, are required")
    if out is not None and _storage(out) == _storage(x) and overlap(intake(out, "out"), intake(x, "x")):
        raise invalid("out shares memory with x; leave out away to overwrite x")
    entries, tokens = weight.shape[1] - 1, 1 if x.dim() == 2 else x.shape[2]
    if query_start_loc is not None:
        if conv_state_indices is None:
            raise invalid("query_start_loc is given without conv_state_indices; give both")
        x, y = x.transpose(0, 1), y.transpose(0, 1)
        tokens = max_query_len if max_query_len > 0 else x.shape[1]
    if num_accepted_tokens is not None:
        entries += tokens - 1
    state, slots = states_of(conv_state, entries), slots_of(conv_state_indices)
    run(x, weight, dense(bias), y, act_of(activation), BATCH if query_start_loc is None else OFFSETS, state, state,
        slots, accepted=int32(num_accepted_tokens), index=int32(query_start_loc), in_place=out is None,
        longest=0 if query_start_loc is None else tokens, skip=None if slots is None else null_block_id)
    return y if query_start_loc is None else y.transpose(0, 1)
