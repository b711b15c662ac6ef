"""Asks LlamaIndex's models to fill a report in, and reads it as text.

As `structured_predict` does, but the reply itself is kept: its token counts, and its text where it is no report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeGuard

from llama_index.core.llms import LLM, ChatResponse
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.program.function_program import get_function_tool
from llama_index.core.types import PydanticProgramMode
from pydantic import BaseModel, Field
from typing_extensions import override

from llamaindex_selfroute import host, models
from llamaindex_selfroute.convert import Prompt
from llamaindex_selfroute.models import Response, ResponseTally
from selfroute.answerability import structured as reports


class Report(BaseModel):
    """The answer to the question, or that it cannot be answered."""

    answerable: bool = Field(description=reports.ANSWERABLE)
    answer: str = Field(description=reports.ANSWER)


@cache
def schema_length() -> int:
    """How many characters a prompt grows by, roughly: each provider words it in a way of its own."""
    return len(json.dumps(Report.model_json_schema()))


def ask(llm: LLM, prompt: Prompt) -> Response:
    """Ask for a report: through the model's own format of replies, as a call of a function, or else in words."""
    if not isinstance(prompt, str):
        if options := host.report_options(llm, Report):
            return llm.chat(prompt, **options)
        if _calls(llm):
            return llm.chat_with_tools([get_function_tool(Report)], chat_history=prompt, tool_required=True)
    return models.ask(llm, _in_words(prompt))


async def aask(llm: LLM, prompt: Prompt) -> Response:
    """As `ask`."""
    if not isinstance(prompt, str):
        if options := host.report_options(llm, Report):
            return await llm.achat(prompt, **options)
        if _calls(llm):
            return await llm.achat_with_tools([get_function_tool(Report)], chat_history=prompt, tool_required=True)
    return await models.aask(llm, _in_words(prompt))


def _calls(llm: LLM) -> TypeGuard[FunctionCallingLLM]:
    calls = isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model
    return calls and llm.pydantic_program_mode != PydanticProgramMode.LLM


def _in_words(prompt: Prompt) -> Prompt:
    words = _Words(Report)
    if isinstance(prompt, str):
        return words.format(prompt)
    return words.format_messages([message.model_copy(deep=True) for message in prompt])  # it writes into them


class _Words(PydanticOutputParser[Report]):
    """Asks as LlamaIndex does, but of a text that is no template any more."""

    @override
    def format(self, query: str) -> str:
        return f"{query}\n\n{self.get_format_string(escape_json=False)}"


def text_of(llm: LLM, reply: Response, tally: ResponseTally, *, refusal: str) -> str:
    """The report as a model that writes text would have it; the text that a model wrote in place of one."""
    raw = tally.add(reply)
    report = reports.report_in((*_called(llm, reply), reports.json_in(raw)))
    if report is None:
        return raw
    text = reports.as_text(report, refusal=refusal)
    if not raw:
        tally.text.append(text)  # so that it is counted where the model does not count
    return text


def _called(llm: LLM, reply: Response) -> Iterator[Any]:
    if isinstance(llm, FunctionCallingLLM) and isinstance(reply, ChatResponse):
        try:
            calls = llm.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        except Exception:  # noqa: BLE001 - arguments that can not be read: each package raises what it likes
            return
        yield from (call.tool_kwargs for call in calls)
