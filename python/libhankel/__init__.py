"""libhankel: convolution by implicit GEMM on numpy arrays, torch tensors, and anything with DLPack.

>>> import numpy as np, libhankel as hk
>>> x, w = np.ones((1, 2, 5, 5), "f4"), np.ones((3, 2, 3, 3), "f4")
>>> y = hk.conv2d(x, w, [1, 2, 3], stride=2, padding=1, act="silu")           # torch's arguments
>>> y = hk.conv(x, w, 1, "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))  # XLA's arguments
>>> plan = hk.plan(x, w, padding="SAME")                                      # plan once, run often
>>> (plan(x) == y).all()
True

Arrays are read and written in place, on the host or on a CUDA device; strided, reversed and broadcast views are
never copied. The device follows the tensor: conv2d of a torch tensor on a GPU runs there, on torch's current stream.
Refusals are HankelError with the library's status and sentence; ArgumentError, a ValueError too, where an argument is
at fault. Parts: stream (real-time chains), nam (amp models), wisdom, compat (two other systems' entry points), cuda,
causal_conv1d (the short convolution of state-space models, in the place of the package of that name), torch (modules with
gradients, operators, and optimize() for whole models), jax (conv_general_dilated inside XLA's programs).
"""
import importlib
from typing import Any

from . import compat, stream, wisdom
from ._array import type_of
from ._conv import conv, plan
from ._epilogue import Epilogue, Function, Position
from ._grad import conv_grad_bias, conv_grad_filter, conv_grad_input
from ._native import ArgumentError, HankelError, library_path, machine, version
from ._nn import (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, depthwise_conv1d)
from ._plan import Plan, candidates
from ._problem import Problem
from .stream import Chain, Stream

__version__ = version()
__all__ = ["ArgumentError", "Chain", "Epilogue", "Function", "HankelError", "Plan", "Position", "Problem", "Stream",
           "candidates", "compat", "conv", "conv1d", "conv2d", "conv3d", "conv_grad_bias", "conv_grad_filter",
           "conv_grad_input", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "depthwise_conv1d",
           "library_path", "machine", "plan", "stream", "type_of", "version", "wisdom"]


def __getattr__(name: str) -> Any:
    """These import torch or jax, so they are loaded when they are first asked for."""
    if name in ("causal_conv1d", "jax", "torch"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
