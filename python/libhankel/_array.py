"""Arrays in and out: what an object holds, as (pointer, shape, strides, type, device), never copied.

intake() is the one door: every tensor argument of the package passes through it, whether it is a numpy array, a torch
tensor, or anything else with __dlpack__ or __cuda_array_interface__. Strides are in elements and may be negative or
zero. Types numpy lacks come from ml_dtypes where it is installed, else as uint16 (bf16) or uint8 (fp8) arrays together
with an explicit type name.
"""
from typing import Any, NamedTuple, Tuple

import numpy as np

from . import _abi, _dlpack
from ._native import call, invalid

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None  # type: ignore[assignment]

#: hk_type -> name, as hk_type_name prints it
NAMES = ("f32", "f64", "f16", "bf16", "s8", "u8", "s32", "f8e4m3")
_ALIASES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "s8", "uint8": "u8",
            "int32": "s32", "float8_e4m3fn": "f8e4m3", "i8": "s8", "i32": "s32", "float": "f32", "double": "f64",
            "half": "f16", "fp16": "f16", "fp32": "f32"}
BYTES = (4, 8, 2, 2, 1, 1, 4, 1)
_NUMPY = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), np.dtype(np.uint16), np.dtype(np.int8),
          np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.uint8)]
if ml_dtypes is not None:
    _NUMPY[_abi.BF16] = np.dtype(ml_dtypes.bfloat16)
    _NUMPY[_abi.F8E4M3] = np.dtype(ml_dtypes.float8_e4m3fn)


class Tensor(NamedTuple):
    """A strided block of memory. `owner` keeps it alive; `index` is the device's number."""
    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    type: int
    device: int
    owner: Any
    index: int = 0  # type: ignore[assignment]

    @property
    def where(self):
        return "the host" if self.device == _abi.CPU else f"CUDA device {self.index}"


def type_of(dtype: Any) -> int:
    """The hk_type of a name ("bf16", "float32"), or of a dtype of numpy, torch, or another system that prints as one.

    >>> [type_of(d) for d in ("bf16", np.float32, np.dtype("int8"))]
    [3, 0, 4]
    """
    name = dtype if isinstance(dtype, str) else str(dtype).replace("torch.", "")
    if name.lower() not in _ALIASES and name.lower() not in NAMES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
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


def _numpy_tensor(array, what, dtype):
    hk_type = type_of(array.dtype if dtype is None else dtype)
    size = array.dtype.itemsize
    if not array.dtype.isnative or size != BYTES[hk_type]:
        raise invalid(f"{what} has elements of {array.dtype.str}; {NAMES[hk_type]} needs {BYTES[hk_type]} native "
                      "bytes")
    if any(s % size and n > 1 for s, n in zip(array.strides, array.shape)):
        raise invalid(f"{what} has byte strides {array.strides}; each must be a multiple of the element size {size}")
    strides = tuple(s // size for s in array.strides)
    return Tensor(array.__array_interface__["data"][0], array.shape, strides, hk_type, _abi.CPU, array)


def intake(obj, what, dtype=None, writable=False):
    """The Tensor of an array-like object. `what` names it in messages; `dtype` reinterprets equally wide elements."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        if writable and not obj.flags.writeable:
            raise invalid(f"{what} is read-only; it must be writable")
        return _numpy_tensor(obj, what, dtype)
    found = _dlpack.read(obj, what, writable)
    if found is not None:
        tensor = Tensor(*found)
        if dtype is None:
            return tensor
        if BYTES[type_of(dtype)] != BYTES[tensor.type]:
            raise invalid(f"{what} has elements of {NAMES[tensor.type]}; {dtype} needs {BYTES[type_of(dtype)]} bytes")
        return tensor._replace(type=type_of(dtype))
    if writable:
        raise invalid(f"{what} is a {type(obj).__name__}; an array or tensor is required, as it is written to")
    return _numpy_tensor(np.asarray(obj), what, dtype)


def intake_as(obj, what, hk_type, writable=False):
    """intake() of an object that must hold hk_type. Unsigned numpy integers may stand for the bits of bf16 and fp8."""
    bits = isinstance(obj, np.ndarray) and obj.dtype.kind == "u" and hk_type in (_abi.BF16, _abi.F8E4M3)
    tensor = intake(obj, what, NAMES[hk_type] if bits else None, writable)
    if tensor.type != hk_type:
        raise invalid(f"{what} is {NAMES[tensor.type]}; {NAMES[hk_type]} is required")
    return tensor


def with_axis(tensor, axis):
    """The tensor with an axis of size 1 inserted."""
    step = tensor.shape[axis] * abs(tensor.strides[axis]) if axis < len(tensor.shape) else 1
    return tensor._replace(shape=tensor.shape[:axis] + (1,) + tensor.shape[axis:],
                           strides=tensor.strides[:axis] + (step,) + tensor.strides[axis:])


class _Ghost:
    def __init__(self, tensor, dtype):
        size = dtype.itemsize
        self.__array_interface__ = {"version": 3, "shape": tensor.shape, "typestr": f"|V{size}",
                                    "data": (tensor.pointer or 1 << 12, False),
                                    "strides": tuple(s * size for s in tensor.strides)}
        self.owner = tensor.owner


def numpy_view(tensor):
    """The numpy array over a host tensor. Of a device tensor only the addresses may be used."""
    dtype = _NUMPY[tensor.type]
    return np.asarray(_Ghost(tensor, dtype)).view(dtype)


def dimensions(values):
    """How many axes numbers have; 0 for a single one."""
    if hasattr(values, "ndim") or not hasattr(values, "__dlpack__") and not hasattr(values, "__cuda_array_interface__"):
        return np.ndim(values)
    return len(intake(values, "values").shape)


def host_values(values, what):
    """Numbers on the host as a numpy array that numpy can compute with, whatever holds them."""
    if isinstance(values, Tensor):
        return _numbers(values)
    if _dlpack.on_device(values):
        raise invalid(f"{what} lies on a CUDA device and x on the host; both must lie on one device")
    if _dlpack.framework(values) == "torch" and str(values.dtype) not in ("torch.bfloat16", "torch.float8_e4m3fn"):
        return np.asarray(_dlpack.plain(values, what)[0])  # also what the library has no type for: int64, bool
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return np.asarray(values)
    return _numbers(intake(values, what))


def fetched(values, what):
    """host_values() of numbers on either side; those on a device are copied, and waited for."""
    if isinstance(values, np.ndarray) or not _dlpack.on_device(values):
        return host_values(values, what)
    tensor = intake(values, what)
    if not _dlpack.is_dense(tensor.shape, tensor.strides):
        raise invalid(f"{what} has strides {tensor.strides}; a dense vector is required")
    block = np.empty(tensor.shape, f"V{BYTES[tensor.type]}")
    call("hk_gpu_copy", block.ctypes.data, tensor.pointer, block.nbytes)
    return _numbers(tensor._replace(pointer=block.ctypes.data, device=_abi.CPU, owner=block))


def _numbers(tensor):
    """A host tensor as a numpy array; types that numpy lacks are widened to f32."""
    view = numpy_view(tensor)
    if tensor.type not in (_abi.BF16, _abi.F8E4M3):
        return view
    dense, wide = np.ascontiguousarray(view), np.empty(tensor.shape, np.float32)
    call("hk_convert", tensor.type, dense.ctypes.data, _abi.F32, wide.ctypes.data, dense.size)
    return wide


def _check_integers(array, limits, what):
    """Refuses values that an integer type would cut off or wrap around."""
    if array.dtype.kind not in "iub" and array.size:
        raise invalid(f"{what} has dtype {array.dtype}; integers ({np.dtype(limits.dtype).name}) are required")
    wrong = (array < limits.min) | (array > limits.max)
    if wrong.any():
        raise invalid(f"{what} has {array[wrong][0]}; integers from {limits.min} to {limits.max} are required")


def vector(values, dtype, length, what):
    """A small dense vector of `length` elements (scale, bias, slopes, zero points); copied and converted if need be."""
    values = host_values(values, what)
    if values.dtype.kind in "cOSUMm":
        raise invalid(f"{what} has dtype {values.dtype}; real numbers are required")
    if np.dtype(dtype).kind == "i":
        _check_integers(values, np.iinfo(dtype), what)
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.shape != (length,):
        raise invalid(f"{what} has shape {values.shape}; ({length},) is required")
    return array


def span(tensor):
    """First and one-past-last byte address that a tensor's elements touch."""
    first = last = tensor.pointer
    if 0 in tensor.shape:
        return first, first
    size = BYTES[tensor.type]
    for stride, count in zip(tensor.strides, tensor.shape):
        if stride < 0:
            first += stride * (count - 1) * size
        else:
            last += stride * (count - 1) * size
    return first, last + size


def overlap(a, b):
    """Whether two tensors share an element; yes where that is too hard to tell."""
    if a.device != b.device:
        return False
    a, b = numpy_view(a), numpy_view(b)
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=10 ** 6)
    except RuntimeError:  # numpy's TooHardError, which has moved between its versions
        return True


def together(first, **others):
    """Refuses tensors that lie on another device than the first."""
    for name, tensor in others.items():
        if tensor is not None and (tensor.device, tensor.index) != (first.device, first.index):
            raise invalid(f"{name} lies on {tensor.where} and x on {first.where}; both must lie on one device")
