"""The causal Conv1D of vLLM, SGLang and FLA on hk_causal, against the formulas of libhankel.causal_conv1d, one sequence
at a time. test_causal.py and test_causal_device.py give the fixture `device`."""
import pytest

torch = pytest.importorskip("torch")

from causal_suite import BF16, F32, filters, near, spread, wide  # noqa: E402
from libhankel import HankelError  # noqa: E402
from libhankel.causal_conv1d import causal_conv1d_ref, causal_conv1d_update_ref  # noqa: E402
from libhankel.compat import fla_conv1d, sglang_conv1d, vllm_conv1d  # noqa: E402

BOUNDS = [0, 1, 9, 11, 11, 40]  # one token, several, fewer than the filter has, none, many


def ints(values, device):
    return torch.tensor(values, dtype=torch.int32, device=device)


def packed(x, weight, bias, states, slots, begins, skip, act="silu"):
    """(y, states) of packed sequences x (dim, tokens), by the formula; skipped parts of y are zero."""
    y, states = torch.zeros_like(x, dtype=torch.float64), states.double()
    for s, (a, b) in enumerate(zip(BOUNDS, BOUNDS[1:])):
        if slots[s] == skip or a == b:
            continue
        initial = states[slots[s]][None].clone() if begins[s] else None
        part, states[slots[s]] = causal_conv1d_ref(x[None, :, a:b].double(), weight.double(), bias.double(), initial,
                                                   True, activation=act)
        y[:, a:b] = part[0]
    return y, states


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("width", [2, 4, 7])
def test_packed_prefill(device, dtype, width):
    """vLLM's and SGLang's prefill: pooled states, a mask of those that count, a skipped sequence."""
    torch.manual_seed(1)
    c, slots, begins = 13, [3, 0, 5, 2, 1], [True, True, False, True, False]
    x = spread(1, c, BOUNDS[-1], "slice of last", dtype, device)[0]
    weight, bias = (t.detach() for t in filters(c, width, True, dtype, device))
    states = torch.randn(7, width - 1, c).to(device, dtype).transpose(1, 2)
    want, right = packed(x, weight, bias, states, slots, begins, 0)
    arguments = dict(query_start_loc=ints(BOUNDS, device), cache_indices=ints(slots + [0, 0], device),
                     has_initial_state=torch.tensor(begins, device=device))
    live = [t for s, (a, b) in enumerate(zip(BOUNDS, BOUNDS[1:])) if slots[s] != 0 for t in range(a, b)]
    for fn, more in ((vllm_conv1d.causal_conv1d_fn, dict(null_block_id=0)),
                     (sglang_conv1d.causal_conv1d_fn, dict(pad_slot_id=0, seq_lens_cpu=[1, 8, 2, 0, 29])),
                     (sglang_conv1d.causal_conv1d_fn, dict(pad_slot_id=0))):
        copy = states.clone()
        y = fn(x, weight, bias=bias, conv_states=copy, **arguments, **more)
        near(y[:, live], want[:, live], dtype)
        assert torch.equal(copy.double(), right)
    y, none = vllm_conv1d.causal_conv1d_fn(x, weight, bias, None, ints(BOUNDS, device), activation=None), [False] * 5
    near(y, packed(x, weight, bias, states, range(5), none, -1, None)[0], dtype)


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("layout", ["first", "last"])
def test_in_place_decode(device, tokens, layout):
    """x is overwritten, a skipped sequence's part and slot stay."""
    torch.manual_seed(2)
    n, c, width = 3, 10, 4
    weight, bias = (t.detach() for t in filters(c, width, True, F32, device))
    for name, update, skip in (("vllm", vllm_conv1d.causal_conv1d_update, 0), ("sglang", None, -1)):
        x = spread(n, c, tokens, layout, F32, device)
        states = torch.randn(8, c, width - 1).to(device)
        slots, old = ints([4, skip, 6], device), x.clone()
        after = states[[4, 6]].double()
        want = causal_conv1d_update_ref(x[[0, 2]].double(), after, weight.double(), bias.double(), "silu")
        right = states.clone()
        right[[4, 6]] = after.float()
        if name == "vllm":
            assert update(x, states, weight, bias, "silu", slots) is x
        else:
            sglang_conv1d.causal_conv1d_update_inplace(x, states, weight, bias, True, None, slots, skip)
        near(x[[0, 2]], want, F32)
        assert torch.equal(x[1], old[1]) and torch.equal(states, right)
    out, x = torch.empty(n, c, tokens, device=device), spread(n, c, tokens, layout, F32, device)
    kept = x.clone()
    y = vllm_conv1d.causal_conv1d_update(x, states[1:4].clone(), weight, bias, out=out)
    assert y is out and torch.equal(x, kept)
    with pytest.raises(HankelError, match="out shares memory"):
        vllm_conv1d.causal_conv1d_update(x, states, weight, bias, out=x)


@pytest.mark.parametrize("varlen", [False, True])
def test_speculative_decoding(device, varlen):
    """Drafts of up to 4 tokens, of which some are accepted: each step gives what decoding the accepted text gives."""
    torch.manual_seed(3)
    n, c, width, longest = 3, 6, 4, 4
    weight, bias = (t.detach() for t in filters(c, width, True, F32, device))
    state = torch.zeros(n + 1, c, width - 1 + longest - 1, device=device)
    text = [torch.zeros(c, width - 1, device=device) for _ in range(n)]  # what was accepted so far
    accepted, slots = [1] * n, ints([2, 3, 1], device)
    lengths = [4, 4, 4]
    for turn in range(5):
        drafts = [torch.randn(c, length, device=device) for length in lengths]
        want = [causal_conv1d_ref(torch.cat([t, d], 1)[None], weight, bias, activation="silu")[0][:, t.shape[1]:]
                for t, d in zip(text, drafts)]
        if varlen:
            bounds = [0] + torch.tensor(lengths).cumsum(0).tolist()
            x = torch.cat(drafts, 1).T.contiguous()
            y = vllm_conv1d.causal_conv1d_update(x, state, weight, bias, "silu", slots, ints(accepted, device),
                                                 ints(bounds, device), longest)
            got = [y[a:b].T for a, b in zip(bounds, bounds[1:])]
        else:
            update = vllm_conv1d.causal_conv1d_update if turn % 2 else sglang_conv1d.causal_conv1d_update
            words = dict(num_accepted_tokens=ints(accepted, device)) if turn % 2 else \
                dict(num_accept_tokens=ints(accepted, device))
            got = update(torch.stack(drafts), state, weight, bias, "silu", conv_state_indices=slots, **words)
        for g, w in zip(got, want):
            near(g, w.double(), F32)
        accepted = [1 + (turn + s) % length for s, length in enumerate(lengths)]
        text = [torch.cat([t, d[:, :k]], 1) for t, d, k in zip(text, drafts, accepted)]
        if varlen:
            lengths = [1 + (turn + 2 * s) % longest for s in range(n)]


def test_sglang_operators(device):
    torch.manual_seed(4)
    n, c, t, width = 2, 8, 6, 3
    weight, bias = (t.detach() for t in filters(c, width, True, F32, device))
    x, states = spread(n, c, t, "first", F32, device), torch.randn(n, c, width - 1).to(device)
    want, right = causal_conv1d_ref(x, weight, bias, states, True, activation="silu")
    every = torch.ones(n, dtype=torch.bool, device=device)
    for fn in (sglang_conv1d.causal_conv1d_fwd, sglang_conv1d.causal_conv1d_fwd_cpu):
        y, state = x.clone(), states.clone()
        out = fn(y, sglang_conv1d.causal_conv1d_weight_pack(weight), bias, state, None, None, every, True, -1)
        near(y if out is None else out, want.double(), F32)
        assert torch.equal(state, right)
    longer, counts = torch.randn(n, c, 5).to(device), ints([1, 9], device)
    for ring in (None, counts):
        state, after = longer.clone(), longer.clone()
        y = sglang_conv1d.causal_conv1d_update_cpu(x, state, weight, bias, True, ring, None, -1)
        near(y, causal_conv1d_update_ref(x, after, weight, bias, "silu", ring).double(), F32)
        assert torch.equal(state, after)
    for say, call in (("width between 2 and 4", lambda: sglang_conv1d.causal_conv1d_fwd(
                          x, torch.zeros(c, 5, device=device), None, None, None, None, None, True, -1)),
                      ("Unsupported dtype", lambda: sglang_conv1d.causal_conv1d_fwd(
                          x.int(), weight, None, None, None, None, None, True, -1)),
                      ("must be a bool tensor", lambda: sglang_conv1d.causal_conv1d_fwd(
                          x, weight, None, states, None, None, every.int(), True, -1))):
        with pytest.raises(HankelError, match=say):
            call()


@pytest.mark.parametrize("sequences", ["batch", "packed"])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_fla(device, sequences, states, residual):
    """causal_conv1d of (batch, time, dim) with states of `width` entries, and every gradient."""
    torch.manual_seed(5)
    c, width, bounds = 9, 4, [0, 2, 15, 31]
    n, x = (3, torch.randn(1, 31, 3 * c)[:, :, c:2 * c]) if sequences == "packed" else (2, torch.randn(2, 17, c))
    x = x.to(device).requires_grad_()
    weight, bias = filters(c, width, True, F32, device)
    add = torch.randn_like(x).requires_grad_() if residual else None
    initial = torch.randn(n, c, width).to(device).requires_grad_() if states else None
    cu = torch.tensor(bounds, device=device) if sequences == "packed" else None
    x2, w2, b2, a2, i2 = wide(x, weight, bias, add, initial)
    cuts = [(0, s, slice(a, b)) for s, (a, b) in enumerate(zip(bounds, bounds[1:]))] if cu is not None else \
        [(s, s, slice(None)) for s in range(n)]
    parts, ends = [], []
    for row, s, cut in cuts:
        before = torch.zeros(1, c, width, device=device).double() if i2 is None else i2[s:s + 1]
        part = causal_conv1d_ref(x2[row:row + 1, cut].transpose(1, 2), w2, b2, before[..., 1:], activation="silu")
        parts.append(part.transpose(1, 2))
        ends.append(torch.cat([before, x2[row:row + 1, cut].transpose(1, 2)], -1)[..., -width:])
    want, right = torch.cat(parts, 1 if cu is not None else 0), torch.cat(ends)
    want = want if a2 is None else want + a2
    y, final = fla_conv1d.causal_conv1d(x, weight, bias, add, initial, states, "silu", cu_seqlens=cu,
                                        cu_seqlens_cpu=None if cu is None else cu.cpu())
    near(y, want, F32)
    assert (final is None) != states
    given = [(a, b) for a, b in ((x, x2), (weight, w2), (bias, b2), (add, a2), (initial, i2)) if a is not None]
    up, last = torch.randn_like(want), torch.randn_like(right)
    got = torch.autograd.grad((y, final) if states else y, [a for a, _ in given],
                              (up.float(), last.float()) if states else up.float())
    for g, w in zip(got, torch.autograd.grad((want, right) if states else want, [b for _, b in given],
                                             (up, last) if states else up)):
        near(g, w, F32, "gradient", 4)


def test_fla_layer(device):
    """ShortConvolution: prefill, then single tokens with its cache, as one long call; masks; heads."""
    torch.manual_seed(6)
    layer = fla_conv1d.ShortConvolution(8, 3, bias=True, device=device)
    x, residual = torch.randn(2, 12, 8, device=device), torch.randn(2, 12, 8, device=device)
    with torch.no_grad():
        whole, _ = layer(x, residual)
        y, cache = layer(x[:, :9], residual[:, :9], output_final_state=True)
        parts = [y]
        for i in range(9, 12):
            y, cache = layer(x[:, i:i + 1], residual[:, i:i + 1], cache=cache, output_final_state=True)
            parts.append(y)
        near(torch.cat(parts, 1), whole.double(), F32)
        assert torch.equal(cache, x[:, -3:].transpose(1, 2)) and layer.state_size == 24
        mask = torch.ones(2, 12, device=device)
        mask[0, :4] = 0
        assert torch.equal(layer(x, mask=mask)[0], layer(x * mask[..., None])[0])
        heads, _ = fla_conv1d.causal_conv1d(x.view(2, 12, 2, 4), layer.weight.squeeze(1), layer.bias)
        assert torch.equal(heads.flatten(2), fla_conv1d.causal_conv1d(x, layer.weight.squeeze(1), layer.bias)[0])
        ids = torch.zeros(2, 12, dtype=torch.int32, device=device)
        assert torch.equal(fla_conv1d.fast_causal_conv1d_fn(x, layer.weight.squeeze(1), seq_idx=ids)[0],
                           fla_conv1d.causal_conv1d(x, layer.weight.squeeze(1))[0])


def test_what_is_not_there_is_refused(device):
    x, state, weight = torch.randn(2, 4, device=device), torch.zeros(2, 4, 2, device=device), \
        torch.randn(4, 3, device=device)
    some = ints([0, 0], device)
    for say, call in (
            ("prefix caching", lambda: vllm_conv1d.causal_conv1d_fn(x.T, weight, None, state, ints([0, 2], device),
                                                                    initial_state_idx=some)),
            ("prefix caching", lambda: vllm_conv1d.causal_conv1d_update(x, state, weight, initial_state_idx=some)),
            ("after each token", lambda: sglang_conv1d.causal_conv1d_update(x, state, weight,
                                                                            intermediate_conv_window=state)),
            ("in a tree", lambda: sglang_conv1d.causal_conv1d_update(x, state, weight, retrieve_next_token=some)),
            ("context parallelism", lambda: fla_conv1d.causal_conv1d(x[None], weight, cp_context=object())),
            ("weight is None", lambda: fla_conv1d.causal_conv1d(x[None]))):
        with pytest.raises(HankelError, match=say):
            call()
