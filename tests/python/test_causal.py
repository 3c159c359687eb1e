"""libhankel.causal_conv1d on the CPU: torch tensors (causal_suite.py), numpy arrays, torch.compile, install()."""
import importlib.metadata
import importlib.util
import inspect
import sys
import threading
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import causal_compat_suite  # noqa: E402
import causal_suite  # noqa: E402
from causal_compat_suite import *  # noqa: E402,F401,F403
from causal_suite import *  # noqa: E402,F401,F403
from causal_suite import BF16, F32, filters, near, spread, wide  # noqa: E402

import libhankel as hk  # noqa: E402
from libhankel import _causal, causal_conv1d as own  # noqa: E402
from libhankel._causal import eager, formula  # noqa: E402
from libhankel.causal_conv1d import causal_conv1d_fn, causal_conv1d_ref, causal_conv1d_update  # noqa: E402


@pytest.fixture
def device():
    return "cpu"


def test_signatures_are_those_of_causal_conv1d():
    """Names, order and defaults of causal-conv1d 1.6.1."""
    for function, want in (
            (causal_conv1d_fn, "x weight bias=None seq_idx=None initial_states=None return_final_states=False "
             "final_states_out=None activation=None"),
            (causal_conv1d_update, "x conv_state weight bias=None activation=None cache_seqlens=None "
             "conv_state_indices=None"),
            (own.causal_conv1d_varlen_states, "x cu_seqlens state_len"),
            (causal_conv1d_ref, "x weight bias=None initial_states=None return_final_states=False "
             "final_states_out=None activation=None"),
            (own.causal_conv1d_update_ref, "x conv_state weight bias=None activation=None cache_seqlens=None"),
            (own.causal_conv1d_varlen_states_ref, "x cu_seqlens state_len")):
        found = [p.name + ("" if p.default is p.empty else f"={p.default}")
                 for p in inspect.signature(function).parameters.values()]
        assert " ".join(found) == want


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("last", [False, True])
def test_numpy(dtype, last):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 9, 6)).astype(dtype)
    x = x.transpose(0, 2, 1) if last else np.ascontiguousarray(x.transpose(0, 2, 1))
    weight, bias = rng.standard_normal((6, 4)).astype("f4"), rng.standard_normal(6).astype("f4")
    initial = rng.standard_normal((2, 6, 3)).astype(dtype)
    tensors = [torch.from_numpy(a) for a in (x, weight, bias, initial)]  # lying alike: the same kernels run
    y, state = causal_conv1d_fn(x, weight, bias, None, initial, True, activation="silu")
    want, right = causal_conv1d_fn(*tensors[:3], None, tensors[3], True, activation="silu")
    assert type(y) is np.ndarray and y.dtype == x.dtype and y.strides == x.strides
    assert np.array_equal(y, want.numpy()) and np.array_equal(state, right.numpy())
    ids = np.array([[0] * 4 + [1] * 5, [0] * 8 + [-1]])
    y = causal_conv1d_fn(x, weight, bias, ids)
    assert np.array_equal(y, causal_conv1d_fn(*tensors[:3], torch.from_numpy(ids)).numpy())
    pool, copy = initial.copy(), tensors[3].clone()
    for slots, counts in ((None, None), ([1, -1], None), (None, [3, 8])):
        y = causal_conv1d_update(x[..., 0], pool, weight, bias, "silu",
                                 None if counts is None else np.array(counts, "i4"), slots)
        want = causal_conv1d_update(tensors[0][..., 0], copy, *tensors[1:3], "silu",
                                    None if counts is None else torch.tensor(counts),
                                    None if slots is None else torch.tensor(slots))
        assert np.array_equal(y, want.numpy()) and np.array_equal(pool, copy.numpy())


def test_many_threads():
    """The cache of handles under use from many threads, with more layouts than it holds."""
    weight, bias = filters(8, 4, True, F32, "cpu")
    weight, bias, wrong = weight.detach(), bias.detach(), []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(30):
            x = torch.from_numpy(generator.standard_normal((1, 8, int(generator.integers(1, 40)))).astype("f4"))
            if not torch.allclose(causal_conv1d_fn(x, weight, bias), causal_conv1d_ref(x, weight, bias), atol=1e-4):
                wrong.append(x.shape)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    kept, _causal.KEPT = _causal.KEPT, 7
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _causal.KEPT = kept
    assert not wrong


@pytest.fixture
def installed():
    """install(), and what was there before afterwards."""
    before = {n: m for n, m in sys.modules.items() if n.split(".")[0] == "causal_conv1d"}
    finders = list(sys.meta_path)
    own.install(replace=True)
    yield sys.modules["causal_conv1d"]
    for name in [n for n in sys.modules if n.split(".")[0] == "causal_conv1d"]:
        del sys.modules[name]
    sys.modules.update(before)
    sys.meta_path[:] = finders


def test_install(installed):
    """What mamba_ssm, transformers, FLA and Megatron import, and how they look whether it is there."""
    from causal_conv1d import causal_conv1d_fn as fn, causal_conv1d_update as update  # type: ignore[import-not-found]
    from causal_conv1d.causal_conv1d_interface import causal_conv1d_ref as ref  # type: ignore[import-not-found]
    from causal_conv1d.causal_conv1d_varlen import causal_conv1d_varlen_states  # type: ignore[import-not-found]
    assert fn is causal_conv1d_fn and update is causal_conv1d_update and ref is causal_conv1d_ref
    assert causal_conv1d_varlen_states is own.causal_conv1d_varlen_states
    assert importlib.util.find_spec("causal_conv1d") is not None
    assert installed.__version__ == importlib.metadata.version("causal_conv1d") == "1.6.1"
    assert importlib.metadata.version("causal-conv1d") == "1.6.1"
    own.install()  # twice is once
    del sys.modules["causal_conv1d"]
    sys.modules["causal_conv1d"] = type(sys)("causal_conv1d")
    with pytest.raises(ImportError, match="before it is imported"):
        own.install()


def test_cpp_functions(installed):
    from causal_conv1d.cpp_functions import (causal_conv1d_bwd_function, causal_conv1d_fwd_function,  # type: ignore
                                             causal_conv1d_update_function)
    torch.manual_seed(1)
    x, (weight, bias) = spread(2, 6, 9, "last", F32, "cpu").requires_grad_(), filters(6, 4, True, F32, "cpu")
    initial, final = torch.randn(2, 6, 3, requires_grad=True), torch.empty(2, 6, 3)
    want, right = causal_conv1d_ref(x, weight, bias, initial, True, activation="silu")
    with torch.no_grad():
        y = causal_conv1d_fwd_function(x, weight, bias, None, initial, final, True)
    assert torch.allclose(y, want, atol=1e-5) and torch.equal(final, right)
    dy, dfinal = torch.randn_like(y), torch.randn_like(final)
    dx = torch.full((2, 9, 13), 7.0)  # dx into a slice, as where the backward of a chunk is fused
    place = dx[:, :, 2:8].transpose(1, 2)
    grads = causal_conv1d_bwd_function(x.detach(), weight.detach(), bias.detach(), dy, None, initial.detach(), dfinal,
                                       place, True, True)
    assert grads[0] is place and (dx[:, :, :2] == 7).all() and (dx[:, :, 8:] == 7).all()
    for g, w in zip(grads, torch.autograd.grad((want, right), (x, weight, bias, initial), (dy, dfinal))):
        assert torch.allclose(g, w, atol=1e-4)
    state, copy = final.clone(), final.clone()
    step = causal_conv1d_update_function(x.detach()[..., :1], state, weight.detach(), bias.detach(), True, None, None)
    assert torch.equal(step, causal_conv1d_update(x.detach()[..., :1], copy, weight.detach(), bias.detach(), "silu"))


@pytest.fixture
def refusing(monkeypatch):
    """A library that has neither hk_causal_gradient nor kernels that write over x, as on CUDA today."""
    def no_gradient(*args, **words):
        raise hk.HankelError(2, "the gradient of hk_causal is not supported here")

    def not_in_place(*args, **words):
        if words.get("in_place"):
            raise hk.HankelError(2, "desc.in_place is not supported here")
        return execute(*args, **words)
    execute = eager.execute
    monkeypatch.setattr(eager, "gradient", no_gradient)
    monkeypatch.setattr(eager, "execute", not_in_place)
    monkeypatch.setattr(formula, "_warned", False)


@pytest.mark.filterwarnings("ignore:libhankel. the library has no gradient")
def test_where_the_library_refuses(refusing, device):
    """Gradients by formula and results copied into x are the same as the library's: the suite's own cases again."""
    for dtype, weights in ((F32, F32), (BF16, F32)):
        causal_suite.test_forward_and_gradients(device, "last", dtype, weights)
    for width in (1, 5, 31):
        causal_suite.test_any_width(device, width, "first")
    for case in (causal_suite.test_gradients_of_sums_and_of_views, causal_suite.test_state_gradients_alone,
                 causal_suite.test_gradients_are_the_same_bits):
        case(device)
    causal_suite.test_seq_idx(device, "first", F32, 4)
    for sequences in ("batch", "packed"):
        for states in (False, True):
            causal_compat_suite.test_fla(device, sequences, states, True)
    for tokens in (1, 3):
        causal_compat_suite.test_in_place_decode(device, tokens, "last")
    causal_compat_suite.test_sglang_operators(device)


def test_the_slow_gradient_is_announced_once(refusing):
    x, (weight, bias) = spread(1, 3, 5, "first", F32, "cpu"), filters(3, 2, True, F32, "cpu")
    with pytest.warns(RuntimeWarning, match="no gradient of the causal Conv1D for this device"):
        causal_conv1d_fn(x, weight, bias).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        causal_conv1d_fn(x, weight, bias).sum().backward()


needs_compile = pytest.mark.skipif(not hasattr(torch.library, "register_autograd"),
                                   reason="torch is older than 2.4: no fake kernels, no torch.compile")


@needs_compile
@pytest.mark.parametrize("states", [False, True])
def test_compiled_training_step(states):
    """One graph, forward and backward, the same numbers as eager."""
    torch.manual_seed(2)
    x, (weight, bias) = spread(2, 6, 9, "last", F32, "cpu").requires_grad_(), filters(6, 4, True, F32, "cpu")
    initial = torch.randn(2, 6, 3, requires_grad=True)

    def loss(x, weight, bias, initial):
        if not states:
            return (causal_conv1d_fn(2 * x, weight, bias, activation="silu") ** 2).sum()
        y, final = causal_conv1d_fn(2 * x, weight, bias, None, initial, True, activation="silu")
        return (y ** 2).sum() + (final * 3).sum()
    inputs = (x, weight, bias) + ((initial,) if states else ())
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    got = torch.autograd.grad(compiled(x, weight, bias, initial), inputs)
    for g, w in zip(got, torch.autograd.grad(loss(x, weight, bias, initial), inputs)):
        assert torch.equal(g, w)


@needs_compile
def test_compiled_decode_step():
    """The state changes in a compiled step as it does outside."""
    torch.manual_seed(3)
    weight, bias = (t.detach() for t in filters(6, 4, True, F32, "cpu"))
    state, x = torch.randn(4, 6, 5), torch.randn(2, 6)
    copy, slots = state.clone(), torch.tensor([3, 1], dtype=torch.int32)

    def step(x, state, slots):
        return causal_conv1d_update(x + 1, state, weight, bias, "silu", None, slots) * 2
    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(x, state, slots), step(x, copy, slots)) and torch.equal(state, copy)


@needs_compile
def test_operators_are_what_they_say():
    """torch's own checks: schema, fake kernels, autograd registration, aliasing."""
    torch.manual_seed(4)
    x, (weight, bias) = spread(2, 6, 9, "last", F32, "cpu").requires_grad_(), filters(6, 4, True, F32, "cpu")
    initial, ids = torch.randn(2, 6, 3, requires_grad=True), torch.zeros(2, 9, dtype=torch.int32)
    ops = torch.ops.libhankel
    torch.library.opcheck(ops.causal, (x, weight, bias, None, initial, None, None, 6, 3, 0))
    torch.library.opcheck(ops.causal, (x, weight, None, None, None, ids, None, 0, 0, 0))
    torch.library.opcheck(ops.causal_update, (torch.randn(2, 6), torch.randn(2, 6, 3), weight.detach(), None, 6, None,
                                              None, None))


def test_help_and_public_names():
    for name in own.__all__:
        assert inspect.getdoc(getattr(own, name)), name
    assert hk.causal_conv1d is own
    with pytest.raises(AttributeError, match="no attribute 'causal_conv2d'"):
        hk.causal_conv2d


def test_bf16_arguments_are_not_copied():
    """Gradients off, x a view of a packed projection, which is read in place."""
    packed = torch.randn(2, 5, 24).to(BF16)
    x = packed[:, :, 8:16].transpose(1, 2)
    weight, _ = filters(8, 4, False, BF16, "cpu")
    x2, w2 = wide(x, weight)
    with torch.no_grad():
        near(causal_conv1d_fn(x, weight), causal_conv1d_ref(x2, w2), BF16)
