"""The extractive reader: which sentence it answers with, and the models of both frameworks."""

from __future__ import annotations

import asyncio
import re
from functools import reduce
from operator import add

import pytest
from langchain_core.messages import AIMessage
from llama_index.core.llms import ChatMessage, CompletionResponse

from selfroute import prompts
from selfroute_workbench.demo import reader, with_langchain, with_llamaindex

MINUTES = """\
# Minutes of the Allotment Society

## 3 May

**Water.** The new pump was fitted by Marten Hale on Friday, and it cost 240 pounds. He was thanked
for his work.

**Bees.** Two hives stand behind the shed.

## 7 June

The marrow competition was won by Ida Brandt.
"""


def prompt(question: str, context: str = MINUTES, template: str = prompts.RAG) -> str:
    return template.format(context=context, question=question, refusal="unanswerable")


WHO_WON, MORTGAGE = "Who won the marrow competition?", "Which bank holds the mortgage?"
WON, INSTRUCTION = "The marrow competition was won by Ida Brandt.", "Answer the question from these passages only?"
QUIZ = f"Question: Who fitted the pump?\nAnswer: Nobody.\n\n{MINUTES}\n\nQuestion: What is behind the shed?\nAnswer:"
NUMBERED = f"{MINUTES}\n\nWrite two numbers from 0 to 100.\n\nIt rained."
# A prompt, and what it is answered with: the sentence that shares most with the question, or the refusal.
REPLIES = {
    "passages": (prompt(WHO_WON), WON),
    "a document": (prompt(WHO_WON, template=prompts.LONG_CONTEXT), WON),
    "no sentence shares enough": (prompt(MORTGAGE), "unanswerable"),
    "the last question": (prompt(WHO_WON, QUIZ), rf".*{WON}"),
    "two numbers": (prompt(WHO_WON, template=prompts.GRADED), rf"(\d\d?|100) \1\n{WON}"),
    "two numbers of a decline": (prompt(MORTGAGE, template=prompts.GRADED), r"\d\d? 0\nunanswerable"),
    "one number": (prompt(WHO_WON, template=prompts.SECTIONS), rf"\d+\n{WON}"),
    "no number of a decline": (prompt(MORTGAGE, template=prompts.SECTIONS), "unanswerable"),
    "numbers in the document": (prompt(MORTGAGE, NUMBERED), "unanswerable"),
    **{f"context {text!r}": (prompt(WHO_WON, text), "unanswerable") for text in ("", "\n\n", "# Only a heading")},
    **{text: (text, "unanswerable") for text in ("", "no question at all", "Question:", "Question: \nAnswer:")},
}


@pytest.mark.parametrize("case", REPLIES)
def test_it_answers_with_the_nearest_sentence_or_declines_and_gives_the_numbers_that_are_asked_for(case: str) -> None:
    asked, expected = REPLIES[case]
    reply = reader.reply(asked)
    assert re.fullmatch(expected, reply.text), reply.text


QUESTIONS = pytest.mark.parametrize("question", [WHO_WON, MORTGAGE])


@QUESTIONS
def test_a_model_of_langchain_answers_like_the_reader_whole_and_streamed(question: str) -> None:
    llm, asked = with_langchain.ExtractiveReader(), prompt(question)

    async def awaited() -> list[AIMessage]:
        return [await llm.ainvoke(asked), reduce(add, [chunk async for chunk in llm.astream(asked)])]

    chunks, expected = list(llm.stream(asked)), reader.reply(asked)
    for reply in (llm.invoke(asked), reduce(add, chunks), *asyncio.run(awaited())):
        assert (reply.text, reply.response_metadata["model_name"]) == (expected.text, "extractive-reader")
        assert reply.usage_metadata == {
            "input_tokens": expected.input_tokens,
            "output_tokens": expected.output_tokens,
            "total_tokens": expected.input_tokens + expected.output_tokens,
        }
    assert [chunk.text for chunk in chunks if chunk.text] == expected.words


@QUESTIONS
def test_a_model_of_llamaindex_answers_like_the_reader_whole_and_streamed(question: str) -> None:
    llm, asked = with_llamaindex.ExtractiveReader(), prompt(question)

    async def awaited() -> list[CompletionResponse]:
        return [await llm.acomplete(asked), [chunk async for chunk in await llm.astream_complete(asked)][-1]]

    chunks, expected = list(llm.stream_complete(asked)), reader.reply(asked)
    for reply in (llm.complete(asked), chunks[-1], *asyncio.run(awaited())):
        assert reply.text == expected.text
        assert reply.additional_kwargs == {
            "prompt_tokens": expected.input_tokens,
            "completion_tokens": expected.output_tokens,
            "total_tokens": expected.input_tokens + expected.output_tokens,
        }
    assert [chunk.delta for chunk in chunks if chunk.delta] == expected.words
    assert llm.chat([ChatMessage(asked)]).message.content == expected.text
    assert llm.metadata.model_name == "extractive-reader"
