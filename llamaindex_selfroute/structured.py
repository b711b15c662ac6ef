"""Ask LlamaIndex's models for a structured report, and turn it into the text that a model would have written.

This works like `structured_predict`, but keeps the reply itself: its token counts, and its text if it is not a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from llama_index.core.llms import LLM, ChatResponse
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.program.function_program import get_function_tool
from llama_index.core.types import PydanticProgramMode
from pydantic import BaseModel
from typing_extensions import override

from llamaindex_selfroute import internals, models
from llamaindex_selfroute.convert import ModelInput
from llamaindex_selfroute.models import LLMResponse
from llamaindex_selfroute.tally import ResponseTally
from selfroute.answerability import structured as reports
from selfroute.answerability.structured import Form

_PLAIN = Form()


def ask(llm: LLM, prompt: ModelInput, form: Form = _PLAIN) -> LLMResponse:
    """Return a reply with a report: through the model's response format, a function call, or else by instruction."""
    report = reports.report_of(form)
    if not isinstance(prompt, str):
        if options := internals.report_options(llm, report):
            return llm.chat(prompt, **options)
        if _can_call_functions(llm):
            return llm.chat_with_tools([get_function_tool(report)], chat_history=prompt, tool_required=True)
    return models.ask(llm, _with_instruction(prompt, report))


async def aask(llm: LLM, prompt: ModelInput, form: Form = _PLAIN) -> LLMResponse:
    """The async twin of `ask`."""
    report = reports.report_of(form)
    if not isinstance(prompt, str):
        if options := internals.report_options(llm, report):
            return await llm.achat(prompt, **options)
        if _can_call_functions(llm):
            return await llm.achat_with_tools([get_function_tool(report)], chat_history=prompt, tool_required=True)
    return await models.aask(llm, _with_instruction(prompt, report))


def _can_call_functions(llm: LLM) -> TypeGuard[FunctionCallingLLM]:
    calls = isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model
    return calls and llm.pydantic_program_mode != PydanticProgramMode.LLM


def _with_instruction(prompt: ModelInput, report: type[BaseModel]) -> ModelInput:
    words = _Words(report)
    if isinstance(prompt, str):
        return words.format(prompt)
    return words.format_messages(
        [message.model_copy(deep=True) for message in prompt]
    )  # the parser changes the messages in place


class _Words(PydanticOutputParser[BaseModel]):
    """LlamaIndex's parser, for a prompt that is not a template any more, so that braces need no escaping."""

    @override
    def format(self, query: str) -> str:
        return f"{query}\n\n{self.get_format_string(escape_json=False)}"


def text_of(llm: LLM, reply: LLMResponse, tally: ResponseTally, *, refusal: str, form: Form = _PLAIN) -> str:
    """Return the report as the text that a model would have written; if there is no report, the text of the reply."""
    raw = tally.add(reply)
    candidates = (*_arguments(llm, reply), reports.json_in(raw))
    return reports.text_of(candidates, raw, tally=tally, refusal=refusal, form=form)


def _arguments(llm: LLM, reply: LLMResponse) -> Iterator[Any]:
    if isinstance(llm, FunctionCallingLLM) and isinstance(reply, ChatResponse):
        try:
            calls = llm.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        except Exception:  # noqa: BLE001 - packages raise different errors for invalid arguments
            return
        yield from (call.tool_kwargs for call in calls)
