"""Bad input by name, through the C interface: each is refused with a status and a sentence, and nothing is written."""
import ctypes as C

import numpy as np
import pytest

import libhankel as hk
from libhankel import _abi
from libhankel._native import lib

HUGE = 2 ** 62


def good():
    """A legal 2D problem: (2, 4, 5, 6) by (6, 2, 3, 3) in two groups, padded to keep its size."""
    problem = hk.Problem("g2mb2_ic4ih5iw6_oc6oh5ow6_kh3kw3ph1pw1")
    assert problem.check() is problem
    return problem


def change(**fields):
    """A function that sets fields; a tuple (index, value) sets one entry of an array, names may be dotted by __."""
    def apply(raw):
        for name, value in fields.items():
            *path, last = name.split("__")
            target = raw
            for part in path:
                target = getattr(target, part)
            if isinstance(value, tuple):
                getattr(target, last)[value[0]] = value[1]
            else:
                setattr(target, last, value)
    return apply


def overlap(raw):
    raw.y.at[0] = 3


#: name -> (what is done to the good problem, words the sentence must hold)
CASES = {
    "zero stride": (change(stride=(1, 0)), ["stride[1]", "0"]),
    "negative stride": (change(stride=(0, -2)), ["stride[0]", "-2"]),
    "zero dilation": (change(dilation=(1, 0)), ["dilation[1]", "0"]),
    "zero input dilation": (change(in_dilation=(0, 0)), ["in_dilation[0]", "0"]),
    "negative feature groups": (change(feature_groups=-2), ["feature_groups", "-2"]),
    "groups that do not divide c": (change(feature_groups=4, c=6, k=8), ["feature_groups", "4"]),
    "groups that do not divide k": (change(feature_groups=4, c=8, k=6), ["feature_groups", "4"]),
    "batch groups that do not divide n": (change(feature_groups=1, batch_groups=3, n=4), ["batch_groups", "3"]),
    "both kinds of groups": (change(batch_groups=2), ["batch_groups"]),
    "negative batch": (change(n=-1), ["n", "-1"]),
    "negative channels": (change(c=-2), ["c", "-2"]),
    "negative output channels": (change(k=-2), ["k", "-2"]),
    "negative input size": (change(in_=(1, -6)), ["in[1]", "-6"]),
    "empty window": (change(window=(0, 0)), ["window[0]", "0"]),
    "rank 0": (change(rank=0), ["rank", "0"]),
    "rank 4": (change(rank=4), ["rank", "4"]),
    "unknown type": (change(x_type=42), ["x_type", "42"]),
    "more than 2^63 elements of x": (change(n=2 ** 40, in_=(0, 2 ** 40)), []),
    "a window of 65536^2 squared": (change(window=(0, 2 ** 32), dilation=(0, 2 ** 32)), []),
    "dilation beyond 63 bits": (change(dilation=(0, HUGE)), []),
    "input dilation beyond 63 bits": (change(in_dilation=(0, HUGE)), []),
    "padding beyond 63 bits": (change(pad_lo=(0, HUGE), pad_hi=(0, HUGE)), []),
    "x stride beyond 63 bits": (change(x__outer=2 ** 63 - 1, x__at=(0, HUGE)), []),
    "f stride beyond 63 bits": (change(f__outer=HUGE, f__at=(0, HUGE)), []),
    "y stride beyond 63 bits": (change(y__outer=HUGE, y__at=(0, HUGE)), []),
    "output strides that overlap": (overlap, ["y"]),
    "output broadcast": (change(y__outer=0), ["y"]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_problem(name):
    problem = good()
    apply, words = CASES[name]
    apply(problem.raw)
    with pytest.raises(hk.HankelError) as caught:
        problem.check()
    assert caught.value.status == _abi.INVALID
    assert len(caught.value.message) > 10 and all(word in caught.value.message for word in words), caught.value.message
    plan = C.c_void_p(0x1234)
    assert lib.hk_plan_create(C.byref(plan), problem.raw, None, None, None) == _abi.INVALID
    if "output" not in name and "x stride" not in name and "f stride" not in name and "y stride" not in name:
        sizes = _abi.Axes(7, 7, 7)  # the strides have no part in the output's size
        assert lib.hk_problem_output(problem.raw, sizes, None) == _abi.INVALID and list(sizes) == [7, 7, 7]
    grad = _abi.RawProblem()
    before = bytes(grad)
    for derive in (lib.hk_problem_grad_input, lib.hk_problem_grad_filter):
        assert derive(problem.raw, grad) == _abi.INVALID and bytes(grad) == before


class Bench:
    """A plan of the good problem and arguments for it, y poisoned."""

    def __init__(self, **weights):
        self.x, self.f = np.ones((2, 4, 5, 6), np.float32), np.ones((6, 2, 3, 3), np.float32)
        self.y = np.full((2, 6, 5, 6), 7, np.float32)
        self.plan = hk.Plan(good(), **weights)
        self.workspace = np.zeros(self.plan.workspace_bytes + 128, np.uint8)
        start = -self.workspace.ctypes.data % 64
        self.args = _abi.Args(x=self.x.ctypes.data, f=self.f.ctypes.data, y=self.y.ctypes.data,
                              workspace=self.workspace.ctypes.data + start, workspace_bytes=self.plan.workspace_bytes)

    def refused(self, status, *words):
        got = lib.hk_plan_execute(self.plan._handle, self.args)
        text = lib.hk_last_error().decode()
        assert got == status, f"{got}: {text}"
        assert all(word in text for word in words), text
        assert (self.y == 7).all()


def test_good_arguments_run():
    bench = Bench()
    assert lib.hk_plan_execute(bench.plan._handle, bench.args) == _abi.OK
    assert bench.y.max() == 18 and bench.y.min() == 8


@pytest.mark.parametrize("name", ["x", "f", "y"])
def test_null_tensor(name):
    bench = Bench()
    setattr(bench.args, name, None)
    bench.refused(_abi.INVALID, name)


@pytest.mark.parametrize("name", ["x", "f", "y"])
def test_misaligned_tensor(name):
    bench = Bench()
    setattr(bench.args, name, getattr(bench.args, name) + 2)
    bench.refused(_abi.INVALID, name, "align")


def test_misaligned_numpy_array():
    raw = np.zeros(4 * 41 + 1, np.uint8)[1:]
    x = raw[:4 * 40].view(np.float32).reshape(1, 4, 10)
    with pytest.raises(hk.HankelError) as caught:
        hk.conv(x, np.ones((1, 4, 3), np.float32))
    assert caught.value.status == _abi.INVALID and "align" in caught.value.message


def test_wrong_size_of_args():
    bench = Bench()
    for wrong in (0, bench.args.size - 4, bench.args.size + 8):  # an older header's, 8 bytes less, is taken
        bench.args.size = wrong
        bench.refused(_abi.INVALID, "size")


def test_null_args_and_null_plan():
    bench = Bench()
    assert lib.hk_plan_execute(bench.plan._handle, None) == _abi.INVALID
    assert lib.hk_plan_execute(None, bench.args) == _abi.INVALID
    assert lib.hk_plan_create(None, good().raw, None, None, None) == _abi.INVALID
    plan = C.c_void_p()
    assert lib.hk_plan_create(C.byref(plan), None, None, None, None) == _abi.INVALID and not plan
    lib.hk_plan_destroy(None)


def test_missing_bias_scale_and_residual():
    for text, name in (("bias", "bias"), ("scale", "scale"), ("sum", "c")):
        bench = Bench(epilogue=text)
        bench.refused(_abi.INVALID, name)


def test_overlapping_input_and_output():
    block = np.arange(80, dtype=np.float32).reshape(2, 4, 10)
    f, before = np.ones((4, 4, 1), np.float32), block.copy()
    for x, out in ((block, block), (block[:, :, :9], block[:, :, 1:])):
        with pytest.raises(hk.HankelError, match="out shares memory with x"):
            hk.conv(x, f, out=out)
        assert (block == before).all()
    hk.conv(block[:, :, ::2], f, out=block[:, :, 1::2])  # interleaved, and apart
    np.testing.assert_array_equal(block[:, :, ::2], before[:, :, ::2])
    want = np.broadcast_to(before[:, :, ::2].sum(1, keepdims=True), (2, 4, 5))
    np.testing.assert_array_equal(block[:, :, 1::2], want)


def test_null_problem_everywhere():
    for name in ("hk_problem_check", "hk_problem_dense", "hk_problem_pad"):
        arguments = [None] + [0] * (len(_abi.PROTOTYPES[name][1]) - 1)
        assert getattr(lib, name)(*arguments) == _abi.INVALID, name
    assert lib.hk_problem_parse(None, b"x") == _abi.INVALID
    assert lib.hk_problem_parse(_abi.RawProblem(), None) in (_abi.INVALID, _abi.SYNTAX)


@pytest.mark.parametrize("words", [dict(decision="nosuch kernel=none"), dict(decision="")], ids=str)
def test_bad_decision(words):
    with pytest.raises(hk.HankelError) as caught:
        hk.Plan(good(), **words)
    assert caught.value.status in (_abi.SYNTAX, _abi.UNSUPPORTED, _abi.INVALID)


def test_wisdom_only_without_wisdom():
    with pytest.raises(hk.HankelError) as caught:
        hk.Plan("mb3_ic7ih5_oc9oh5_kh3ph1", wisdom_only=True)
    assert caught.value.name == "HK_NO_WISDOM"


@pytest.mark.parametrize("call", [
    lambda x, f: hk.conv(x.astype(np.int64), f), lambda x, f: hk.conv(x.astype(complex), f),
    lambda x, f: hk.conv(x[0, 0], f),
    lambda x, f: hk.conv(x, f[:, :1]), lambda x, f: hk.conv(x, f, (1, 1)), lambda x, f: hk.conv(x, f, 1, "EVEN"),
    lambda x, f: hk.conv(x, f, dimension_numbers=("NCW", "OIW")),
    lambda x, f: hk.conv(x, f, dimension_numbers=("NCW", "OIH", "NCW")),
    lambda x, f: hk.conv(x, f, out=np.zeros((1, 4, 9), np.float32)), lambda x, f: hk.conv(x, f, out=[1, 2]),
    lambda x, f: hk.conv(x.astype(">f4"), f), lambda x, f: hk.conv(x, f, preferred_element_type="f7"),
    lambda x, f: hk.conv(x, f, feature_group_count=0), lambda x, f: hk.conv(x, f, batch_group_count=0),
    lambda x, f: hk.conv(x, f, x_dtype="bf16"), lambda x, f: hk.conv(x, f, isa="mmx"),
    lambda x, f: hk.conv(x, f, math="loose")])
def test_refused_by_the_package(call):
    x, f = np.ones((1, 2, 9), np.float32), np.ones((4, 2, 3), np.float32)
    with pytest.raises(hk.HankelError) as caught:
        call(x, f)
    assert caught.value.status == _abi.INVALID
