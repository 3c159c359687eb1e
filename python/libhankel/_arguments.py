"""Arguments by name and by value: other systems' names for them, and numbers that no field would cut off."""
import functools
import inspect
import operator
from typing import Any, Callable, TypeVar

import numpy as np

from ._native import invalid

F = TypeVar("F", bound=Callable[..., Any])


def also_named(**names: str) -> Callable[[F], F]:
    """A decorator: the function takes each argument by another system's name too, e.g. also_named(input="x")."""
    def decorate(function):
        order = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*arguments, **keywords):
            for other, own in names.items():
                if other in keywords:
                    if own in keywords or order.index(own) < len(arguments):
                        raise TypeError(f"{function.__name__}() got {own} and {other}, two names of one argument")
                    keywords[own] = keywords.pop(other)
            return function(*arguments, **keywords)
        return call
    return decorate


def integer(value, what, bits=64, least=None):
    """`value` as an int that fits into `bits` signed bits. Floats are refused, also whole ones."""
    try:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise invalid(f"{what} is {value!r}; an integer is required") from None
    low, high = -2 ** (bits - 1) if least is None else least, 2 ** (bits - 1) - 1
    if not low <= number <= high:
        raise invalid(f"{what} is {number}; at {f'least {low}' if number < low else f'most {high}'} is required")
    return number


def real(value, what):
    """`value` as a float."""
    try:
        return float(operator.index(value)) if isinstance(value, (int, np.integer)) else value.__float__()
    except (AttributeError, TypeError, OverflowError):
        raise invalid(f"{what} is {value!r}; a real number is required") from None


def is_single(value):
    """Whether an argument is one value and no sequence. np.ndim would refuse ragged ones: (1, (2, 3))."""
    return isinstance(value, str) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def integers(values, what):
    """A tuple of integers from a sequence of them; messages name the entry."""
    if is_single(values):
        raise invalid(f"{what} is {values!r}; a sequence of integers is required")
    return tuple(integer(value, f"{what}[{i}]") for i, value in enumerate(values))


def per_axis(value, rank, what):
    """A tuple of `rank` integers from one integer or a sequence."""
    if is_single(value):
        return (integer(value, what),) * rank
    if len(value) != rank:
        raise invalid(f"{what} is {value!r}; {rank} values are required")
    return integers(value, what)
