"""The Epilogue of a problem from keywords, or from an epilogue's text with the arrays that it names."""
from . import _abi
from ._arguments import real
from ._array import dimensions
from ._epilogue import Epilogue, Function
from ._native import invalid

#: how many parameters an activation takes; 0 where it is not listed
_PARAMETERS = {"clip": (2,), "leaky": (1,), "hardtanh": (0, 2)}


def _function(value, what):
    """A Function from a function, or None for anything else."""
    if isinstance(value, Function):
        if value.python is None and value.cuda is None:
            raise invalid(f"{what} is {value!r}; python or cuda is required")
        return value
    return Function(python=value) if callable(value) else None


def _activation(epilogue, spec, slot, raw, device):
    """Sets act or act2 (slot "" or "2") from a name, a (name, a, b) tuple, or a function."""
    if spec is None:
        return
    function = _function(spec, "act" + slot)
    if function is not None:
        setattr(epilogue.raw, "act" + slot, _abi.ACT["user"])
        if "user" not in epilogue.functions:
            epilogue.attach("user", function, raw, device)
        elif epilogue.functions["user"] != function:
            raise invalid("act and act2 are two different functions; one user function serves both")
        return
    name, *parameters = spec if isinstance(spec, (tuple, list)) and spec else (spec,)
    if not isinstance(name, str) or name not in _abi.ACT or name == "user":
        known = ", ".join(known for known in _abi.ACT if known != "user")
        raise invalid(f"act{slot} is {spec!r}; one of {known} or a function is required")
    if len(parameters) not in _PARAMETERS.get(name, (0,)):
        counts = " or ".join(map(str, _PARAMETERS.get(name, (0,))))
        raise invalid(f"act{slot} is {spec!r}; {name} takes {counts} parameters")
    setattr(epilogue.raw, "act" + slot, _abi.ACT[name])
    for field, value in zip(("a" + slot, "b" + slot), parameters):
        setattr(epilogue.raw, field, real(value, f"act{slot}'s parameter {field[0]}"))


def _choice(table, value, what):
    if not isinstance(value, (str, type(None))) or value not in table:
        raise invalid(f"{what} is {value!r}; one of {', '.join(str(k) for k in table)} is required")
    return table[value]


def is_text(act):
    """Whether act is an epilogue's text ("bias+relu", "presum:0.5+relu") and no single name."""
    return isinstance(act, str) and ("+" in act or ":" in act or act in ("sum", "presum", "bias", "scale", "scale1"))


def _parsed(act, act2, gate, beta, residual_order):
    """The Epilogue of a text; what stands in the text is given nowhere else."""
    epilogue = Epilogue(act)
    for name, given in (("act2", act2), ("gate", gate)):
        if given is not None:
            raise invalid(f"{name} is {given!r} and act is the epilogue {act!r}; {name} belongs into its text")
    for name, given in (("beta", beta), ("residual_order", residual_order)):
        if given is not None and epilogue.raw.residual:
            raise invalid(f"{name} is {given!r} and act is the epilogue {act!r}; its text says {name}")
    return epilogue


def _residual(epilogue, has_residual, beta, residual_order):
    for name, given in (("beta", beta), ("residual_order", residual_order)):
        if given is not None and not has_residual:
            raise invalid(f"{name} is {given!r} and residual is None; {name} needs a residual")
    if has_residual and not epilogue.raw.residual:
        orders = {name: value for name, value in _abi.RESIDUAL.items() if value}
        epilogue.raw.residual = _choice(orders, "after" if residual_order is None else residual_order,
                                        "residual_order")
        epilogue.raw.beta = 1.0 if beta is None else real(beta, "beta")


def build(raw, device=_abi.CPU, *, scale=None, bias=None, act=None, act2=None, gate=None, slopes=None, beta=None,
          has_residual=False, residual_order=None, user2=None, store=None):
    """The Epilogue of a problem from keywords. Its vectors are as given; the residual's own strides come later, by
    lay_residual()."""
    if is_text(act):
        epilogue = _parsed(act, act2, gate, beta, residual_order)
    else:
        epilogue = Epilogue()
        _activation(epilogue, act, "", raw, device)
        _activation(epilogue, act2, "2", raw, device)
        epilogue.raw.gate = _choice(_abi.GATE, gate, "gate")
    if scale is not None:
        asked, given = epilogue.raw.scale, 1 if dimensions(scale) == 0 else 2
        if asked and asked != given:
            raise invalid(f"scale has {dimensions(scale)} dimensions; the epilogue {act!r} takes "
                          f"{'one number' if asked == 1 else 'one per channel'}")
        epilogue.raw.scale = given
    epilogue.raw.bias = int(bool(epilogue.raw.bias) or bias is not None)
    if slopes is not None and not epilogue.reads("slopes"):
        raise invalid(f"slopes are given and act is {act!r}; they belong to \"prelu\"")
    for name, given in (("scale", scale), ("bias", bias), ("slopes", slopes)):
        if given is not None:
            epilogue.vectors[name] = given
    _residual(epilogue, has_residual, beta, residual_order)
    for name, value in (("user2", user2), ("store", store)):
        if value is None:
            continue
        function = _function(value, name)
        if function is None:
            raise invalid(f"{name} is {value!r}; a function is required")
        epilogue.attach(name, function, raw, device)
    return epilogue


def missing(epilogue, names):
    """Refuses an epilogue whose text names an array that nobody gave."""
    for name in names:
        if epilogue.reads(name) and name not in epilogue.vectors:
            raise invalid(f"the epilogue {str(epilogue)!r} has a {name} and {name} is None; give it, or leave it out")
