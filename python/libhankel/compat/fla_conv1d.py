"""The short convolution of flash-linear-attention (fla.modules.convolution) on hk_causal: causal_conv1d with residual,
states and packed sequences, causal_conv1d_update, and the module ShortConvolution. Tensors are (batch, time, dim),
states (sequences, dim, width). causal_conv1d is differentiable; all of it runs on the CPU too, with widths up to 256.
Context parallelism is refused.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor, nn

from .._abi_causal import BATCH
from .._causal import ACT
from .._causal.eager import causal, dense, int32, run
from .._native import invalid
from .vllm_conv1d import refuse


def _act(activation):
    if activation not in ACT:
        raise invalid(f"activation is {activation!r}; None, silu or swish is required")
    return ACT[activation]


def _flat(x, dim):
    """x with its features in one axis: (batch, time, heads, head_dim) counts as (batch, time, dim)."""
    return x if x.shape[-1] == dim else x.flatten(2)


def causal_conv1d(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
                  residual: Optional[Tensor] = None, initial_state: Optional[Tensor] = None,
                  output_final_state: Optional[bool] = False, activation: Optional[str] = None,
                  backend: Optional[str] = "triton", cu_seqlens: Optional[Tensor] = None,
                  cu_seqlens_cpu: Optional[Tensor] = None, chunk_indices: Optional[Tensor] = None,
                  cp_context: Any = None, seq_idx: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
    """(y, final state or None) of x (batch, time, dim).

    residual is added to the activated result. initial_state and the final one are (sequences, dim, width). cu_seqlens
    (sequences + 1,), or seq_idx (batch, time) without states: packed sequences; cu_seqlens_cpu tells the longest
    without asking the device. backend and chunk_indices change nothing."""
    refuse("context parallelism is not supported; exchange the last width - 1 tokens and pass them as initial_state",
           cp_context=cp_context)
    if weight is None:
        raise invalid("weight is None; (dim, width) is required")
    shape, (dim, width) = x.shape, weight.shape
    x = _flat(x, dim).transpose(1, 2)
    if residual is not None:
        residual = _flat(residual, dim).transpose(1, 2)
    if seq_idx is not None and (initial_state is not None or output_final_state):
        raise invalid("seq_idx is given together with states; give cu_seqlens instead")
    if cu_seqlens is not None and x.shape[0] != 1:
        raise invalid(f"x has a batch of {x.shape[0]}; 1 is required with cu_seqlens")
    longest = 0 if cu_seqlens_cpu is None else int(cu_seqlens_cpu.diff().max())
    y, final = causal(x, weight, bias, residual, initial_state, int32(seq_idx),
                      None if seq_idx is not None else int32(cu_seqlens), _act(activation),
                      width if output_final_state else 0, longest)
    return y.transpose(1, 2).reshape(shape), final if output_final_state else None


def fast_causal_conv1d_fn(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
                          residual: Optional[Tensor] = None, initial_state: Optional[Tensor] = None,
                          output_final_state: Optional[bool] = False, activation: Optional[str] = None,
                          cu_seqlens: Optional[Tensor] = None, cu_seqlens_cpu: Optional[Tensor] = None,
                          chunk_indices: Optional[Tensor] = None,
                          seq_idx: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
    """causal_conv1d under another name; FLA keeps a second backend there."""
    return causal_conv1d(x, weight, bias, residual, initial_state, output_final_state, activation, None, cu_seqlens,
                         cu_seqlens_cpu, chunk_indices, None, seq_idx)


def causal_conv1d_update(x: Tensor, cache: Tensor, residual: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                         bias: Optional[Tensor] = None, activation: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(y, cache) of one token per sequence: x (n, dim), (n, 1, dim) or (1, n, dim); cache (n, dim, width), changed in
    place. Not differentiable."""
    if weight is None:
        raise invalid("weight is None; (dim, width) is required")
    shape, n = x.shape, cache.shape[0]
    x = _flat(x, weight.shape[0]) if x.dim() > 2 else x
    if x.numel() != n * weight.shape[0]:
        raise invalid(f"x has shape {tuple(shape)}; one token of {weight.shape[0]} channels for each of {n} sequences "
                      "is required")
    rows = x.reshape(n, -1) if x.dim() == 2 else x.squeeze(0) if x.shape[0] == 1 else x.squeeze(1)
    if residual is not None:
        residual = residual.reshape(rows.shape)
    y = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    run(rows, weight, dense(bias), y, _act(activation), BATCH, cache, cache, residual=residual)
    return y.view(shape), cache


class ShortConvolution(nn.Conv1d):
    """FLA's layer: a depthwise causal Conv1D of hidden_size channels with a cache of (n, hidden_size, kernel_size).

    Parameters, state_dict and call are those of fla.modules.ShortConvolution; backend is kept and changes nothing."""

    def __init__(self, hidden_size: int, kernel_size: int, bias: bool = False, activation: Optional[str] = "silu",
                 backend: Optional[str] = "triton", device: Any = None, dtype: Any = None):
        super().__init__(hidden_size, hidden_size, kernel_size, groups=hidden_size, bias=bias, padding=kernel_size - 1,
                         device=device, dtype=dtype)
        _act(activation)
        self.hidden_size, self.activation, self.backend = hidden_size, activation, backend

    def forward(self, x: Tensor, residual: Optional[Tensor] = None,  # type: ignore[override]
                mask: Optional[Tensor] = None, cache: Optional[Tensor] = None, output_final_state: bool = False,
                cu_seqlens: Optional[Tensor] = None, chunk_indices: Optional[Tensor] = None,
                **words: Any) -> Tuple[Tensor, Optional[Tensor]]:
        """(y, cache or None). x (batch, time, dim); one token per sequence is a decode step, which changes cache in
        place. mask (batch, time) zeroes padded tokens."""
        if mask is not None:
            if cu_seqlens is not None:
                raise invalid("mask and cu_seqlens are both given; give one")
            x = x * mask.unsqueeze(-1)
        sequences = x.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
        if x.shape[0] * x.shape[1] == sequences:
            return self.step(x, residual, cache, output_final_state, cu_seqlens)
        return causal_conv1d(x, self.weight.squeeze(1), self.bias, residual, cache, output_final_state,
                             self.activation, self.backend, cu_seqlens, chunk_indices=chunk_indices, **words)

    def step(self, x: Tensor, residual: Optional[Tensor], cache: Optional[Tensor], output_final_state: bool = False,
             cu_seqlens: Optional[Tensor] = None) -> Tuple[Tensor, Optional[Tensor]]:
        """(y, cache or None) of one token per sequence; cache is changed in place."""
        sequences = x.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
        if cache is None:
            cache = x.new_zeros(sequences, self.hidden_size, self.kernel_size[0])
        y, cache = causal_conv1d_update(x, cache, residual, self.weight.squeeze(1), self.bias, self.activation)
        return y, cache if output_final_state else None

    @property
    def state_size(self) -> int:
        """Elements of one sequence's cache."""
        return self.hidden_size * self.kernel_size[0]
