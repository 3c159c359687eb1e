"""Calls that repeat: a second call with arrays that lie alike goes straight to its plan. It computes the same, and
refuses the same, as the first."""
import threading
import time

import numpy as np
import pytest

import libhankel as hk
from libhankel import _repeat


def numbers(seed, *shape, dtype="f4"):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def exact(x, f):
    return hk.conv(x.astype("f8"), f.astype("f8"))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_other_data_gives_other_results(dtype):
    for seed in range(4):
        x, f = numbers(seed, 2, 4, 16, dtype=dtype), numbers(seed + 9, 6, 4, 3, dtype=dtype)
        assert np.array_equal(hk.conv1d(x, f), exact(x, f).astype(dtype))
        x[...] = 1  # the same arrays with other values, weights too
        f[0] = 2
        assert np.array_equal(hk.conv1d(x, f), exact(x, f).astype(dtype))


def test_results_are_new_arrays():
    x, f = numbers(1, 1, 4, 16), numbers(2, 4, 4, 3)
    first, again = hk.conv1d(x, f), hk.conv1d(x, f)
    assert first is not again and not np.shares_memory(first, again) and np.array_equal(first, again)


def test_one_array_in_two_places_is_not_kept():
    square = numbers(3, 3, 3, 3)
    assert np.array_equal(hk.conv(square, square), exact(square, square))
    for seed in range(3):
        x, f = numbers(seed, 3, 3, 3), numbers(seed + 5, 3, 3, 3)
        assert np.array_equal(hk.conv(x, f), exact(x, f))
        assert np.array_equal(hk.conv(square, square), exact(square, square))


def test_every_operand_follows_its_call():
    for seed in range(4):
        x, f = numbers(seed, 1, 4, 9), numbers(seed + 1, 4, 4, 1)
        bias, c = numbers(seed + 2, 4), numbers(seed + 3, 1, 4, 9)
        want = np.maximum(exact(x, f) + bias[:, None], 0) + 2 * c
        assert np.array_equal(hk.conv1d(x, f, bias, act="relu", residual=c, beta=2.0), want)
        assert np.array_equal(hk.conv1d(x, f, residual=c, beta=2.0, bias=bias, act="relu"), want)  # other places
        out = np.empty_like(c)
        assert hk.conv1d(x, f, bias, act="relu", residual=c, beta=2.0, out=out) is out and np.array_equal(out, want)
        assert hk.conv1d(x, f, bias, act="relu", residual=c, beta=2.0, out=c) is c and np.array_equal(c, want)


def test_arguments_that_are_equal_but_not_the_same():
    x, f = numbers(1, 1, 2, 8), numbers(2, 2, 2, 3)
    wide = hk.conv1d(x, f, None, 1, 1)
    assert wide.shape == (1, 2, 8) and hk.conv1d(x, f, None, 1, 0).shape == (1, 2, 6)
    for bad in (1.0, 1.5):
        with pytest.raises(hk.HankelError, match="stride"):
            hk.conv1d(x, f, None, bad, 1)
    assert np.array_equal(hk.conv1d(x, f, None, 1, 1), wide)


@pytest.mark.parametrize("seed", range(30))
def test_any_layout(seed):
    r = np.random.default_rng(seed)
    base = numbers(seed, 4, 8, 40)
    views = [base[:, :, ::2], base[:, ::-1, :20], base[::2, :, 5:25], np.broadcast_to(base[:1, :, :20], (3, 8, 20)),
             base.transpose(0, 2, 1)[:, :8, :8], np.asfortranarray(base)[:, :, :20]]
    f = numbers(seed + 1, 5, 8, 3)
    for _ in range(3):
        x = views[r.integers(len(views))]
        assert np.array_equal(hk.conv1d(x, f), exact(np.ascontiguousarray(x), f)), x.strides


def test_a_plan_refuses_the_second_time_too():
    x, f = numbers(1, 1, 4, 16), numbers(2, 4, 4, 3)
    plan, out = hk.plan(x, f), np.empty((1, 4, 14), "f4")
    want = exact(x, f)
    for _ in range(2):
        assert plan(x, out=out) is out and np.array_equal(out, want) and np.array_equal(plan(x), want)
        out.flags.writeable = False
        with pytest.raises(hk.HankelError, match="read-only"):
            plan(x, out=out)
        out.flags.writeable = True
        block = np.zeros((2, 4, 16), "f4")
        block[0] = x[0]
        inside = np.lib.stride_tricks.as_strided(block[0, :, 1:], (1, 4, 14), out.strides)
        with pytest.raises(hk.HankelError, match="shares memory with x"):
            plan(np.lib.stride_tricks.as_strided(block, (1, 4, 16), x.strides), out=inside)
        with pytest.raises(hk.HankelError, match="shape"):
            plan(x[:, :, 1:])
        for weights in (f, f.tolist()):
            with pytest.raises(hk.HankelError, match="f is given and the plan holds its own"):
                plan(x, weights)
        with pytest.raises(hk.HankelError, match="residual is given"):
            plan(x, residual=[1.0])
        with pytest.raises(hk.HankelError):
            plan(x.astype("f8"))


def test_functions_run_at_every_call():
    x, f, calls = numbers(1, 1, 4, 16), numbers(2, 4, 4, 3), []
    def act(position, values):
        calls.append(position)
        return values
    plan = hk.plan(x, f, act=act)
    plan(x)
    count = len(calls)
    plan(x)
    assert count and len(calls) == 2 * count


def test_many_threads_share_a_plan_with_workspace():
    x, f = numbers(1, 1, 24, 40, 40), numbers(2, 24, 24, 3, 3)
    plan = hk.plan(x, f, threads=1)
    want, wrong = plan(x), []

    def work(seed):
        mine = x + seed
        right = hk.plan(mine, f, threads=1)(mine)
        for _ in range(20):
            if not np.array_equal(plan(mine), right):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not wrong and np.array_equal(plan(x), want)


def test_no_more_than_a_few_are_kept():
    f = numbers(2, 1, 1, 1)
    plan = hk.Plan("1d_n1_c1_i4_k1_w1_f32", f=f)
    for width in range(4, 4 + 3 * _repeat._KEPT):
        plan(np.ones((1, 1, width), "f4"), out=np.empty((1, 1, 4), "f4"))
    assert len(plan._repeats) <= _repeat._KEPT


def test_a_repeated_call_is_short():
    x, f = numbers(1, 1, 4, 16), numbers(2, 4, 4, 3)
    plan = hk.plan(x, f)
    plan(x), hk.conv1d(x, f)

    def best(call):
        least = 1.0
        for _ in range(30):
            start = time.thread_time()
            for _ in range(20): call()
            least = min(least, (time.thread_time() - start) / 20)
        return least

    def long_way():
        plan._repeats.clear()
        plan(x)
    assert best(lambda: plan(x)) < best(long_way) / 2
    assert best(lambda: hk.conv1d(x, f)) < best(lambda: hk.conv1d(x, f, [0, 0, 0, 0])) / 2  # lists are looked at
