"""Prompts and words: text is only text, and a configuration that cannot work is refused with what to do."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate

from langchain_parts import DOCUMENTS, FAR_APART, QUESTION, WHOLE, ListRetriever, ScriptedModel, a_chain, ask
from langchain_selfroute import SelfRouteChain
from scenarios import FINAL, FOUND
from selfroute.errors import SelfRouteError

both_modes = pytest.mark.parametrize("mode", FAR_APART)
NASTY = [
    "{name}",
    "{{name}}",
    "{",
    "}",
    "{0}",
    "{input}",
    "{context!r:>{width}}",
    "{% for x in y %}",
    "{{ x | e }}",
    "%s %(a)s $a",
    "\\n \\1",
]


@both_modes
@pytest.mark.parametrize("nasty", NASTY)
async def test_template_syntax_is_only_text_wherever_it_stands(nasty: str, mode: str) -> None:
    chain = a_chain(
        retriever=ListRetriever(passages=[Document(f"passage {nasty}", metadata={"by": f"writer {nasty}"})]),
        documents=[Document(f"{WHOLE} {nasty}", metadata={"by": f"writer {nasty}"})],
        document_prompt=PromptTemplate.from_template("{by}: {page_content}"),
    )
    given = {"input": f"Who is {nasty}?", "chat_history": [HumanMessage(f"before {nasty}")], "more": f"more {nasty}"}
    result = await ask(chain, given, mode)
    rag, final = (call.prompt for call in chain.llm.calls)
    for prompt, body in ((rag, f"passage {nasty}"), (final, f"{WHOLE} {nasty}")):
        assert f"writer {nasty}: {body}" in prompt
        assert f"Who is {nasty}?" in prompt
        assert f"before {nasty}" in prompt
    assert (result["input"], result["more"]) == (given["input"], given["more"])


@both_modes
async def test_a_refusal_with_braces_is_only_text(mode: str) -> None:
    chain = a_chain(("{none}",), refusal="{none}")
    assert (await ask(chain, QUESTION, mode))["route"] == "long_context"
    assert all("{none}" in call.prompt for call in chain.llm.calls)


@both_modes
async def test_the_prompts_hold_context_question_and_refusal(mode: str) -> None:
    chain = a_chain(("PASS",), refusal="PASS")
    await ask(chain, QUESTION, mode)
    rag, final = (call.prompt for call in chain.llm.calls)
    for prompt in (rag, final):
        assert prompt.index("PASS") < prompt.index(QUESTION)
    assert rag.index("Tea was served.") < rag.index(QUESTION)
    assert final.index(DOCUMENTS[1].page_content) < final.index(QUESTION)


PROMPTS = {
    "chat": ChatPromptTemplate([("system", "Custom. {context}"), ("human", "{input} or {refusal}")]),
    "text": PromptTemplate.from_template("Custom. {context} {input} {refusal}"),
    "history": ChatPromptTemplate(
        [("system", "Custom. {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{input}")]
    ),
    "partial": ChatPromptTemplate([("human", "{style} {context} {input}")]).partial(style="Custom."),
    "no refusal": PromptTemplate.from_template("Custom. {context} {input}"),
    "fixed messages": ChatPromptTemplate([SystemMessage("Custom. {kept}"), ("human", "{context} {input}")]),
}


@both_modes
@pytest.mark.parametrize("name", PROMPTS)
async def test_prompts_of_one_s_own_are_used_in_the_step_they_are_for(name: str, mode: str) -> None:
    prompt = PROMPTS[name]
    for step, field in enumerate(("rag_prompt", "long_context_prompt")):
        chain = a_chain(**{field: prompt})
        given = {"input": QUESTION, "chat_history": [AIMessage("There was.")]}
        assert (await ask(chain, given, mode))["answer"] == FOUND
        prompts = [call.prompt for call in chain.llm.calls]
        assert prompts[step].startswith("Custom.")
        assert QUESTION in prompts[step]
        assert "Custom." not in prompts[1 - step]
        assert ("There was." in prompts[step]) is (name == "history")


@both_modes
async def test_a_document_prompt_formats_passages_and_documents(mode: str) -> None:
    chain = a_chain(
        retriever=ListRetriever(passages=[Document("Tea.", metadata={"page": 3})]),
        documents=[Document(f"{WHOLE}.", metadata={"page": 1})],
        document_prompt=PromptTemplate.from_template("<p{page}>{page_content}</p>"),
    )
    await ask(chain, QUESTION, mode)
    rag, final = (call.prompt for call in chain.llm.calls)
    assert "<p3>Tea.</p>" in rag
    assert f"<p1>{WHOLE}.</p>" in final


HIDDEN = "the secret text of a document"
MODEL = ScriptedModel()
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown argument": ({"long_llm": MODEL}, "long_llm"),
    "a misspelt argument": ({"max_context_token": 9}, "max_context_token"),
    "no documents": ({"documents": []}, "documents is empty"),
    "documents as text": ({"documents": HIDDEN}, "documents must be a list of Documents, or a runnable or callable"),
    "documents as texts": ({"documents": [HIDDEN]}, "documents must be a list of Documents"),
    "documents among others": ({"documents": [Document(HIDDEN), HIDDEN]}, "documents must be a list of Documents"),
    "one document": ({"documents": Document(HIDDEN)}, "documents must be a list of Documents"),
    "documents as a dict": ({"documents": {"text": HIDDEN}}, "documents must be a list of Documents"),
    "a model's name": ({"llm": "gpt-4o"}, "llm must be a chat model"),
    "a second model's name": ({"long_context_llm": "gpt-4o"}, "long_context_llm must be a chat model"),
    "a retriever as a function": ({"retriever": lambda question: []}, "retriever must be a retriever"),
    "a prompt without context": ({"rag_prompt": PromptTemplate.from_template("{input}")}, r"variable \{context\}"),
    "a final prompt without context": (
        {"long_context_prompt": ChatPromptTemplate([("human", "{input} {text}")])},
        r"variable \{context\}.*'input', 'text'",
    ),
    "a prompt as text": ({"rag_prompt": "{context} {input}"}, "rag_prompt"),
    "a document prompt as text": ({"document_prompt": "{page_content}"}, "document_prompt"),
    "no refusal": ({"refusal": ""}, "refusal must be a word"),
    "a blank refusal": ({"refusal": " \n"}, "refusal must be a word"),
    "a refusal without letters": ({"refusal": "..."}, "refusal must be a word"),
    "a refusal that is None": ({"refusal": None}, "refusal"),
    "no room": ({"max_context_tokens": 0}, "max_context_tokens"),
    "less than no room": ({"max_context_tokens": -5}, "max_context_tokens"),
    "a counter that does not count": ({"token_counter": 4}, "token_counter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_in_the_constructor(name: str) -> None:
    arguments, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as refused:
        SelfRouteChain(**{"retriever": ListRetriever(), "llm": MODEL, "documents": [Document(HIDDEN)], **arguments})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["no documents", "documents as text", "a prompt without context", "a refusal without letters"]
)
def test_a_refused_configuration_is_an_error_of_this_project(name: str) -> None:
    arguments, _ = REFUSED[name]
    with pytest.raises(SelfRouteError):
        SelfRouteChain(**{"retriever": ListRetriever(), "llm": MODEL, "documents": DOCUMENTS, **arguments})


@pytest.mark.parametrize("missing", ["retriever", "llm", "documents"])
def test_what_is_missing_is_named(missing: str) -> None:
    parts = {"retriever": ListRetriever(), "llm": MODEL, "documents": DOCUMENTS}
    del parts[missing]
    with pytest.raises(ValueError, match=missing):
        SelfRouteChain(**parts)


def test_a_chain_shows_no_text_of_its_documents() -> None:
    chain = a_chain(documents=[Document(HIDDEN)])
    for shown in (repr(chain), str(chain), str(dumpd(chain)), repr(chain.model_dump()), repr(chain.with_retry())):
        assert "secret" not in shown


def test_the_caller_s_list_is_read_as_it_was_given() -> None:
    documents = list(DOCUMENTS)
    chain = a_chain(documents=documents)
    result = chain.invoke(QUESTION)
    result["context"].clear()
    result["retrieved"].clear()
    assert documents == DOCUMENTS
    assert chain.invoke(QUESTION)["context"] == DOCUMENTS


def test_one_model_serves_both_steps_if_there_is_no_other() -> None:
    chain = a_chain(llm=(model := ScriptedModel(draft=("unanswerable",), final=FINAL)))
    assert chain.invoke(QUESTION)["answer"] == FOUND
    assert model.steps == ["rag", "long_context"]
