"""libhankel.cuda on a CUDA device: torch tensors in and out on their current stream, plans under graph capture. Skipped without a device."""
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

import libhankel as hk  # noqa: E402
from libhankel import cuda  # noqa: E402

LAST, FIRST = torch.channels_last, torch.contiguous_format


def tensors(n, c, h, w, k, r, s, dtype, form, groups=1):
    torch.manual_seed(n * 1000 + c + k)
    x = torch.randn(n, c, h, w, device="cuda").to(dtype).contiguous(memory_format=form)
    f = (torch.randn(k, c // groups, r, s, device="cuda") / (c // groups * r * s) ** 0.5).to(dtype).contiguous(memory_format=form)
    return x, f, torch.randn(k, device="cuda")


def wanted(x, f, bias=None, **keys):
    return torch.nn.functional.conv2d(x.double(), f.double(), bias.double() if bias is not None else None, **keys)


def check(y, want, eps):
    error = (y.double() - want).norm() / want.norm()
    assert y.shape == want.shape and error < eps, f"relative error {error:.2e}"


@pytest.mark.parametrize("form", [LAST, FIRST])
@pytest.mark.parametrize("dtype, eps", [(torch.bfloat16, 5e-3), (torch.float16, 1e-3), (torch.float32, 1e-5)])
@pytest.mark.parametrize("c, k", [(64, 128), (67, 129), (72, 40)])
def test_conv_agrees_with_f64(form, dtype, eps, c, k):
    x, f, b = tensors(2, c, 12, 14, k, 3, 3, dtype, form)
    y = cuda.conv(x, f, b, padding=1)
    assert y.dtype == dtype and y.device == x.device
    check(y, wanted(x, f, b, padding=1), eps)
    check(cuda.conv(x, f, b, stride=2, act="silu"), torch.nn.functional.silu(wanted(x, f, b, stride=2)), eps)


def test_groups_residual_and_out():
    x, f, b = tensors(3, 64, 9, 10, 64, 3, 3, torch.float16, LAST, groups=2)
    c = torch.randn(3, 64, 9, 10, device="cuda").half().contiguous(memory_format=LAST)
    out = torch.empty_like(c)
    y = cuda.conv(x, f, b, padding=1, groups=2, residual=c, out=out)
    assert y is out
    check(y, wanted(x, f, b, padding=1, groups=2) + c.double(), 1e-3)


@pytest.mark.parametrize("c", [64, 67])
def test_work_goes_to_the_current_stream(c):
    x, f, b = tensors(2, c, 30, 30, 64, 3, 3, torch.bfloat16, LAST)
    plan = cuda.Plan(x, f, bias=b, padding=1)
    big = torch.randn(4096, 4096, device="cuda")
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(20):
            big = big @ big * 1e-3
        late.copy_(x)  # the plan must see this, which comes after the products in the same stream alone
        y = plan(late)
    side.synchronize()
    check(y, wanted(x, f, b, padding=1), 5e-3)


@pytest.mark.parametrize("c, form", [(64, LAST), (67, LAST), (64, FIRST)])
def test_plan_under_graph_capture(c, form):
    x, f, b = tensors(2, c, 20, 24, 96, 3, 3, torch.bfloat16, form)
    plan = cuda.Plan(x, f, bias=b, padding=1, act="relu")
    y = plan(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan(x, out=y)
    for seed in range(3):
        torch.manual_seed(seed)
        x.copy_(torch.randn_like(x))
        y.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        check(y, torch.relu(wanted(x, f, b, padding=1)), 5e-3)


def test_refusals_by_name():
    x, f, b = tensors(1, 64, 8, 8, 64, 3, 3, torch.bfloat16, LAST)
    plan = cuda.Plan(x, f, padding=1)
    with pytest.raises(hk.HankelError, match="the plan was made for"):
        plan(x.contiguous())
    with pytest.raises(hk.HankelError, match="lie on the CUDA device"):
        cuda.conv(x.cpu(), f)
    flat = torch.zeros(x.numel() + 1, dtype=x.dtype, device="cuda")[1:].view(1, 8, 8, 64).permute(0, 3, 1, 2)
    with pytest.raises(hk.HankelError, match="16-byte aligned"):
        plan(flat)


@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("groups,c,k", [(32, 32, 32), (1, 64, 72), (4, 16, 8)])
def test_state_over_blocks(layout, groups, c, k):
    """Blocks with a state in place give what the whole causal signal gives."""
    torch.manual_seed(3)
    x = torch.randint(-2, 3, (2, c, 96), device="cuda").to(torch.bfloat16)
    w = torch.randint(-1, 2, (k, c // groups, 4), device="cuda").to(torch.bfloat16)
    want = torch.nn.functional.conv1d(torch.nn.functional.pad(x.float(), (9, 0)), w.float(), dilation=3, groups=groups).to(torch.bfloat16)

    def lay(t):
        return t.contiguous() if layout == "first" else t.transpose(1, 2).contiguous().transpose(1, 2)
    plan, state, got = None, None, []
    for block in x.split(16, dim=2):
        b = lay(block)
        plan = plan or cuda.Plan(b, w, dilation=3, groups=groups, stateful=True)
        state = torch.zeros(plan.state_shape, dtype=b.dtype, device="cuda") if state is None else state
        got.append(plan(b, state=state).clone())
    assert torch.equal(torch.cat(got, dim=2), want)
