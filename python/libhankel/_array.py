"""Arrays in and out: what an object holds, as (pointer, shape, strides, type, device), never copied.

intake() is the one door: every tensor argument of the package passes through it. Strides are in elements and may be
negative or zero. Types numpy lacks come from ml_dtypes where it is installed, else as uint16 (bf16) or uint8 (fp8)
arrays together with an explicit type name.
"""
from typing import Any, NamedTuple, Tuple

import numpy as np

from . import _abi
from ._native import invalid

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

#: hk_type -> name, as hk_type_name prints it
NAMES = ("f32", "f64", "f16", "bf16", "s8", "u8", "s32", "f8e4m3")
_ALIASES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "s8", "uint8": "u8",
            "int32": "s32", "float8_e4m3fn": "f8e4m3", "i8": "s8", "i32": "s32", "float": "f32", "double": "f64",
            "half": "f16", "fp16": "f16", "fp32": "f32"}
_BYTES = (4, 8, 2, 2, 1, 1, 4, 1)
_NUMPY = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), np.dtype(np.uint16), np.dtype(np.int8),
          np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.uint8)]
if ml_dtypes is not None:
    _NUMPY[_abi.BF16] = np.dtype(ml_dtypes.bfloat16)
    _NUMPY[_abi.F8E4M3] = np.dtype(ml_dtypes.float8_e4m3fn)


class Tensor(NamedTuple):
    """A strided block of memory. `owner` keeps it alive."""
    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    type: int
    device: int
    owner: Any


def type_of(dtype):
    """The hk_type of a name ("bf16", "float32"), a numpy dtype or a numpy scalar type."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    name = _ALIASES.get(name.lower(), name.lower())
    if name not in NAMES:
        raise invalid(f"dtype is {dtype!r}; one of {', '.join(NAMES)} is required")
    return NAMES.index(name)


def numpy_dtype(hk_type):
    """The numpy dtype that stands for an hk_type here."""
    return _NUMPY[hk_type]


def compute_type(x_type, f_type, y_type):
    """hk_type of scale, bias, slopes and of the values user functions see: f64 when x, f or y is f64, else f32. int8
    problems add up in s32 and use f32 whatever y is; their bias is s32."""
    if not is_int8(x_type) and _abi.F64 in (x_type, f_type, y_type):
        return _abi.F64
    return _abi.F32


def compute_dtype(raw):
    """The compute_type of a raw problem as a numpy dtype."""
    return _NUMPY[compute_type(raw.x_type, raw.f_type, raw.y_type)]


def is_int8(hk_type):
    return hk_type in (_abi.S8, _abi.U8)


def default_output_type(x_type, f_type):
    """int8 gives s32; otherwise the wider of the two, f32 where they differ in kind."""
    if is_int8(x_type):
        return _abi.S32
    if _abi.F64 in (x_type, f_type):
        return _abi.F64
    return x_type if x_type == f_type and x_type != _abi.F8E4M3 else _abi.F32


def intake(obj, what, dtype=None, writable=False):
    """The Tensor of an array-like object. `what` names it in messages; `dtype` reinterprets equally wide elements."""
    array = obj if isinstance(obj, np.ndarray) else np.asarray(obj)
    if writable and array is not obj:
        raise invalid(f"{what} is a {type(obj).__name__}; a numpy array is required, as it is written to")
    if writable and not array.flags.writeable:
        raise invalid(f"{what} is read-only; it must be writable")
    hk_type = type_of(array.dtype if dtype is None else dtype)
    size = array.dtype.itemsize
    if not array.dtype.isnative or size != _BYTES[hk_type]:
        raise invalid(f"{what} has elements of {array.dtype.str}; {NAMES[hk_type]} needs {_BYTES[hk_type]} native "
                      "bytes")
    if any(s % size and n > 1 for s, n in zip(array.strides, array.shape)):
        raise invalid(f"{what} has byte strides {array.strides}; each must be a multiple of the element size {size}")
    strides = tuple(s // size for s in array.strides)
    return Tensor(array.__array_interface__["data"][0], array.shape, strides, hk_type, _abi.CPU, array)


def empty(shape, hk_type):
    """A new dense numpy array."""
    return np.empty(shape, _NUMPY[hk_type])


def _check_integers(array, limits, what):
    """Refuses values that an integer type would cut off or wrap around."""
    if array.dtype.kind not in "iub" and array.size:
        raise invalid(f"{what} has dtype {array.dtype}; integers ({np.dtype(limits.dtype).name}) are required")
    wrong = (array < limits.min) | (array > limits.max)
    if wrong.any():
        raise invalid(f"{what} has {array[wrong][0]}; integers from {limits.min} to {limits.max} are required")


def vector(values, dtype, length, what):
    """A small dense vector of `length` elements (scale, bias, slopes, zero points); copied and converted if need be."""
    if np.asarray(values).dtype.kind in "cOSUMm":
        raise invalid(f"{what} has dtype {np.asarray(values).dtype}; real numbers are required")
    if np.dtype(dtype).kind == "i":
        _check_integers(np.asarray(values), np.iinfo(dtype), what)
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.shape != (length,):
        raise invalid(f"{what} has shape {np.shape(values)}; ({length},) is required")
    return array


def span(array):
    """First and one-past-last byte address that a numpy array's elements touch."""
    first = last = array.__array_interface__["data"][0]
    if array.size == 0:
        return first, first
    for stride, count in zip(array.strides, array.shape):
        if stride < 0:
            first += stride * (count - 1)
        else:
            last += stride * (count - 1)
    return first, last + array.itemsize


def aligned_bytes(count, alignment=64):
    """`count` bytes of scratch whose address is a multiple of `alignment`."""
    if count == 0:
        return None
    block = np.empty(count + alignment, np.uint8)
    start = -block.__array_interface__["data"][0] % alignment
    return block[start:start + count]
