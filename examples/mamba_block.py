#!/usr/bin/env python3
"""A Mamba block whose convolution runs on hankel: prefill, decode token by token, and a training step, each checked
against plain PyTorch formulas. CUDA where there is a device, else the CPU.

    PYTHONPATH=python python3 examples/mamba_block.py [--device cpu|cuda] [--tokens 96] [--width 4]

The block is that of Mamba: a projection to x and z, the causal depthwise Conv1D with bias and SiLU over x, the
selective scan, a gate by silu(z), and a projection back. Only the convolution differs between the two sides: hankel
reads x where the projection left it, a strided view with channels next to each other, and keeps the last tokens as its
state.
"""
import argparse
import sys

import torch
import torch.nn.functional as F
from torch import nn

from libhankel.causal_conv1d import causal_conv1d_fn, causal_conv1d_update


def plain_conv(x, weight, bias, before):
    """(convolved x, last tokens) by F.conv1d: joins what came before and x in a copy."""
    joined = torch.cat([before, x], dim=-1)
    return F.silu(F.conv1d(joined, weight.unsqueeze(1), bias, groups=x.shape[1])), joined[..., x.shape[-1]:]


class MambaBlock(nn.Module):
    """One block of width `dim`. plain=True computes the convolution by F.conv1d."""

    def __init__(self, dim, inner, states, width):
        super().__init__()
        self.inner, self.states, self.rank, self.width = inner, states, max(1, dim // 16), width
        self.enter = nn.Linear(dim, 2 * inner, bias=False)
        self.weight = nn.Parameter(torch.randn(inner, width) / width ** 0.5)
        self.bias = nn.Parameter(torch.randn(inner) * 0.1)
        self.select = nn.Linear(inner, self.rank + 2 * states, bias=False)
        self.delta = nn.Linear(self.rank, inner)
        self.decay = nn.Parameter(torch.arange(1.0, states + 1).repeat(inner, 1).log())
        self.skip = nn.Parameter(torch.ones(inner))
        self.leave = nn.Linear(inner, dim, bias=False)

    def empty_cache(self, batch, device):
        """What decoding carries: the last width - 1 tokens of x, and the scan's state."""
        return (torch.zeros(batch, self.inner, self.width - 1, device=device),
                torch.zeros(batch, self.inner, self.states, device=device))

    def forward(self, u, cache=None, plain=False):
        """(result, new cache) of u (batch, tokens, dim)."""
        last, h = self.empty_cache(u.shape[0], u.device) if cache is None else cache
        x, z = self.enter(u).chunk(2, dim=-1)
        x = x.transpose(1, 2)  # (batch, channels, tokens), a view of the projection
        if plain:
            x, last = plain_conv(x, self.weight, self.bias, last)
        else:
            x, last = causal_conv1d_fn(x, self.weight, self.bias, initial_states=last, return_final_states=True,
                                       activation="silu")
        y, h = self.scan(x.transpose(1, 2), h)
        return self.leave(y * F.silu(z)), (last, h)

    def step(self, u, cache):
        """The result of one token u (batch, dim). The convolution's state moves on in place."""
        last, h = cache
        x, z = self.enter(u).chunk(2, dim=-1)
        x = causal_conv1d_update(x, last, self.weight, self.bias, activation="silu")
        y, h = self.scan(x.unsqueeze(1), h)
        return self.leave(y.squeeze(1) * F.silu(z)), (last, h)

    def scan(self, x, h):
        """The selective scan, one token after the other: h = exp(delta*A)*h + delta*B*x, y = C*h + D*x."""
        delta, b, c = self.select(x).split([self.rank, self.states, self.states], dim=-1)
        delta, a = F.softplus(self.delta(delta)), -self.decay.exp()
        results = []
        for t in range(x.shape[1]):
            now = delta[:, t].unsqueeze(-1)
            h = torch.exp(now * a) * h + now * b[:, t].unsqueeze(1) * x[:, t].unsqueeze(-1)
            results.append((h * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(results, 1) + x * self.skip, h


def train_step(block, u, target, plain):
    """(loss, gradients) of one step."""
    block.zero_grad()
    loss = F.mse_loss(block(u, plain=plain)[0], target)
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in block.named_parameters()}


def error(got, want):
    return ((got - want).norm() / want.norm()).item()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in (("batch", 2), ("tokens", 96), ("dim", 64), ("inner", 128), ("states", 16), ("width", 4)):
        parser.add_argument("--" + name, type=int, default=value)
    given = parser.parse_args(arguments)
    torch.manual_seed(0)
    block = MambaBlock(given.dim, given.inner, given.states, given.width).to(given.device)
    u = torch.randn(given.batch, given.tokens, given.dim, device=given.device)
    errors = {}
    with torch.no_grad():
        want, _ = block(u, plain=True)
        errors["prefill"] = error(block(u)[0], want)
        half = given.tokens // 2
        first, cache = block(u[:, :half])
        results = [first]
        for t in range(half, given.tokens):
            y, cache = block.step(u[:, t], cache)
            results.append(y.unsqueeze(1))
        errors["prefill and decode"] = error(torch.cat(results, 1), want)
    target = torch.randn_like(u)
    loss, grads = train_step(block, u, target, plain=False)
    right, wanted = train_step(block, u, target, plain=True)
    errors["loss"] = abs((loss - right) / right).item()
    errors["gradients"] = max(error(grads[name], wanted[name]) for name in grads)
    for name, value in errors.items():
        print(f"{name:20} relative error {value:.1e}")
    return 0 if max(errors.values()) < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
