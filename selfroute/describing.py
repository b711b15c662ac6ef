"""Repeat the descriptions of a model's fields wherever people look for them: in docstrings and signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="type[BaseModel]")
Function = TypeVar("Function", bound=Callable[..., Any])


def lists_fields(*first: str, **inherited: str) -> Callable[[Model], Model]:
    """Return a decorator that lists the fields of a model in its docstring and signature.

    Args:
        *first: The fields that come first.
        **inherited: The descriptions of inherited fields that have none; these fields come last.
    """

    def decorate(model: Model) -> Model:
        known: dict[str, Any] = model.model_fields  # type: ignore[call-overload]
        for name, text in inherited.items():
            known[name].description = text
        fields = {
            name: known[name]
            for name in dict.fromkeys([*first, *(one for one in known if one not in inherited), *inherited])
        }
        known.clear()
        known.update(fields)  # pydantic makes the signature of these once a model is built
        model.__signature__ = Signature([*_parameters(model)])
        if model.__doc__:  # `python -OO` removes it
            before, raises, errors = cleandoc(model.__doc__).partition("\n\nRaises:")
            model.__doc__ = f"{before}\n\nAttributes:\n{_entries(model)}{raises}{errors}\n"
        return model

    return decorate


def takes_fields_of(model: type[BaseModel]) -> Callable[[Function], Function]:
    """Return a decorator that spells out, in docstring and signature, what a function takes as `**options`.

    Args:
        model: Its fields are what the function takes.
    """

    def decorate(function: Function) -> Function:
        own = signature(function)
        *others, _ = own.parameters.values()
        function.__signature__ = own.replace(parameters=[*others, *_parameters(model)])  # type: ignore[attr-defined]
        if function.__doc__:
            entry = r"(?m)^    \*\*options: .*\n(?: {5,}.*\n)*"
            function.__doc__ = re.sub(entry, lambda _: f"{_entries(model)}\n", cleandoc(function.__doc__))
        return function

    return decorate


def _parameters(model: type[BaseModel]) -> Iterator[Parameter]:
    """Yield the fields of a model as parameters; None stands for a default that is made for each object."""
    for name, field in model.model_fields.items():
        default = Parameter.empty if field.is_required() else None if field.default_factory else field.default
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=field.annotation)


def _entries(model: type[BaseModel]) -> str:
    lines = (f"{name}: {field.description}" for name, field in model.model_fields.items())
    return indent("\n".join(fill(line, 114, subsequent_indent=" " * 4) for line in lines), " " * 4)
