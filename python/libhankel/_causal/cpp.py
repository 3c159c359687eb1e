"""causal_conv1d.cpp_functions: the three functions below causal-conv1d's interface, which mamba_ssm, FLA and Megatron
call themselves. Forward and backward apart, no autograd."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from . import ACT


def functions() -> Dict[str, Callable]:
    """The functions by name; none without torch."""
    try:
        from . import eager
    except ImportError:
        return {}
    silu = {True: ACT["silu"], False: ACT[None]}

    def causal_conv1d_fwd_function(x: Any, weight: Any, bias: Optional[Any], seq_idx: Optional[Any],
                                   initial_states: Optional[Any], final_states_out: Optional[Any],
                                   silu_activation: bool) -> Any:
        """out; the final states go to final_states_out where it is given."""
        entries = 0 if final_states_out is None else final_states_out.shape[-1]
        return eager.forward(x, weight, bias, None, initial_states, eager.int32(seq_idx), None,
                             silu[bool(silu_activation)], entries, 0, final_states_out)[0]

    def causal_conv1d_bwd_function(x: Any, weight: Any, bias: Optional[Any], dout: Any, seq_idx: Optional[Any],
                                   initial_states: Optional[Any], dfinal_states: Optional[Any], dx: Optional[Any],
                                   return_dinitial_states: bool, silu_activation: bool) -> Tuple:
        """(dx, dweight, dbias, dinitial_states); dx goes to the tensor given, in whatever way it lies."""
        dx, dweight, dbias, dinitial = eager.backward(
            x, weight, bias, dout, initial_states, dfinal_states, eager.int32(seq_idx), None,
            silu[bool(silu_activation)], 0, bool(return_dinitial_states), dx)
        return (dx, dweight.to(weight.dtype), None if bias is None else dbias.to(bias.dtype),
                dinitial if return_dinitial_states else None)

    def causal_conv1d_update_function(x: Any, conv_state: Any, weight: Any, bias: Optional[Any],
                                      silu_activation: bool, cache_seqlens: Optional[Any],
                                      conv_state_indices: Optional[Any]) -> Any:
        """One decode step of x (batch, dim, seqlen); conv_state changes in place."""
        return eager.update(x, conv_state, weight, eager.dense(bias), silu[bool(silu_activation)],
                            eager.int32(cache_seqlens), eager.int32(conv_state_indices),
                            None if conv_state_indices is None else -1)

    return {f.__name__: f for f in (causal_conv1d_fwd_function, causal_conv1d_bwd_function,
                                    causal_conv1d_update_function)}
