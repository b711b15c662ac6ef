"""Describe the fields of a model once, in its docstring, and repeat that wherever they are taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="type[BaseModel]")
Function = TypeVar("Function", bound=Callable[..., Any])


def described(after: str = "", **inherited: str) -> Callable[[Model], Model]:
    """Return a decorator that gives the fields of a model the descriptions in its docstring, for editors and schemas.

    In turn, docstring and signature get the inherited fields.

    Args:
        after: The field of the model's own behind which they stand.
        inherited: The descriptions of inherited fields that have none; they stand last.
    """

    def describe(model: Model) -> Model:
        attributes = cleandoc(model.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        own = dict(re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE))
        kind: type[BaseModel] = model
        for name, text in {**own, **inherited}.items():
            kind.model_fields[name].description = " ".join(text.split())
        names = [name for name in kind.model_fields if name not in own and name not in inherited]
        model.__doc__ = _with_fields(model.__doc__, "Attributes", model, names, after)
        model.__doc__ = _with_fields(model.__doc__, "Attributes", model, inherited)
        first, rest = _around(list(own), after)
        fields = {name: kind.model_fields[name] for name in [*first, *names, *rest, *inherited]}
        kind.model_fields.clear()
        kind.model_fields.update(fields)  # pydantic makes the signature of these once a model is built
        model.__signature__ = Signature(_parameters(model))
        return model

    return describe


def takes_fields_of(model: type[BaseModel], after: str = "") -> Callable[[Function], Function]:
    """Return a decorator that spells out, in docstring and signature, what a function takes as `**options`.

    Args:
        model: Its fields are what the function takes.
        after: The argument behind which they stand.
    """

    def spell_out(function: Function) -> Function:
        function.__doc__ = _with_fields(function.__doc__, "Args", model, model.model_fields, after)
        own = signature(function)
        *others, _ = own.parameters.values()
        first, rest = _around([one.name for one in others], after)
        spelled = {one.name: one for one in [*others, *_parameters(model)]}
        parameters = [spelled[name] for name in [*first, *model.model_fields, *rest]]
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
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


def _around(names: list[str], after: str) -> tuple[list[str], list[str]]:
    """Return the names up to one, and those behind it; all, and none, if it is not among them."""
    at = names.index(after) + 1 if after in names else len(names)
    return names[:at], names[at:]


def _with_fields(
    doc: str | None, section: str, model: type[BaseModel], names: Iterable[str], after: str = ""
) -> str | None:
    """Return a docstring with fields of a model in a section, behind one or last.

    Of None, as with `python -OO`, None.
    """
    if doc is None:
        return None
    before, heading, rest = cleandoc(doc).partition(f"{section}:\n")
    own, blank, rest = rest.partition("\n\n")
    entries = {entry.partition(":")[0].strip("* "): entry for entry in re.split(r"\n(?= {4}\S)", own.rstrip()) if entry}
    first, last = _around(list(entries), after)
    lines = [
        fill(f"{name}: {model.model_fields[name].description}", 118, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name in names
    ]
    whole = [*(entries[name] for name in first), *lines, *(entries[name] for name in last)]
    return f"{before}{heading}" + "\n".join(whole) + f"{blank}{rest}"
