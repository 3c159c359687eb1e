"""Plans and problems as objects: made once, run often, asked about."""
import threading

import numpy as np
import pytest

import libhankel as hk
from reference import correlate

TEXT = "mb2_ic6ih9iw11_oc8oh9ow11_kh3kw3ph1pw1"


@pytest.fixture
def arrays():
    rng = np.random.default_rng(2)
    x = rng.integers(-4, 5, (2, 6, 9, 11)).astype(np.float32)
    f = rng.integers(-4, 5, (8, 6, 3, 3)).astype(np.float32)
    return x, f, correlate(x, f, [1, 1], [(1, 1)] * 2, [1, 1], [1, 1])


def test_plan_holds_its_weights(arrays):
    x, f, want = arrays
    plan = hk.plan(x, f.copy(), padding=1, bias=np.arange(8))
    want = want + np.arange(8, dtype=np.float32)[:, None, None]
    np.testing.assert_array_equal(plan(x), want)
    np.testing.assert_array_equal(plan(-x), 2 * np.arange(8)[:, None, None] - want)
    out = np.empty_like(want)
    assert plan(x, out=out) is out
    np.testing.assert_array_equal(out, want)


def test_weights_at_execute(arrays):
    x, f, want = arrays
    plan = hk.plan(x, f, padding=1, hold_weights=False)
    np.testing.assert_array_equal(plan(x, f), want)
    np.testing.assert_array_equal(plan(x, 2 * f), 2 * want)
    with pytest.raises(hk.HankelError) as caught:
        plan(x)
    assert caught.value.status == 1 and "f" in caught.value.message


def test_problem_text_round_trip():
    problem = hk.Problem(TEXT)
    assert str(hk.Problem(str(problem))) == str(problem)
    assert problem.output() == (2, (9, 11))
    flops, moved = problem.work()
    assert flops == 2 * 2 * 8 * 99 * 6 * 9
    assert moved == 4 * (2 * 6 * 99 + 8 * 6 * 9 + 2 * 8 * 99)
    assert problem.extents()[0] == (2 * 6 * 99, 0)
    with pytest.raises(hk.HankelError) as caught:
        hk.Problem("not a problem")
    assert caught.value.name == "HK_SYNTAX"


def test_plan_of_a_problem(arrays):
    x, f, want = arrays
    plan = hk.Plan(TEXT, "relu", f=f)
    np.testing.assert_array_equal(plan(x), np.maximum(want, 0))
    assert plan.decision and plan.decision in str(plan)
    assert plan.workspace_bytes >= 0 and plan.error_factor >= 0
    symbols = plan.symbols
    assert symbols and all(isinstance(v, (int, float)) for v in symbols.values())


def test_every_candidate_runs_and_agrees(arrays):
    x, f, want = arrays
    found = hk.candidates(TEXT)
    usable = [c for c in found if c["refusal"] is None]
    assert usable and all(c["decision"] for c in found)
    for candidate in usable:
        plan = hk.Plan(TEXT, decision=candidate["decision"], f=f)
        assert plan.decision == candidate["decision"]
        np.testing.assert_array_equal(plan(x), want, err_msg=candidate["decision"])


def test_no_workspace_is_possible(arrays):
    x, f, want = arrays
    plan = hk.plan(x, f, padding=1, hold_weights=False, workspace_limit=0)
    assert plan.workspace_bytes == 0
    np.testing.assert_array_equal(plan(x, f), want)


def test_scalar_isa_and_math_modes(arrays):
    x, f, want = arrays
    np.testing.assert_array_equal(hk.conv(x, f, 1, 1, isa="scalar"), want)
    np.testing.assert_allclose(hk.conv(x, f, 1, 1, math="fast_algorithms"), want, atol=1e-2)


def test_like_shares_weights(arrays):
    x, f, want = arrays
    other = hk.Plan(TEXT, f=f).like(hk.Problem(TEXT.replace("mb2", "mb1")))
    np.testing.assert_array_equal(other(x[:1]), want[:1])


def test_many_threads_run_one_plan(arrays):
    x, f, want = arrays
    plan, wrong = hk.plan(x, f, padding=1), []

    def work():
        for _ in range(20):
            if not (plan(x) == want).all():
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_arrays_of_another_kind_are_refused(arrays):
    x, f, _ = arrays
    plan = hk.plan(x, f, padding=1)
    for other in (x.astype(np.float64), x[:1], x.transpose(0, 1, 3, 2), np.asfortranarray(x)):
        with pytest.raises(hk.HankelError) as caught:
            plan(other)
        assert caught.value.status == 1 and "x" in caught.value.message
    with pytest.raises(hk.HankelError, match="spans"):
        hk.Plan(TEXT, f=f)(x[:1])
    frozen = np.empty((2, 8, 9, 11), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(hk.HankelError, match="read-only"):
        plan(x, out=frozen)


def test_stateful_plan_continues_a_stream():
    rng = np.random.default_rng(0)
    x, f = rng.integers(-4, 5, (2, 3, 50)).astype(np.float32), rng.integers(-4, 5, (4, 3, 3)).astype(np.float32)
    want = correlate(x, f, [1], [(8, 0)], [1], [4])
    state, blocks = np.zeros((2, 3, 8), np.float32), []
    for start, stop in ((0, 5), (5, 7), (7, 31), (31, 50)):
        block = np.ascontiguousarray(x[:, :, start:stop])
        plan = hk.plan(block, f, padding="CAUSAL", rhs_dilation=4, stateful=True)
        blocks.append(plan(block, state_in=state, state_out=state))
    np.testing.assert_array_equal(np.concatenate(blocks, 2), want)
    np.testing.assert_array_equal(state, x[:, :, -8:])


def test_wisdom_is_learned_kept_and_used(tmp_path, arrays):
    x, f, want = arrays
    hk.wisdom.forget()
    with pytest.raises(hk.HankelError, match="HK_NO_WISDOM"):
        hk.Plan(TEXT, wisdom_only=True)
    measured = hk.Plan(TEXT, rigor="measure", time_limit=2.0, f=f)
    assert hk.wisdom.count() == 1
    hk.wisdom.save(tmp_path / "learned")
    hk.wisdom.forget()
    assert hk.wisdom.count() == 0 and hk.wisdom.path() == ""
    hk.wisdom.load(tmp_path / "learned")
    again = hk.Plan(TEXT, wisdom_only=True, f=f)
    assert again.decision == measured.decision
    np.testing.assert_array_equal(again(x), want)
    learned = hk.wisdom.text()
    hk.wisdom.forget()
    hk.wisdom.load_text(learned)
    assert hk.wisdom.text() == learned
    hk.wisdom.forget()


def test_machine_and_version():
    assert hk.version().count(".") == 2 and hk.__version__ == hk.version()
    assert hk.machine()["cores"] >= 1
