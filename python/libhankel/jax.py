"""jax.lax.conv_general_dilated by hankel, on the CPU: inside jit, with gradients, vmap and XLA's own threads.

>>> import jax, jax.numpy as jnp, libhankel.jax as hj
>>> x, w = jnp.ones((1, 2, 5)), jnp.ones((3, 2, 3))
>>> jax.jit(lambda x, w: hj.conv_general_dilated(x, w, (1,), "SAME"))(x, w)[0, 0].tolist()
[4.0, 6.0, 6.0, 6.0, 4.0]
>>> jax.grad(lambda w: hj.conv_general_dilated(x, w, (1,), "VALID").sum())(w)[0, 0].tolist()
[3.0, 3.0, 3.0]

A convolution is a call of the handler in libhankel-jax through XLA's foreign function interface. XLA allocates its scratch;
its plan is made when the program is traced, and kept. Reverse-mode derivatives of the first order, by hankel's gradients.
"""
from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import _abi
from ._array import NAMES, Tensor, type_of
from ._dlpack import dense
from ._geometry import forward, geometry, output_shape, place_all
from ._grad import filter_problem, input_problem
from ._native import HankelError, companion, invalid, lib, library_path

try:
    from jax import ffi
except ImportError:  # before jax 0.5
    from jax.extend import ffi  # type: ignore[no-redef]

_TARGET = "hankel_run"


class _Spec(NamedTuple):
    """The arguments that are no arrays, with those that jax canonicalises as tuples."""
    strides: Tuple[int, ...]
    padding: Tuple[Tuple[int, int], ...]
    lhs_dilation: Tuple[int, ...]
    rhs_dilation: Tuple[int, ...]
    axes: Tuple[Tuple[int, ...], ...]
    feature_groups: int
    batch_groups: int
    dtype: str  # of the result

    def geometry(self):
        return geometry(len(self.strides), self.strides, self.padding, self.lhs_dilation, self.rhs_dilation, False,
                        self.feature_groups, self.batch_groups, self.axes)


@functools.lru_cache(maxsize=None)
def _library():
    """libhankel-jax, its handler registered with XLA."""
    path = companion("libhankel-jax")
    if path is None:
        raise ImportError(f"libhankel.jax: libhankel-jax is not beside {library_path}; build it (make)")
    library = ctypes.CDLL(path)
    library.hk_jax_scratch.restype, library.hk_jax_scratch.argtypes = ctypes.c_int64, [ctypes.c_char_p, ctypes.c_int32]
    ffi.register_ffi_target(_TARGET, ffi.pycapsule(library.hk_jax_run), platform="cpu")
    return library


def _threads():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.lru_cache(maxsize=4096)
def _runner(problem: str, shape: Tuple[int, ...], dtype: str):
    """A function of x and f that runs a problem. Under vmap it runs once per element of the mapped axis."""
    threads = _threads()
    count = _library().hk_jax_scratch(problem.encode(), threads)
    if count < 0:
        raise HankelError(_abi.INVALID, lib.hk_last_error().decode("utf-8", "replace"))
    results = jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)), jax.ShapeDtypeStruct((count,), jnp.uint8)
    call = ffi.ffi_call(_TARGET, results, vmap_method="sequential")
    return lambda x, f: call(x, f, problem=problem, threads=np.int64(threads))[0]


def _stub(shape, dtype):
    """A dense array that is not there yet."""
    return Tensor(0, tuple(shape), dense(shape), type_of(str(dtype)), _abi.CPU, None)


def _forward(spec: _Spec, x: Any, f: Any) -> Any:
    geom = spec.geometry()
    tx, tf = _stub(x.shape, x.dtype), _stub(f.shape, f.dtype)
    problem = forward(geom, tx.shape, tx.type, tf.shape, tf.type, type_of(spec.dtype))
    shape = output_shape(problem, geom.dims.y)
    if 0 in shape or 0 in x.shape:
        return jnp.zeros(shape, spec.dtype)
    place_all(problem, geom.dims, tx, tf, _stub(shape, spec.dtype))
    return _runner(str(problem), shape, spec.dtype)(x, f)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _conv(spec, x, f):
    return _forward(spec, x, f)


def _conv_fwd(spec, x, f):
    return _forward(spec, x, f), (x, f)


def _conv_bwd(spec, kept, dy):
    (x, f), geom = kept, spec.geometry()
    tx, tf, ty = _stub(x.shape, x.dtype), _stub(f.shape, f.dtype), _stub(dy.shape, dy.dtype)
    if 0 in x.shape or 0 in dy.shape:
        return jnp.zeros_like(x), jnp.zeros_like(f)
    dx = _runner(str(input_problem(geom, tx, tf, ty)), tx.shape, str(x.dtype))(dy, f)
    df = _runner(str(filter_problem(geom, tx, tf, ty)), tf.shape, str(f.dtype))(x, dy)
    return dx, df


_conv.defvjp(_conv_fwd, _conv_bwd)


def _dilated(n, dilation):
    return (n - 1) * dilation + 1 if n else 0


def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Sequence[int],
                         padding: Union[str, Sequence[Tuple[int, int]]], lhs_dilation: Optional[Sequence[int]] = None,
                         rhs_dilation: Optional[Sequence[int]] = None, dimension_numbers: Any = None,
                         feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
                         preferred_element_type: Any = None) -> Any:
    """jax.lax.conv_general_dilated with its arguments. precision is accepted and not needed: sums are f32 (f64 for f64) at
    least. 1 to 3 spatial dimensions; f32, f64, f16, bf16, int8 and uint8."""
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    rank = lhs.ndim - 2
    if not 1 <= rank <= _abi.MAX_RANK or rhs.ndim != lhs.ndim:
        raise invalid(f"lhs has {lhs.ndim} dimensions and rhs {rhs.ndim}; both need the same, 3 to {_abi.MAX_RANK + 2}")
    if lhs.dtype != rhs.dtype:
        raise invalid(f"lhs has elements of {lhs.dtype} and rhs of {rhs.dtype}; one type is required")
    type_of(str(lhs.dtype))  # refuses types that the library does not know
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    left, right = tuple(lhs_dilation or (1,) * rank), tuple(rhs_dilation or (1,) * rank)
    strides = tuple(window_strides)
    if isinstance(padding, str):
        sizes = [_dilated(lhs.shape[a], d) for a, d in zip(numbers.lhs_spec[2:], left)]
        windows = [_dilated(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], right)]
        padding = lax.padtype_to_pads(sizes, windows, strides, padding)
    result = jnp.dtype(preferred_element_type or lhs.dtype)
    if NAMES[type_of(str(lhs.dtype))] in ("s8", "u8") and result != jnp.int32:
        raise invalid(f"preferred_element_type is {preferred_element_type}; int8 arrays give int32 here, ask for it")
    spec = _Spec(strides, tuple((int(lo), int(hi)) for lo, hi in padding), left, right,
                 (tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(numbers.out_spec)), feature_group_count,
                 batch_group_count, str(result))
    return _conv(spec, lhs, rhs)
