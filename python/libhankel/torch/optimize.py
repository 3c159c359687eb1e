"""optimize(model): a model's convolutions by hankel, each with the batch norm, the sum and the activation behind it.

The model is traced (torch.fx); one that cannot be traced has its convolutions replaced one by one, with nothing fused.
The model that is given stays as it is; both share their parameters.
"""
from __future__ import annotations

import copy
import operator
import time
from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch import fx, nn

from .._native import HankelError, invalid
from .fused import NORMS, PLAIN, Fused, act_of, refusal_of

_FUNCTIONS = {nn.functional.relu: "relu", torch.relu: "relu", nn.functional.silu: "silu", torch.sigmoid: "sigmoid",
              nn.functional.hardswish: "hardswish", torch.tanh: "tanh"}
_METHODS = {"relu": "relu", "relu_": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
_SUMS = (operator.add, operator.iadd, torch.add)
_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)


class Row(NamedTuple):
    """One convolution of a model: what runs, and its time beside torch's where both were measured."""
    name: str
    fused: str
    decision: str
    seconds: Optional[float]
    torch_seconds: Optional[float]


def _shared_copy(model: nn.Module) -> nn.Module:
    """A copy of a model with the same parameters and buffers."""
    memo = {id(t): t for t in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, memo)


def _module(root, node):
    return root.get_submodule(node.target) if node.op == "call_module" else None


def _only_user(node) -> Optional[fx.Node]:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _act_of_node(root, node) -> Optional[str]:
    """The activation that a node is; None for anything else."""
    if node.op == "call_module":
        return act_of(_module(root, node))
    rest = {name: value for name, value in node.kwargs.items() if name != "inplace"}
    if rest or len(node.args) != 1:
        return None
    return _FUNCTIONS.get(node.target) if node.op == "call_function" else \
        _METHODS.get(node.target) if node.op == "call_method" else None


def _addend(node, term) -> Optional[fx.Node]:
    """The other tensor of a sum of two nodes."""
    if node.op != "call_function" or node.target not in _SUMS or len(node.args) != 2 or node.kwargs:
        return None
    other = node.args[1] if node.args[0] is term else node.args[0]
    if node.target is operator.iadd and node.args[0] is not term:
        return None  # the other tensor is changed, which someone may count on
    return other if isinstance(other, fx.Node) and other is not term else None


def _tail(root, node) -> Tuple[List[fx.Node], Optional[nn.Module], Optional[fx.Node], str]:
    """A convolution and what follows it: (the nodes taken in, batch norm, residual, activation)."""
    taken, norm, residual, act = [node], None, None, ""
    user = _only_user(node)
    found = _module(root, user) if user is not None else None
    if isinstance(found, NORMS) and found.track_running_stats and len(_calls(root, user)) == 1:
        taken.append(user)
        norm, user = found, _only_user(user)
    other = None if user is None else _addend(user, taken[-1])
    if other is not None:
        taken.append(user)
        residual, user = other, _only_user(user)
    name = None if user is None else _act_of_node(root, user)
    if name is not None:
        taken.append(user)
        act = name
    return taken, norm, residual, act


def _changes(root, node) -> bool:
    """Whether a node may write over its first argument."""
    if node.op == "call_module":
        return getattr(_module(root, node), "inplace", False)
    if node.op == "call_method":
        return node.target.endswith("_")
    return bool(node.kwargs.get("inplace")) or node.target in _IN_PLACE


def _delayed(root, node, last) -> bool:
    """Whether x of a convolution may change before the last node that it takes in, where it will run."""
    between, inside = [], False
    for other in node.graph.nodes:
        if other is last:
            break
        if inside:
            between.append(other)
        inside = inside or other is node
    return any(_changes(root, other) and other.args and other.args[0] is node.args[0] for other in between)


def _calls(root, node) -> List[fx.Node]:
    """Every node that calls the module of this one."""
    return [n for n in node.graph.nodes if n.op == "call_module" and n.target == node.target]


def _fuse(traced: fx.GraphModule) -> None:
    """Replaces each convolution of a graph and its tail by a Fused."""
    for node in list(traced.graph.nodes):
        conv = _module(traced, node)
        if conv is None or type(conv) not in PLAIN or refusal_of(conv) or len(_calls(traced, node)) != 1 or \
                len(node.args) != 1 or node.kwargs:
            continue
        taken, norm, residual, act = _tail(traced, node)
        if _delayed(traced, node, taken[-1]):
            taken, norm, residual, act = [node], None, None, ""
        _set(traced, node.target, Fused(conv, norm, act))
        with traced.graph.inserting_after(taken[-1]):
            call = traced.graph.call_module(node.target, (node.args[0],) + ((residual,) if residual else ()))
        taken[-1].replace_all_uses_with(call)
        for old in reversed(taken):  # and no other: fx counts methods that change a tensor as dead code
            traced.graph.erase_node(old)
    traced.delete_all_unused_submodules()
    traced.recompile()


def _set(root: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)


def _replace(model: nn.Module) -> nn.Module:
    """Replaces the convolutions of a model that cannot be traced."""
    for path, module in list(model.named_modules()):
        if type(module) in PLAIN and not refusal_of(module) and path:
            _set(model, path, Fused(module))
    return model


class _Watch:
    """Keeps what every Fused of a model was called with, and times it."""

    def __init__(self, model: nn.Module) -> None:
        self.calls: dict = {}
        self.hooks = [m.register_forward_hook(self._note(name)) for name, m in model.named_modules()
                      if isinstance(m, Fused)]

    def _note(self, name):
        def hook(module, arguments, _result):
            self.calls.setdefault(name, (module, arguments))
        return hook

    def close(self):
        for hook in self.hooks:
            hook.remove()


def _fastest(run, seconds: float = 0.02) -> float:
    """The least time of a call, over as many as fit."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _describe(name: str, module: Fused, arguments: tuple, measure: bool) -> Row:
    fused = "+".join(word for word, there in (("norm", module.norm), ("residual", len(arguments) > 1)) if there)
    fused = "+".join(word for word in (fused, module.act) if word)
    try:
        decision = module.plan(*arguments).decision
    except HankelError as error:
        return Row(name, fused, f"left to torch: {error.message}", None, None)
    if not measure:
        return Row(name, fused, decision, None, None)
    return Row(name, fused, decision, _fastest(lambda: module(*arguments)),
               _fastest(lambda: module.reference(*arguments)))


def report(rows: List[Row]) -> str:
    """A table of rows."""
    lines = [f"{'layer':32} {'fused':24} {'hankel us':>10} {'torch us':>10} {'gain':>6}  decision"]
    for row in rows:
        times = f"{'':10} {'':10} {'':6}"
        if row.seconds is not None and row.torch_seconds is not None:
            times = f"{row.seconds * 1e6:10.1f} {row.torch_seconds * 1e6:10.1f} {row.torch_seconds / row.seconds:6.2f}"
        lines.append(f"{row.name:32} {row.fused:24} {times}  {row.decision}")
    return "\n".join(lines)


def _leave(model: nn.Module, row: Row) -> None:
    """Gives a layer back to torch: a Fused that never plans."""
    model.get_submodule(row.name).by_torch = True  # type: ignore[union-attr]


def optimize(model: nn.Module, *example: Any, measure: bool = False, verbose: bool = True) -> nn.Module:
    """A copy of a model in eval mode whose convolutions run by hankel, fused; parameters are shared with the model.

    example: arguments of the model. With them the layers are planned and a table is printed: layer, what was fused, the
    decision. With measure=True each layer is timed beside torch's modules too, and one that is slower is given back to
    torch. Refuses a model in training mode.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    >>> fast, x = optimize(net, verbose=False), torch.ones(1, 3, 8, 8)
    >>> with torch.no_grad():
    ...     torch.testing.assert_close(fast(x), net(x))
    """
    if model.training:
        raise invalid("model is in training mode; call model.eval() first, or use libhankel.torch's modules to train")
    if type(model) in PLAIN:
        model = nn.Sequential(model)
    fast = _shared_copy(model)
    try:
        traced = fx.symbolic_trace(fast)
        _fuse(traced)
        fast = traced
    except Exception as error:  # whatever tracing a stranger's model raises
        fast = _replace(_shared_copy(model))
        if verbose:
            print(f"not traced, nothing is fused: {type(error).__name__}: {error}")
    fast.eval()
    if not example:
        return fast
    watch = _Watch(fast)
    with torch.no_grad():
        fast(*example)
        watch.close()
        rows = [_describe(name, *call, measure) for name, call in watch.calls.items()]
    for row in rows:
        slower = row.seconds is not None and row.torch_seconds is not None and row.torch_seconds < row.seconds
        if slower or row.decision.startswith("left to torch"):
            _leave(fast, row)
    if verbose:
        print(report(rows))
    return fast
