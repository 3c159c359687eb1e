"""hk_options from keywords."""
from . import _abi
from ._arguments import integer, real
from ._native import invalid
from ._words import How

_FLAGS = ("wisdom_only", "forbid_fallback", "batch_invariant", "unaligned", "stateful")
_NAMED = (("isa", _abi.ISA), ("rigor", _abi.RIGOR), ("denormals", _abi.DENORMALS))
DEVICES = {"cpu": _abi.CPU, "cuda": _abi.CUDA}


def make_options(device=_abi.CPU, **given):
    """hk_options from keywords: threads, isa, workspace_limit (bytes), rigor ("estimate", "measure", "patient"),
    time_limit (seconds), denormals ("keep", "flush", "exact"), math (names, e.g. ("fast_algorithms",)), decision (text), and
    the flags wisdom_only, forbid_fallback, batch_invariant, unaligned, stateful."""
    options = _abi.Options(device=device)
    given = {name: value for name, value in given.items() if value is not None}
    options.threads = integer(given.pop("threads", 0), "threads", 32)
    options.time_limit_s = real(given.pop("time_limit", 0.0), "time_limit")
    if "decision" in given:
        decision = given.pop("decision")
        if not isinstance(decision, str):
            raise invalid(f"decision is {decision!r}; a string is required")
        options.decision = decision.encode()
    if "workspace_limit" in given:
        limit = integer(given.pop("workspace_limit"), "workspace_limit", least=0)
        options.limit_workspace, options.workspace_limit_bytes = 1, limit
    for name, table in _NAMED:
        if name in given:
            value = given.pop(name)
            if not isinstance(value, str) or value not in table:
                raise invalid(f"{name} is {value!r}; one of {', '.join(str(k) for k in table)} is required")
            setattr(options, name, table[value])
    math = given.pop("math", ())
    for mode in math if isinstance(math, (tuple, list, set, frozenset)) else (math,):
        if not isinstance(mode, str) or mode not in _abi.MATH:
            raise invalid(f"math has {mode!r}; one of {', '.join(_abi.MATH)} is required")
        options.math |= _abi.MATH[mode]
    for name in _FLAGS:
        setattr(options, name, int(bool(given.pop(name, False))))
    if given:
        raise TypeError(f"unknown option {sorted(given)[0]!r}; known: {', '.join(How.__annotations__)}")
    return options


def device_of(device, f):
    """_abi.CPU or _abi.CUDA from a name; None follows the filter, which may be None too."""
    if device is None:
        return _abi.CPU if f is None else f.device
    if device not in DEVICES:
        raise invalid(f"device is {device!r}; one of {', '.join(DEVICES)} is required")
    return DEVICES[device]
