"""Ask LangChain's models for a structured report, and turn it into the text that a model would have written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any, cast

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel
from typing_extensions import override

from langchain_selfroute.convert import config_within
from langchain_selfroute.convert import text_of as text_in
from langchain_selfroute.internals import chosen_model
from langchain_selfroute.models.tally import MessageTally
from selfroute.answerability import structured
from selfroute.answerability.structured import Form
from selfroute.errors import ConfigurationError

_PLAIN = Form()


def asking(
    name: str, model: Runnable[Any, Any], config: RunnableConfig | None = None, *, form: Form = _PLAIN
) -> Runnable[Any, Any]:
    """Return a model that is asked for the report, within the same bindings, retries and fallbacks.

    LangChain's own bindings would pass `with_structured_output` on to the model within, and drop what they bind.

    Args:
        name: The name of the chain's field, for error messages.
        model: A chat model, or bindings, retries, fallbacks or configurable fields around one.
        config: The config of the call, which sets configurable fields.
        form: Which report.

    Returns:
        A runnable that returns dicts with `raw`, the message, and `parsed`, the report; `text_of` reads them.

    Raises:
        ConfigurationError: The model cannot be asked for a report.
    """
    if isinstance(model, DynamicRunnable):
        return asking(name, model.prepare(config)[0], config, form=form)
    if (chosen := chosen_model(model, config)) is not None:
        return asking(name, chosen, config, form=form)
    if isinstance(model, RunnableBindingBase) and not hasattr(type(model), "with_structured_output"):
        bound = asking(name, model.bound, config_within(model, config), form=form)
        return model.model_copy(update={"bound": bound})
    if isinstance(model, RunnableWithFallbacks):
        first, *others = (asking(name, one, config, form=form) for one in model.runnables)
        return model.model_copy(update={"runnable": first, "fallbacks": others})
    ask: Any = getattr(model, "with_structured_output", None)
    report = structured.report_of(form)
    try:
        reporting = ask and ask(report)
    except NotImplementedError:
        reporting = None
    if reporting is None:
        msg = (
            f"answerability='structured' needs a chat model that has with_structured_output, alone or within bindings, "
            f"retries or fallbacks; {name} is a {type(model).__name__}, which lacks it: use answerability='text'"
        )
        raise ConfigurationError(msg)
    if isinstance(reporting, RunnableSequence) and isinstance(_inside(reporting.first), BaseLanguageModel):
        return _Unparsed(_unread(reporting.first, report), reduce(or_, reporting.steps[1:]))
    with suppress(TypeError, NotImplementedError):  # a custom model may not offer its message with the report
        reporting = ask(report, include_raw=True)
    return cast("Runnable[Any, Any]", reporting)


class _Unparsed(Runnable[Any, Any]):
    """A model that is run without the parser of its replies. The parser is used only if a reply cannot be read without.

    No run is added: wrappers and tracers see only the model, as they do when it writes text.
    """

    def __init__(self, model: Runnable[Any, Any], parser: Runnable[Any, Any]) -> None:
        self.model, self.parser = model, parser

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        message, parsed = self.model.invoke(input, config, **kwargs), None
        if structured.report_in(_candidates(message)) is None:
            with suppress(Exception):  # parsers of different providers raise different errors
                parsed = self.parser.invoke(message, _unnamed(config))
        return {"raw": message, "parsed": parsed}

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        message, parsed = await self.model.ainvoke(input, config, **kwargs), None
        if structured.report_in(_candidates(message)) is None:
            with suppress(Exception):
                parsed = await self.parser.ainvoke(message, _unnamed(config))
        return {"raw": message, "parsed": parsed}


def _unnamed(config: RunnableConfig | None) -> RunnableConfig:
    return cast("RunnableConfig", {key: value for key, value in (config or {}).items() if key != "run_name"})


def _inside(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    while isinstance(model, RunnableBindingBase):
        model = model.bound
    return model


def _unread(model: Runnable[Any, Any], report: type[BaseModel]) -> Runnable[Any, Any]:
    """Return the same model, but keep OpenAI's client from parsing the reply: an error there would lose it.

    The client parses replies only if it is given a class; a schema makes it send the same request.
    """
    if not isinstance(model, RunnableBindingBase) or model.kwargs.get("response_format") is not report:
        return model
    schema = {**report.model_json_schema(), "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": report.__name__, "schema": schema, "strict": True}}
    return model.model_copy(update={"kwargs": {**model.kwargs, "response_format": wanted}})


def text_of(reply: Any, tally: MessageTally, *, refusal: str, form: Form = _PLAIN) -> str:
    """Return the report as a model that writes text would have written it; or the text that came in place of one."""
    if isinstance(reply, Mapping) and "raw" in reply:
        message, parsed = reply["raw"], reply.get("parsed")
    else:
        message, parsed = (reply if isinstance(reply, BaseMessage | str) else None), reply
    raw = "" if message is None else tally.add(message)
    return structured.text_of(_candidates(message, parsed), raw, tally=tally, refusal=refusal, form=form)


def _candidates(message: Any, parsed: Any = None) -> list[Any]:
    """Return the candidates for a report: the parsed reply, the arguments of tool calls, and JSON in the text."""
    found = [parsed.model_dump() if isinstance(parsed, BaseModel) else parsed]
    if isinstance(message, AIMessage):
        found += [call["args"] for call in message.tool_calls]
        found += [structured.json_in(call["args"] or "") for call in message.invalid_tool_calls]
    if isinstance(message, BaseMessage | str):
        found.append(structured.json_in(text_in(message)))
    return found
