"""CUDA tensors by torch's argument names. The functions of the package itself take them too: hk.conv2d(x, w, b) and
hk.plan(x, w) of tensors on a CUDA device run there, on the framework's current stream.

    import torch, libhankel.cuda as hkc
    y = hkc.conv(x, w, bias, padding=1, act="silu")            # torch tensors in, a torch tensor out
    p = hkc.Plan(x, w, bias=b, padding=1); y = p(x)            # filters packed once

x is (N, C, space..), w (K, C/groups, window..), as in torch; memory formats (channels_last) are read from the strides
and never copied. Unlike the package's functions these refuse tensors that lie on the host.
"""
from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from . import _abi
from ._array import Tensor, intake
from ._native import call, invalid
from ._nn import convolve
from ._words import Array, Finish, How, Result, Tensors, explicit

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._nn import Words

Numbers = Union[int, Sequence[int]]


def view(obj: Array, what: str, device: int = _abi.CUDA) -> Tensor:
    """The Tensor behind an object; nothing is copied, the object stays its owner."""
    tensor = intake(obj, what)
    if tensor.device != device:
        raise invalid(f"{what} is a {type(obj).__name__} that does not lie on the "
                      f"{'CUDA device' if device == _abi.CUDA else 'host'}")
    return tensor


def info() -> dict:
    """The device of the current context: name, compute capability (major, minor), processors, driver, l2_bytes,
    kernels (whether this build holds device code), tensor_flops, fma_flops, bytes_per_s."""
    raw = _abi.Gpu()
    call("hk_gpu_info", C.byref(raw))
    found = {name: getattr(raw, name) for name in (f[0] for f in raw._fields_) if name != "size"}
    return dict(found, name=raw.name.decode("utf-8", "replace"), kernels=bool(raw.kernels))


def _rank(x, w):
    tx = view(x, "x")
    if len(tx.shape) not in (3, 4, 5):
        raise invalid(f"x has shape {tx.shape}; (N, C, space..) of 1 to 3 dimensions is required")
    view(w, "w")
    return len(tx.shape) - 2


@explicit(Result, Finish, Tensors, How)
def conv(x: Array, w: Array, bias: Optional[Array] = None, stride: Numbers = 1,
         padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, groups: int = 1, *,
         out: Optional[Array] = None, **words: Unpack[Words]) -> Any:
    """One convolution of CUDA tensors; for more than one of a kind make a Plan. Keywords as of libhankel.conv2d."""
    return convolve(_rank(x, w), x, w, bias, stride, padding, dilation, groups, out, words)


class Plan:
    """One convolution of CUDA tensors shaped and laid out like x and w, its filters packed on the device.

    Keywords as of libhankel.conv2d. act may be a whole epilogue's text ("presum:0.5+relu"), whose order and beta hold.
    residual: a tensor, or True for one that lies as y does. stateful: 1D, causal, stride 1; what came before x is given
    and left in the `state` of a call, a dense tensor of state_shape and x's type. Other attributes are those of
    libhankel.Plan, which stands in `plan`.
    """

    @explicit(Result, Finish, Tensors, How)
    def __init__(self, x: Array, w: Array, bias: Optional[Array] = None, stride: Numbers = 1,
                 padding: Union[str, int, Sequence] = 0, dilation: Numbers = 1, groups: int = 1, *,
                 out: Optional[Array] = None, **words: Unpack[Words]) -> None:
        rank = _rank(x, w)
        if words.get("residual") is False:
            words["residual"] = None
        if words.get("stateful"):
            if padding:
                raise invalid("padding is dilation*(window-1) before x and none behind it in a stateful plan; give "
                              "none")
            padding = "CAUSAL"
        self.stateful = bool(words.get("stateful"))
        self.plan = convolve(rank, x, w, bias, stride, padding, dilation, groups, out, words, "weights")

    def __getattr__(self, name: str) -> Any:
        if name == "plan":
            raise AttributeError(name)
        return getattr(self.plan, name)

    def __call__(self, x: Array, out: Optional[Array] = None, residual: Optional[Array] = None,
                 state: Optional[Array] = None, user: Optional[Array] = None) -> Any:
        """Queues the convolution on the current stream and returns its output. state is read and overwritten with what
        comes next."""
        if (state is not None) != self.stateful:
            raise invalid("state must be given exactly when the plan is stateful")
        return self.plan(x, out=out, residual=residual, state_in=state, state_out=state, user=user)

    def __repr__(self) -> str:
        return f"cuda.{self.plan!r}"
