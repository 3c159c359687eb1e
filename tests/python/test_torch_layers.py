"""libhankel.torch: functions, gradients, modules, operators and optimize(), against torch's own."""
import pickle

import pytest

torch = pytest.importorskip("torch")
import libhankel.torch as ht  # noqa: E402
from libhankel import HankelError  # noqa: E402
from libhankel.torch import Fused, ops  # noqa: E402

F, nn = torch.nn.functional, torch.nn
OURS = {1: ht.conv1d, 2: ht.conv2d, 3: ht.conv3d}
THEIRS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
OURS_T = {1: ht.conv_transpose1d, 2: ht.conv_transpose2d, 3: ht.conv_transpose3d}
THEIRS_T = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
compiled = pytest.mark.skipif(not ops.register(), reason="this torch has no fake kernels for operators")


def ints(*shape, dtype=torch.float32, low=-3, high=4):
    return torch.randint(low, high, shape).to(dtype)


def draw(seed):
    """(rank, tensors x, weight, bias, keywords, transposed) of a random convolution."""
    generator = torch.Generator().manual_seed(seed)

    def pick(*values):
        return values[int(torch.randint(len(values), (1,), generator=generator))]
    torch.manual_seed(seed)
    rank, groups, transposed = pick(1, 2, 3), pick(1, 1, 2, 3), pick(False, True)
    size, window = [pick(5, 6, 7, 8, 9) for _ in range(rank)], [pick(1, 2, 3) for _ in range(rank)]
    stride, dilation = [pick(1, 2, 3) for _ in range(rank)], [pick(1, 1, 2) for _ in range(rank)]
    padding = [min(pick(0, 1, 2), d * (w - 1)) for d, w in zip(dilation, window)]
    c, k = groups * pick(1, 2, 4), groups * pick(1, 3, 4)
    words = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    if transposed:
        words["output_padding"] = [pick(*range(max(s, d))) for s, d in zip(stride, dilation)]
    x = ints(pick(1, 2, 3), c, *size)
    if pick(False, True):
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)
    weight = ints(*((c, k // groups) if transposed else (k, c // groups)), *window)
    return rank, x, weight, ints(k) if pick(False, True) else None, words, transposed


def gradients(function, x, weight, bias, dy, words):
    leaves = [None if t is None else t.detach().clone().requires_grad_() for t in (x, weight, bias)]
    y = function(*leaves, **words)
    return [y] + list(torch.autograd.grad(y, [t for t in leaves if t is not None], dy))


@pytest.mark.parametrize("seed", range(120))
def test_like_torch(seed):
    """Integers: forward and all gradients are equal to the bit, and a second call says the same."""
    rank, x, weight, bias, words, transposed = draw(seed)
    ours, theirs = (OURS_T if transposed else OURS)[rank], (THEIRS_T if transposed else THEIRS)[rank]
    want = theirs(x, weight, bias, **words)
    for _ in range(2):
        y = ours(x, weight, bias, **words)
        assert torch.equal(y, want) and y.dtype == want.dtype
        dy = ints(*want.shape)
        for got, expected in zip(gradients(ours, x, weight, bias, dy, words),
                                 gradients(theirs, x, weight, bias, dy, words)):
            assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_types(dtype):
    x, w, b = ints(2, 4, 7, 6, low=-1, high=2), ints(6, 4, 3, 3, low=-1, high=2), ints(6)
    want = F.conv2d(x, w, b, padding=1)
    y = ht.conv2d(x.to(dtype), w.to(dtype), b.to(dtype), padding=1)
    assert y.dtype is dtype and torch.equal(y.float(), want)
    dy = ints(*want.shape, low=-1, high=2)
    got = gradients(ht.conv2d, x.to(dtype), w.to(dtype), b.to(dtype), dy.to(dtype), {"padding": 1})
    for g, e in zip(got, gradients(F.conv2d, x, w, b, dy, {"padding": 1})):
        assert g.dtype is dtype and torch.equal(g.float(), e.to(dtype).float())


def test_gradcheck():
    torch.manual_seed(1)
    for transposed in (False, True):
        x = torch.randn(2, 4, 6, 5, dtype=torch.float64, requires_grad=True)
        w = torch.randn(4, 2, 3, 2, dtype=torch.float64, requires_grad=True)
        b = torch.randn(4, dtype=torch.float64, requires_grad=True)
        function = ht.conv_transpose2d if transposed else ht.conv2d
        assert torch.autograd.gradcheck(lambda *a: function(*a, stride=(2, 1), padding=1, groups=2), (x, w, b))


@pytest.mark.parametrize("act", ["relu", "silu", "gelu", "tanh", "hardswish", ("leaky", 0.1), ("clip", -1.0, 2.0)])
def test_act_and_residual(act):
    """Fused without gradients, torch's own behind the convolution with them: both say the same."""
    torch.manual_seed(2)
    x, w, b, r = torch.randn(2, 4, 9), torch.randn(6, 4, 3), torch.randn(6), torch.randn(2, 6, 9)
    fused = ht.conv1d(x, w, b, padding=1, act=act, residual=r)
    flowing = ht.conv1d(x, w.requires_grad_(), b, padding=1, act=act, residual=r.requires_grad_())
    torch.testing.assert_close(fused, flowing.detach(), atol=1e-5, rtol=1e-5)
    flowing.sum().backward()
    assert w.grad is not None and r.grad is not None


def test_same_padding_and_no_batch():
    x, w = ints(4, 9, 8), ints(6, 4, 4, 3)
    assert torch.equal(ht.conv2d(x, w, padding="same", dilation=(1, 2)),
                       F.conv2d(x[None], w, padding="same", dilation=(1, 2))[0])
    for bad in (lambda: ht.conv2d(x, w, padding="same", stride=2), lambda: ht.conv2d(x, w.double()),
                lambda: ht.conv2d(x[0], w), lambda: ht.conv2d(x, w, stride=1.5),
                lambda: ht.conv2d(x, w.requires_grad_(), act=("hardtanh", -1, 1))):
        with pytest.raises(HankelError):
            bad()


def test_autocast():
    x, w = ints(2, 4, 9), ints(6, 4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        y = ht.conv1d(x, w)
    assert y.dtype is torch.bfloat16 and torch.equal(y.float(), F.conv1d(x, w).bfloat16().float())


@pytest.mark.parametrize("name, arguments", [
    ("Conv1d", (4, 6, 3)), ("Conv2d", (4, 6, 3, 2, 1)), ("Conv3d", (4, 6, 2)), ("ConvTranspose1d", (4, 6, 3, 2)),
    ("ConvTranspose2d", (4, 6, 3, 2, 1, 1)), ("ConvTranspose3d", (4, 6, 2))])
def test_modules(name, arguments):
    """The same state_dict as torch's module, the same results and gradients; act is fused."""
    torch.manual_seed(3)
    theirs, ours = getattr(nn, name)(*arguments), getattr(ht, name)(*arguments, act="relu")
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 4, *(6,) * (theirs.weight.dim() - 2))
    for module in (ours, theirs):
        y = module(x)
        (torch.relu(y) if module is theirs else y).square().sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad, atol=1e-3, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), torch.relu(theirs(x)), atol=1e-5, rtol=1e-5)
    assert "act='relu'" in repr(ours)


def test_padding_modes():
    torch.manual_seed(4)
    ours = ht.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
    theirs = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(1, 3, 6, 6)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)


class Block(nn.Module):
    """A residual block with everything that optimize() looks for, and some things that it must leave alone."""

    def __init__(self, in_place=False):
        super().__init__()
        self.a, self.na = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.b, self.nb = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4, affine=False)
        self.twice, self.wide = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.act, self.in_place = nn.ReLU(inplace=True), in_place

    def forward(self, x):
        y = self.act(self.na(self.a(x)))
        y = self.nb(self.b(y))
        y += x
        y = self.act(y)
        z = self.wide(y)
        if self.in_place:
            y.mul_(2.0)  # before wide's sum: wide may not move behind it
        y = F.silu(z + y.mean((2, 3), keepdim=True))
        return self.up(self.twice(self.twice(y)))


def trained(model):
    """A model with batch norms that do something, in eval mode."""
    torch.manual_seed(5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(), module.running_var.uniform_(0.5, 2.0)
            if module.affine:
                nn.init.normal_(module.weight), nn.init.normal_(module.bias)
    return model.eval()


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_optimize(in_place, last, capsys):
    model, x = trained(Block(in_place)), torch.randn(2, 4, 8, 8)
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    fast = ht.optimize(model, x)
    table = capsys.readouterr().out
    assert "norm+residual+relu" in table and "norm+relu" in table and "kernel=" in table
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x), atol=1e-4, rtol=1e-4)
    assert type(fast.twice) is nn.Conv2d and type(fast.up) is nn.ConvTranspose2d and type(fast.a) is Fused
    assert type(model.a) is nn.Conv2d  # the model itself is as it was


def test_optimize_follows_the_weights():
    """Both ways: new weights are packed again, and the same ones are not."""
    model, x = trained(Block()), torch.randn(1, 4, 8, 8)
    fast = ht.optimize(model, verbose=False)
    with torch.no_grad():
        fast(x)
        kept = fast.a.plan(x)
        assert fast.a.plan(x) is kept
        for change in (lambda: model.a.weight.mul_(2.0), lambda: model.nb.running_mean.add_(1.0),
                       lambda: model.load_state_dict(trained(Block()).state_dict())):
            change()
            torch.testing.assert_close(fast(x), model(x), atol=1e-4, rtol=1e-4)
        assert fast.a.plan(x) is not kept
    y = fast(x.requires_grad_())  # gradients flow through torch's modules
    y.sum().backward()
    assert x.grad is not None
    again = pickle.loads(pickle.dumps(fast.a))
    with torch.no_grad():
        assert torch.equal(again(x.detach()), fast.a(x.detach()))


def test_optimize_of_what_cannot_be_traced(capsys):
    class Forks(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(2, 3, 3)

        def forward(self, x):
            return self.conv(x) if x.sum() > 0 else -self.conv(x)
    model, x = Forks().eval(), torch.randn(1, 2, 9)
    fast = ht.optimize(model, x, measure=True)
    assert "not traced" in capsys.readouterr().out and type(fast.conv) is Fused
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), atol=1e-5, rtol=1e-5)
    with pytest.raises(HankelError, match="training mode"):
        ht.optimize(model.train())


@compiled
def test_opcheck():
    torch.manual_seed(6)
    spec = ([2, 1], [1, 0], [1, 1], [1, 2], False, [0, 0], 2)
    for last in (False, True):
        x = torch.randn(2, 4, 8, 8, requires_grad=True)
        if last:
            x = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_()
        w, b = torch.randn(6, 2, 3, 3, requires_grad=True), torch.randn(6, requires_grad=True)
        torch.library.opcheck(torch.ops.libhankel.conv.default, (x, w, b, None, "", *spec))
        y = torch.ops.libhankel.conv(x, w, b, None, "", *spec).detach()
        torch.library.opcheck(torch.ops.libhankel.conv_gradient.default,
                              (torch.randn_like(y), x.detach(), w.detach(), [True, True, True], *spec))
        torch.library.opcheck(torch.ops.libhankel.conv.default,
                              (x.detach(), w.detach(), b.detach(), torch.randn_like(y), "relu", *spec))
    transposed = ([2, 2], [1, 1], [1, 1], [1, 1], True, [1, 0], 1)
    x, w = torch.randn(2, 4, 5, 6, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.libhankel.conv.default, (x, w, None, None, "", *transposed))


@compiled
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    torch.manual_seed(7)
    net = nn.Sequential(ht.Conv2d(3, 8, 3, padding=1, act="relu"), ht.Conv2d(8, 8, 3, padding=1, groups=4, act="silu"),
                        ht.ConvTranspose2d(8, 4, 2, 2))
    fast = torch.compile(net, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (2, 3):
        x = torch.randn(n, 3, 8, 8)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), net(x))
        got = torch.autograd.grad(fast(x).square().sum(), list(net.parameters()))
        want = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
        for g, w in zip(got, want):
            torch.testing.assert_close(g, w, atol=1e-4, rtol=1e-4)


@compiled
def test_compile_of_an_optimized_model():
    """Convolutions stay hankel's, the rest is the compiler's; weights are looked at when it runs."""
    model, x = trained(Block()), torch.randn(2, 4, 8, 8)
    fast = ht.optimize(model, verbose=False)
    both = torch.compile(fast, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(both(x), model(x), atol=1e-4, rtol=1e-4)
        model.a.weight.mul_(2.0)
        torch.testing.assert_close(both(x), model(x), atol=1e-4, rtol=1e-4)
        torch.library.opcheck(torch.ops.libhankel.fused.default, (x, None, fast.a.number))
        with pytest.raises(HankelError, match="which is gone"):
            torch.ops.libhankel.fused(x, None, 10 ** 9)


@compiled
def test_export():
    net = ht.Conv2d(3, 8, 3, padding=1, act="relu").eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        exported = torch.export.export(net, (x,))
        assert "libhankel.conv" in str(exported.graph)
        assert torch.equal(exported.module()(x), net(x))
