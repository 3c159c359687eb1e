"""torch-style functions: shapes, batch axis, refusals. Numbers against torch itself are in test_torch_long.py."""
import numpy as np
import pytest

import libhankel as hk
from reference import correlate

rng = np.random.default_rng(4)


def ints(*shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def test_conv_of_each_rank_with_and_without_batch():
    for rank, conv in ((1, hk.conv1d), (2, hk.conv2d), (3, hk.conv3d)):
        x, f, b = ints(2, 4, *[7] * rank), ints(6, 2, *[3] * rank), ints(6)
        want = correlate(x, f, [2] * rank, [(1, 1)] * rank, [1] * rank, [1] * rank, 2) + b.reshape(-1, *[1] * rank)
        np.testing.assert_array_equal(conv(x, f, b, stride=2, padding=1, groups=2), want)
        np.testing.assert_array_equal(conv(x[0], f, b, stride=2, padding=1, groups=2), want[0])


def test_transpose_is_the_adjoint():
    for rank, conv, transposed in ((1, hk.conv1d, hk.conv_transpose1d), (2, hk.conv2d, hk.conv_transpose2d),
                                   (3, hk.conv3d, hk.conv_transpose3d)):
        x, f = ints(2, 6, *[7] * rank), ints(4, 3, *[3] * rank)
        y = conv(x, f, stride=2, padding=1, groups=2)
        z = ints(*y.shape)
        back = transposed(z, f, stride=2, padding=1, groups=2)
        assert back.shape == x.shape
        assert (y.astype(np.float64) * z).sum() == (back.astype(np.float64) * x).sum()


def test_transpose_output_padding_and_views():
    x, f = ints(2, 3, 5), ints(3, 4, 3)
    plain = hk.conv_transpose1d(x, f, stride=2)
    longer = hk.conv_transpose1d(x, f, stride=2, output_padding=1)
    assert longer.shape == (2, 4, 12)
    np.testing.assert_array_equal(longer[:, :, :-1], plain)
    assert (longer[:, :, -1] == 0).all()
    np.testing.assert_array_equal(hk.conv_transpose1d(x[:, ::-1], f[::-1, ::-1, ::-1], stride=2),
                                  hk.conv_transpose1d(x, f[:, ::-1, ::-1].copy(), stride=2))


def test_depthwise():
    x, f = ints(2, 5, 30), ints(5, 4)
    want = correlate(x, f[:, None], [1], [(6, 0)], [1], [2], 5)
    np.testing.assert_array_equal(hk.depthwise_conv1d(x, f, padding="causal", dilation=2), want)
    twice = ints(10, 1, 3)
    np.testing.assert_array_equal(hk.depthwise_conv1d(x, twice), correlate(x, twice, [1], [(0, 0)], [1], [1], 5))


def test_epilogue_words_pass_through():
    x, f = ints(1, 2, 9), ints(3, 2, 3)
    want = np.maximum(correlate(x, f, [1], [(0, 0)], [1], [1]), 0)
    np.testing.assert_array_equal(hk.conv1d(x, f, act="relu", residual=want), 2 * want)
    np.testing.assert_array_equal(hk.conv1d(x[0], f, act="relu", residual=want[0], threads=1), 2 * want[0])


@pytest.mark.parametrize("call,word", [
    (lambda: hk.conv1d(ints(1, 2, 3), ints(4, 2, 5)), "window"),
    (lambda: hk.conv2d(ints(1, 2, 3, 9), ints(4, 2, 5, 5)), "window"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), padding=-1), "pad"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), padding="same", stride=2), "same"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 3, 3)), "channels"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), groups=0), "groups"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(3, 1, 3), groups=2), "group"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), stride=0), "stride"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), dilation=0), "dilation"),
    (lambda: hk.conv1d(ints(9), ints(4, 2, 3)), "dimensions"),
    (lambda: hk.conv1d(ints(1, 2, 9), ints(4, 2, 3), bias=ints(5)), "bias"),
    (lambda: hk.conv_transpose1d(ints(1, 2, 9), ints(3, 2, 3)), "weight"),
    (lambda: hk.conv_transpose1d(ints(1, 2, 9), ints(2, 2, 3), stride=2, output_padding=2), "output_padding"),
])
def test_refused_as_torch_refuses(call, word):
    with pytest.raises(hk.HankelError) as caught:
        call()
    assert caught.value.status == 1 and word in caught.value.message


def test_arguments_by_torchs_names():
    for rank, conv, transposed in ((1, hk.conv1d, hk.conv_transpose1d), (2, hk.conv2d, hk.conv_transpose2d),
                                   (3, hk.conv3d, hk.conv_transpose3d)):
        x, f, b = ints(2, 6, *[7] * rank), ints(4, 3, *[3] * rank), ints(4)
        got = conv(input=x, weight=f, bias=b, stride=2, padding=1, dilation=1, groups=2)
        np.testing.assert_array_equal(got, conv(x, f, b, 2, 1, 1, 2))
        np.testing.assert_array_equal(conv(weight=f, input=x[0], groups=2), conv(x, f, groups=2)[0])
        y, wide = ints(2, 4, *[7] * rank), ints(6)
        got = transposed(input=y, weight=f, bias=wide, stride=2, padding=1, output_padding=1, groups=2, dilation=1)
        np.testing.assert_array_equal(got, transposed(y, f, wide, 2, 1, 1, 2, 1))
    x, f = ints(2, 5, 30), ints(5, 4)
    np.testing.assert_array_equal(hk.depthwise_conv1d(input=x, weight=f), hk.depthwise_conv1d(x, f))
    np.testing.assert_array_equal(hk.conv(lhs=x, rhs=f[:, None], window_strides=(2,), feature_group_count=5),
                                  hk.conv(x, f[:, None], 2, feature_group_count=5))
    np.testing.assert_array_equal(hk.plan(lhs=x, rhs=f[None, :, :])(x), hk.conv(x, f[None]))


@pytest.mark.parametrize("call", [lambda x, f: hk.conv1d(x, f, input=x), lambda x, f: hk.conv1d(x=x, input=x, weight=f),
                                  lambda x, f: hk.conv(x, f, rhs=f), lambda x, f: hk.conv1d(weight=f),
                                  lambda x, f: hk.conv1d(x, weights=f)])
def test_an_argument_has_one_name_at_a_time(call):
    with pytest.raises(TypeError, match="x and input|f and rhs|'x'|'weight'"):
        call(ints(1, 2, 9), ints(3, 2, 3))
