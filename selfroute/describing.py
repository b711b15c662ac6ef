"""Describe the fields of a model once, in its docstring, and repeat that wherever they are taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="type[BaseModel]")
Function = TypeVar("Function", bound=Callable[..., Any])


def described(**inherited: str) -> Callable[[Model], Model]:
    """Return a decorator that gives the fields of a model the descriptions in its docstring, for editors and schemas.

    In turn, the docstring gets the descriptions of inherited fields, and the signature has all fields, own ones first.

    Args:
        inherited: The descriptions of inherited fields that have none.
    """

    def describe(model: Model) -> Model:
        attributes = cleandoc(model.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        own = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE))
        kind: type[BaseModel] = model
        for name, text in {**own, **inherited}.items():
            kind.model_fields[name].description = " ".join(text.split())
        model.__doc__ = _with_fields(model.__doc__, "Attributes", model, but=own)
        fields = sorted(kind.model_fields.items(), key=lambda one: one[0] not in own)
        kind.model_fields.clear()
        kind.model_fields.update(fields)  # pydantic makes the signature of these once a model is built
        model.__signature__ = Signature(_parameters(model))
        return model

    return describe


def takes_fields_of(model: type[BaseModel]) -> Callable[[Function], Function]:
    """Return a decorator that spells out, in docstring and signature, what a function takes as `**options`.

    Args:
        model: Its fields are what the function takes.
    """

    def spell_out(function: Function) -> Function:
        function.__doc__ = _with_fields(function.__doc__, "Args", model)
        own = signature(function)
        *others, _ = own.parameters.values()
        function.__signature__ = own.replace(parameters=[*others, *_parameters(model)])  # type: ignore[attr-defined]
        return function

    return spell_out


def _parameters(model: type[BaseModel]) -> list[Parameter]:
    """Return the fields of a model as parameters; None stands for a default that is made anew for each object."""
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.is_required() else None if field.default_factory else field.default,
            annotation=field.annotation,
        )
        for name, field in model.model_fields.items()
    ]


def _with_fields(doc: str | None, section: str, model: type[BaseModel], *, but: Mapping[str, str] = {}) -> str | None:
    """Return a docstring with a model's other fields at the end of a section; None stays None, as with `python -OO`."""
    if doc is None:
        return None
    before, heading, after = cleandoc(doc).partition(f"{section}:\n")
    own, blank, rest = after.partition("\n\n")
    lines = [
        fill(f"{name}: {field.description}", 118, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name, field in model.model_fields.items()
        if name not in but
    ]
    return f"{before}{heading}" + "\n".join([own.rstrip(), *lines]) + f"{blank}{rest}"
