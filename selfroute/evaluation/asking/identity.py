"""Describes a model as plain JSON, the same in every process, so that its kept replies are found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.replies import Replies
from selfroute.flow import Route

_NOT_IDENTIFYING = (
    *("key", "secret", "password", "token", "headers"),
    *("timeout", "retries", "attempt_number", "cache"),
    *("callbacks", "metadata", "profile", "tags", "verbose"),
)
"""Endings of the names of settings that are secret or that replies do not depend on."""


def identity_of(model: object, step: Route, name: str | None, replies: Replies) -> Any:
    """Return what a model's kept replies are found by, as plain JSON.

    Args:
        model: The model.
        step: The step that it is used for.
        name: The user's name for the pipeline, if it has one.
        replies: The replies; in memory they are found by the model itself.

    Raises:
        ConfigurationError: See `describe_model`.
    """
    if name:
        return [name, step]
    return describe_model(model) if replies.are_kept else id(model)


def judge_identity(model: object, name: str | None, replies: Replies) -> Any:
    """Return what a judge's kept replies are found by, as plain JSON.

    A pipeline's name does not stand for its judge, which is another choice: it counts only where it has to.

    Args:
        model: The judge.
        name: The user's name for the pipeline, if it has one.
        replies: The replies; in memory they are found by the model itself.

    Raises:
        ConfigurationError: The model cannot be described, and there is no name. See `describe_model`.
    """
    if not replies.are_kept:
        return id(model)
    try:
        return describe_model(model)
    except ConfigurationError:
        if name:
            return [name, "judge"]
        raise


def describe_model(model: object) -> Any:
    """Describe a model by its class and its fields, and likewise what it is wrapped in: bindings, retries, fallbacks.

    Fields that are None are left out. A field that is neither plain data nor another model counts by its class only.

    Args:
        model: A model of LangChain or LlamaIndex.

    Raises:
        ConfigurationError: It is, or holds, a function or another runnable without fields.
    """
    if not isinstance(model, BaseModel):
        raise _unknown(model)
    return _fields(model)


def _fields(model: BaseModel) -> dict[str, Any]:
    fields = {name: getattr(model, name) for name, field in type(model).model_fields.items() if not field.exclude}
    fields["_generation_config"] = getattr(model, "_generation_config", None)  # where LlamaIndex's Gemini has its own
    return {"class": _name(type(model)), **_plain({name: value for name, value in fields.items() if value is not None})}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items() if not str(key).endswith(_NOT_IDENTIFYING)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, BaseModel):
        return _fields(value)
    named = value if callable(value) else type(value)
    name = _name(named)
    if hasattr(value, "invoke") or "<" in name:  # a runnable without fields, a lambda, a function in a function
        raise _unknown(value)
    return name


def _name(named: Any) -> str:
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__qualname__)}"


def _unknown(model: object) -> ConfigurationError:
    msg = (
        f"the replies cannot be kept in a folder, because a {type(model).__name__} does not say what it does: "
        "give the pipeline a name with name=..., or leave out folder="
    )
    return ConfigurationError(msg)
