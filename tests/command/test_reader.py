"""The extractive reader: which sentence it answers with, and the models of both frameworks."""

from __future__ import annotations

import re
from functools import reduce
from operator import add

import pytest
from llama_index.core.llms import ChatMessage

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
def test_reader_reply(case: str) -> None:
    asked, expected = REPLIES[case]
    reply = reader.reply(asked)
    assert re.fullmatch(expected, reply.text), reply.text


@pytest.mark.parametrize("question", [WHO_WON, MORTGAGE])
async def test_reader_models(question: str) -> None:
    asked = prompt(question)
    expected = reader.reply(asked)
    counts = (expected.input_tokens, expected.output_tokens, expected.input_tokens + expected.output_tokens)

    chat = with_langchain.ExtractiveReader()
    chunks = list(chat.stream(asked))
    messages = [chat.invoke(asked), reduce(add, chunks), await chat.ainvoke(asked)]
    messages.append(reduce(add, [chunk async for chunk in chat.astream(asked)]))
    for message in messages:
        assert (message.text, message.response_metadata["model_name"]) == (expected.text, "extractive-reader")
        assert tuple((message.usage_metadata or {}).values()) == counts
    assert [chunk.text for chunk in chunks if chunk.text] == expected.words

    llm = with_llamaindex.ExtractiveReader()
    pieces = list(llm.stream_complete(asked))
    completions = [llm.complete(asked), pieces[-1], await llm.acomplete(asked)]
    completions.append([piece async for piece in await llm.astream_complete(asked)][-1])
    for completion in completions:
        assert (completion.text, tuple(completion.additional_kwargs.values())) == (expected.text, counts)
    assert [piece.delta for piece in pieces if piece.delta] == expected.words
    assert llm.chat([ChatMessage(asked)]).message.content == expected.text
    assert llm.metadata.model_name == "extractive-reader"
