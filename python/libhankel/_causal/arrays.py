"""The causal Conv1D on numpy arrays and anything else with DLPack: forward only, results of x's own framework."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from .. import _abi
from .._abi_causal import BATCH, IDS
from .._arguments import integer
from .._native import invalid
from . import ACT, View, execute
from .long import execute as execute_long

_FIRST, _LAST = (0, 1, 2), (0, 2, 1)
#: further activations without parameters
_PLAIN = ("relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "hardswish")


def _view(array, what, writable=False):
    return None if array is None else View(array, what, writable)


def _integers(values, like, what):
    """int32 indices beside x: on the host a dense copy where need be, on a device as they are."""
    if values is not None and like.get_device() < 0:
        values = np.ascontiguousarray(values, dtype=np.int32)
    return _view(values, what)


def _order(view):
    """The memory order of a result that lies as view does."""
    if len(view.shape) == 2:
        return (0, 1)
    return _LAST if view.stride()[1] == 1 and view.shape[2] > 1 else _FIRST


def forward(x: Any, weight: Any, bias: Optional[Any], seq_idx: Optional[Any], initial: Optional[Any],
            return_final: bool, final: Optional[Any], act: int) -> Any:
    """causal_conv1d_fn; the torch function describes the arguments."""
    x, f, b, start = _view(x, "x"), _view(weight, "weight"), _view(bias, "bias"), _view(initial, "initial_states")
    if len(x.shape) != 3 or len(f.shape) != 2:
        raise invalid(f"x has shape {x.shape} and weight {f.shape}; (batch, dim, seqlen) and (dim, width) are required")
    shape, home = (x.shape[0], x.shape[1], f.shape[1] - 1), x.home
    y = home.empty(x.shape, x.dtype, _order(x))
    if return_final and final is None:
        like = x if start is None else start
        final = home.empty(shape, like.dtype, _order(like))
    last = _view(final, "final_states_out", True) if return_final else None
    for name, state in (("initial_states", start), ("final_states_out", last)):
        if state is not None and state.shape != shape:
            raise invalid(f"{name} has shape {state.shape}; {shape}, (batch, dim, width - 1), is required")
    if last is not None and start is not None and last.stride() != start.stride():
        final[...] = initial
        start = last
    if shape[2] == 0:
        start = last = None
    ids = _integers(seq_idx, x, "seq_idx")
    if 0 not in x.shape:
        with home.here():
            execute(x, f, b, View(y, "out", True), act, BATCH if ids is None else IDS, start, last, index=ids,
                    stream=home.stream or 0)
    elif last is not None:
        final[...] = 0 if initial is None else initial
    return (y, final) if return_final else y


def gated(x: Any, weight: Any, bias: Optional[Any], pre: Optional[Any], post: Optional[Any], residual: Optional[Any],
          initial: Optional[Any], return_final: bool, dilation: int, activation: Optional[str]) -> Any:
    """causal_conv1d_gated, of any framework."""
    acts = {**ACT, **{name: _abi.ACT[name] for name in _PLAIN}}
    if activation not in acts:
        raise NotImplementedError(f"activation is {activation!r}; one of {', '.join(map(str, acts))} is required")
    x, f, start = _view(x, "x"), _view(weight, "weight"), _view(initial, "initial_states")
    if len(x.shape) != 3 or len(f.shape) != 2:
        raise invalid(f"x has shape {x.shape} and weight {f.shape}; (batch, dim, seqlen) and (dim, width) are required")
    entries, home = integer(dilation, "dilation", least=1) * (f.shape[1] - 1), x.home
    y, final, shape = home.empty(x.shape, x.dtype, _order(x)), None, (x.shape[0], x.shape[1], entries)
    if start is not None and start.shape != shape:
        raise invalid(f"initial_states has shape {start.shape}; {shape}, (batch, dim, dilation*(width - 1)), is "
                      "required")
    if return_final:
        final = home.empty(shape, x.dtype if start is None else start.dtype, _FIRST)
    last = _view(final, "final states", True)
    if last is not None and start is not None and last.stride() != start.stride():
        final[...] = initial
        start = last
    if entries == 0:
        start = last = None
    with home.here():
        execute(x, f, _view(bias, "bias"), View(y, "out", True), acts[activation], BATCH, start, last,
                pre=_view(pre, "pre"), post=_view(post, "post"), residual=_view(residual, "residual"),
                dilation=dilation, stream=home.stream or 0)
    return (y, final) if return_final else y


def long_conv(x: Any, filters: Any, skip: Optional[Any], pre: Optional[Any], post: Optional[Any]) -> Any:
    """causal_conv1d.long_conv; the torch function describes the arguments."""
    x = _view(x, "x")
    home = x.home
    if len(x.shape) != 3:
        raise invalid(f"x has shape {x.shape}; (batch, dim, seqlen) is required")
    y = home.empty(x.shape, x.dtype, _order(x))
    if 0 not in x.shape:
        with home.here():
            execute_long(x, _view(filters, "filters"), _view(skip, "D"), _view(pre, "gate_in"),
                         _view(post, "gate_out"), View(y, "out", True), home.scratch, home.stream or 0)
    return y


def update(x: Any, conv_state: Any, weight: Any, bias: Optional[Any], act: int, positions: Optional[Any],
           slots: Optional[Any], skip: Optional[int]) -> Any:
    """causal_conv1d_update; the torch function describes the arguments."""
    x, state = _view(x, "x"), _view(conv_state, "conv_state", True)
    home = x.home
    y = home.empty(x.shape, x.dtype, _order(x))
    if skip is not None:
        y[...] = 0
    if positions is not None:
        # a round more: what lay in a ring before its first token counts
        positions = positions + np.int32(state.shape[2])
    if state.shape[2] == 0:
        state = positions = None
    with home.here():
        execute(x, _view(weight, "weight"), _view(bias, "bias"), View(y, "out", True), act, BATCH, state, state,
                _integers(slots, x, "conv_state_indices"), positions=_integers(positions, x, "cache_seqlens"),
                skip=skip, stream=home.stream or 0)
    return y


def varlen_states(x: Any, cu_seqlens: Any, state_len: int) -> np.ndarray:
    """causal_conv1d_varlen_states on the host."""
    x, bounds = np.asarray(x), np.asarray(cu_seqlens).tolist()
    states = np.zeros((len(bounds) - 1, x.shape[1], state_len), x.dtype)
    for state, begin, end in zip(states, bounds, bounds[1:]):
        last = x[max(begin, end - state_len):end]
        state[:, state_len - len(last):] = last.T
    return states
