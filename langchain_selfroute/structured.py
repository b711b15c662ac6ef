"""Asks LangChain's models to fill a report in, and reads it as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import override

from langchain_selfroute.convert import text_of as text_in
from langchain_selfroute.models import MessageTally
from selfroute.answerability import structured as reports
from selfroute.errors import ConfigurationError


class Report(BaseModel):
    """The answer to the question, or that it can not be answered."""

    answerable: bool = Field(description=reports.ANSWERABLE)
    answer: str = Field(description=reports.ANSWER)


@cache
def schema_length() -> int:
    """How many characters a prompt grows by, roughly: each provider words it in a way of its own."""
    return len(json.dumps(Report.model_json_schema()))


def _format() -> dict[str, Any]:
    schema = {**Report.model_json_schema(), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": Report.__name__, "schema": schema, "strict": True}}


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """What a model returned that was to fill the report in.

    Attributes:
        message: Its message, None if that is not to be had.
        report: The fields, None if it did not fill them in.
    """

    message: Any
    report: Mapping[str, Any] | None


def text_of(reply: StructuredReply, tally: MessageTally, *, refusal: str) -> str:
    """The report as a model that writes text would have it; the text that a model wrote in place of one."""
    raw = "" if reply.message is None else tally.add(reply.message)
    if reply.report is None:
        return raw
    text = reports.as_text(reply.report, refusal=refusal)
    if not raw:
        tally.text.append(text)  # so that it is counted where the model does not count
    return text


def _report(message: Any, *parsed: Any) -> Mapping[str, Any] | None:
    """The report in a message or in what it was parsed to."""
    found = [one.model_dump() if isinstance(one, BaseModel) else one for one in parsed]
    if isinstance(message, AIMessage):
        found += [call["args"] for call in message.tool_calls]
    if isinstance(message, BaseMessage | str):
        found.append(reports.json_in(text_in(message)))
    return reports.report_in(found)


class _Model(Runnable[Any, StructuredReply]):
    """A model, apart from the parser of its replies, which is asked only where it takes one.

    It is no run of its own: wrappers and tracers meet the model.
    """

    def __init__(self, model: Runnable[Any, Any], parser: Runnable[Any, Any]) -> None:
        self.model, self.parser = model, parser

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        message = self.model.invoke(input, config, **kwargs)
        report = _report(message)
        if report is None:
            with suppress(Exception):  # each provider's parser raises what it likes
                report = _report(None, self.parser.invoke(message, _unnamed(config)))
        return StructuredReply(message, report)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        message = await self.model.ainvoke(input, config, **kwargs)
        report = _report(message)
        if report is None:
            with suppress(Exception):
                report = _report(None, await self.parser.ainvoke(message, _unnamed(config)))
        return StructuredReply(message, report)


def _unnamed(config: RunnableConfig | None) -> RunnableConfig:
    return cast("RunnableConfig", {key: value for key, value in (config or {}).items() if key != "run_name"})


class _Whole(Runnable[Any, StructuredReply]):
    """A model and its parser in one, such as one that `init_chat_model` makes when it is called."""

    def __init__(self, model: Runnable[Any, Any]) -> None:
        self.model = model

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        heard = _Heard()
        try:
            return heard.filled(self.model.invoke(input, heard.beside(config), **kwargs))
        except Exception as error:  # noqa: BLE001
            return heard.unfilled(error)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        heard = _Heard()
        try:
            return heard.filled(await self.model.ainvoke(input, heard.beside(config), **kwargs))
        except Exception as error:  # noqa: BLE001
            return heard.unfilled(error)


class _Heard(BaseCallbackHandler):
    """Hears the message of a model inside."""

    message: Any = None

    @override
    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        self.message = getattr(response.generations[0][0], "message", None)

    def beside(self, config: RunnableConfig | None) -> RunnableConfig:
        return merge_configs(config, RunnableConfig(callbacks=[self]))

    def filled(self, returned: Any) -> StructuredReply:
        if self.message is None and isinstance(returned, BaseMessage | str):
            return StructuredReply(returned, _report(returned))
        return StructuredReply(self.message, _report(self.message, returned))

    def unfilled(self, error: Exception) -> StructuredReply:
        if self.message is not None:
            return self.filled(None)
        if isinstance(error, ValidationError):
            return self.filled(error.errors()[0]["input"])
        if isinstance(error, OutputParserException):
            return self.filled(error.llm_output)
        raise error  # the model's, not its parser's


class _Configured(Runnable[Any, StructuredReply]):
    """A model with configurable parts: which one it is, the config of a call tells."""

    def __init__(self, model: DynamicRunnable[Any, Any]) -> None:
        self.model = model

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        model, config = self.model.prepare(config)
        return cast("StructuredReply", asking("llm", model).invoke(input, config, **kwargs))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> StructuredReply:
        model, config = self.model.prepare(config)
        return cast("StructuredReply", await asking("llm", model).ainvoke(input, config, **kwargs))


def asking(name: str, model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """The same model, which is asked to fill the report in and returns `StructuredReply`.

    What is bound around it stays around it: LangChain's bindings pass `with_structured_output` on to the model inside,
    and drop what they bind.

    Args:
        name: What the model is called.
        model: A chat model, or bindings, retries, fallbacks or configurable fields around one.

    Raises:
        ConfigurationError: It can not be asked so.
    """
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": asking(name, model.bound)})
    if isinstance(model, RunnableWithFallbacks):
        first, *others = (asking(name, one) for one in model.runnables)
        return model.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(model, DynamicRunnable):
        asking(name, model.default)
        return _Configured(model)
    ask = getattr(model, "with_structured_output", None)
    try:
        asked = ask and ask(Report)
    except NotImplementedError:
        asked = None
    if asked is None:
        msg = (
            f"answerability='structured' wants a chat model that has with_structured_output, alone or with bindings, "
            f"retries or fallbacks; {name} is a {type(model).__name__} that has none: leave answerability='text'"
        )
        raise ConfigurationError(msg)
    if isinstance(asked, RunnableSequence) and isinstance(_inside(asked.first), BaseLanguageModel):
        return _Model(_unread(asked.first), reduce(or_, asked.steps[1:]))
    return _Whole(asked)


def _inside(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    while isinstance(model, RunnableBindingBase):
        model = model.bound
    return model


def _unread(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """The same model, without OpenAI's client reading the reply within the call, where an error would cost the reply.

    It reads only what it is given a class for, and sends the same either way.
    """
    if isinstance(model, RunnableBindingBase) and model.kwargs.get("response_format") is Report:
        return model.model_copy(update={"kwargs": {**model.kwargs, "response_format": _format()}})
    return model
