"""Gradients of the causal Conv1D by torch's own operators, one tap at a time: for what hk_causal_gradient
refuses (on CUDA dilation, packing by ids, and activations but none, relu and silu). Right and the same bits every time, at two passes over memory per tap."""
from __future__ import annotations

import warnings
from typing import Optional

import torch
from torch import Tensor

from .. import _abi
from .._native import HankelError

_warned = False


def _warn():
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("libhankel: the library has no gradient of the causal Conv1D for this device; torch's operators "
                      "compute it, which takes several times as long", RuntimeWarning, stacklevel=5)


class _Tokens:
    """Where the tap `back` tokens before each token lies: in x, in the state of its sequence, or nowhere."""

    def __init__(self, x, initial, ids, offsets):
        n, c, t = x.shape
        now = torch.arange(t, device=x.device)
        self.entries = 0 if initial is None else initial.shape[-1]
        self.ids, self.live = ids, None if ids is None else (ids >= 0).unsqueeze(1)
        if offsets is None:
            self.row, self.place = torch.arange(n, device=x.device)[:, None].expand(n, t), now[None].expand(n, t)
        else:
            bounds = offsets.long()
            row = torch.bucketize(now, bounds[1:], right=True).clamp(max=bounds.shape[0] - 2)
            self.row, self.place = row[None], (now - bounds[row])[None]
            self.live = (now < bounds[-1])[None, None]

    def inside(self, back):
        """(n, 1, t): whether the tap is a token of the same sequence."""
        near = self.place >= back
        if self.ids is not None and back:
            same = torch.zeros_like(near)
            same[:, back:] = self.ids[:, back:] == self.ids[:, :-back]
            near = near & same
        return near.unsqueeze(1)

    def entry(self, back):
        """(n, t): the state's entry that the tap reads; `entries` where it reads none."""
        at = self.entries + self.place - back
        return torch.where((self.place < back) & (at >= 0), at, torch.full_like(at, self.entries))


def gradient_by_formula(x: Tensor, weight: Tensor, bias: Optional[Tensor], dy: Tensor, initial: Optional[Tensor],
                        dfinal: Optional[Tensor], ids: Optional[Tensor], offsets: Optional[Tensor], act: int,
                        dx: Tensor, dweight: Tensor, dbias: Tensor, dinitial: Optional[Tensor]) -> None:
    """Writes dx, dweight, dbias (f32) and dinitial; the arguments of eager.backward."""
    _warn()
    if act not in (_abi.ACT["none"], _abi.ACT["silu"]):
        raise HankelError(_abi.UNSUPPORTED, f"act is {act}; gradients by formula know none and silu")
    tokens, u, f = _Tokens(x, initial, ids, offsets), x.float(), weight.float()
    window, width = u.shape[2], f.shape[1]
    state = None if initial is None else torch.cat([initial.float(), initial.new_zeros(
        initial.shape[:2] + (1,), dtype=torch.float32)], -1)

    def tap(back):
        """(n, c, t): what the tap reads."""
        value = torch.zeros_like(u)
        if back < window:
            value[..., back:] = u[..., :window - back]
        value = torch.where(tokens.inside(back), value, torch.zeros_like(value))
        if state is None or back == 0:
            return value
        return value + state[tokens.row, :, tokens.entry(back)].transpose(1, 2)

    d = dy.float()
    if act:
        sums = sum(tap(width - 1 - j) * f[:, j, None] for j in range(width))
        sums = sums if bias is None else sums + bias.float()[:, None]
        s = torch.sigmoid(sums)
        d = d * s * (1 + sums * (1 - s))
    if tokens.live is not None:
        d = torch.where(tokens.live, d, torch.zeros_like(d))
    du, dstate = torch.zeros_like(u), None if state is None else torch.zeros_like(state)
    for j in range(width):
        back = width - 1 - j
        dweight[:, j] = (d * tap(back)).sum((0, 2))
        part = d * f[:, j, None]
        if back < window:
            du[..., :window - back] += torch.where(tokens.inside(back), part, torch.zeros_like(part))[..., back:]
        if dstate is not None and back:  # one token per entry and tap: no two writes meet but in the spare entry
            at = tokens.row, slice(None), tokens.entry(back)
            dstate[at] = dstate[at] + part.transpose(1, 2)
    if bias is not None:
        dbias.copy_(d.sum((0, 2)))
    if dfinal is not None:
        _hand_on(du, dstate, dfinal.float(), tokens, offsets)
    dx.copy_(du)
    if dinitial is not None and dstate is not None:
        dinitial.copy_(dstate[..., :-1])


def _hand_on(du, dstate, dfinal, tokens, offsets):
    """Adds the gradient of the final states to what they were copied from."""
    sequences, c, entries = dfinal.shape
    if offsets is None:
        lengths = torch.full((sequences,), du.shape[2], device=du.device)
        first = torch.zeros_like(lengths)
    else:
        first, lengths = offsets[:-1].long(), offsets.diff().long()
    place = lengths[:, None] - entries + torch.arange(entries, device=du.device)  # below 0: from the state
    rows = torch.arange(sequences, device=du.device)[:, None].expand_as(place)
    spare = torch.cat([du, du.new_zeros(du.shape[:2] + (1,))], -1)
    at = torch.where(place >= 0, place + first[:, None], torch.full_like(place, du.shape[2]))
    where = (rows if offsets is None else torch.zeros_like(rows)), slice(None), at
    spare[where] = spare[where] + dfinal.transpose(1, 2)
    du.copy_(spare[..., :-1])
    if dstate is not None:
        behind = torch.where(place < 0, place + entries, torch.full_like(place, entries))
        where = rows, slice(None), behind
        dstate[where] = dstate[where] + dfinal.transpose(1, 2)
