"""A CUDA device that is none: arrays in host memory that say they lie on a device, and a library whose CUDA plans run
on the CPU. What the package hands to the library (problem, epilogue, options, weights, arguments) is kept for the tests
to look at; everything but the launch itself is real.

kinds: "numpy" and "torch" lie on the host, as they say. "dlpack" and "interface" know __dlpack__ and
__cuda_array_interface__ alone; "cupy" is a stand-in for CuPy, "torch_cuda" torch tensors that say they lie on a device.
"""
import contextlib
import ctypes as C
import sys
import types

import numpy as np

from libhankel import _abi
from libhankel._memory import Bare
from libhankel._native import lib

STREAM = 0x5150


class OnDevice:
    """A numpy array that says it lies on the device."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        assert stream in (-1, 1), stream
        return self.array.__dlpack__()


class ByInterface:
    """The same through __cuda_array_interface__, as numba has it."""

    def __init__(self, array, read_only=False):
        self.array = array
        a = array.__array_interface__
        self.__cuda_array_interface__ = dict(shape=a["shape"], typestr=a["typestr"], data=(a["data"][0], read_only),
                                             strides=a["strides"], stream=STREAM, version=3)


def fake_cupy():
    """A module with what the package uses of CuPy."""
    cupy = types.ModuleType("cupy")

    class ndarray(OnDevice):
        itemsize = property(lambda self: self.array.itemsize)
        size = property(lambda self: self.array.size)
        ndim = property(lambda self: self.array.ndim)
        shape = property(lambda self: self.array.shape)
        data = property(lambda self: types.SimpleNamespace(ptr=self.array.ctypes.data))

        def transpose(self, axes):
            return ndarray(self.array.transpose(axes))

        def reshape(self, *shape):
            return ndarray(self.array.reshape(*shape))

        def astype(self, dtype):
            return ndarray(self.array.astype(dtype))

        def __getitem__(self, index):
            return ndarray(self.array[index])

    ndarray.__module__ = "cupy"
    cupy.ndarray = ndarray
    cupy.empty = lambda shape, dtype: ndarray(np.empty(shape, dtype))
    cupy.ones = lambda shape, dtype: ndarray(np.ones(shape, dtype))
    cupy.asarray = lambda values: values if isinstance(values, ndarray) else ndarray(np.array(values))
    cupy.ascontiguousarray = lambda values: ndarray(np.ascontiguousarray(values.array))
    stride_tricks = types.SimpleNamespace(as_strided=lambda a, shape, strides: ndarray(
        np.lib.stride_tricks.as_strided(a.array, shape, strides)))
    cupy.lib = types.SimpleNamespace(stride_tricks=stride_tricks)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=STREAM),
                                      Device=lambda index: contextlib.nullcontext())
    return cupy


class Device:
    """The stand-in device: patches the library, and keeps what it was given."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.created, self.executed, self.memory = monkeypatch, [], [], {}
        monkeypatch.setattr(Bare, "_scratch", {})
        self.real = {name: getattr(lib, name) for name in ("hk_plan_create", "hk_plan_execute", "hk_plan_candidates")}
        for name in ("plan_create", "plan_execute", "plan_candidates", "gpu_alloc", "gpu_free", "gpu_copy", "gpu_sync"):
            monkeypatch.setattr(lib, "hk_" + name, getattr(self, name))

    def plan_create(self, handle, problem, epilogue, options, weights):
        self.created.append(types.SimpleNamespace(problem=problem, epilogue=epilogue, device=options.device,
                                                  options=options, weights=weights))
        options.device = _abi.CPU
        return self.real["hk_plan_create"](handle, problem, epilogue, options, weights)

    def plan_execute(self, handle, args):
        self.executed.append(args)
        stream, args.stream = args.stream, None
        status = self.real["hk_plan_execute"](handle, args)
        args.stream = stream
        return status

    def plan_candidates(self, problem, epilogue, options, visit, context):
        options.device = _abi.CPU
        return self.real["hk_plan_candidates"](problem, epilogue, options, visit, context)

    def gpu_alloc(self, pointer, count):
        block = np.empty(count + 64, np.uint8)
        pointer._obj.value = block.ctypes.data + -block.ctypes.data % 64
        self.memory[pointer._obj.value] = block
        return _abi.OK

    def gpu_free(self, pointer):
        self.memory.pop(pointer.value, None)

    def gpu_copy(self, to, source, count):
        C.memmove(to, source, count)
        return _abi.OK

    def gpu_sync(self, stream):
        return _abi.OK

    def pretend_torch(self):
        """Makes every torch tensor say that it lies on the device."""
        import torch
        export = torch.Tensor.__dlpack__
        self.monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda t: False))
        self.monkeypatch.setattr(torch.Tensor, "__dlpack_device__", lambda t: (2, 0))
        self.monkeypatch.setattr(torch.Tensor, "__dlpack__", lambda t, stream=None: export(t))
        self.monkeypatch.setattr(torch.cuda, "current_stream", lambda at: types.SimpleNamespace(cuda_stream=STREAM))
        self.monkeypatch.setattr(torch.cuda, "device", lambda at: contextlib.nullcontext())

    def maker(self, kind):
        """A function from numpy arrays to arrays of the kind; the stand-ins share the memory."""
        if kind == "cupy":
            module = fake_cupy()
            self.monkeypatch.setitem(sys.modules, "cupy", module)
            return module.ndarray
        if kind == "torch_cuda":
            self.pretend_torch()
        if kind.startswith("torch"):
            import torch
            return torch.from_numpy
        return {"dlpack": OnDevice, "interface": ByInterface, "numpy": lambda array: array}[kind]


def values(array):
    """The numbers of an array of any kind."""
    return array.array if hasattr(array, "array") else np.asarray(array)
