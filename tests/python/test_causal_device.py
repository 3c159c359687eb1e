"""libhankel.causal_conv1d on a CUDA device: causal_suite.py there, graph capture, streams. Skipped without a device."""
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from causal_compat_suite import *  # noqa: E402,F401,F403
from causal_suite import *  # noqa: E402,F401,F403
from causal_suite import BF16, filters, near, spread, wide  # noqa: E402

from libhankel.causal_conv1d import causal_conv1d_fn, causal_conv1d_ref, causal_conv1d_update  # noqa: E402


@pytest.fixture
def device():
    return "cuda"


def test_decode_under_graph_capture(device):
    """A captured step replays with new tokens, and moves the state on each time."""
    torch.manual_seed(1)
    n, c, width = 4, 128, 4
    weight, bias = (t.detach() for t in filters(c, width, True, BF16, device))
    x, state = torch.randn(n, c, device=device).to(BF16), torch.randn(n, c, width - 1, device=device).to(BF16)
    copy = state.clone()
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        causal_conv1d_update(x, state.clone(), weight, bias, "silu")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = causal_conv1d_update(x, state, weight, bias, "silu")
    for _ in range(5):
        x.copy_(torch.randn(n, c, device=device))
        graph.replay()
        assert torch.equal(y, causal_conv1d_update(x, copy, weight, bias, "silu")) and torch.equal(state, copy)


def test_current_stream_is_used(device):
    torch.manual_seed(2)
    x, (weight, bias) = spread(2, 512, 4096, "last", BF16, device), filters(512, 4, True, BF16, device)
    x2, w2, b2 = wide(x, weight, bias)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        y = causal_conv1d_fn(x * 2, weight, bias, activation="silu")
        z = y + 0
    torch.cuda.current_stream().wait_stream(side)
    near(z, causal_conv1d_ref(2 * x2, w2, b2, activation="silu"), BF16)


@pytest.mark.parametrize("n, c, t, width", [(2, 4096 + 32, 2048, 4), (1, 8192, 1000, 3), (3, 100, 5000, 31)])
@pytest.mark.parametrize("layout", ["first", "last", "slice of last"])
def test_large(device, n, c, t, width, layout):
    torch.manual_seed(3)
    x = spread(n, c, t, layout, BF16, device).requires_grad_()
    weight, bias = filters(c, width, True, torch.float32, device)
    x2, w2, b2 = wide(x, weight, bias)
    got, want = (f(*a, activation="silu") for f, a in ((causal_conv1d_fn, (x, weight, bias)),
                                                       (causal_conv1d_ref, (x2, w2, b2))))
    near(got, want, BF16)
    up = torch.randn_like(x)
    for g, w in zip(torch.autograd.grad(got, (x, weight, bias), up),
                    torch.autograd.grad(want, (x2, w2, b2), up.double())):
        near(g, w, BF16, "gradient")


def test_compiled_by_inductor(device):
    """A training step in one graph, with operators of torch's own around the convolution."""
    pytest.importorskip("triton")
    if not hasattr(torch.library, "register_autograd"):
        pytest.skip("torch is older than 2.4: no fake kernels, no torch.compile")
    torch.manual_seed(4)
    x, (weight, bias) = spread(2, 64, 100, "slice of last", BF16, device).requires_grad_(), \
        filters(64, 4, True, torch.float32, device)

    def loss(x, weight, bias):
        y, state = causal_conv1d_fn(x * 2, weight, bias, return_final_states=True, activation="silu")
        return (y.float() ** 2).sum() + state.float().sum()
    got = torch.autograd.grad(torch.compile(loss, fullgraph=True)(x, weight, bias), (x, weight, bias))
    for g, w in zip(got, torch.autograd.grad(loss(x, weight, bias), (x, weight, bias))):
        near(g, w, BF16)
