"""The entry points of two other systems, with their own signatures, where every argument works.

depthwise_conv1d_implicit_gemm   NKI's kernel: dilation, groups, channel counts and the three permutations all count
get_igemm_conv2d                 Wave's kernel generator: also right for images and filters that are not square
"""
import re

import numpy as np

from ._arguments import integer, integers, per_axis
from ._array import numpy_dtype, type_of
from ._conv import conv
from ._conv import plan as make_plan
from ._native import HankelError, invalid
from ._plan import candidates


def _permutation(perm, what):
    perm = tuple(range(4)) if perm is None else integers(perm, what)
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


_TILES = dict(block_m=64, block_n=128, block_k=32, ratio_m=2, ratio_n=2)


def _tiled(problem, make, block_m, block_n, block_k):
    """The plan with the asked-for tiles: the best decision that has them as knobs (bn counts panels of the kernel's
    columns). None when the planner has no such decision for the problem."""
    for candidate in candidates(problem):
        found = re.search(r"_\d+x(\d+)_\w+ bm=\d+ bn=\d+ bk=\d+", candidate["decision"])
        if candidate["refusal"] is None and found:
            knobs = f" bm={block_m} bn={max(1, block_n // int(found.group(1)))} bk={block_k}"
            try:
                return make(decision=re.sub(r" bm=\d+ bn=\d+ bk=\d+", knobs, candidate["decision"]))
            except HankelError:
                continue
    return None


def get_igemm_conv2d(layout, n, h, w, c, hf, wf, nf, stride, input_dtype, output_dtype, mem_space=None, block_m=64,
                     block_n=128, block_k=32, ratio_m=2, ratio_n=2):
    """(kernel, symbols) of a 2D convolution without padding, in layout "nchw_fchw" or "nhwc_hwcf".

    kernel(x, w, out) computes into out and returns it; kernel.plan is the Plan behind it, whose decision and symbols
    tell the tiles in use. symbols holds the sizes, the GEMM sizes M, NF and K, and the knobs as given. Left at their
    defaults the planner picks the tiles; other block_* are taken where an algorithm has such tiles. ratio_* and
    mem_space say how a GPU's waves share a tile and mean nothing on a CPU. stride is one integer or (height, width);
    any dtype of the package is taken.
    """
    if layout not in _LAYOUTS:
        raise invalid(f"layout is {layout!r}; one of {', '.join(_LAYOUTS)} is required")
    tiles = dict(block_m=block_m, block_n=block_n, block_k=block_k, ratio_m=ratio_m, ratio_n=ratio_n)
    for name, value in tiles.items():
        integer(value, name, least=1)
    specs, strides = _LAYOUTS[layout], per_axis(stride, 2, "stride")
    x = np.empty(_arrange(specs[0], {"N": n, "C": c, "H": h, "W": w}), numpy_dtype(type_of(input_dtype)))
    f = np.empty(_arrange(specs[1], {"O": nf, "I": c, "H": hf, "W": wf}), numpy_dtype(type_of(input_dtype)))
    words = dict(window_strides=strides, dimension_numbers=specs,
                 preferred_element_type=numpy_dtype(type_of(output_dtype)))

    def make(**options):
        return make_plan(x, f, hold_weights=False, **words, **options)

    plan = make()
    if tiles != _TILES:
        plan = _tiled(plan.problem, make, block_m, block_n, block_k) or plan
    h_out, w_out = plan.problem.output()[1]
    shapes = {name: plan.layout[name][0] for name in ("x", "f", "out")}

    def kernel(x, w, out):
        for name, array, shape in (("x", x, shapes["x"]), ("w", w, shapes["f"]), ("out", out, shapes["out"])):
            if np.shape(array) != shape:
                raise invalid(f"{name} has shape {np.shape(array)}; {shape} is required")
        if all(isinstance(a, np.ndarray) and a.flags.c_contiguous for a in (x, w, out)):
            return plan(x, w, out=out)
        return conv(x, w, out=out, **words)  # views lie otherwise than the plan's arrays

    kernel.plan = plan
    symbols = {"N": n, "C": c, "H": h, "W": w, "NF": nf, "HF": hf, "WF": wf, "H_OUT": h_out, "W_OUT": w_out,
               "STRIDE": stride, "PADDING": 0, "SZ_OUT": h_out * w_out, "M": n * h_out * w_out, "K": hf * wf * c,
               "ELEMS_PER_THREAD": _ELEMS_PER_THREAD, "ADDRESS_SPACE": mem_space}
    symbols.update((name.upper(), value) for name, value in tiles.items())
    return kernel, symbols
