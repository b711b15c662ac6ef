"""What retrievers, documents and models are given, what they may return, and what is refused."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_parts import MODES, PASSAGES, QUESTION, ListRetriever, ScriptedModel, a_chain, ask
from langchain_selfroute import SelfRouteChain
from scenarios import FINAL, FOUND
from selfroute.errors import (
    ConfigurationError,
    DocumentNotFoundError,
    InputError,
    ReplyError,
    UnknownOptionError,
)

every_mode = pytest.mark.parametrize("mode", MODES)


def _over_text(plain: ListRetriever) -> RunnableLambda[str, list[Document]]:
    def find(question: str) -> list[Document]:
        return plain.invoke(question)

    return RunnableLambda(find)


STRING_RETRIEVERS = {
    "plain": lambda plain: plain,
    "with_retry": lambda plain: plain.with_retry(),
    "with_fallbacks": lambda plain: plain.with_fallbacks([ListRetriever()]),
    "alternatives": lambda plain: plain.configurable_alternatives(ConfigurableField(id="r"), default_key="one"),
    "retry over config": lambda plain: plain.with_config(tags=["t"]).with_retry(),
    "reranked": lambda plain: plain | RunnableLambda(lambda found: found),
    "a runnable over text": _over_text,
}


@every_mode
@pytest.mark.parametrize("name", STRING_RETRIEVERS)
async def test_a_retriever_in_any_dress_is_given_the_question(name: str, mode: str) -> None:
    retriever = ListRetriever()
    chain = a_chain(retriever=STRING_RETRIEVERS[name](retriever))
    assert (await ask(chain, {"input": QUESTION, "year": 1907}, mode))["retrieved"] == PASSAGES
    assert retriever.queries == [QUESTION]


@every_mode
async def test_a_question_may_be_under_the_key_question(mode: str) -> None:
    result = await ask(a_chain(), {"question": QUESTION, "year": 1907}, mode)
    assert (result["input"], result["question"], result["year"]) == (QUESTION, QUESTION, 1907)
    both = await ask(a_chain(), {"input": QUESTION, "question": "another"}, mode)
    assert both["input"] == QUESTION


def test_every_option_says_what_it_is_for() -> None:
    assert not [name for name, field in SelfRouteChain.model_fields.items() if not field.description]


def test_from_vectorstore_says_what_to_do() -> None:
    store = InMemoryVectorStore.from_texts(["a", "b"], DeterministicFakeEmbedding(size=8))
    llm = FakeListChatModel(responses=["unanswerable"])
    with pytest.raises(DocumentNotFoundError, match=r"the chunks have no metadata.*index them with metadata such as"):
        SelfRouteChain.from_vectorstore(store, llm).invoke(QUESTION)
    with pytest.raises(ConfigurationError, match="k=0: the draft reads at least one passage"):
        SelfRouteChain.from_vectorstore(store, llm, k=0)
    with pytest.raises(UnknownOptionError, match=r"k= of SelfRouteChain\.from_vectorstore"):
        SelfRouteChain(retriever=store.as_retriever(), llm=llm, k=2)  # type: ignore[call-arg]


DICT_RETRIEVERS = {
    "lambda": RunnableLambda,
    "passthrough": lambda note: RunnablePassthrough() | note,
    "assign": lambda note: RunnablePassthrough.assign(more=lambda _: 1) | itemgetter("input") | (lambda _: PASSAGES),
}


@every_mode
@pytest.mark.parametrize("name", DICT_RETRIEVERS)
async def test_any_other_runnable_is_given_all_inputs(name: str, mode: str) -> None:
    seen: list[Any] = []
    chain = a_chain(retriever=DICT_RETRIEVERS[name](lambda given: seen.append(given) or PASSAGES))
    given = {"input": QUESTION, "year": 1907}
    assert (await ask(chain, given, mode))["retrieved"] == PASSAGES
    assert seen in ([given], [])


@every_mode
@pytest.mark.parametrize("wrong", [None, "secret text", [b"secret text"], [*PASSAGES, None]], ids=str)
async def test_retriever_must_return_documents(wrong: Any, mode: str) -> None:
    with pytest.raises(ReplyError, match="retriever must return a list of Documents or of strings; got ") as refused:
        await ask(a_chain(retriever=RunnableLambda(lambda _: wrong)), QUESTION, mode)
    assert "secret" not in str(refused.value)


def _said(prompt: Any) -> str:
    return FOUND if "The whole minutes" in prompt.to_string() else "unanswerable"


MODELS: dict[str, Any] = {
    "with_retry": lambda model: model.with_retry(),
    "bind": lambda model: model.bind(stop=["\n"]),
    "piped to a parser": lambda model: model | StrOutputParser(),
    "lambda that returns a string": lambda _: RunnableLambda(_said),
    "lambda that returns a message": lambda _: RunnableLambda(lambda prompt: AIMessage(_said(prompt))),
    "fallback that takes over": lambda model: ScriptedModel(
        failures={"rag": [OSError()], "long_context": [OSError()]}
    ).with_fallbacks([model]),
}


@every_mode
@pytest.mark.parametrize("name", MODELS)
async def test_a_model_in_any_dress_answers(name: str, mode: str) -> None:
    chain = a_chain(llm=MODELS[name](ScriptedModel(draft=("un", "answerable"), final=FINAL, usage=True)))
    result = await ask(chain, QUESTION, mode)
    assert (result["answer"], result["route"], type(result["answer"])) == (FOUND, "long_context", str)
    assert result["usage"]["total_tokens"] > 0
    assert result["usage"]["estimated"] is (name.startswith("lambda") or "parser" in name)


@every_mode
async def test_message_without_text_declines(mode: str) -> None:
    for content in (None, [], "", [{"type": "text", "text": ""}]):
        empty = AIMessage.model_construct(content=content, type="ai", tool_calls=[], invalid_tool_calls=[])

        def reply(prompt: Any, empty: Any = empty) -> AIMessage:
            return AIMessage(FOUND) if "The whole minutes" in prompt.to_string() else empty

        result = await ask(a_chain(llm=RunnableLambda(reply)), QUESTION, mode)
        assert (result["answer"], result["decision"]["signal"]) == (FOUND, "empty")
    for wrong in (None, 7, {"text": "secret"}):
        with pytest.raises(ReplyError, match="message or a string") as refused:
            await ask(a_chain(llm=RunnableLambda(lambda _, wrong=wrong: wrong)), QUESTION, mode)
        assert "secret" not in str(refused.value)


NO_QUESTIONS: list[Any] = [None, 7, [], {}, {"question": 7}, {"query": QUESTION}, {"input": None}, {"input": ["x"]}]
NO_QUESTIONS += [{"input": None, "question": QUESTION}]


@every_mode
async def test_input_that_is_no_question_is_refused_with_what_to_give(mode: str) -> None:
    for wrong in NO_QUESTIONS:
        with pytest.raises(InputError, match="'input'"):
            await ask(a_chain(), wrong, mode)
    with pytest.raises(InputError, match="must be strings"):
        await ask(a_chain(), {"input": QUESTION, 7: "else"}, mode)


@pytest.mark.parametrize(
    "key", ["self", "config", "kwargs", "prompt", "values", "messages", "template", "\N{SNOWMAN}", ""]
)
def test_another_key_of_the_input_may_have_any_name(key: str) -> None:
    result = a_chain().invoke({"input": QUESTION, key: "else"})
    assert (result["answer"], result[key]) == (FOUND, "else")
