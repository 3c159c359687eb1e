"""torch.ops.libhankel: operators that torch.compile and torch.export see through. Each has one kernel for every device, and a
fake one that says shapes and strides without running. torch before 2.4 does not know fake kernels and goes without."""
from __future__ import annotations

from typing import Any, Callable

import torch

#: whether this torch can have operators
KNOWN = hasattr(torch.library, "register_autograd")
_defined: dict = {}


def define(name: str, schema: str, real: Callable, fake: Callable, backward: Any = None, setup: Any = None) -> bool:
    """Defines an operator once, with its gradient where there is one. False where torch is too old."""
    if not KNOWN or name in _defined:
        return KNOWN
    library = _defined[name] = torch.library.Library("libhankel", "FRAGMENT")
    tag = getattr(torch.Tag, "needs_exact_strides", None) or torch.Tag.needs_fixed_stride_order
    library.define(name + schema, tags=(tag,))
    library.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"libhankel::{name}", fake, lib=library)
    if backward is not None:
        torch.library.register_autograd(f"libhankel::{name}", backward, setup_context=setup, lib=library)
    return True
