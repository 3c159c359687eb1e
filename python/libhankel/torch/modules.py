"""torch.nn's convolutions run by hankel: the same parameters and state_dict, and act, which is fused behind them."""
from __future__ import annotations

from typing import Any, List, Optional

import torch
from torch import Tensor

from . import functional
from .functional import Act
from .spec import act_text, spec_of


class _Fuses:
    """Mixed into a torch.nn convolution: an activation, and a forward that takes a residual."""
    act: str

    def __init__(self, *arguments: Any, act: Act = None, **words: Any) -> None:
        super().__init__(*arguments, **words)
        self.act = act_text(act)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", act={self.act!r}" if self.act else "")  # type: ignore[misc]


class _Conv(_Fuses):
    """The forward of the three plain convolutions."""

    def forward(self, input: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        rank, padding = len(self.kernel_size), self.padding  # type: ignore[attr-defined]
        if self.padding_mode != "zeros":  # type: ignore[attr-defined]
            sides = self._reversed_padding_repeated_twice  # type: ignore[attr-defined]
            input, padding = torch.nn.functional.pad(input, sides, mode=self.padding_mode), 0  # type: ignore
        spec = spec_of(rank, self.weight, self.stride, padding, self.dilation, self.groups)  # type: ignore
        return functional._call(rank, input, self.weight, self.bias, spec, self.act, residual)  # type: ignore


class _Transpose(_Fuses):
    """The forward of the three transposed convolutions."""

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None,
                residual: Optional[Tensor] = None) -> Tensor:
        rank = len(self.kernel_size)  # type: ignore[attr-defined]
        more = self._output_padding(input, output_size, self.stride, self.padding,  # type: ignore[attr-defined]
                                    self.kernel_size, rank, self.dilation)  # type: ignore[attr-defined]
        spec = spec_of(rank, self.weight, self.stride, self.padding, self.dilation, self.groups, True,  # type: ignore
                       tuple(more))
        return functional._call(rank, input, self.weight, self.bias, spec, self.act, residual)  # type: ignore


class Conv1d(_Conv, torch.nn.Conv1d):
    """torch.nn.Conv1d; call it with (input, residual=None)."""


class Conv2d(_Conv, torch.nn.Conv2d):
    """torch.nn.Conv2d; call it with (input, residual=None)."""


class Conv3d(_Conv, torch.nn.Conv3d):
    """torch.nn.Conv3d; call it with (input, residual=None)."""


class ConvTranspose1d(_Transpose, torch.nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d; call it with (input, output_size=None, residual=None)."""


class ConvTranspose2d(_Transpose, torch.nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d; call it with (input, output_size=None, residual=None)."""


class ConvTranspose3d(_Transpose, torch.nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d; call it with (input, output_size=None, residual=None)."""
