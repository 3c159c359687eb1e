"""A problem with its tensors: laid as they lie, planned, computed. The functions of the package end here."""
import threading
from collections import OrderedDict
from typing import Any, NamedTuple, Optional, Union

from . import _abi
from ._arguments import integer
from ._array import NAMES, Tensor, dimensions, intake, intake_as, together, type_of
from ._dlpack import dense, framework
from ._epilogue import lay_residual
from ._finish import build, missing
from ._geometry import Dims, output_shape, output_type, place_all
from ._memory import beside
from ._native import invalid
from ._options import DEVICES
from ._plan import Plan
from ._problem import Problem
from ._words import Bias, Finish, How, split

_cache: OrderedDict = OrderedDict()
_cache_lock = threading.Lock()
_CACHE_PLANS = 512
_ALIGNED = 16  # bytes; what a CUDA plan counts on unless it is told otherwise


def planned(x, problem, epilogue, f_zero, options):
    """A plan for x's device whose weights come at execute; the same request again finds the same plan."""
    device = next(name for name, value in DEVICES.items() if value == x.device)
    with beside(x).here():
        if epilogue.callbacks or f_zero is not None or "slopes" in epilogue.vectors:
            return Plan(problem, epilogue, f_zero=f_zero, device=device, **options)
        key = (bytes(problem.raw), epilogue.key(), device, x.index, repr(sorted(options.items())))
        with _cache_lock:
            plan = _cache.get(key)
            if plan is not None:
                _cache.move_to_end(key)
                return plan
        vectors, epilogue.vectors = epilogue.vectors, {}  # they come with each call
        plan = Plan(problem, epilogue, device=device, **options)
        epilogue.vectors = vectors
    with _cache_lock:
        _cache[key] = plan
        while len(_cache) > _CACHE_PLANS:
            _cache.popitem(last=False)
    return plan


class Request(NamedTuple):
    """A problem with the tensors it reads and writes; `laid` says how transposed weights lie."""
    problem: Problem
    dims: Dims
    x: Tensor
    f: Tensor
    out: Optional[Tensor] = None
    residual: Union[Tensor, bool, None] = None  # True: a plan whose residual lies as y does
    f_zero: Any = 0
    lay_filter: Any = None
    batch_added: bool = False


def output_of(out, out_dtype):
    """The Tensor of out, of its own type or the one asked for."""
    if out is None or out_dtype is None:
        return None if out is None else intake(out, "out", writable=True)
    return intake_as(out, "out", type_of(out_dtype), writable=True)


def y_type_for(out, out_dtype, fallback):
    """hk_type of y: asked for by name, else out's own, else the default."""
    if out_dtype is None and out is not None:
        return out.type
    return output_type(out_dtype, fallback)


def _memory_order(x, dims, shape):
    """The axes of a new y from the outermost to the innermost: as torch has it, channels innermost where x's are."""
    axes = tuple(range(len(shape)))
    if framework(x.owner) != "torch" or dims.y != axes or dims.x != axes:
        return axes
    last = x.shape[1] > 1 and x.strides[1] == 1 and any(n > 1 for n in x.shape[2:])
    return (0,) + axes[2:] + (1,) if last else axes


def _check_shapes(shape, batch_added, **tensors):
    """Refuses arrays of another shape than y's. A batch axis that the package added is left out of the sentence."""
    start = 1 if batch_added else 0
    for name, tensor in tensors.items():
        if isinstance(tensor, Tensor) and tensor.shape != shape:
            raise invalid(f"{name} has shape {tensor.shape[start:]}; {shape[start:]} is required")


def _unaligned(*tensors):
    return any(t.device == _abi.CUDA and t.pointer % _ALIGNED for t in tensors if isinstance(t, Tensor))


def _lay(request, finish):
    """(epilogue, layout, order): lays the problem as the tensors lie."""
    problem, dims, x, f, out, residual, *_ = request
    raw = problem.raw
    epilogue = build(raw, x.device, has_residual=residual is not None and residual is not False, **finish)
    shape = output_shape(problem, dims.y, epilogue.gated)
    _check_shapes(shape, request.batch_added, out=out, residual=residual)
    together(x, f=f, out=out, residual=residual if isinstance(residual, Tensor) else None)
    order = _memory_order(x, dims, shape)
    stored = dense([shape[i] for i in order])
    y = Tensor(0, shape, tuple(stored[order.index(i)] for i in range(len(shape))), raw.y_type, x.device, None) \
        if out is None else out
    place_all(problem, dims, x, None if request.lay_filter else f, y)
    if request.lay_filter:
        request.lay_filter(raw, f)
    layout = {"x": (x.shape, x.strides), "f": (f.shape, f.strides), "out": (shape, y.strides)}
    if isinstance(residual, Tensor):
        lay_residual(epilogue, raw, residual, dims.y)
        layout["residual"] = (residual.shape, residual.strides)
    elif epilogue.raw.residual:
        layout["residual"] = layout["out"]
    return epilogue, layout, order


def run(request, words, keep=None):
    """Computes a request. keep="weights" returns the Plan instead, which holds f, scale and bias; keep="plan" one that
    takes them at each call."""
    finish, bias, options = split(words, Finish, Bias, How)
    if isinstance(request.residual, bool) and not keep:
        raise invalid(f"residual is {request.residual}; a tensor of y's shape is required")
    user = finish.pop("user", None)
    finish.pop("residual", None)
    x, f, raw, f_zero = request.x, request.f, request.problem.raw, request.f_zero
    epilogue, layout, order = _lay(request, dict(finish, **bias))
    per_channel_zero = f_zero if dimensions(f_zero) else None
    raw.f_zero = 0 if dimensions(f_zero) else integer(f_zero, "f_zero", 32)
    if keep != "plan":
        missing(epilogue, ("scale", "bias", "slopes"))
    if options.get("unaligned") is None and _unaligned(x, request.out, request.residual):
        options["unaligned"] = True
    if keep:
        if user is not None:
            raise invalid("user is given and a plan is made; give user at its calls")
        device = next(name for name, value in DEVICES.items() if value == x.device)
        held = {k: v for k, v in epilogue.vectors.items() if k != "slopes"} if keep == "weights" else {}
        with beside(x).here():
            plan = Plan(request.problem, epilogue, f=f if keep == "weights" else None, f_zero=per_channel_zero,
                        device=device, **held, **options)
        plan.layout, plan.order, plan._index = layout, order, x.index if x.device == _abi.CUDA else None
        return plan
    if epilogue.raw.residual and epilogue.raw.beta and request.residual is None:
        raise invalid(f"the epilogue {str(epilogue)!r} adds a residual and residual is None; give it")
    plan = planned(x, request.problem, epilogue, per_channel_zero, options)
    out = request.out
    if out is None and not epilogue.functions.get("store"):
        out = intake(beside(x).empty(layout["out"][0], raw.y_type, order), "out", NAMES[raw.y_type])
    vectors = {name: epilogue.vectors.get(name) for name in ("scale", "bias")}
    return plan._run(x, f, out, request.residual, user=user, fresh=request.out is None, **vectors)


def residual_of(words, y_type):
    """The residual among the words as a Tensor; True and False stand for themselves in a plan."""
    residual = words.get("residual")
    return residual if residual is None or isinstance(residual, bool) else intake_as(residual, "residual", y_type)


def zeros(raw, words):
    """Sets the zero points of x and y, and returns f's."""
    raw.x_zero, raw.y_zero = (integer(words.get(name, 0), name, 32) for name in ("x_zero", "y_zero"))
    return words.get("f_zero", 0)
