"""The two borrowed entry points, on the shapes their own systems test (large ones reduced) and beyond their limits."""
import itertools

import numpy as np
import pytest

import libhankel as hk
from libhankel.compat import depthwise_conv1d_implicit_gemm, get_igemm_conv2d
from reference import correlate, scatter_axes

#: N, C, W, S, stride, padding; reduced: C by up to 64, W and S by the same factor where both were in the thousands
DEPTHWISE = [(1, 16, 512, 64, 1, 0), (1, 8, 512, 64, 1, 10), (1, 8, 512, 64, 2, 0), (1, 8, 512, 64, 2, 5),
             (1, 16, 1024, 1021, 1, 0), (1, 8, 5000, 8, 1, 0), (1, 16, 512, 3, 1, 0), (1, 16, 512, 7, 1, 0),
             (1, 16, 512, 200, 1, 0), (1, 4, 512, 256, 1, 0), (1, 4, 1024, 512, 1, 0), (1, 6, 2048, 128, 1, 0),
             (2, 7, 512, 64, 1, 0), (4, 4, 512, 128, 1, 0), (1, 2, 512, 64, 1, 0), (1, 9, 256, 128, 1, 0),
             (1, 9, 129, 128, 1, 0), (1, 16, 512, 3, 1, 1), (1, 16, 512, 7, 1, 3), (1, 16, 512, 200, 1, 10),
             (2, 8, 512, 64, 1, 5), (1, 8, 128, 128, 1, 1), (1, 16, 512, 3, 2, 0), (1, 8, 512, 64, 4, 0),
             (1, 16, 512, 200, 2, 0), (1, 8, 1024, 256, 3, 0), (1, 4, 4096, 256, 16, 0), (1, 16, 512, 3, 2, 1),
             (1, 8, 512, 64, 2, 10), (1, 16, 512, 200, 2, 10)]


@pytest.mark.parametrize("n,c,w,s,stride,pad", DEPTHWISE)
def test_depthwise_shapes(n, c, w, s, stride, pad):
    rng = np.random.default_rng(0)
    img, kernel = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((n, c, 1, w), (c, 1, 1, s)))
    got = depthwise_conv1d_implicit_gemm(img, kernel, ((0, 0), (pad, pad)), (1, stride), feature_group_count=c)
    assert got.shape == (n, c, 1, (w + 2 * pad - s) // stride + 1)
    np.testing.assert_array_equal(got, correlate(img, kernel, [1, stride], [(0, 0), (pad, pad)], [1, 1], [1, 1], c))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_depthwise_every_argument(dtype):
    rng = np.random.default_rng(1)
    img = rng.integers(-2, 3, (2, 3, 4, 11)).astype(dtype)
    kernel = rng.integers(-2, 3, (6, 1, 2, 3)).astype(dtype)
    pads, stride, rhs, lhs = ((1, -1), (0, 3)), (1, 2), (2, 3), (2, 1)
    want = correlate(img, kernel, stride, pads, lhs, rhs, 3)
    for in_perm, kern_perm, out_perm in itertools.product([(0, 1, 2, 3), (3, 0, 1, 2), (1, 3, 0, 2)], repeat=3):
        given = scatter_axes(img, in_perm), scatter_axes(kernel, kern_perm)
        got = depthwise_conv1d_implicit_gemm(*given, pads, stride, rhs, lhs, 3, 1, in_perm, kern_perm, out_perm)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, scatter_axes(want, out_perm))


def test_batch_groups_and_refusals():
    rng = np.random.default_rng(2)
    img, kernel = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((4, 3, 1, 9), (6, 3, 1, 2)))
    got = depthwise_conv1d_implicit_gemm(img, kernel, batch_group_count=2)
    np.testing.assert_array_equal(got, correlate(img, kernel, [1, 1], [(0, 0)] * 2, [1, 1], [1, 1], 1, 2))
    with pytest.raises(hk.HankelError, match="channels"):
        depthwise_conv1d_implicit_gemm(img, np.ones((3, 1, 1, 2), np.float32))
    with pytest.raises(hk.HankelError, match="in_perm"):
        depthwise_conv1d_implicit_gemm(img, kernel, in_perm=(0, 1, 2, 2))


SQUARE = [(n, c, 5, 5, nf, 2, 2, stride) for n, c, nf, stride in
          itertools.product((1, 2, 4), (1, 3, 4, 10), (1, 2, 16), (1, 2, 3))] + \
    [(1, 1, 5, 5, 1, 3, 3, 1), (1, 2, 9, 9, 3, 2, 2, 1), (1, 4, 9, 9, 64, 2, 2, 1), (2, 16, 16, 16, 40, 3, 3, 1),
     (2, 40, 16, 16, 80, 1, 1, 1), (1, 80, 8, 8, 40, 3, 3, 1)]
OBLONG = [(1, 3, 5, 7, 4, 2, 2, 1), (2, 3, 7, 5, 4, 1, 3, 1), (1, 2, 7, 5, 3, 3, 1, 2), (2, 5, 9, 4, 7, 3, 2, (2, 1)),
          (1, 3, 4, 12, 2, 4, 5, 3)]
SPECS = {"nchw_fchw": ((0, 1, 2, 3),) * 3, "nhwc_hwcf": ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))}


@pytest.mark.parametrize("layout", list(SPECS))
def test_igemm_conv2d(layout):
    rng = np.random.default_rng(3)
    x_axes, w_axes, y_axes = SPECS[layout]
    for n, c, h, w, nf, hf, wf, stride in SQUARE + OBLONG:
        kernel, symbols = get_igemm_conv2d(layout, n, h, w, c, hf, wf, nf, stride, "f16", "f32")
        x, f = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((n, c, h, w), (nf, c, hf, wf)))
        steps = (stride, stride) if np.isscalar(stride) else stride
        want = scatter_axes(correlate(x, f, steps, [(0, 0)] * 2, [1, 1], [1, 1]), y_axes)
        out = np.full(want.shape, 9, np.float32)
        given = [np.ascontiguousarray(scatter_axes(a, axes).astype(np.float16))
                 for a, axes in ((x, x_axes), (f, w_axes))]
        assert kernel(*given, out) is out
        np.testing.assert_array_equal(out, want, err_msg=f"{layout} {n, c, h, w, nf, hf, wf, stride}")
        assert symbols["M"] == n * symbols["H_OUT"] * symbols["W_OUT"] and symbols["K"] == hf * wf * c


def test_igemm_symbols_and_knobs():
    kernel, symbols = get_igemm_conv2d("nchw_fchw", 1, 32, 32, 3, 3, 3, 8, 1, np.float16, np.float32)
    assert [symbols[k] for k in ("N", "C", "H", "W", "NF", "HF", "WF")] == [1, 3, 32, 32, 8, 3, 3]
    assert [symbols[k] for k in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "RATIO_M", "RATIO_N")] == [64, 128, 32, 2, 2]
    assert kernel.plan.symbols and kernel.plan.decision
    _, knobs = get_igemm_conv2d("nhwc_hwcf", 1, 8, 8, 4, 2, 2, 4, 1, "f16", "f32", "shared", 16, 32, 8, 1, 4)
    assert [knobs[k] for k in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "RATIO_M", "RATIO_N", "ADDRESS_SPACE")] == \
        [16, 32, 8, 1, 4, "shared"]


def test_igemm_tiles_reach_the_plan_and_change_no_integer():
    words = dict(layout="nhwc_hwcf", n=2, h=12, w=13, c=24, hf=3, wf=2, nf=40, stride=1, input_dtype="f32",
                 output_dtype="f32")
    rng = np.random.default_rng(5)
    x, f = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 12, 13, 24), (3, 2, 24, 40)))
    plain, _ = get_igemm_conv2d(**words)
    want = plain(x, f, np.empty((2, 10, 12, 40), np.float32))
    kernel, symbols = get_igemm_conv2d(**words, block_m=24, block_n=64, block_k=8)
    assert " bm=24 " in kernel.plan.decision and " bk=8" in kernel.plan.decision and symbols["BLOCK_K"] == 8
    np.testing.assert_array_equal(kernel(x, f, np.empty_like(want)), want)
    backwards = np.empty_like(want)[::-1]
    np.testing.assert_array_equal(kernel(x[::-1], f, backwards), want[::-1])


@pytest.mark.parametrize("change", [dict(layout="nchw_hwcf"), dict(stride=0), dict(block_m=0), dict(input_dtype="f12")])
def test_igemm_refusals(change):
    words = dict(layout="nchw_fchw", n=1, h=8, w=8, c=4, hf=2, wf=2, nf=4, stride=1, input_dtype="f16",
                 output_dtype="f32")
    with pytest.raises(hk.HankelError):
        get_igemm_conv2d(**dict(words, **change))


def test_igemm_wrong_shape_is_refused():
    kernel, _ = get_igemm_conv2d("nchw_fchw", 1, 8, 8, 4, 2, 2, 4, 1, "f16", "f32")
    x, f = np.ones((1, 4, 8, 8), np.float16), np.ones((4, 4, 2, 2), np.float16)
    with pytest.raises(hk.HankelError, match="out has shape"):
        kernel(x, f, np.empty((1, 4, 7, 8), np.float32))
