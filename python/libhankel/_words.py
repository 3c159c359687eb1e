"""The keywords that many functions share, once: how a sum is finished (Finish), how a plan may be made (How), and what
the tensors are (Tensors).

A function written as `def f(x, **words: Unpack[Finish])` and decorated with @explicit(Finish) has those keywords in its
signature, for help() and for type checkers alike, and refuses any other.
"""
from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Tuple, TypedDict, TypeVar, Union

if TYPE_CHECKING:
    from ._epilogue import Function

#: An array of numbers: numpy, torch, anything with __dlpack__ or __cuda_array_interface__; small ones may be lists.
Array = Any
F = TypeVar("F", bound=Callable[..., Any])
Act = Union[str, Tuple, Callable, "Function", None]


class Finish(TypedDict, total=False):
    """What happens to each sum before it is stored: v = acc*scale + bias, act(v) + beta*residual, user2, store."""
    scale: Union[float, Array, None]
    act: Act
    act2: Act
    gate: Optional[str]
    slopes: Optional[Array]
    residual: Optional[Array]
    beta: Optional[float]
    residual_order: Optional[str]
    user2: Union[Callable, "Function", None]
    store: Union[Callable, "Function", None]
    user: Optional[Array]


class Bias(TypedDict, total=False):
    """The bias, where it is no argument by position."""
    bias: Optional[Array]


class Result(TypedDict, total=False):
    """The type of the result."""
    out_dtype: object


class Tensors(TypedDict, total=False):
    """Types and zero points: x_dtype and f_dtype reinterpret equally wide elements."""
    x_dtype: object
    f_dtype: object
    x_zero: int
    f_zero: Union[int, Sequence[int]]
    y_zero: int


class How(TypedDict, total=False):
    """How a plan may be made (hk_options)."""
    threads: Optional[int]
    isa: Optional[str]
    workspace_limit: Optional[int]
    rigor: Optional[str]
    time_limit: Optional[float]
    denormals: Optional[str]
    math: Union[str, Sequence[str], None]
    decision: Optional[str]
    wisdom_only: bool
    forbid_fallback: bool
    batch_invariant: bool
    unaligned: Optional[bool]
    stateful: bool


#: what a keyword is where it is not given; None for all others
_DEFAULTS = dict(x_zero=0, f_zero=0, y_zero=0, wisdom_only=False, forbid_fallback=False, batch_invariant=False,
                 stateful=False)


def explicit(*groups: type) -> Callable[[F], F]:
    """A decorator: the function's **words become the keywords of the groups."""
    names = [name for group in groups for name in group.__annotations__]
    hints = {name: getattr(hint, "__forward_arg__", hint) for group in groups  # as text, which help() shows as it is
             for name, hint in group.__annotations__.items()}

    def decorate(function):
        plain = inspect.signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p.name for p in own]
        known = taken + names

        @functools.wraps(function)
        def call(*arguments, **keywords):
            for name in keywords:
                if name not in known:
                    near = difflib.get_close_matches(name, known, 1)
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}"
                                    + (f"; did you mean {near[0]!r}?" if near else ""))
            return function(*arguments, **keywords)

        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name),
                                  annotation=hints[name]) for name in names if name not in taken]
        call.__signature__ = plain.replace(parameters=own + more)
        return call
    return decorate


def split(words: Mapping[str, Any], *groups: type) -> list:
    """The words of each group, those that are None left out."""
    return [{name: words[name] for name in group.__annotations__ if words.get(name) is not None} for group in groups]
