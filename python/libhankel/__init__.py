"""libhankel: convolution by implicit GEMM, numpy in and out.

    import numpy as np, libhankel as hk
    y = hk.conv2d(x, w, bias, stride=2, padding=1, act="silu")             # torch's arguments
    y = hk.conv(x, w, 1, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))  # XLA's arguments
    p = hk.plan(x, w, padding="SAME", bias=b); y = p(x); print(p)          # plan once, run often

Arrays are read and written where they lie; strided, reversed and broadcast views are never copied. Refusals are
HankelError with the library's status and sentence; ArgumentError, a ValueError too, where an argument is at fault.
"""
from . import compat, wisdom
from ._array import type_of
from ._conv import conv, plan
from ._epilogue import Epilogue, Position
from ._grad import conv_grad_bias, conv_grad_filter, conv_grad_input
from ._native import ArgumentError, HankelError, library_path, machine, version
from ._nn import (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, depthwise_conv1d)
from ._plan import Plan, candidates
from ._problem import Problem

__version__ = version()
__all__ = ["ArgumentError", "Epilogue", "HankelError", "Plan", "Position", "Problem", "candidates", "compat", "conv",
           "conv1d", "conv2d", "conv3d", "conv_grad_bias", "conv_grad_filter", "conv_grad_input", "conv_transpose1d",
           "conv_transpose2d", "conv_transpose3d", "depthwise_conv1d", "library_path", "machine", "plan", "type_of",
           "version", "wisdom"]
