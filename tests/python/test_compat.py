"""The two borrowed entry points, on the shapes their own systems test (large ones reduced) and beyond their limits."""
import itertools

import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi
from libhankel.compat import (GLOBAL_ADDRESS_SPACE, SHARED_ADDRESS_SPACE, depthwise_conv1d_implicit_gemm,
                              depthwise_conv1d_plan, get_igemm_conv2d)
from reference import correlate, scatter_axes
from standin import Device

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


def test_igemm_symbols():
    kernel, symbols = get_igemm_conv2d("nchw_fchw", 1, 32, 32, 3, 3, 3, 8, 1, np.float16, np.float32)
    assert [symbols[k] for k in ("N", "C", "H", "W", "NF", "HF", "WF", "H_OUT", "W_OUT", "M", "K")] == \
        [1, 3, 32, 32, 8, 3, 3, 30, 30, 900, 27]
    assert kernel.plan.symbols and kernel.plan.decision and symbols is kernel.symbols
    assert not {"ELEMS_PER_THREAD", "ADDRESS_SPACE", "RATIO_M", "RATIO_N"} & set(symbols)  # nothing that does not run


WORDS = dict(n=2, h=12, w=13, c=24, hf=3, wf=2, nf=40, stride=1, output_dtype="f32")


def ran(decision):
    """Pixels, output channels and input channels of a tile, read from the decision by hand."""
    knobs = dict(word.split("=") for word in decision.split() if "=" in word)
    columns = int(knobs["kernel"].split("_")[3].split("x")[1]) if "kernel" in knobs else 1
    algorithm = decision.split(" / ")[-1].split()[0]
    if algorithm == "igemm":
        return {"BLOCK_M": int(knobs["bm"]), "BLOCK_N": int(knobs["bn"]) * columns, "BLOCK_K": int(knobs["bk"])}
    return {"BLOCK_N": int(knobs["bm"])} if algorithm == "planes" else {}


@pytest.mark.parametrize("layout, dtype", itertools.product(SPECS, ("f16", "f32")))
def test_symbols_are_what_runs(layout, dtype):
    """100 settings: each reaches the plan exactly, or is refused by a sentence that names it."""
    reached, rng = 0, np.random.default_rng(6)
    kernel, symbols = get_igemm_conv2d(layout, input_dtype=dtype, **WORDS)
    assert {k: v for k, v in symbols.items() if k.startswith("BLOCK")} == ran(kernel.plan.decision)
    for _ in range(100):
        names = rng.permutation(["block_m", "block_n", "block_k"])[:rng.integers(1, 4)]
        tiles = {str(name): int(rng.choice([1, 7, 8, 16, 24, 64, 128, 79, 10 ** 6])) for name in names}
        try:
            kernel, symbols = get_igemm_conv2d(layout, input_dtype=dtype, **WORDS, **tiles)
        except ValueError as error:
            assert all(f"{name} = {value}" in str(error) for name, value in tiles.items()), error
            continue
        reached += 1
        blocks = ran(kernel.plan.decision)
        assert {k: v for k, v in symbols.items() if k.startswith("BLOCK")} == blocks
        assert all(blocks[name.upper()] == value for name, value in tiles.items())
    assert reached > (10 if layout == "nhwc_hwcf" else 2)


def test_what_no_plan_takes_is_refused():
    words = dict(WORDS, input_dtype="f16")
    for change, sentence in ((dict(block_m=10 ** 6), "block_m = 1000000 reaches no plan of .*1000000 must be 1"),
                             (dict(ratio_m=2), "ratio_m is 2"), (dict(ratio_n=1), "ratio_n is 1"),
                             (dict(mem_space="texture"), "mem_space is 'texture'"), (dict(device="tpu"), "device is"),
                             (dict(h=1), "no output position"), (dict(n=1.5), "n is 1.5")):
        with pytest.raises(ValueError, match=sentence):
            get_igemm_conv2d("nhwc_hwcf", **dict(words, **change))
    with pytest.raises(ValueError, match="block_n = 7, block_k = 8 reaches no plan of .*slice / planes has block_n"):
        get_igemm_conv2d("nchw_fchw", **words, block_n=7, block_k=8)
    for space in (SHARED_ADDRESS_SPACE, GLOBAL_ADDRESS_SPACE, "shared", "global", None):
        get_igemm_conv2d("nhwc_hwcf", mem_space=space, **words)


def test_names_threads_out_and_plans():
    """By the seeds' own names, with threads= and out=, and plans that keep the filter."""
    rng = np.random.default_rng(8)
    img, taps = rng.integers(-2, 3, (2, 4, 1, 30)).astype("f4"), rng.integers(-2, 3, (4, 1, 1, 5)).astype("f4")
    want, out = depthwise_conv1d_implicit_gemm(img, taps, feature_group_count=4), np.zeros((2, 4, 1, 26), "f4")
    got = depthwise_conv1d_implicit_gemm(img_ref=img, filter_ref=taps, feature_group_count=4, threads=1, out=out)
    assert got is out
    np.testing.assert_array_equal(out, want)
    plan = depthwise_conv1d_plan(img_ref=img, filter_ref=taps.copy(), feature_group_count=4, threads=1)
    np.testing.assert_array_equal(plan(img), want)
    assert plan.symbols["threads"] == 1

    x, we = rng.integers(-2, 3, (2, 12, 13, 24)).astype("f2"), rng.integers(-2, 3, (3, 2, 24, 40)).astype("f2")
    kernel, _ = get_igemm_conv2d("nhwc_hwcf", input_dtype="f16", threads=1, **WORDS)
    want = kernel(x=x, we=we)
    assert kernel.plan.symbols["threads"] == 1 and want.dtype == np.float32
    out = np.zeros_like(want)
    assert kernel(x=x, we=we, out=out) is out
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(kernel.hold(x, we)(x), want)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    img, taps = torch.ones(1, 4, 1, 9, dtype=torch.bfloat16), torch.ones(4, 1, 1, 3, dtype=torch.bfloat16)
    y = depthwise_conv1d_implicit_gemm(img, taps, feature_group_count=4)
    assert y.dtype == torch.bfloat16 and tuple(y.shape) == (1, 4, 1, 7) and (y == 3).all()
    kernel, _ = get_igemm_conv2d("nchw_fchw", 1, 5, 5, 2, 2, 2, 3, 1, torch.float16, torch.float32)
    out = torch.zeros(1, 3, 4, 4)
    assert kernel(torch.ones(1, 2, 5, 5).half(), torch.ones(3, 2, 2, 2).half(), out) is out and (out == 8).all()
    assert type(kernel(torch.ones(1, 2, 5, 5).half(), torch.ones(3, 2, 2, 2).half())) is torch.Tensor


@pytest.mark.parametrize("kind", ["cupy", "torch_cuda", "interface"])
def test_tensors_on_a_device_run_there(monkeypatch, kind):
    if kind == "torch_cuda":
        pytest.importorskip("torch")
    device = Device(monkeypatch)
    rng = np.random.default_rng(9)
    x, we = rng.integers(-2, 3, (2, 12, 13, 24)).astype("f2"), rng.integers(-2, 3, (3, 2, 24, 40)).astype("f2")
    kernel, symbols = get_igemm_conv2d("nhwc_hwcf", input_dtype="f16", block_k=8, **WORDS)
    want = kernel(x, we)
    assert kernel.plan.device == "cpu" and symbols["BLOCK_K"] == 8
    make, out = device.maker(kind), np.zeros_like(want)
    kernel(make(x), make(we), make(out))
    np.testing.assert_array_equal(out, want)
    assert kernel.plan.device == "cuda" and device.created[-1].device == _abi.CUDA and symbols["BLOCK_K"] == 8
    img, taps, y = np.ones((1, 2, 1, 8), "f4"), np.ones((2, 1, 1, 3), "f4"), np.zeros((1, 2, 1, 6), "f4")
    depthwise_conv1d_implicit_gemm(make(img), make(taps), feature_group_count=2, out=make(y))
    assert device.created[-1].device == _abi.CUDA and (y == 3).all()


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
