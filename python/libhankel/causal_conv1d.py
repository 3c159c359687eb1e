"""The causal depthwise Conv1D of state-space models, with the functions of the package causal-conv1d 1.6.1.

>>> import numpy as np
>>> from libhankel.causal_conv1d import causal_conv1d_fn
>>> x = np.arange(8, dtype="f4").reshape(1, 2, 4)                  # (batch, dim, seqlen)
>>> causal_conv1d_fn(x, np.ones((2, 3), "f4")).tolist()
[[[0.0, 1.0, 3.0, 6.0], [4.0, 9.0, 15.0, 18.0]]]

Same names, arguments and results, on CPU and CUDA, without a compiler: torch tensors with gradients and torch.compile,
and numpy arrays (forward only). Wider than the original: widths 1 to 256, seq_idx and states in either memory layout,
any strides, x, weight and state each f32, f16 or bf16. Gradients are the same bits every time; on CUDA torch's own
operators compute them, as the library has no kernel for it there yet, and a warning says so once. install() makes
`import causal_conv1d` find this module, for model code that is not to be changed.
"""
from __future__ import annotations

from typing import Any, Optional

from ._causal import arrays as _arrays
from ._causal import ACT as _ACT
from ._causal.install import install
from ._native import invalid
from ._words import Array

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    from ._causal import eager as _torch, long_eager as _long, ops as _ops
    from ._causal.ref import causal_conv1d_ref, causal_conv1d_update_ref, causal_conv1d_varlen_states_ref
    _ops.register()
    _long.register()

__all__ = ["causal_conv1d_fn", "causal_conv1d_gated", "causal_conv1d_ref", "causal_conv1d_update",
           "causal_conv1d_update_ref", "causal_conv1d_varlen_states", "causal_conv1d_varlen_states_ref", "install",
           "long_conv"]


def _act(activation):
    if activation not in _ACT:
        raise NotImplementedError(f"activation is {activation!r}; None, silu or swish is required")
    return _ACT[activation]


def causal_conv1d_fn(x: Array, weight: Array, bias: Optional[Array] = None, seq_idx: Optional[Array] = None,
                     initial_states: Optional[Array] = None, return_final_states: bool = False,
                     final_states_out: Optional[Array] = None, activation: Optional[str] = None) -> Any:
    """Convolves each channel of x with its own filter, over the tokens up to each one.

    x                 (batch, dim, seqlen), any strides
    weight, bias      (dim, width) and (dim,), of one type
    seq_idx           (batch, seqlen) int32: taps reach only tokens of the same number; where it is below 0 the result
                      is 0. Not together with states
    initial_states    (batch, dim, width - 1): the tokens before the first; zeros without
    final_states_out  (batch, dim, width - 1): memory for the states after the last token
    activation        None, "silu" or "swish"

    Returns out, shaped and laid out as x; with return_final_states (out, final_states). Differentiable in x, weight,
    bias and initial_states, also through final_states.

    >>> import numpy as np
    >>> x = np.ones((1, 1, 3), "f4")
    >>> y, state = causal_conv1d_fn(x, np.ones((1, 2), "f4"), return_final_states=True)
    >>> y.tolist(), state.tolist()
    ([[[1.0, 2.0, 2.0]]], [[[1.0]]])
    """
    act = _act(activation)
    if seq_idx is not None and (initial_states is not None or return_final_states):
        raise invalid("seq_idx is given together with states; a row that holds several sequences has no one state. "
                      "Leave initial_states and return_final_states out")
    if torch is None or not isinstance(x, torch.Tensor):
        return _arrays.forward(x, weight, bias, seq_idx, initial_states, return_final_states, final_states_out, act)
    width = weight.shape[-1]
    _check_states(x, width, initial_states, "initial_states")
    if width == 1:
        initial_states = None
    if not return_final_states or width == 1:
        out = _torch.causal(x, weight, bias, None, initial_states, _torch.int32(seq_idx), None, act, 0)[0]
        return (out, x.new_empty(x.shape[0], x.shape[1], 0)) if return_final_states else out
    _check_states(x, width, final_states_out, "final_states_out")
    return _torch.causal(x, weight, bias, None, initial_states, None, None, act, width - 1, 0, final_states_out)


def _check_states(x, width, states, what):
    if states is not None and tuple(states.shape) != (x.shape[0], x.shape[1], width - 1):
        raise invalid(f"{what} has shape {tuple(states.shape)}; {(x.shape[0], x.shape[1], width - 1)}, "
                      "(batch, dim, width - 1), is required")


def causal_conv1d_update(x: Array, conv_state: Array, weight: Array, bias: Optional[Array] = None,
                         activation: Optional[str] = None, cache_seqlens: Optional[Array] = None,
                         conv_state_indices: Optional[Array] = None) -> Any:
    """Convolves the next token, or the next few, of each sequence, and moves conv_state on in place.

    x                   (batch, dim) or (batch, dim, seqlen)
    conv_state          (batch, dim, state_len) with state_len >= width - 1: the last tokens, the newest at the end
    cache_seqlens       (batch,) int32: conv_state is a ring, and token i of a sequence lies at entry i % state_len;
                        so many tokens were there before
    conv_state_indices  (batch,) int32: conv_state holds more entries, and sequence i has entry conv_state_indices[i].
                        -1 leaves a sequence out: its result is 0

    Returns out, shaped and laid out as x. Not differentiable.

    >>> import numpy as np
    >>> state = np.zeros((1, 1, 1), "f4")
    >>> [causal_conv1d_update(np.full((1, 1), v, "f4"), state, np.ones((1, 2), "f4")).item() for v in (1, 2, 4)]
    [1.0, 3.0, 6.0]
    """
    act = _act(activation)
    skip = None if conv_state_indices is None else -1
    if torch is None or not isinstance(x, torch.Tensor):
        return _arrays.update(x, conv_state, weight, bias, act, cache_seqlens, conv_state_indices, skip)
    if conv_state_indices is None and conv_state.shape[0] != x.shape[0]:
        raise invalid(f"conv_state has {conv_state.shape[0]} entries and x {x.shape[0]} sequences; give "
                      "conv_state_indices, or as many entries as sequences")
    return _torch.step(x, conv_state, weight, _torch.dense(bias), act, _torch.int32(cache_seqlens),
                       _torch.int32(conv_state_indices), skip)


def causal_conv1d_gated(x: Array, weight: Array, bias: Optional[Array] = None, *, pre: Optional[Array] = None,
                        post: Optional[Array] = None, residual: Optional[Array] = None,
                        initial_states: Optional[Array] = None, return_final_states: bool = False, dilation: int = 1,
                        activation: Optional[str] = None) -> Any:
    """post * act(bias + conv(pre * x)) + residual in one pass over memory: the double gate of LFM2, Canon's residual.

    x, pre, post, residual  (batch, dim, seqlen), any strides, of one type; each but x may be left out
    weight, bias            (dim, width) and (dim,), of one type
    initial_states          (batch, dim, dilation*(width - 1)): the values of pre * x before the first token
    dilation                distance of two taps, in tokens
    activation              None, "silu" or "swish", or "relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "hardswish"

    Returns out, or (out, final_states). Forward only: a tensor that requires a gradient is refused while gradients are
    enabled.

    >>> import numpy as np
    >>> x, gate = np.ones((1, 1, 3), "f4"), np.array([[[1, 0, 2]]], "f4")
    >>> causal_conv1d_gated(x, np.ones((1, 2), "f4"), pre=gate, post=gate).tolist()
    [[[1.0, 0.0, 4.0]]]
    """
    return _arrays.gated(x, weight, bias, pre, post, residual, initial_states, return_final_states, dilation,
                         activation)


def long_conv(x: Array, filters: Array, D: Optional[Array] = None, gate_in: Optional[Array] = None,
              gate_out: Optional[Array] = None) -> Any:
    """The long convolution of Hyena: each channel of x with its own filter, which may be as long as the sequence.

        u = gate_in * x
        out[:, c, t] = gate_out[:, c, t] * (D[c] * u[:, c, t] + sum over i of filters[c, i] * u[:, c, t - i])

    x, gate_in, gate_out  (batch, dim, seqlen), any strides, of one type: f32, f16 or bf16; the gates may be left out
    filters               (dim, taps): filters[:, 0] is the tap of the token itself; those beyond seqlen do not count
    D                     (dim,), of the filters' type: the skip term of H3 and Hyena

    Returns out, shaped, laid out and typed as x. Differentiable in everything that is given; gradients are the same
    bits every time. Computed by FFT in f32 whatever the types (the library's HK_MATH_FAST_ALGORITHMS, which this
    function sets): an error is relative to the largest values of its row, docs/manual.md states it, and one Inf or NaN
    spreads over its row. numpy arrays and anything else with DLPack: forward only.

    >>> import numpy as np
    >>> x = np.array([[[1, 0, 0, 2]]], "f4")
    >>> np.round(long_conv(x, np.array([[1, 2, 4, 8]], "f4")), 3).tolist()
    [[[1.0, 2.0, 4.0, 10.0]]]
    """
    if torch is None or not isinstance(x, torch.Tensor):
        return _arrays.long_conv(x, filters, D, gate_in, gate_out)
    return _long.long_conv(x, filters, D, gate_in, gate_out)


def causal_conv1d_varlen_states(x: Array, cu_seqlens: Array, state_len: int) -> Any:
    """The last state_len tokens of each packed sequence: (batch, dim, state_len), zeros before a sequence's beginning.

    x           (tokens, dim)
    cu_seqlens  (batch + 1,): sequence i is tokens cu_seqlens[i] to cu_seqlens[i + 1] - 1

    A gather; nothing is read back to the host. Not differentiable.

    >>> import numpy as np
    >>> causal_conv1d_varlen_states(np.arange(3.0).reshape(3, 1), np.array([0, 1, 3]), 2).tolist()
    [[[0.0, 0.0]], [[1.0, 2.0]]]
    """
    if torch is None or not isinstance(x, torch.Tensor):
        return _arrays.varlen_states(x, cu_seqlens, state_len)
    with torch.no_grad():
        at = cu_seqlens[1:, None] - state_len + torch.arange(state_len, device=x.device)
        if x.shape[0] == 0:
            return x.new_zeros(at.shape[0], state_len, x.shape[1]).transpose(1, 2)
        outside = (at < cu_seqlens[:-1, None]).unsqueeze(-1)
        return x[at.clamp(min=0)].masked_fill(outside, 0).transpose(1, 2)
