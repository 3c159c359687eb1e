"""torch tensors on a CUDA device: tensors in and out on their current stream, every function that numpy arrays have,
plans under graph capture. Skipped without a device."""
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

import libhankel as hk  # noqa: E402
from libhankel import cuda  # noqa: E402

F = torch.nn.functional
LAST, FIRST = torch.channels_last, torch.contiguous_format


def tensors(n, c, h, w, k, r, s, dtype, form, groups=1):
    torch.manual_seed(n * 1000 + c + k)
    x = torch.randn(n, c, h, w, device="cuda").to(dtype).contiguous(memory_format=form)
    f = torch.randn(k, c // groups, r, s, device="cuda") / (c // groups * r * s) ** 0.5
    return x, f.to(dtype).contiguous(memory_format=form), torch.randn(k, device="cuda")


def ints(*shape, dtype=torch.bfloat16):
    return torch.randint(-2, 3, shape, device="cuda").to(dtype)


def wanted(x, f, bias=None, **keys):
    return F.conv2d(x.double(), f.double(), bias.double() if bias is not None else None, **keys)


def check(y, want, eps):
    error = (y.double() - want).norm() / want.norm()
    assert y.shape == want.shape and error < eps, f"relative error {error:.2e}"


@pytest.mark.parametrize("form", [LAST, FIRST])
@pytest.mark.parametrize("dtype, eps", [(torch.bfloat16, 5e-3), (torch.float16, 1e-3), (torch.float32, 1e-5)])
@pytest.mark.parametrize("c, k", [(64, 128), (67, 129), (72, 40)])
def test_conv_agrees_with_f64(form, dtype, eps, c, k):
    x, f, b = tensors(2, c, 12, 14, k, 3, 3, dtype, form)
    for y in (cuda.conv(x, f, b, padding=1), hk.conv2d(x, f, b, padding=1), hk.plan(x, f, padding=1, bias=b)(x)):
        assert y.dtype == dtype and y.device == x.device and y.is_contiguous(memory_format=form)
        check(y, wanted(x, f, b, padding=1), eps)
    check(hk.conv2d(x, f, b.to(dtype), stride=2, act="silu"), F.silu(wanted(x, f, b.to(dtype), stride=2)), eps)


def test_groups_residual_and_out():
    x, f, b = tensors(3, 64, 9, 10, 64, 3, 3, torch.float16, LAST, groups=2)
    c = torch.randn(3, 64, 9, 10, device="cuda").half().contiguous(memory_format=LAST)
    out = torch.empty_like(c)
    y = cuda.conv(x, f, b, padding=1, groups=2, residual=c, out=out)
    assert y is out
    check(y, wanted(x, f, b, padding=1, groups=2) + c.double(), 1e-3)


def test_epilogues_are_kept():
    """Order, beta, gates, scale: small integers, so that bf16 is exact."""
    x, w, c, b = ints(1, 4, 9), ints(8, 4, 3), ints(1, 8, 7), ints(8, dtype=torch.float32)
    acc = F.conv1d(x.float(), w.float())
    for act, want in (("presum:0.5+relu", torch.relu(acc + 0.5 * c.float())),
                      ("relu+sum:0.5", torch.relu(acc) + 0.5 * c.float()), ("sum:2", acc + 2 * c.float())):
        assert torch.equal(cuda.Plan(x, w, act=act)(x, residual=c), want.bfloat16()), act
        assert torch.equal(hk.conv1d(x, w, act=act, residual=c), want.bfloat16()), act
    gated = torch.relu(acc[:, :4]) * torch.relu(acc[:, 4:])
    assert torch.equal(cuda.Plan(x, w, act="gated:relu:relu")(x), gated.bfloat16())
    got = hk.conv1d(x, w, b, scale=2.0, residual=c, beta=2, residual_order="before", act="relu")
    assert torch.equal(got, torch.relu(2 * acc + b[:, None] + 2 * c.float()).bfloat16())
    with pytest.raises(ValueError, match="has a bias and bias is None"):
        cuda.Plan(x, w, act="bias+relu")


CALLS = {
    "asymmetric padding": (hk.conv, (2, 4, 9, 8), (6, 4, 3, 3), dict(padding=[(2, 0), (1, 3)], window_strides=(2, 1))),
    "input dilation": (hk.conv, (2, 4, 9, 8), (6, 4, 3, 3), dict(lhs_dilation=(2, 3), rhs_dilation=2, padding=2)),
    "batch groups": (hk.conv, (4, 4, 9), (6, 4, 3), dict(batch_group_count=2)),
    "dimension numbers": (hk.conv, (2, 9, 8, 4), (3, 3, 4, 6), dict(dimension_numbers=("NHWC", "HWIO", "NHWC"))),
    "transpose": (hk.conv_transpose2d, (2, 6, 5, 4), (6, 3, 3, 3), dict(stride=2, output_padding=1)),
    "depthwise": (hk.depthwise_conv1d, (2, 3, 20), (3, 4), {}),
    "input gradient": (hk.conv_grad_input, (2, 6, 7, 6), (6, 4, 3, 3), dict(x_shape=(2, 4, 9, 8))),
    "filter gradient": (hk.conv_grad_filter, (2, 4, 9, 8), (2, 6, 7, 6), dict(f_shape=(6, 4, 3, 3))),
    "without a batch": (hk.conv2d, (4, 9, 8), (6, 4, 3, 3), dict(padding=1)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", list(CALLS))
def test_same_as_on_the_cpu(name, dtype):
    function, x, f, words = CALLS[name]
    x, f = ints(*x, dtype=dtype), ints(*f, dtype=dtype)
    got, want = function(x, f, **words), function(x.cpu(), f.cpu(), **words)
    assert got.device == x.device and got.dtype == want.dtype and torch.equal(got.cpu(), want)


def test_int8_and_bias_gradient():
    x, w, b = ints(2, 16, 9, dtype=torch.int8), ints(8, 16, 3, dtype=torch.int8), ints(8, dtype=torch.int32)
    got = hk.conv1d(x, w, b, x_zero=1, f_zero=list(range(4)) * 2)
    assert torch.equal(got.cpu(), hk.conv1d(x.cpu(), w.cpu(), b.cpu(), x_zero=1, f_zero=list(range(4)) * 2))
    dy = ints(2, 6, 5, 4)
    assert torch.equal(hk.conv_grad_bias(dy), dy.float().sum((0, 2, 3)))


def test_a_function_of_the_callers_own():
    x, w = ints(2, 64, 9, 8), ints(64, 64, 3, 3)
    source = "float hk_user(hk_at at, float v, const void *user) { return v * 2 + ((const float *)user)[0]; }"
    three = torch.full((1,), 3.0, device="cuda")
    try:
        got = hk.conv2d(x, w, act=hk.Function(cuda=source), user=three, out_dtype="f32")
    except hk.HankelError as error:
        if "nvrtc" in error.message:
            pytest.skip(error.message)
        raise
    assert torch.equal(got, (F.conv2d(x.float(), w.float()) * 2 + 3))


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
    with pytest.raises(ValueError, match="f lies on the host and x on CUDA device 0"):
        hk.conv(x, f.cpu())
    flat = torch.zeros(x.numel() + 1, dtype=x.dtype, device="cuda")[1:].view(1, 8, 8, 64).permute(0, 3, 1, 2)
    with pytest.raises(hk.HankelError, match="16-byte aligned"):
        plan(flat)
    assert hk.conv2d(flat, f, padding=1).shape == x.shape  # its own plan counts on less


@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("groups,c,k", [(32, 32, 32), (1, 64, 72), (4, 16, 8)])
def test_state_over_blocks(layout, groups, c, k):
    """Blocks with a state in place give what the whole causal signal gives."""
    torch.manual_seed(3)
    x, w = ints(2, c, 96), torch.randint(-1, 2, (k, c // groups, 4), device="cuda").to(torch.bfloat16)
    want = F.conv1d(F.pad(x.float(), (9, 0)), w.float(), dilation=3, groups=groups).to(torch.bfloat16)

    def lay(t):
        return t.contiguous() if layout == "first" else t.transpose(1, 2).contiguous().transpose(1, 2)
    plan, state, got = None, None, []
    for block in x.split(16, dim=2):
        b = lay(block)
        plan = plan or cuda.Plan(b, w, dilation=3, groups=groups, stateful=True)
        state = torch.zeros(plan.state_shape, dtype=b.dtype, device="cuda") if state is None else state
        got.append(plan(b, state=state).clone())
    assert torch.equal(torch.cat(got, dim=2), want)


def test_compat_entry_points():
    img, taps = ints(1, 64, 1, 40), ints(64, 1, 1, 5)
    want = F.conv2d(img.float(), taps.float(), groups=64)
    got = hk.compat.depthwise_conv1d_implicit_gemm(img, taps, feature_group_count=64)
    assert got.device == img.device and torch.equal(got, want.bfloat16())
    assert torch.equal(hk.compat.depthwise_conv1d_plan(img, taps, feature_group_count=64)(img), want.bfloat16())
    kernel, symbols = hk.compat.get_igemm_conv2d("nhwc_hwcf", 2, 12, 13, 64, 3, 2, 128, 1, "f16", "f32")
    x, we = ints(2, 12, 13, 64, dtype=torch.float16), ints(3, 2, 64, 128, dtype=torch.float16)
    out = torch.zeros(2, 10, 12, 128, device="cuda")
    assert kernel(x, we, out) is out and kernel.plan.device == "cuda"
    want = F.conv2d(x.permute(0, 3, 1, 2).float(), we.permute(3, 2, 0, 1).float()).permute(0, 2, 3, 1)
    assert torch.equal(out, want)
    knobs = dict(word.split("=") for word in kernel.plan.decision.split() if "=" in word)
    assert symbols.get("BLOCK_M") == (int(knobs["bm"]) if "bm" in knobs else None)
