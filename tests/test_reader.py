"""The extractive reader, on the real sentence embeddings."""

from __future__ import annotations

import asyncio
import re
from functools import reduce
from operator import add

import pytest
from langchain_core.embeddings import Embeddings

from selfroute import prompts
from selfroute.demo.models import load_embeddings
from selfroute.demo.reader import ExtractiveReader
from selfroute.demo.sentences import SentencePicker, split_sentences

MINUTES = """\
# Minutes of the Allotment Society

## 3 May

**Water.** The new pump was fitted by Dr. Marten Hale on Friday, and it cost 240 pounds. He was thanked
for his work.

**Bees.** Two hives stand behind the shed.

## 7 June

The marrow competition was won by Ida Brandt.
"""


@pytest.fixture(scope="session")
def embeddings() -> Embeddings:
    return load_embeddings()


@pytest.fixture
def reader(embeddings: Embeddings) -> ExtractiveReader:
    return ExtractiveReader(embeddings=embeddings)


def prompt(question: str, context: str = MINUTES, template: str = prompts.RAG) -> str:
    return template.format(context=context, question=question, refusal="unanswerable")


@pytest.mark.parametrize("template", [prompts.RAG, prompts.LONG_CONTEXT])
def test_it_answers_with_the_sentence_that_is_nearest_to_the_question(reader: ExtractiveReader, template: str) -> None:
    reply = reader.invoke(prompt("Who won the marrow competition?", template=template))
    assert reply.text == "The marrow competition was won by Ida Brandt."


def test_it_declines_with_exactly_the_refusal_word_when_no_sentence_is_near(reader: ExtractiveReader) -> None:
    assert reader.invoke(prompt("Which bank holds the mortgage?")).text == "unanswerable"


def test_the_threshold_decides(embeddings: Embeddings) -> None:
    question = prompt("Who won the marrow competition?")
    replies = [ExtractiveReader(embeddings=embeddings, threshold=limit).invoke(question).text for limit in (-1.0, 1.01)]
    assert replies == ["The marrow competition was won by Ida Brandt.", "unanswerable"]


def test_the_refusal_can_be_another_word(embeddings: Embeddings) -> None:
    reader = ExtractiveReader(embeddings=embeddings, refusal="PASS")
    assert reader.invoke("A text.\n\nQuestion: Which bank holds the mortgage?\nAnswer:").text == "PASS"


@pytest.mark.parametrize("context", ["", "\n\n", "# Only a heading"])
def test_an_empty_context_holds_no_answer(reader: ExtractiveReader, context: str) -> None:
    assert reader.invoke(prompt("Who won?", context)).text == "unanswerable"


@pytest.mark.parametrize("text", ["", "no question at all", "Question:", "Question: \nAnswer:"])
def test_a_prompt_that_asks_nothing_is_declined(reader: ExtractiveReader, text: str) -> None:
    assert reader.invoke(text).text == "unanswerable"


def test_it_takes_the_last_question_whatever_the_document_holds(reader: ExtractiveReader) -> None:
    quiz = (
        f"Question: Who fitted the pump?\nAnswer: Nobody.\n\n{MINUTES}\n\nQuestion: What is behind the shed?\nAnswer:"
    )
    assert reader.invoke(prompt("Who won the marrow competition?", quiz)).text.endswith("was won by Ida Brandt.")


def test_it_never_answers_with_the_instruction(embeddings: Embeddings) -> None:
    reader = ExtractiveReader(embeddings=embeddings, threshold=-1)
    question = "Answer the question from these passages only, as briefly as a complete answer allows?"
    assert reader.invoke(prompt(question)).text in list(split_sentences(MINUTES))


@pytest.mark.parametrize("question", ["Who won the marrow competition?", "Which bank holds the mortgage?"])
def test_a_stream_adds_up_to_invoke_in_sync_and_async(reader: ExtractiveReader, question: str) -> None:
    async def whole() -> list[object]:
        return [
            await reader.ainvoke(prompt(question)),
            reduce(add, [c async for c in reader.astream(prompt(question))]),
        ]

    chunks = list(reader.stream(prompt(question)))
    replies = [reader.invoke(prompt(question)), reduce(add, chunks), *asyncio.run(whole())]
    facts = [(reply.text, reply.usage_metadata, reply.response_metadata["model_name"]) for reply in replies]
    assert facts[0][2] == "extractive-reader"
    assert facts == [facts[0]] * 4
    assert [chunk.text for chunk in chunks if chunk.text] == re.findall(r"\s*\S+", facts[0][0])


def test_it_counts_a_quarter_of_the_characters(reader: ExtractiveReader) -> None:
    asked = prompt("Which bank holds the mortgage?")
    counted = reader.invoke(asked).usage_metadata
    assert counted is not None
    assert (counted["input_tokens"], counted["output_tokens"]) == (-(-len(asked) // 4), 3)


def test_a_sentence_is_whole_without_its_line_breaks_marks_and_headings() -> None:
    assert list(split_sentences(MINUTES)) == [
        "The new pump was fitted by Dr. Marten Hale on Friday, and it cost 240 pounds.",
        "The new pump was fitted by Dr. Marten Hale on Friday, and it cost 240 pounds. He was thanked for his work.",
        "Two hives stand behind the shed.",
        "The marrow competition was won by Ida Brandt.",
    ]


def test_items_of_a_list_and_rows_of_a_table_stay_apart() -> None:
    items = "Tools:\n\n- one very old spade\n- a rake with\n  nine teeth"
    listed = f"{items}\n\n| tool | price |\n|---|---|\n| spade | four pounds |"
    assert list(split_sentences(listed)) == [
        "one very old spade",
        "a rake with nine teeth",
        "tool | price",
        "spade | four pounds",
    ]


def test_a_sentence_is_embedded_once_and_the_cache_is_bounded() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    picker = SentencePicker(embed, cache_size=6)
    for _ in range(3):
        picker.pick("Who won the competition?", MINUTES)
    assert len(asked) == len(set(asked)) == 5
    picker.pick("Who?", "A wholly different text. It pushes the others out of the cache. There it goes.")
    picker.pick("Who won the competition?", MINUTES)
    assert len(asked) > len(set(asked))
