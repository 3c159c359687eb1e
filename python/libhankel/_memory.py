"""Where results, scratch and small vectors are allocated: beside x, by x's own framework.

beside(x) gives numpy for the host, PyTorch or CuPy for their own tensors, and Bare for any other object on a CUDA
device, whose results the caller must allocate (out=).
"""
import contextlib
import ctypes as C

import numpy as np

from . import _abi
from ._array import NAMES, intake, numpy_dtype, vector
from ._dlpack import framework, on_device
from ._native import call, invalid, lib

_TORCH = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "float8_e4m3fn")
_ALIGNMENT = 64


def beside(tensor):
    """The allocator of a tensor's own framework."""
    name = framework(tensor.owner)
    if name == "torch":
        return Torch(tensor)
    if name == "cupy":
        return Cupy(tensor)
    return Host() if tensor.device == _abi.CPU else Bare(tensor)


def _stored(shape, order):
    """(shape in memory order, axes that bring it back to `shape`)."""
    return tuple(shape[i] for i in order), tuple(order.index(i) for i in range(len(shape)))


class Host:
    """numpy."""
    stream = None

    def empty(self, shape, hk_type, order):
        stored, back = _stored(shape, order)
        return np.empty(stored, numpy_dtype(hk_type)).transpose(back)

    def strided(self, flat, start, shape, strides):
        """A view of a flat array."""
        steps = tuple(s * flat.itemsize for s in strides)
        return np.lib.stride_tricks.as_strided(flat[start:] if flat.size else flat, shape, steps)

    def scratch(self, count):
        """(address, what keeps it alive) of `count` bytes, aligned."""
        block = np.empty(count + _ALIGNMENT, np.uint8)
        start = block.__array_interface__["data"][0]
        return start + -start % _ALIGNMENT, block

    def vector(self, values, hk_type, length, what):
        """(address, what keeps it alive) of a dense vector."""
        array = vector(values, numpy_dtype(hk_type), length, what)
        return array.ctypes.data, array

    def here(self):
        """A context in which x's device is the current one."""
        return contextlib.nullcontext()


class _Device(Host):
    """What the frameworks with memory on a device share. They differ in `_converted` alone."""

    def vector(self, values, hk_type, length, what):
        if not on_device(values):
            values = vector(values, numpy_dtype(hk_type), length, what)
        else:
            tensor = intake(values, what)
            if tensor.shape != (length,):
                raise invalid(f"{what} has shape {tensor.shape}; ({length},) is required")
            if hk_type == _abi.S32 and tensor.type not in (_abi.S32, _abi.S8, _abi.U8):
                raise invalid(f"{what} has elements of {NAMES[tensor.type]}; integers (s32) are required")
            if tensor.type == hk_type and (length <= 1 or tensor.strides == (1,)):
                return tensor.pointer, values
        kept = self._converted(values, hk_type, what)
        return (kept.value if isinstance(kept, Block) else intake(kept, what).pointer), kept


class Torch(_Device):
    """PyTorch: its caching allocator follows the current stream, also under graph capture."""

    def __init__(self, tensor):
        import torch
        self.torch, self.at, self.cuda = torch, tensor.owner.device, tensor.device == _abi.CUDA

    @property
    def stream(self):
        return self.torch.cuda.current_stream(self.at).cuda_stream if self.cuda else None

    def _dtype(self, hk_type):
        dtype = getattr(self.torch, _TORCH[hk_type], None)
        if dtype is None:
            raise invalid(f"this torch has no {_TORCH[hk_type]}; ask for another type of the result")
        return dtype

    def empty(self, shape, hk_type, order):
        stored, back = _stored(shape, order)
        return self.torch.empty(stored, dtype=self._dtype(hk_type), device=self.at).permute(back)

    def strided(self, flat, start, shape, strides):
        if any(s < 0 for s in strides):
            raise invalid(f"y has strides {strides}; torch has no negative ones: give out")
        return self.torch.as_strided(flat, shape, strides, start)

    def scratch(self, count):
        if not self.cuda:
            return super().scratch(count)
        block = self.torch.empty(count + _ALIGNMENT, dtype=self.torch.uint8, device=self.at)
        return block.data_ptr() + -block.data_ptr() % _ALIGNMENT, block

    def vector(self, values, hk_type, length, what):
        return (super() if self.cuda else Host()).vector(values, hk_type, length, what)

    def _converted(self, values, hk_type, what):
        values = self.torch.as_tensor(values).detach()
        return values.to(device=self.at, dtype=self._dtype(hk_type)).contiguous()

    def one(self, hk_type):
        """A tensor that holds a single 1."""
        return self.torch.ones(1, dtype=self._dtype(hk_type), device=self.at)

    def here(self):
        return self.torch.cuda.device(self.at) if self.cuda else contextlib.nullcontext()


class Cupy(_Device):
    """CuPy."""

    def __init__(self, tensor):
        import cupy  # type: ignore[import-not-found,unused-ignore]
        self.cupy, self.at = cupy, tensor.index

    @property
    def stream(self):
        return self.cupy.cuda.get_current_stream().ptr

    def empty(self, shape, hk_type, order):
        stored, back = _stored(shape, order)
        return self.cupy.empty(stored, numpy_dtype(hk_type)).transpose(back)

    def strided(self, flat, start, shape, strides):
        steps = tuple(s * flat.itemsize for s in strides)
        return self.cupy.lib.stride_tricks.as_strided(flat[start:] if flat.size else flat, shape, steps)

    def scratch(self, count):
        block = self.cupy.empty(count + _ALIGNMENT, np.uint8)
        return block.data.ptr + -block.data.ptr % _ALIGNMENT, block

    def _converted(self, values, hk_type, what):
        return self.cupy.ascontiguousarray(self.cupy.asarray(values).astype(numpy_dtype(hk_type)))

    def one(self, hk_type):
        return self.cupy.ones(1, numpy_dtype(hk_type))

    def here(self):
        return self.cupy.cuda.Device(self.at)


class Block:
    """Device memory by hk_gpu_alloc."""

    def __init__(self, count, source=None):
        self._address = C.c_void_p()
        call("hk_gpu_alloc", C.byref(self._address), count)
        if source is not None:
            call("hk_gpu_copy", self._address, source, count)

    @property
    def value(self):
        return self._address.value

    def __del__(self):
        if self._address:
            lib.hk_gpu_free(self._address)


class Bare(_Device):
    """An object on a CUDA device whose framework this package does not know. Its work goes to the stream that it names,
    else to the default one; scratch is kept per stream, as nobody else orders its use."""
    _scratch: dict = {}

    def __init__(self, tensor):
        interface = getattr(tensor.owner, "__cuda_array_interface__", None) or {}
        self.stream, self.name = interface.get("stream") or 0, type(tensor.owner).__name__

    def empty(self, shape, hk_type, order):
        raise invalid(f"x is a {self.name}, for which nothing can be allocated here; give out, a tensor of shape "
                      f"{tuple(shape)} and type {NAMES[hk_type]}")

    def one(self, hk_type):
        raise invalid(f"dy is a {self.name}, for which nothing can be allocated here; sum it in its own framework")

    def scratch(self, count):
        block, size = self._scratch.get(self.stream, (None, 0))
        if size < count:
            call("hk_gpu_sync", self.stream)  # what runs there may still use the smaller one
            block, size = Block(count), count
            Bare._scratch[self.stream] = block, size
        return block.value, block

    def _converted(self, values, hk_type, what):
        if not isinstance(values, np.ndarray):
            raise invalid(f"{what} has elements of {NAMES[intake(values, what).type]}; a dense vector of "
                          f"{NAMES[hk_type]} is required here")
        return Block(max(values.nbytes, 1), values.ctypes.data)
