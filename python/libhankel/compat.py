"""The entry points of two other systems, with their own signatures, where every argument works.

depthwise_conv1d_implicit_gemm   NKI's kernel: dilation, groups, channel counts and the three permutations all count
get_igemm_conv2d                 Wave's kernel generator: also right for images and filters that are not square
"""
import numpy as np

from ._array import empty, numpy_dtype, type_of
from ._conv import conv
from ._conv import plan as make_plan
from ._native import invalid
from ._problem import per_axis


def _permutation(perm, what):
    perm = tuple(range(4)) if perm is None else tuple(int(a) for a in perm)
    if sorted(perm) != [0, 1, 2, 3]:
        raise invalid(f"{what} is {perm}; a permutation of 0, 1, 2, 3 is required")
    return perm


def depthwise_conv1d_implicit_gemm(img, filter, padding=((0, 0), (0, 0)), stride=(1, 1), rhs_dilation=(1, 1),
                                   lhs_dilation=(1, 1), feature_group_count=1, batch_group_count=1, in_perm=None,
                                   kern_perm=None, out_perm=None):
    """Convolution of img (N, C, H, W) by filter (O, I, H, W) into (N, K, P, Q), of img's type.

    perm[i] is the array axis that holds logical axis i of (N, C, H, W), (O, I, H, W) and (N, K, P, Q). Depthwise is
    feature_group_count = C with a filter of (C, 1, 1, S); any other grouping works too. As XLA's conv_general_dilated.
    """
    dims = (_permutation(in_perm, "in_perm"), _permutation(kern_perm, "kern_perm"), _permutation(out_perm, "out_perm"))
    return conv(img, filter, stride, padding, lhs_dilation, rhs_dilation, dims, feature_group_count,
                batch_group_count, np.asarray(img).dtype)


_LAYOUTS = {"nchw_fchw": ("NCHW", "OIHW", "NCHW"), "nhwc_hwcf": ("NHWC", "HWIO", "NHWC")}
_ELEMS_PER_THREAD = 4


def _arrange(letters, sizes):
    return tuple(sizes[letter] for letter in letters)


def get_igemm_conv2d(layout, n, h, w, c, hf, wf, nf, stride, input_dtype, output_dtype, mem_space=None, block_m=64,
                     block_n=128, block_k=32, ratio_m=2, ratio_n=2):
    """(kernel, symbols) of a 2D convolution without padding, in layout "nchw_fchw" or "nhwc_hwcf".

    kernel(x, w, out) computes into out and returns it; kernel.plan is the Plan behind it, whose own symbols tell the
    tiles in use. symbols holds the sizes, the GEMM sizes M, NF and K, and the knobs as given: on a CPU the planner
    picks the tiles for the machine, so block_*, ratio_* and mem_space do not change the result. stride is one integer
    or (height, width); any dtype of the package is taken.
    """
    if layout not in _LAYOUTS:
        raise invalid(f"layout is {layout!r}; one of {', '.join(_LAYOUTS)} is required")
    for name, value in (("block_m", block_m), ("block_n", block_n), ("block_k", block_k), ("ratio_m", ratio_m),
                        ("ratio_n", ratio_n)):
        if int(value) < 1:
            raise invalid(f"{name} is {value}; at least 1 is required")
    specs, strides = _LAYOUTS[layout], per_axis(stride, 2, "stride")
    x_type, y_type = type_of(input_dtype), type_of(output_dtype)
    x = empty(_arrange(specs[0], {"N": n, "C": c, "H": h, "W": w}), x_type)
    f = empty(_arrange(specs[1], {"O": nf, "I": c, "H": hf, "W": wf}), x_type)
    words = dict(window_strides=strides, dimension_numbers=specs, preferred_element_type=numpy_dtype(y_type))
    plan = make_plan(x, f, hold_weights=False, **words)
    h_out, w_out = plan.problem.output()[1]
    out_shape = plan.layout["out"][0]

    def kernel(x, w, out):
        for name, array, shape in (("x", x, kernel.x_shape), ("w", w, kernel.w_shape), ("out", out, out_shape)):
            if np.shape(array) != shape:
                raise invalid(f"{name} has shape {np.shape(array)}; {shape} is required")
        return conv(x, w, out=out, **words)

    kernel.plan, kernel.x_shape, kernel.w_shape = plan, x.shape, f.shape
    symbols = {"N": n, "C": c, "H": h, "W": w, "NF": nf, "HF": hf, "WF": wf, "H_OUT": h_out, "W_OUT": w_out,
               "STRIDE": stride, "PADDING": 0, "SZ_OUT": h_out * w_out, "M": n * h_out * w_out, "K": hf * wf * c,
               "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "RATIO_M": ratio_m, "RATIO_N": ratio_n,
               "ELEMS_PER_THREAD": _ELEMS_PER_THREAD, "ADDRESS_SPACE": mem_space}
    return kernel, symbols
