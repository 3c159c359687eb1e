"""Puts libhankel.causal_conv1d in the place of the package causal_conv1d, for model code that imports that one."""
from __future__ import annotations

import importlib.machinery
import importlib.metadata
import sys
from types import ModuleType
from typing import Any, Iterator, Optional

#: the release of causal-conv1d whose functions these are
VERSION = "1.6.1"
_NAME = "causal_conv1d"


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata says of the package: some programs look there before they import."""

    def read_text(self, filename: str) -> Optional[str]:
        if filename in ("METADATA", "PKG-INFO"):
            return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {VERSION}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return None


class _Finder(importlib.metadata.DistributionFinder):
    """Finds the distribution above, and no module: those stand in sys.modules."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(self, context: Any = importlib.metadata.DistributionFinder.Context()) -> Iterator:
        if context.name is not None and context.name.replace("-", "_").lower() == _NAME:
            yield _Distribution()


def _module(name, package, things):
    module = ModuleType(name, f"libhankel.causal_conv1d in the place of {name}")
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin="libhankel", is_package=package)
    module.__dict__.update(things, __version__=VERSION)
    if package:
        module.__path__ = []
    sys.modules[name] = module
    return module


def install(replace: bool = False) -> None:
    """Makes `import causal_conv1d` give this module, with its parts causal_conv1d_interface, causal_conv1d_varlen and
    cpp_functions. Call it before the model code is imported. Where the original is loaded already, replace=True is
    required; functions that were imported from it by name stay the original's."""
    from .. import causal_conv1d as own
    from . import cpp
    loaded = sys.modules.get(_NAME)
    if loaded is not None and getattr(loaded.__spec__, "origin", None) != "libhankel" and not replace:
        raise ImportError(f"{_NAME} is loaded from {getattr(loaded, '__file__', 'elsewhere')}; call install() before "
                          "it is imported, or install(replace=True)")
    things = {name: getattr(own, name) for name in own.__all__ if name != "install" and hasattr(own, name)}
    whole = _module(_NAME, True, {n: things[n] for n in ("causal_conv1d_fn", "causal_conv1d_update")})
    varlen = {n: f for n, f in things.items() if "varlen" in n}
    for part, content in (("causal_conv1d_interface", {n: f for n, f in things.items() if n not in varlen}),
                          ("causal_conv1d_varlen", varlen), ("cpp_functions", cpp.functions())):
        setattr(whole, part, _module(f"{_NAME}.{part}", False, content))
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())  # type: ignore[arg-type]
