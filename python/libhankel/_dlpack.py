"""What an object says of its memory by DLPack (__dlpack__) or by __cuda_array_interface__. Nothing is copied."""
import ctypes as C
import re

from . import _abi
from ._native import invalid

_KINDS = {(2, 32): _abi.F32, (2, 64): _abi.F64, (2, 16): _abi.F16, (4, 16): _abi.BF16, (0, 8): _abi.S8,
          (1, 8): _abi.U8, (0, 32): _abi.S32, (10, 8): _abi.F8E4M3}
_TYPESTR = {"f4": _abi.F32, "f8": _abi.F64, "f2": _abi.F16, "i1": _abi.S8, "u1": _abi.U8, "i4": _abi.S32}
#: DLPack's device types: host and pinned host; CUDA and managed memory
_HOST, _CUDA = (1, 3), (2, 13)


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


def framework(obj):
    """"torch", "cupy", "jax", ..: the package that an object's class, or one it derives from, belongs to."""
    modules = [base.__module__.partition(".")[0] for base in type(obj).__mro__]
    return next((m for m in modules if m in ("torch", "cupy")), modules[0])


def dense(shape):
    """Element strides of a dense array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def is_dense(shape, strides):
    """Whether an array is dense: strides of dimensions of size 1 do not count, nor any of an empty array."""
    return 0 in shape or all(a == b for a, b, n in zip(strides, dense(shape), shape) if n > 1)


def on_device(obj):
    """Whether an object lies on a CUDA device; nothing is exported to find out."""
    if hasattr(obj, "__dlpack_device__"):
        return _device(obj, "vector")[0] in _CUDA
    return hasattr(obj, "__cuda_array_interface__")


def read(obj, what, writable=False):
    """The fields of a Tensor, or None for an object that speaks neither protocol."""
    if writable and framework(obj) in ("jax", "jaxlib"):
        raise invalid(f"{what} is a {type(obj).__name__}, which is immutable; leave it out")
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _by_dlpack(obj, what)
    try:
        interface = obj.__cuda_array_interface__
    except AttributeError:
        return None
    return _by_interface(obj, interface, what, writable)


def plain(obj, what):
    """A torch tensor without its graph, with types that DLPack lacks as bytes: (object to export, hk_type or None)."""
    import torch
    if obj.requires_grad:
        if torch.is_grad_enabled():
            raise invalid(f"{what} requires a gradient, which would be lost; call under torch.no_grad() or pass "
                          f"{what}.detach()")
        obj = obj.detach()
    if str(obj.dtype) == "torch.float8_e4m3fn":
        return obj.view(torch.uint8), _abi.F8E4M3
    return obj, None


def _device(obj, what):
    """DLPack's device type and number; torch has tensors (meta) that have none."""
    try:
        kind, index = obj.__dlpack_device__()
    except (BufferError, RuntimeError, ValueError) as error:
        raise invalid(f"{what} is a {type(obj).__name__} that lies on no device of DLPack: {error}") from error
    return int(kind), int(index)


def _capsule(obj, kind, what):
    # -1: no synchronisation, as the work goes to torch's and CuPy's own stream; 1: others make it ready for stream 0
    try:
        if kind in _CUDA:
            return obj.__dlpack__(stream=-1 if framework(obj) in ("torch", "cupy") else 1)
        return obj.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise invalid(f"{what} is a {type(obj).__name__} that cannot be exported by DLPack: {error}") from error


def _by_dlpack(obj, what):
    source, known = plain(obj, what) if framework(obj) == "torch" else (obj, None)
    kind, index = _device(source, what)
    if kind not in _HOST + _CUDA:
        raise invalid(f"{what} lies on a device of DLPack type {kind}; the host (1, 3) or CUDA (2, 13) is required")
    capsule = _capsule(source, kind, what)  # frees its own handle when it is dropped; obj stays the memory's owner
    get = C.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
    t = _DLTensor.from_address(get(capsule, b"dltensor"))
    hk_type = _KINDS.get((t.code, t.bits)) if known is None else known
    if hk_type is None or t.lanes != 1:
        raise invalid(f"{what} has DLPack type ({t.code}, {t.bits}); f32, f64, f16, bf16, s8, u8, s32 or f8e4m3 is "
                      "required")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else dense(shape)
    device = _abi.CUDA if kind in _CUDA else _abi.CPU
    return _address(t.data, shape) + t.byte_offset, shape, strides, hk_type, device, obj, index if kind in _CUDA else 0


def _address(pointer, shape):
    """An address that is not NULL, also of nothing: NULL means to the library that a tensor is not given."""
    return pointer or (64 if 0 in shape else 0)


def _by_interface(obj, interface, what, writable):
    typestr = interface["typestr"]
    found = re.fullmatch(r"[<|=](\w\d)", typestr)
    hk_type = _TYPESTR.get(found.group(1)) if found else None
    if hk_type is None:
        raise invalid(f"{what} has elements of {typestr}; one of {', '.join(_TYPESTR)} is required")
    pointer, read_only = interface["data"]
    if writable and read_only:
        raise invalid(f"{what} is read-only; it must be writable")
    shape, size, steps = tuple(interface["shape"]), int(typestr[-1]), interface.get("strides")
    if steps is not None and any(s % size for s in steps):
        raise invalid(f"{what} has byte strides {steps}; each must be a multiple of the element size {size}")
    strides = dense(shape) if steps is None else tuple(s // size for s in steps)
    return _address(pointer, shape), shape, strides, hk_type, _abi.CUDA, obj, 0
