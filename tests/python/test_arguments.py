"""Arguments that are almost right: floats for integers, numbers that no field holds, arrays of another rank. Each is
refused by a ValueError whose sentence names the argument, its value and what is required; nothing is cut off."""
import pickle

import numpy as np
import pytest

import libhankel as hk
from libhankel import compat

x, f = np.ones((2, 4, 9, 9), np.float32), np.ones((6, 4, 3, 3), np.float32)
bytes_ = dict(x=x.astype(np.int8), f=f.astype(np.int8))
HUGE = 2 ** 64 + 1  # 1 in 64 bits


def refused(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    assert isinstance(caught.value, hk.HankelError) and caught.value.name == "HK_INVALID"
    assert all(word in str(caught.value) for word in words), str(caught.value)


NOT_INTEGERS = [1.5, 0.7, 2.0, np.float32(2), np.float64(1), "1", 1j, None, HUGE]


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
@pytest.mark.parametrize("name", ["stride", "padding", "dilation", "groups"])
def test_torch_arguments(name, value):
    if (name, value) == ("padding", "1"):
        return  # a string names a padding; test_refused_by_the_package has unknown ones
    refused(lambda: hk.conv2d(x, f, **{name: value}), name, str(value))
    if name != "groups":
        refused(lambda: hk.conv2d(x, f, **{name: (1, value)}), f"{name}[1]", str(value))


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
def test_transpose_arguments(value):
    for name in ("stride", "dilation", "output_padding", "groups"):
        refused(lambda: hk.conv_transpose2d(np.ones((2, 6, 9, 9), np.float32), f, **{name: value}), name, str(value))


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
@pytest.mark.parametrize("name", ["window_strides", "lhs_dilation", "rhs_dilation", "feature_group_count",
                                  "batch_group_count", "x_zero", "y_zero", "reverse"])
def test_xla_arguments(name, value):
    refused(lambda: hk.conv(x, f, **{name: value}), name, str(value))
    refused(lambda: hk.plan(x, f, **{name: value}), name, str(value))


@pytest.mark.parametrize("name", ["x_zero", "f_zero", "y_zero"])
def test_zero_points(name):
    for value in (0.5, 1.0, 2 ** 32):
        refused(lambda: hk.conv(**bytes_, **{name: value}), name, str(value))
        refused(lambda: hk.conv2d(bytes_["x"], bytes_["f"], **{name: value}), name, str(value))


def test_integer_vectors():
    """The s32 bias and the zero points per channel of int8."""
    for value, word in (([0.5] * 6, "float64"), (np.full(6, 2 ** 40), str(2 ** 40)), ([2 ** 32] * 6, str(2 ** 32))):
        refused(lambda: hk.conv(**bytes_, bias=value), "bias", word)
        refused(lambda: hk.conv(**bytes_, f_zero=value), "f_zero", word)
        plan = hk.plan(**bytes_, bias=np.arange(6), hold_weights=False)
        refused(lambda: plan(bytes_["x"], bytes_["f"], bias=value), "bias", word)
        refused(lambda: hk.Plan(plan.problem, "bias", bias=value), "bias", word)


def test_pads_and_axes():
    refused(lambda: hk.conv(x, f, padding=[(1, 1), (0, 0.7)]), "padding[1][1]", "0.7")
    refused(lambda: hk.conv(x, f, padding=[(1, 1, 5), (0, 0)]), "padding[0]", "(1, 1, 5)", "2 values")
    refused(lambda: hk.conv(x, f, padding=np.ones((2, 2))), "padding[0][0]", "1.0")
    refused(lambda: hk.conv(x, f, dimension_numbers=[(0, 1.9, 2, 3)] * 3), "dimension_numbers[1]", "1.9")
    refused(lambda: hk.conv_grad_input(x, f, (2, 4, 11.5, 11)), "x_shape[2]", "11.5")
    refused(lambda: hk.conv_grad_filter(x, x, (4, 4, 1, 1.0)), "f_shape[3]", "1.0")
    refused(lambda: hk.conv_grad_input(x, f, 4), "x_shape", "4")
    refused(lambda: compat.depthwise_conv1d_implicit_gemm(x, f, in_perm=(0, 1.2, 2, 3)), "in_perm[1]", "1.2")
    refused(lambda: compat.get_igemm_conv2d("nchw_fchw", 1, 9, 9, 4, 3, 3, 6, 1.5, "f32", "f32"), "stride", "1.5")
    refused(lambda: compat.get_igemm_conv2d("nchw_fchw", 1, 9, 9, 4, 3, 3, 6, 1, "f32", "f32", block_m=8.5), "block_m",
            "8.5")


@pytest.mark.parametrize("words", [dict(threads=1.5), dict(threads=2 ** 32 + 1), dict(workspace_limit=-1),
                                   dict(workspace_limit=1e6), dict(time_limit="soon"), dict(decision=3)], ids=str)
def test_options(words):
    (name, value), = words.items()
    refused(lambda: hk.conv(x, f, **words), name, str(value))


def test_real_parameters():
    y = np.ones((2, 6, 7, 7), np.float32)
    for value in ("1", 1j, [1.0]):
        refused(lambda: hk.conv(x, f, residual=y, beta=value), "beta", str(value))
        refused(lambda: hk.conv(x, f, act=("leaky", value)), "act", str(value))
    refused(lambda: hk.conv(x, f, act=("leaky", None)), "act", "None")
    for value in (0, True, 0.5, np.float32(0.5), np.int8(2), np.float64(1)):
        np.testing.assert_array_equal(hk.conv(x, f, residual=y, beta=value), 36 + float(value))


@pytest.mark.parametrize("one", [1, True, np.int8(1), np.uint64(1), np.bool_(True), np.array(1)], ids=repr)
def test_integers_of_every_kind(one):
    want = hk.conv2d(x, f, padding=1)
    for same in (one, (one, one), [one, one], np.array([one, one])):
        np.testing.assert_array_equal(hk.conv2d(x, f, stride=same, padding=same, dilation=same, groups=one), want)
        np.testing.assert_array_equal(hk.conv(x, f, same, same, same, same, None, one, one), want)
    np.testing.assert_array_equal(hk.conv(x, f, 1, [(one, one), one], threads=one), want)
    np.testing.assert_array_equal(hk.conv(x, f, reverse=[one, False]), hk.conv(x, f[:, :, ::-1].copy()))


SHAPES = [(6,), (6, 7), (6, 7, 7), (2, 6, 7), (2, 6, 7, 6), (1, 2, 6, 7, 7), ()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["out", "residual"])
def test_arrays_of_another_rank(name, shape):
    wrong = {name: np.ones(shape, np.float32)}
    refused(lambda: hk.conv(x, f, **wrong), name, str(shape), "(2, 6, 7, 7)")
    refused(lambda: hk.conv2d(x, f, **wrong), name, str(shape), "(2, 6, 7, 7)")
    refused(lambda: hk.plan(x, f, **wrong), name, str(shape), "(2, 6, 7, 7)")
    refused(lambda: hk.conv_transpose2d(x, f[:4].copy(), **wrong), name, str(shape), "(2, 4, 11, 11)")
    if shape != (6, 7, 7):
        refused(lambda: hk.conv2d(x[0], f, **wrong), name, str(shape), "(6, 7, 7)")


def test_arrays_of_another_rank_at_execute():
    plan = hk.plan(x, f, residual=np.ones((2, 6, 7, 7), np.float32))
    for shape in SHAPES:
        wrong, right = np.ones(shape, np.float32), np.ones((2, 6, 7, 7), np.float32)
        refused(lambda: plan(x, out=wrong, residual=right), "out", str(shape), "(2, 6, 7, 7)")
        refused(lambda: plan(x, out=right, residual=wrong), "residual", str(shape), "(2, 6, 7, 7)")
        refused(lambda: plan(wrong, out=right, residual=right), "x", str(shape), "(2, 4, 9, 9)")
        refused(lambda: hk.conv_grad_input(np.ones((2, 6, 7, 7), np.float32), f, x.shape, out=wrong), "out",
                str(shape), "(2, 4, 9, 9)")


def test_residual_of_a_call_is_an_array():
    """True stands for one in a plan alone."""
    for value in (True, False):
        refused(lambda: hk.conv(x, f, residual=value), "residual", str(value))
        refused(lambda: hk.conv2d(x, f, residual=value), "residual", str(value))
    plan = hk.plan(x, f, residual=True)
    np.testing.assert_array_equal(plan(x, residual=np.ones((2, 6, 7, 7), "f4")), hk.conv(x, f) + 1)
    assert not hk.plan(x, f, residual=False).epilogue.reads("residual")


def test_out_that_is_no_array():
    for image in (x, x[0]):
        for words in ({}, {"out_dtype": "f32"}):
            refused(lambda: hk.conv2d(image, f, out=[1, 2], **words), "out", "list")


def test_refusals_of_the_library_are_value_errors():
    refused(lambda: hk.conv(x, f, 0), "stride[0]", "0")
    with pytest.raises(ValueError, match="HK_SYNTAX"):
        hk.Epilogue("bias+nosuch")
    with pytest.raises(hk.HankelError) as caught:
        hk.Plan("mb3_ic7ih5_oc9oh5_kh3ph1", wisdom_only=True)
    assert not isinstance(caught.value, ValueError) and isinstance(caught.value, RuntimeError)
    for error in (caught.value, hk.HankelError(1, "sentence")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.status == error.status


IGNORED = [dict(slopes=np.ones(6)), dict(slopes=np.ones(6), act="relu"), dict(beta=0.5), dict(residual_order="before"),
           dict(act=("relu", 3)), dict(act="leaky"), dict(act="clip"), dict(act=("clip", 1)), dict(act=("hardtanh", 1)),
           dict(act=("leaky", 1, 2)), dict(act=3), dict(act=()), dict(act=["swoosh"]), dict(gate=["gated"]),
           dict(user2=3), dict(store="x"), dict(bias=[None] * 6), dict(bias=["1"] * 6), dict(scale="1"),
           dict(isa=["avx2"]), dict(math=3), dict(dimension_numbers=3)]


@pytest.mark.parametrize("words", IGNORED, ids=str)
def test_words_without_effect_or_meaning(words):
    refused(lambda: hk.conv(x, f, **words), list(words)[0])
    refused(lambda: hk.plan(x, f, **words), list(words)[0])


def test_arrays_that_a_plan_does_not_read():
    v, y = np.ones(6), np.ones((2, 6, 7, 7), np.float32)
    held, bare = hk.plan(x, f, scale=v, bias=v), hk.plan(x, f, hold_weights=False)
    for words in (dict(f=f), dict(scale=v), dict(bias=v)):
        refused(lambda: held(x, **words), list(words)[0], "holds")
    for words in (dict(scale=v), dict(bias=v), dict(residual=y)):
        refused(lambda: bare(x, f, **words), list(words)[0], "without")
    for words in (dict(scale=v), dict(bias=v), dict(slopes=v)):
        refused(lambda: hk.Plan(bare.problem, "relu", f=f, **words), list(words)[0], "relu", "without")
    late = hk.plan(x, f, scale=v, bias=v, residual=y, hold_weights=False)
    np.testing.assert_array_equal(late(x, f, scale=2 * v, bias=3 * v, residual=y), 2 * 36 + 3 + 1)


def test_out_is_returned_without_a_batch_too():
    out, want = np.empty((6, 7, 7), np.float32), hk.conv2d(x, f)[0]
    assert hk.conv2d(x[0], f, out=out) is out
    np.testing.assert_array_equal(out, want)
    back = np.empty((4, 9, 9), np.float32)
    assert hk.conv_transpose2d(want, f, out=back) is back


def test_a_window_of_one_tap_has_an_empty_state():
    x, w = np.ones((2, 4, 8), np.float32), np.full((4, 1, 1), 2, np.float32)
    plan = hk.plan(x, w, padding="CAUSAL", feature_group_count=4, stateful=True)
    state = np.zeros(plan.state_shape, np.float32)
    assert state.shape == (2, 4, 0)
    assert (plan(x, state_in=state, state_out=state) == 2).all()
