"""Fused: a convolution of a model with what follows it, in one call of a plan with packed weights."""
from __future__ import annotations

import itertools
import weakref
from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from .. import _nn
from .._native import invalid
from . import ops
from .spec import act_text, act_value, activate, compiling, empty_output, output_size, spec_of

PLAIN = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ACTS = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Sigmoid: "sigmoid", nn.Tanh: "tanh", nn.Hardswish: "hardswish",
         nn.Softsign: "softsign"}
_KEPT = 16  # plans per layer


def act_of(module: nn.Module) -> Optional[str]:
    """The activation that a module is, as text; None where it is none that can be fused."""
    if isinstance(module, nn.ReLU6):
        return act_text(("clip", 0.0, 6.0))
    if isinstance(module, nn.GELU):
        return "gelu" if module.approximate == "none" else "gelu_tanh"
    if isinstance(module, nn.LeakyReLU):
        return act_text(("leaky", module.negative_slope))
    return _ACTS.get(type(module))


def refusal_of(conv: nn.Module) -> Optional[str]:
    """Why a convolution is left to torch; None where it is taken."""
    if type(conv) not in PLAIN:
        return f"{type(conv).__name__} is left as it is; Conv1d, Conv2d and Conv3d are replaced"
    if conv.padding_mode != "zeros":
        return f"padding_mode is {conv.padding_mode!r}; only zeros are fused"
    return None


#: the layers of this process by number, for the operator that torch.compile calls
_layers: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_numbers = itertools.count()


def layer_of(number: int) -> "Fused":
    """The Fused with a number."""
    layer = _layers.get(number)
    if layer is None:
        raise invalid(f"layer is {number}, which is gone; a compiled graph runs only in the process and as long as the model "
                      "that it was compiled from")
    return layer


class Fused(nn.Module):
    """act(norm(conv(x)) + residual). One plan per layout of x, with packed weights; when a weight changes (an optimizer's
    step, load_state_dict) it folds and packs again. In training mode, where gradients are wanted, and where the residual
    has another shape than the result, torch's own modules run."""

    def __init__(self, conv: nn.Module, norm: Optional[nn.Module] = None, act: str = "") -> None:
        super().__init__()
        self.conv, self.norm, self.act, self.by_torch = conv, norm, act, False
        self._enter()
        self.train(conv.training)

    def _enter(self):
        self._plans: Dict[Any, Any] = {}
        self._seen: tuple = ()
        self.number = next(_numbers)
        _layers[self.number] = self

    def _sources(self):
        """What the packed weights were made of."""
        norm, found = self.norm, [self.conv.weight, self.conv.bias]
        if norm is not None:
            found += [norm.weight, norm.bias, norm.running_mean, norm.running_var]
        return [t for t in found if t is not None]

    def _folded(self):
        """(weight, bias) with the batch norm in them, computed in f64."""
        conv, norm = self.conv, self.norm
        if norm is None:
            return conv.weight, conv.bias
        factor = torch.rsqrt(norm.running_var.double() + norm.eps)
        if norm.weight is not None:
            factor = factor * norm.weight.double()
        shift = -norm.running_mean.double() if conv.bias is None else conv.bias.double() - norm.running_mean.double()
        shift = shift * factor
        if norm.bias is not None:
            shift = shift + norm.bias.double()
        return (conv.weight.double() * factor.reshape((-1,) + (1,) * (conv.weight.dim() - 1))), shift

    def _spec(self):
        conv = self.conv
        return spec_of(len(conv.kernel_size), conv.weight, conv.stride, conv.padding, conv.dilation, conv.groups)

    def _make(self, x, residual):
        spec, (weight, bias) = self._spec(), self._folded()
        words: dict = {"threads": torch.get_num_threads()} if x.is_cpu else {}
        if self.act:
            words["act"] = act_value(self.act)
        if residual is not None:
            words.update(residual=residual, residual_order="before")
        if bias is not None:
            bias = bias.to(torch.float64 if x.dtype is torch.float64 else torch.float32)
        return _nn.convolve(spec.rank, x, weight.to(x.dtype), bias, spec.stride, spec.padding, spec.dilation,
                            spec.groups, None, words, keep="weights")

    def plan(self, x: Tensor, residual: Optional[Tensor] = None) -> Any:
        """The libhankel.Plan that runs for tensors that lie so."""
        seen = tuple((t.data_ptr(), t._version) for t in self._sources())
        if seen != self._seen:
            self._plans.clear()
            self._seen = seen
        key = (x.shape, x.stride(), x.dtype, x.device, None if residual is None else residual.stride(),
               torch.get_num_threads())
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            with torch.no_grad():
                found = self._plans[key] = self._make(x, residual)
        return found

    def reference(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """The same by torch's modules."""
        y = self.conv(x)
        if self.norm is not None:
            y = self.norm(y)
        return activate(y if residual is None else y + residual, self.act)

    def _takes(self, x, residual):
        """Whether a plan can run the call."""
        if self.by_torch or self.training or x.dim() != self.conv.weight.dim():
            return False
        if torch.is_grad_enabled() and (x.requires_grad or residual is not None and residual.requires_grad or any(
                t.requires_grad for t in self._sources())):
            return False
        if residual is None:
            return True
        shape = (x.shape[0], self.conv.weight.shape[0],
                 *output_size(self._spec(), x.shape[2:], self.conv.weight.shape[2:]))
        return residual.dtype is x.dtype and tuple(residual.shape) == shape

    def forward(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        if not self._takes(x, residual):
            return self.reference(x, residual)
        if compiling():
            return torch.ops.libhankel.fused(x, residual, self.number)
        return self.run(x, residual)

    def run(self, x: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        """forward() by a plan."""
        plan = self.plan(x, residual)
        with torch.no_grad():
            return plan(x) if residual is None else plan(x, residual=residual)

    def fake(self, x: Tensor) -> Tensor:
        """Memory for the result, as run() lays it."""
        return empty_output(x, self.conv.weight, self._spec())

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_plans", "_seen", "number")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._enter()

    def extra_repr(self) -> str:
        return f"act={self.act!r}" if self.act else ""


ops.register_fused(lambda x, residual, number: layer_of(number).run(x, residual),
                   lambda x, residual, number: layer_of(number).fake(x))
