"""Both frameworks over one store of many documents: how many passages are found, and how many documents are read."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document as Whole

import one_store
from langchain_selfroute import SelfRouteChain
from llamaindex_parts import ListRetriever
from llamaindex_selfroute import SelfRouteQueryEngine
from one_store import ANSWER, BY_WORDS, QUESTION, RIGHT, TEXTS, Model, ask, found_in, pipeline
from selfroute.errors import ConfigurationError

every_framework = pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
SECTIONS = 600  # tokens: more than five passages
FEW = 150  # less than a document
K = {"langchain": "k", "llamaindex": "similarity_top_k"}
WITH_NUMBERS = "n"


def drafted(model: Model) -> int:
    """How many chunks the first prompt held."""
    return sum(chunk.page_content in model.prompts[0] for chunk in one_store.chunks())


@pytest.mark.parametrize("kind", ["memory", "chroma"])
@pytest.mark.parametrize(
    ("options", "found", "read"),
    [
        ({}, 20, 5),
        ({"sections": None}, 5, 5),
        ({"sections": SECTIONS}, 20, 5),
        ({WITH_NUMBERS: 3, "sections": SECTIONS}, 20, 3),
        ({WITH_NUMBERS: 3, "reach": 8}, 8, 3),
        ({"reach": 5, "sections": SECTIONS}, 5, 5),
        ({WITH_NUMBERS: 30, "sections": SECTIONS}, 30, 30),
        ({"reach": 8, "draft_passages": 2}, 8, 2),
    ],
)
@every_framework
async def test_reach_goes_beyond_the_draft(
    framework: str, options: dict[str, Any], found: int, read: int, kind: str
) -> None:
    model, options = Model(), {K[framework] if name == WITH_NUMBERS else name: one for name, one in options.items()}
    asked = await ask(pipeline(framework, kind, model=model, **options))
    assert (len(found_in(asked)), drafted(model)) == (found, read)


@every_framework
def test_numbers_that_make_no_sense_are_refused(framework: str) -> None:
    for reach in (4, 0, True, "many"):
        with pytest.raises(ConfigurationError, match=r"^reach(=4 is less than the 5 passages| must be a whole number)"):
            pipeline(framework, reach=reach)
    name, options = K[framework], ({}, {"sections": SECTIONS}, {"reach": 8})
    for number in (0, -1, "5", 5.5, True, None):
        for option in options:
            with pytest.raises(
                ConfigurationError, match=rf"^{name}={number!r}: the draft reads at least one passage, "
            ):
                pipeline(framework, **{name: number}, **option)


@pytest.mark.parametrize("kind", ["memory", "chroma", pytest.param("weights", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("question", BY_WORDS)
@every_framework
async def test_reach_ranks_documents_by_their_words(framework: str, question: str, kind: str) -> None:
    asked = await ask(pipeline(framework, kind, sections=SECTIONS), question)
    assert len(set(found_in(asked)[:5])) > 2, "the retriever does not know which"
    assert BY_WORDS[question] in asked.names


@pytest.mark.parametrize("sections", [None, FEW])
@every_framework
async def test_as_many_documents_are_read_as_are_allowed(framework: str, sections: int | None) -> None:
    """Without a limit, all behind the passages of the draft."""
    for most in (1, 3):
        asked = await ask(pipeline(framework, sections=sections, reach=20, max_documents=most))
        assert (len(asked.names), len(set(asked.names)), asked.names[0]) == (most, most, RIGHT)
    for question in (QUESTION, *BY_WORDS):
        asked = await ask(pipeline(framework, sections=sections, reach=20, max_documents=None), question)
        assert sorted(asked.names) == sorted(set(found_in(asked)[:5]))
        assert set(asked.names) < set(found_in(asked)), "sections look further"


@pytest.mark.parametrize("as_callable", [False, True])
@every_framework
async def test_documents_of_the_user_are_all_read_in_their_order(framework: str, as_callable: bool) -> None:
    model: Any = Model()
    if framework == "langchain":
        documents: Any = [Document(text, metadata={"source": name}) for name, text in TEXTS.items()]
        source = (lambda _: documents) if as_callable else documents
        asked_of: Any = SelfRouteChain(
            retriever=one_store.store().as_retriever(), llm=one_store.runnable(model), documents=source, max_documents=1
        )
    else:
        documents = [Whole(text=text, id_=name) for name, text in TEXTS.items()]
        source = (lambda *_: documents) if as_callable else documents
        asked_of = pipeline(framework, model=model, documents=source, max_documents=1)
    asked = await ask(asked_of)
    assert asked.names == list(TEXTS)


@pytest.mark.parametrize("most", [0, 1, 2, None])
@every_framework
async def test_an_answer_is_compared_with_reading_as_many_documents(framework: str, most: int | None) -> None:
    """As text, since the instructions around short documents count: those for numbers are longer."""
    model, options = Model(), {"answerability": "text", "reach": 20, "sections": SECTIONS}
    answering = pipeline(framework, model=model, max_documents=most, **options)
    await ask(answering)  # their lengths are known from now on
    model.draft = ANSWER
    asked = await ask(answering)
    options["max_documents"] = 2 if most == 0 else most
    always = await ask(pipeline(framework, start="long_context", **options))
    assert asked.route == "rag"
    assert asked.usage["long_context_only"] == pytest.approx(always.usage["long_context"]["input_tokens"], rel=0.05)


# documents= left out


async def test_documents_are_those_of_the_retriever_s_own_store() -> None:
    model = Model()
    retriever = one_store.store().as_retriever(search_kwargs={"k": 5})
    asked = await ask(SelfRouteChain(retriever=retriever, llm=one_store.runnable(model), sections=None))
    assert (asked.answer, asked.names[0]) == (ANSWER, RIGHT)
    engine = SelfRouteQueryEngine(
        one_store.index().as_retriever(similarity_top_k=5), llm=one_store.llm(model), sections=None
    )
    asked = await ask(engine)
    assert (asked.answer, asked.names[0]) == (ANSWER, RIGHT)


async def test_the_filter_of_the_retriever_limits_them() -> None:
    search = {"k": 5, "filter": {"start_index": 0}}
    retriever = one_store.store("chroma").as_retriever(search_kwargs=search)
    model = Model()
    await ask(SelfRouteChain(retriever=retriever, llm=one_store.runnable(model), sections=None))
    assert "opened in" in model.prompts[-1]
    assert "warden of the orchard was" not in model.prompts[-1]


def test_other_retrievers_do_not_say_where_documents_are() -> None:
    other = RunnableLambda(lambda _: [Document("text")])
    with pytest.raises(ConfigurationError, match="pass documents=StoredDocuments") as error:
        SelfRouteChain(retriever=other, llm=one_store.runnable(Model()))
    assert "RunnableLambda" in str(error.value)
    with pytest.raises(ConfigurationError, match="pass documents=StoredDocuments") as error:
        SelfRouteQueryEngine(ListRetriever([]), llm=one_store.llm(Model()))
    assert "ListRetriever" in str(error.value)
    assert "\n" not in str(error.value)
