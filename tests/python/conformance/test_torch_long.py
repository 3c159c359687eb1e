"""PyTorch's own convolution samples (OpInfo), and random forward and gradient problems against its autograd."""
import sys
import types
import unittest

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch suite: torch is not installed")

import libhankel as hk  # noqa: E402
from suite import Suite, distance  # noqa: E402

SEED = 77
OURS = {f"nn.functional.{name}": getattr(hk, name) for name in
        ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")}
LISTED = {"complex64": "hankel has no complex types", "complex128": "hankel has no complex types",
          "int64": "hankel's integers are int8 with s32 sums"}


def op_infos():
    """The OpInfo entries of convolutions. Debian's torch leaves out expecttest, of which only two names are needed."""
    stub = types.ModuleType("expecttest")
    stub.TestCase, stub.ACCEPT = unittest.TestCase, False
    sys.modules.setdefault("expecttest", stub)
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if op.name in OURS]


def array(value):
    """A numpy view of a tensor; bf16 through its bits."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(np.uint16)
    return value.numpy()


def widened(value):
    return value.detach().double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def compare_sample(op, sample):
    """None or what differs between torch in f64 and ours in the sample's type."""
    x, args = sample.input, list(sample.args)
    kwargs = dict(sample.kwargs)
    name = str(x.dtype).split(".")[1]
    want = op(widened(x), *[widened(a) for a in args], **{k: widened(v) for k, v in kwargs.items()}).numpy()
    weight = kwargs["weight"] if "weight" in kwargs else args[0]
    words = {k: array(v) for k, v in kwargs.items()}
    ours = [array(a) for a in args]
    if x.dtype == torch.bfloat16:
        words.update(x_dtype="bf16", f_dtype="bf16", out_dtype="f32")
        ours = [ours[0]] + [None if a is None else a.float().numpy() for a in args[1:]]
    got = OURS[op.name](array(x), *ours, **words)
    size = np.abs(want) + float(weight.double().abs().sum()) * float(x.double().abs().max() if x.numel() else 0)
    return distance(got, want, size, 1, name)


def test_op_info_samples():
    suite = Suite("torch-opinfo", LISTED, least=100)
    for op in op_infos():
        for dtype in sorted(op.dtypes, key=str):
            for index, sample in enumerate(op.sample_inputs("cpu", dtype)):
                label, name = f"{op.name} {dtype} sample {index}", str(dtype).split(".")[1]
                if name in LISTED:
                    with pytest.raises(hk.HankelError):
                        OURS[op.name](array(sample.input), *[array(a) for a in sample.args], **sample.kwargs)
                    suite.refuse(label, name)
                else:
                    suite.check(label, lambda: compare_sample(op, sample))
    suite.finish()


def test_op_info_errors():
    suite = Suite("torch-opinfo-errors", least=3)
    for op in op_infos():
        for index, error in enumerate(op.error_inputs("cpu") if op.error_inputs_func else ()):
            sample = error.sample_input

            def refused():
                try:
                    OURS[op.name](array(sample.input), *[array(a) for a in sample.args],
                                  **{k: array(v) for k, v in sample.kwargs.items()})
                except hk.HankelError as refusal:
                    return None if refusal.status in (1, 2) else f"status {refusal.status}"
                return f"computed, though torch says: {error.error_regex}"

            suite.check(f"{op.name} error {index}", refused)
    suite.finish()


def draw(rng, transposed):
    """Random torch arguments whose window fits."""
    rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    n, c, k = int(rng.integers(1, 4)), groups * int(rng.integers(1, 5)), groups * int(rng.integers(1, 5))
    window = [int(v) for v in rng.integers(1, 4, rank)]
    stride, dilation = [int(v) for v in rng.integers(1, 4, rank)], [int(v) for v in rng.integers(1, 4, rank)]
    padding = [int(v) for v in rng.integers(0, 3, rank)]
    reach = [d * (w - 1) + 1 for d, w in zip(dilation, window)]
    if transposed:
        extra = [int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation)]
        size = [max(int(rng.integers(1, 6)), -(-(2 * p + 1 - r) // s) + 1)
                for p, r, s in zip(padding, reach, stride)]
        f_shape = [c, k // groups, *window]
    else:
        extra = None
        size = [max(int(rng.integers(1, 9 if rank < 3 else 6)), r - 2 * p) for r, p in zip(reach, padding)]
        f_shape = [k, c // groups, *window]
    return dict(rank=rank, groups=groups, x=[n, c, *size], f=f_shape, k=k, stride=stride, padding=padding,
                dilation=dilation, extra=extra)


def torch_call(p, transposed, x, f, b):
    functional = torch.nn.functional
    if transposed:
        call = getattr(functional, f"conv_transpose{p['rank']}d")
        return call(x, f, b, p["stride"], p["padding"], p["extra"], p["groups"], p["dilation"])
    return getattr(functional, f"conv{p['rank']}d")(x, f, b, p["stride"], p["padding"], p["dilation"], p["groups"])


def our_call(p, transposed, x, f, b):
    if transposed:
        return getattr(hk, f"conv_transpose{p['rank']}d")(x, f, b, p["stride"], p["padding"], p["extra"], p["groups"],
                                                          p["dilation"])
    return getattr(hk, f"conv{p['rank']}d")(x, f, b, p["stride"], p["padding"], p["dilation"], p["groups"])


def our_gradients(p, transposed, x, f, dy):
    """(dx, df, db). The gradients of a transposed convolution are those of the convolution it transposes: dx is a
    convolution of dy, df the filter's gradient with the two tensors exchanged."""
    words = dict(window_strides=p["stride"], padding=[(v, v) for v in p["padding"]], rhs_dilation=p["dilation"],
                 feature_group_count=p["groups"])
    if not transposed:
        return (hk.conv_grad_input(dy, f, x.shape, **words), hk.conv_grad_filter(x, dy, f.shape, **words),
                hk.conv_grad_bias(dy))
    # dy may be longer than the windows reach (output padding): what they never touch is cropped
    spare = [(v, v - o) for v, o in zip(p["padding"], p["extra"])]
    words["padding"] = spare
    return hk.conv(dy, f, **words), hk.conv_grad_filter(dy, x, f.shape, **words), hk.conv_grad_bias(dy)


def compare_gradients(p, transposed, rng):
    dtype = [np.float32, np.float64][rng.integers(2)]
    whole = bool(rng.random() < 0.5)

    def data(shape):
        return (rng.integers(-3, 4, shape) if whole else rng.standard_normal(shape)).astype(dtype)

    x, f, b = data(p["x"]), data(p["f"]), data([p["k"]])
    tensors = [torch.from_numpy(a.astype(np.float64)).requires_grad_() for a in (x, f, b)]
    want = torch_call(p, transposed, *tensors)
    dy = data(list(want.shape))
    want.backward(torch.from_numpy(dy.astype(np.float64)))
    got = (our_call(p, transposed, x, f, b), *our_gradients(p, transposed, x, f, dy))
    wanted = (want.detach().numpy(), *[t.grad.numpy() for t in tensors])
    for what, mine, theirs in zip(("y", "dx", "df", "db"), got, wanted):
        if whole:
            wrong = None if mine.shape == theirs.shape and (mine == theirs).all() else "integers differ"
        else:
            terms = max(int(np.prod(p["f"])), dy.size)
            wrong = distance(mine, theirs, np.abs(theirs) + 9.0, terms ** 0.5, np.dtype(dtype).name)
        if wrong:
            return f"{what}: {wrong}"
    return None


@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "conv_transpose"])
def test_random_forward_and_gradients(transposed):
    suite = Suite("torch-autograd-" + ("conv_transpose" if transposed else "conv"), least=400)
    for index in range(400):
        rng = np.random.default_rng([SEED, transposed, index])
        problem = draw(rng, transposed)
        suite.check(f"[{SEED}, {int(transposed)}, {index}] {problem}",
                    lambda: compare_gradients(problem, transposed, rng))
    suite.finish()
