"""PyTorch's convolutions by hankel: functions, modules, and optimize(), which puts them into a model.

>>> import torch, libhankel.torch as ht
>>> x, w = torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3, requires_grad=True)
>>> y = ht.conv2d(x, w, padding=1, act="relu")        # torch.nn.functional.conv2d with an epilogue, and with gradients
>>> y.sum().backward()
>>> w.grad.shape
torch.Size([3, 2, 3, 3])

The functions take torch's arguments and what is fused behind the convolution: act ("relu", "silu", ("leaky", 0.1), ..) and
residual, added before act. Gradients are hankel's own, with the same bits every time. Under torch.compile and
torch.export they are the operators torch.ops.libhankel.conv and conv_gradient (torch 2.4 or newer); under autocast they
take its type. optimize(model) fuses batch norm, residual and activation of a model in eval mode and packs its weights.
"""
from .functional import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .modules import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .optimize import Fused, optimize

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fused", "conv1d",
           "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "optimize"]
