"""libhankel.causal_conv1d on torch tensors, against its own formulas in f64. test_causal.py runs this on the CPU,
test_causal_device.py on a CUDA device: each gives the fixture `device`."""
import pytest

torch = pytest.importorskip("torch")

from libhankel import HankelError, _causal  # noqa: E402
from libhankel.causal_conv1d import (causal_conv1d_fn, causal_conv1d_gated, causal_conv1d_ref,  # noqa: E402
                                     causal_conv1d_update, causal_conv1d_update_ref, causal_conv1d_varlen_states,
                                     causal_conv1d_varlen_states_ref)

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
EPS = {F32: 2e-6, F16: 1e-3, BF16: 8e-3}
LAYOUTS = ("first", "last", "slice of first", "slice of last", "every second token", "time in front")


def near(got, want, dtype, what="result", factor=1.0):
    """The norm of the error, beside that of what is right."""
    assert got.shape == want.shape, what
    error = (got.detach().double() - want.detach().double()).norm() / (want.detach().double().norm() + 1e-30)
    assert error <= factor * EPS[dtype], f"{what}: relative error {error:.2e}"


def spread(n, c, t, layout, dtype, device):
    """Random values of (n, c, t) that lie in a certain way."""
    whole = {"first": (n, c, t), "last": (n, t, c), "slice of first": (n, c + 5, t), "slice of last": (n, t, c + 5),
             "every second token": (n, 2 * t, c), "time in front": (t, n, c)}[layout]
    x = torch.randn(*whole).to(device, dtype)
    return {"first": lambda: x, "last": lambda: x.transpose(1, 2), "slice of first": lambda: x[:, 2:c + 2],
            "slice of last": lambda: x[:, :, 3:c + 3].transpose(1, 2),
            "every second token": lambda: x[:, ::2].transpose(1, 2),
            "time in front": lambda: x.permute(1, 2, 0)}[layout]()


def wide(*tensors):
    """f64 copies that take gradients of their own."""
    return [None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in tensors]


def filters(c, width, bias, dtype, device):
    weight = (torch.randn(c, width) / width ** 0.5).to(device, dtype).requires_grad_()
    return weight, torch.randn(c).to(device, dtype).requires_grad_() if bias else None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype, weights", [(F32, F32), (BF16, F32), (F16, F32), (BF16, BF16), (F16, F16), (F32, BF16)])
def test_forward_and_gradients(device, layout, dtype, weights):
    torch.manual_seed(1)
    n, c = 2, 19
    for width, t, bias, act, states in ((4, 37, True, "silu", "both"), (2, 1, False, None, "final"),
                                        (3, 2, True, None, "initial"), (4, 130, False, "swish", "none")):
        x = spread(n, c, t, layout, dtype, device).requires_grad_()
        weight, bias = filters(c, width, bias, weights, device)
        initial = torch.randn(n, c, width - 1).to(device, dtype).requires_grad_() \
            if states in ("initial", "both") else None
        final = states in ("final", "both")
        got = causal_conv1d_fn(x, weight, bias, None, initial, final, activation=act)
        x2, w2, b2, i2 = wide(x, weight, bias, initial)
        want = causal_conv1d_ref(x2, w2, b2, i2, final, activation=act)
        got, want = (got, want) if final else ((got,), (want,))
        assert got[0].dtype == dtype and got[0].stride() == torch.empty_like(x).stride()
        for g, w in zip(got, want):
            near(g, w, dtype)
        if final:
            assert torch.equal(got[1].double(), want[1])
        ups = [torch.randn(w.shape).to(device, dtype) for w in want]
        given = [(a, b) for a, b in ((x, x2), (weight, w2), (bias, b2), (initial, i2)) if a is not None]
        grads = torch.autograd.grad(got, [a for a, _ in given], ups)
        right = torch.autograd.grad(want, [b for _, b in given], [u.double() for u in ups])
        for g, w, (a, _) in zip(grads, right, given):
            assert g.dtype == a.dtype
            near(g, w, a.dtype if a.dtype != F32 else dtype, "gradient", 4)


@pytest.mark.parametrize("width", [1, 2, 5, 7, 8, 31, 128, 256])
@pytest.mark.parametrize("layout", ["first", "last"])
def test_any_width(device, width, layout):
    torch.manual_seed(width)
    n, c, t = 1, 9, 150
    x = spread(n, c, t, layout, F32, device).requires_grad_()
    weight, bias = filters(c, width, True, F32, device)
    initial = None if width == 1 else torch.randn(n, c, width - 1).to(device).requires_grad_()
    x2, w2, b2, i2 = wide(x, weight, bias, initial)
    got, state = causal_conv1d_fn(x, weight, bias, None, initial, True, activation="silu")
    want, right = causal_conv1d_ref(x2, w2, b2, i2, True, activation="silu")
    near(got, want, F32)
    assert torch.equal(state.double(), right)
    up = torch.randn_like(x)
    pairs = [(x, x2), (weight, w2), (bias, b2)] + ([] if initial is None else [(initial, i2)])
    for g, w in zip(torch.autograd.grad(got, [a for a, _ in pairs], up),
                    torch.autograd.grad(want, [b for _, b in pairs], up.double())):
        near(g, w, F32, "gradient", 8)


def by_ids(x, weight, bias, ids, act):
    """Each run of one id on its own; zeros below 0."""
    rows = []
    for row, numbers in zip(x, ids.tolist()):
        parts, begin = [], 0
        for end in range(1, len(numbers) + 1):
            if end == len(numbers) or numbers[end] != numbers[begin]:
                part = causal_conv1d_ref(row[None, :, begin:end], weight, bias, activation=act)
                parts.append(part * 0 if numbers[begin] < 0 else part)
                begin = end
        rows.append(torch.cat(parts, -1))
    return torch.cat(rows)


@pytest.mark.parametrize("layout", ["first", "slice of last"])
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("width", [2, 4, 9])
def test_seq_idx(device, layout, dtype, width):
    torch.manual_seed(2)
    n, c, t = 2, 12, 40
    x = spread(n, c, t, layout, dtype, device).requires_grad_()
    weight, bias = filters(c, width, True, F32, device)
    ids = torch.tensor([[0] * 1 + [1] * 2 + [2] * 20 + [5] * 17, [3] * 30 + [4] * 4 + [-1] * 6]).to(device)
    x2, w2, b2 = wide(x, weight, bias)
    want = by_ids(x2, w2, b2, ids, "silu")
    for numbers in (ids.int(), ids):  # int64 is converted
        got = causal_conv1d_fn(x, weight, bias, seq_idx=numbers, activation="silu")
        near(got, want, dtype)
    up = torch.randn_like(x)
    for g, w in zip(torch.autograd.grad(got, (x, weight, bias), up),
                    torch.autograd.grad(want, (x2, w2, b2), up.double())):
        near(g, w, dtype, "gradient", 4)


@pytest.mark.parametrize("place", ["as x", "dense", "as initial"])
def test_final_states_out(device, place):
    torch.manual_seed(3)
    n, c, t, width = 2, 8, 11, 4
    x = spread(n, c, t, "last", F32, device)
    weight, bias = filters(c, width, True, F32, device)
    initial = torch.randn(n, width - 1, c).to(device).transpose(1, 2) if place != "dense" else \
        torch.randn(n, c, width - 1).to(device)
    out = {"as x": lambda: torch.empty(n, width - 1, c, device=device).transpose(1, 2),
           "dense": lambda: torch.empty(n, c, width - 1, device=device),
           "as initial": lambda: torch.empty(n, c, 2 * (width - 1), device=device)[..., ::2]}[place]()
    before = initial.clone()
    y, state = causal_conv1d_fn(x, weight, bias, initial_states=initial, return_final_states=True, final_states_out=out)
    want, right = causal_conv1d_ref(x, weight, bias, before, True)
    assert state.data_ptr() == out.data_ptr() and torch.equal(out, right) and torch.equal(initial, before)
    near(y, want.double(), F32)


def test_gradients_of_sums_and_of_views(device):
    """y.sum() hands back a gradient whose strides are all zero; a cat one that is a slice."""
    torch.manual_seed(4)
    for layout in ("first", "last"):
        x = spread(2, 6, 9, layout, F32, device).requires_grad_()
        weight, bias = filters(6, 3, True, F32, device)
        x2, w2, b2 = wide(x, weight, bias)
        for loss in (lambda y: y.sum(), lambda y: (torch.cat([y, 2 * y], 1) ** 2).sum(), lambda y: y[..., 1:].mean()):
            got = torch.autograd.grad(loss(causal_conv1d_fn(x, weight, bias, activation="silu")), (x, weight, bias))
            want = torch.autograd.grad(loss(causal_conv1d_ref(x2, w2, b2, activation="silu")), (x2, w2, b2))
            for g, w in zip(got, want):
                near(g, w, F32, "gradient", 4)


def test_second_derivatives_are_refused(device):
    x, (weight, _) = spread(1, 4, 6, "first", F32, device).requires_grad_(), filters(4, 3, False, F32, device)
    dx, = torch.autograd.grad(causal_conv1d_fn(x, weight).pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_state_gradients_alone(device):
    """Only the final states reach the loss; and a sequence that is shorter than its state hands some of it on."""
    torch.manual_seed(5)
    x, weight, _ = spread(2, 5, 2, "first", F32, device).requires_grad_(), *filters(5, 6, False, F32, device)
    initial = torch.randn(2, 5, 5).to(device).requires_grad_()
    up = torch.randn(2, 5, 5).to(device)
    _, state = causal_conv1d_fn(x, weight, initial_states=initial, return_final_states=True)
    dx, dinitial = torch.autograd.grad(state, (x, initial), up)
    assert torch.equal(dx, up[..., 3:])
    assert torch.equal(dinitial[..., 2:], up[..., :3]) and not dinitial[..., :2].any()


def test_gradients_are_the_same_bits(device):
    torch.manual_seed(6)
    x = spread(3, 70, 200, "last", BF16, device).requires_grad_()
    weight, bias = filters(70, 4, True, F32, device)
    up = torch.randn_like(x)
    runs = [torch.autograd.grad(causal_conv1d_fn(x, weight, bias, activation="silu"), (x, weight, bias), up)
            for _ in range(3)]
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0]))


@pytest.mark.parametrize("dtype, weights", [(F32, F32), (BF16, F32), (F16, F16)])
@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("longer", [0, 3])
@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_update(device, dtype, weights, layout, longer, ring, pooled):
    torch.manual_seed(7)
    n, c = 3, 21
    for width, t in ((4, 1), (2, 3), (3, 9), (7, 2), (1, 2)):
        entries = width - 1 + longer
        if entries == 0 and (ring or pooled):
            continue
        x = spread(n, c, t, layout, dtype, device)
        weight, bias = filters(c, width, True, weights, device)
        state = spread(9 if pooled else n, c, entries, layout, dtype, device)
        slots, rows = (torch.tensor([5, -1, 2]), [0, 2]) if pooled else (None, [0, 1, 2])
        counts = torch.tensor([0, 1000, 5]) if ring else None
        used = rows if slots is None else slots[rows].tolist()
        right, after = state.clone(), state[used].double()
        want = causal_conv1d_update_ref(x[rows].double(), after, weight.double(), bias.double(), "silu",
                                        None if counts is None else counts[rows].to(device))
        right[used] = after.to(dtype)
        with torch.no_grad():
            got = causal_conv1d_update(x, state, weight, bias, "silu",
                                       None if counts is None else counts.int().to(device),
                                       None if slots is None else slots.int().to(device))
        near(got[rows], want, dtype)
        assert torch.equal(state, right) and got.dtype == dtype
        assert not pooled or not got[1].any()
        if t == 1 and not pooled and not ring:
            flat = causal_conv1d_update(x[..., 0], state, weight, bias)  # (batch, dim)
            assert torch.equal(flat, causal_conv1d_update(x, right, weight, bias)[..., 0]) and torch.equal(state, right)


def test_decode_continues_prefill(device):
    """Chunks and single tokens with a carried state give what one call gives."""
    torch.manual_seed(8)
    n, c, t, width = 2, 17, 50, 4
    x = spread(n, c, t, "last", F32, device)
    weight, bias = filters(c, width, True, F32, device)
    with torch.no_grad():
        whole = causal_conv1d_fn(x, weight, bias, activation="silu")
        first, state = causal_conv1d_fn(x[..., :20], weight, bias, return_final_states=True, activation="silu")
        second, state = causal_conv1d_fn(x[..., 20:22], weight, bias, None, state, True, activation="silu")
        parts = [first, second] + [causal_conv1d_update(x[..., i:i + 1], state, weight, bias, "silu")
                                   for i in range(22, t)]
    near(torch.cat(parts, -1), whole.double(), F32)


@pytest.mark.parametrize("state_len", [1, 5, 20])
def test_varlen_states(device, state_len):
    torch.manual_seed(9)
    for dtype in (F32, BF16):
        x = torch.randn(30, 7).to(device, dtype)
        bounds = torch.tensor([0, 1, 3, 3, 18, 30], device=device)
        got = causal_conv1d_varlen_states(x, bounds, state_len)
        assert torch.equal(got, causal_conv1d_varlen_states_ref(x, bounds, state_len))
        assert torch.equal(got, causal_conv1d_varlen_states(x, bounds.int(), state_len))


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("layout", ["first", "slice of last"])
@pytest.mark.parametrize("dilation", [1, 3])
def test_gates(device, dtype, layout, dilation):
    """post * act(bias + conv(pre * x)) + residual, each part in a layout of its own; and which parts are there."""
    torch.manual_seed(10)
    n, c, t, width = 2, 14, 25, 3
    x, pre, post, residual = (spread(n, c, t, how, dtype, device) for how in (layout, "last", "first", layout))
    weight, bias = (t.detach() for t in filters(c, width, True, F32, device))
    spaced = torch.zeros(c, dilation * (width - 1) + 1, dtype=torch.float64, device=device)
    spaced[:, ::dilation] = weight
    initial = torch.randn(n, c, dilation * (width - 1)).to(device, dtype)
    for parts in ("pre post residual", "pre post", "residual", ""):
        used = {name: value for name, value in (("pre", pre), ("post", post), ("residual", residual)) if name in parts}
        for act, formula in (("silu", torch.nn.functional.silu), (None, lambda v: v), ("tanh", torch.tanh)):
            u = x.double() * used["pre"].double() if "pre" in used else x.double()
            want, state = causal_conv1d_ref(u, spaced, bias.double(), initial.double(), True)
            want = formula(want) * used.get("post", torch.ones(1, device=device)).double()
            want = want + used.get("residual", torch.zeros(1, device=device)).double()
            got, final = causal_conv1d_gated(x, weight, bias, **used, initial_states=initial, return_final_states=True,
                                             dilation=dilation, activation=act)
            near(got, want, dtype, parts)
            near(final, state, dtype, "state")
    with pytest.raises(HankelError, match="requires a gradient"):
        causal_conv1d_gated(x.detach().requires_grad_(), weight)
    with pytest.raises(NotImplementedError, match="activation is 'prelu'"):
        causal_conv1d_gated(x, weight, activation="prelu")


def test_nothing_to_do(device):
    weight, bias = filters(4, 3, True, F32, device)
    for shape in ((0, 4, 5), (2, 4, 0)):
        x = torch.randn(*shape, device=device, requires_grad=True)
        initial = torch.randn(shape[0], 4, 2, device=device, requires_grad=True)
        y, state = causal_conv1d_fn(x, weight, bias, None, initial, True)
        assert y.shape == shape and torch.equal(state, initial)
        (y.sum() + state.sum()).backward()
        assert x.grad.shape == shape and torch.equal(initial.grad, torch.ones_like(initial))


def test_refusals_say_what_is_wrong(device):
    x, (weight, bias) = torch.randn(2, 4, 5, device=device), filters(4, 3, True, F32, device)
    state = torch.zeros(2, 4, 2, device=device)
    with torch.no_grad():
        for say, call in (
                (r"weight has shape \(5, 3\)", lambda: causal_conv1d_fn(x, torch.zeros(5, 3, device=device))),
                ("bias has shape", lambda: causal_conv1d_fn(x, weight, torch.zeros(3, device=device))),
                ("weight's type", lambda: causal_conv1d_fn(x, weight, bias.half())),
                ("elements of f64", lambda: causal_conv1d_fn(x.double(), weight)),
                ("elements of torch.int64", lambda: causal_conv1d_fn(x.long(), weight)),
                ("initial_states has shape", lambda: causal_conv1d_fn(x, weight, initial_states=x)),
                ("seq_idx is given together", lambda: causal_conv1d_fn(x, weight, None, x[:, 0].int(), state)),
                (r"ids has shape", lambda: causal_conv1d_fn(x, weight, seq_idx=torch.zeros(2, 4, device=device))),
                ("strides of zero only", lambda: causal_conv1d_fn(x[:1, :1, :1].expand(2, 4, 5), weight)),
                ("state_in has 1 entries", lambda: causal_conv1d_update(x, state[..., :1], weight)),
                ("give conv_state_indices", lambda: causal_conv1d_update(x, state[:1], weight)),
                ("window", lambda: causal_conv1d_fn(x, torch.zeros(4, 257, device=device)))):
            with pytest.raises(HankelError, match=say):
                call()
    with pytest.raises(NotImplementedError, match="None, silu or swish"):
        causal_conv1d_fn(x, weight, activation="gelu")


def test_handles_are_kept_and_bounded(device, monkeypatch):
    weight, _ = filters(4, 3, False, F32, device)
    _causal.forget()
    monkeypatch.setattr(_causal, "KEPT", 3)
    with torch.no_grad():
        for t in (3, 4, 5, 3, 6, 3):
            causal_conv1d_fn(torch.ones(1, 4, t, device=device), weight)
        assert len(_causal._handles) == 3
        kept = {key: handle.pointer for key, handle in _causal._handles.items()}
        causal_conv1d_fn(torch.zeros(1, 4, 3, device=device), weight)
        assert {key: handle.pointer for key, handle in _causal._handles.items()} == kept
