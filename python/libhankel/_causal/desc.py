"""hk_causal_desc from tensors: every shape, type and device is checked here, once per layout."""
from .. import _abi, _abi_causal
from .._abi_causal import BATCH, IDS, OFFSETS
from .._array import NAMES, type_of
from .._native import invalid

_FLOATS = (_abi.F32, _abi.F16, _abi.BF16)
#: int32 vectors of one entry per sequence
_VECTORS = ("slots", "slots_out", "positions", "accepted")


def strides(t, what, packing):
    """(outer, channel, time) of a tensor. All zero would mean the library's default."""
    s = tuple(t.stride())
    if len(s) == 2:
        s = (0,) + s if packing == OFFSETS else s + (0,)
    if any(s):
        return s
    if any(n > 1 for n in t.shape):
        raise invalid(f"{what} has shape {tuple(t.shape)} and strides of zero only; give a copy")
    return 1, 1, 1


def _float_type(t, what):
    hk_type = _any_type(t, what)
    if hk_type not in _FLOATS:
        raise invalid(f"{what} has elements of {NAMES[hk_type]}; f32, f16 or bf16 is required")
    return hk_type


def _any_type(t, what):
    try:
        return t.dtype if isinstance(t.dtype, int) else type_of(t.dtype)
    except ValueError:
        raise invalid(f"{what} has elements of {t.dtype}; f32, f16 or bf16 is required") from None


def _sizes(x, packing, optional):
    """(sequences, channels, tokens) of a call."""
    shape = tuple(x.shape)
    if packing == OFFSETS:
        offsets = optional.get("index")
        if offsets is None or len(offsets.shape) != 1 or offsets.shape[0] < 1:
            raise invalid("packed sequences need offsets of shape (sequences + 1,)")
        if len(shape) == 3 and shape[0] == 1:
            shape = shape[1:]
        if len(shape) != 2:
            raise invalid(f"x has shape {tuple(x.shape)}; (channels, tokens) is required with offsets")
        return (offsets.shape[0] - 1,) + shape
    if len(shape) == 2 and packing == BATCH:
        return shape + (1,)
    if len(shape) != 3:
        raise invalid(f"x has shape {shape}; (sequences, channels, tokens) is required")
    return shape


def _same_shape(t, like, what):
    if tuple(t.shape) != tuple(like.shape):
        raise invalid(f"{what} has shape {tuple(t.shape)}; {tuple(like.shape)}, that of x, is required")


def _vector(t, what, shape, types=(_abi.S32,)):
    """A dense vector of integers. Servers pad theirs, so that entries beyond the sequences are allowed, and unread."""
    if tuple(t.shape) != shape and (len(shape) != 1 or len(t.shape) != 1 or t.shape[0] < shape[0]):
        raise invalid(f"{what} has shape {tuple(t.shape)}; {shape} is required")
    hk_type = _abi.U8 if str(t.dtype) == "torch.bool" else _any_type(t, what)
    if hk_type not in types:
        raise invalid(f"{what} has elements of {t.dtype}; {' or '.join(NAMES[i] for i in types)} is required")
    dense, step = True, 1
    for n, s in zip(reversed(shape), reversed(tuple(t.stride()))):
        dense = dense and (n <= 1 or s == step)
        step *= n
    if not dense:
        raise invalid(f"{what} has strides {tuple(t.stride())}; a dense array is required")


def _states(desc, optional, c, n, window):
    """Sets the state's fields; in and out, and their gradients, lie alike."""
    found = [(name, optional[name]) for name in ("state_in", "state_out", "dstate_out", "dstate_in")
             if name in optional]
    if not found:
        return
    name, first = found[0]
    desc.state_type = _float_type(first, name)
    if len(first.shape) != 3 or first.shape[1] != c:
        raise invalid(f"{name} has shape {tuple(first.shape)}; (slots, {c}, entries) is required")
    need = desc.dilation * (window - 1)
    if first.shape[2] < need:
        raise invalid(f"{name} has {first.shape[2]} entries; dilation*(window-1) = {need} are required")
    if "slots" not in optional and first.shape[0] < n:
        raise invalid(f"{name} has {first.shape[0]} slots; {n} are required, one per sequence")
    for other, t in found[1:]:
        alike = t.shape[1:] == first.shape[1:] and t.dtype == first.dtype
        if not alike or any(a != b for a, b, m in zip(t.stride(), first.stride(), t.shape) if m > 1):
            raise invalid(f"{other} has shape {tuple(t.shape)} and strides {tuple(t.stride())}; those of {name}, "
                          f"{tuple(first.shape)} and {tuple(first.stride())}, are required")
    desc.state_length = first.shape[2]
    desc.state = _abi_causal.CausalStrides(*(strides(first, name, BATCH)))


def describe(problem, optional):
    """The hk_causal_desc of a call. problem: x, f, y and its numbers; optional: the tensors that are given."""
    x, f, y, packing = problem["x"], problem["f"], problem["y"], problem["packing"]
    n, c, length = _sizes(x, packing, optional)
    _same_shape(y, x, "y")
    if len(f.shape) != 2 or f.shape[0] != c:
        raise invalid(f"weight has shape {tuple(f.shape)}; ({c}, width) is required, with x of {c} channels")
    window = f.shape[1]
    for name, t in [("weight", f), ("out", y)] + list(optional.items()):
        if t.get_device() != x.get_device():
            where = ["the host" if d < 0 else f"CUDA device {d}" for d in (t.get_device(), x.get_device())]
            raise invalid(f"{name} lies on {where[0]} and x on {where[1]}; both must lie on one device")
    f_channel, f_tap = (tuple(f.stride()) if any(f.stride()) else (1, 1))
    desc = _abi_causal.CausalDesc(
        x_type=_float_type(x, "x"), f_type=_float_type(f, "weight"), y_type=_float_type(y, "out"), n=n, c=c,
        length=length, longest=problem["longest"], window=window, dilation=problem["dilation"], packing=packing,
        f_channel=f_channel, f_tap=f_tap, act=problem["act"], in_place=bool(problem.get("in_place")),
        gradient=bool(problem.get("gradient")))
    desc.state_type = desc.x_type
    if not any(f.stride()) and c * window > 1:
        raise invalid(f"weight has shape {tuple(f.shape)} and strides of zero only; give a copy")
    for name, t in (("x", x), ("y", y)):
        setattr(desc, name, _abi_causal.CausalStrides(*strides(t, name, packing)))
    for name in ("pre", "post", "residual"):
        if name in optional:
            t = optional[name]
            _same_shape(t, x, name)
            if t.dtype != x.dtype:
                raise invalid(f"{name} has elements of {t.dtype}; {x.dtype}, as x, are required")
            setattr(desc, name, _abi_causal.CausalStrides(*strides(t, name, packing)))
            setattr(desc, "has_" + name, 1)
    if "bias" in optional:
        bias = optional["bias"]
        if bias.dtype != f.dtype or tuple(bias.shape) != (c,) or c > 1 and bias.stride()[0] != 1:
            raise invalid(f"bias has shape {tuple(bias.shape)}, strides {tuple(bias.stride())} and elements of "
                          f"{bias.dtype}; a dense ({c},) of weight's type, {f.dtype}, is required")
        desc.has_bias = 1
    _states(desc, optional, c, n, window)
    for name in _VECTORS:
        if name in optional:
            _vector(optional[name], name, (n,))
    if "has_state" in optional:
        _vector(optional["has_state"], "has_state", (n,), (_abi.U8,))
    if packing != BATCH:
        _vector(optional["index"], "ids" if packing == IDS else "offsets", (n, length) if packing == IDS else (n + 1,))
    desc.ring = "positions" in optional
    if problem.get("skip") is not None:
        desc.skip, desc.has_skip = problem["skip"], 1
    return desc
