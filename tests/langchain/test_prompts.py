"""Prompts as LangChain has them: with a history, listed, chosen by the config of a call, or made by a runnable."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.exceptions import ContextOverflowError
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda

from langchain_parts import (
    FAR_APART,
    MODES,
    QUESTION,
    ScriptedModel,
    TreeTracer,
    a_chain,
    ask,
    outline,
)
from langchain_selfroute import SelfRouteLedger
from scenarios import FOUND
from selfroute import prompts
from selfroute.errors import ConfigurationError, InputError, ReplyError
from steering import GRADED

every_mode = pytest.mark.parametrize("mode", MODES)
STEPS = ("rag_prompt", "long_context_prompt")
each_prompt = pytest.mark.parametrize("field", STEPS)
PLAIN = PromptTemplate.from_template("Plain. {context} {input}")
OTHER = ChatPromptTemplate([("system", "Other."), ("human", "{context} {input} {refusal}")])
CHOICE = ConfigurableField(id="wording")
WORDS = ConfigurableField(id="words")


def _alternatives(**others: Any) -> Any:
    return PLAIN.configurable_alternatives(CHOICE, default_key="plain", **{"other": OTHER, **others})


def _chosen(key: str) -> RunnableConfig:
    return {"configurable": {"wording": key}}


@each_prompt
def test_a_prompt_that_is_changed_in_place_is_that_of_one_chain(field: str) -> None:
    changed, prompt = a_chain(), getattr(a_chain(), field)
    mine, kept = getattr(changed, field), prompt.model_copy(deep=True).messages
    mine.messages[1].prompt.template = "Mine. {context} {input}"
    mine.messages[0].optional = False
    mine.messages.append(HumanMessage("More."))
    assert (prompt.messages, getattr(a_chain(), field).messages) == (kept, kept)
    assert (changed._has_default_rag_prompt, a_chain()._has_default_rag_prompt) == (field != "rag_prompt", True)


PROMPTS = {
    "history": ChatPromptTemplate(
        [("system", "Custom. {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{input}")]
    ),
    "partial": ChatPromptTemplate([("human", "{style} {context} {input}")]).partial(style="Custom."),
    "fixed messages": ChatPromptTemplate([SystemMessage("Custom. {kept}"), ("human", "{context} {input}")]),
}


@pytest.mark.parametrize("mode", FAR_APART)
@pytest.mark.parametrize("name", PROMPTS)
@each_prompt
async def test_prompt_is_used_in_its_step(field: str, name: str, mode: str) -> None:
    chain, step = a_chain(**{field: PROMPTS[name]}), STEPS.index(field)
    given = {"input": QUESTION, "chat_history": [AIMessage("There {was}.")], "more": "{more}"}
    result = await ask(chain, given, mode)
    sent = [call.prompt for call in chain.llm.calls]
    assert (result["answer"], result["more"]) == (FOUND, "{more}")
    assert (sent[step].startswith("Custom."), "Custom." in sent[1 - step]) == (True, False)
    assert QUESTION in sent[step]
    assert ["There {was}." in sent[step], "There {was}." in sent[1 - step]] == [name == "history", True]


@pytest.mark.parametrize("mode", FAR_APART)
@pytest.mark.parametrize("name", ["style", "chat_history"])
@each_prompt
async def test_an_input_that_a_prompt_lacks_is_named(field: str, name: str, mode: str) -> None:
    lacking = MessagesPlaceholder(name) if name == "chat_history" else ("system", "{style}")
    prompt = ChatPromptTemplate([lacking, ("human", "{context} {input}")])
    with pytest.raises(InputError, match=rf"^a prompt needs {name}, which the input lacks: pass it"):
        await ask(a_chain(**{field: prompt}), QUESTION, mode)


def test_both_prompts_are_listed() -> None:
    chain = a_chain(rag_prompt=PLAIN, long_context_prompt=_alternatives())
    assert (chain.get_prompts(), chain.get_prompts(_chosen("other"))) == ([PLAIN, PLAIN], [PLAIN, OTHER])
    default = a_chain()
    assert default.get_prompts() == [default.rag_prompt, default.long_context_prompt]
    graded, final = a_chain(**GRADED).get_prompts()
    assert prompts.GRADED.replace("{question}", "{input}") == graded.messages[-1].prompt.template  # type: ignore[attr-defined]
    assert "from 0 to 100" not in str(final)


@every_mode
@each_prompt
async def test_prompt_chosen_by_the_config_is_no_run(mode: str, field: str) -> None:
    chain, tracer = a_chain(**{field: _alternatives()}), TreeTracer()
    assert "wording" in {spec.id for spec in chain.config_specs}
    asked: Any = [(chain, None, "Plain."), (chain, _chosen("other"), "Other."), (chain, _chosen("plain"), "Plain.")]
    asked += [(chain.with_config(_chosen("other")), {"callbacks": [tracer]}, "Other.")]
    for one, config, begins in asked:
        chain.llm.calls.clear()
        assert (await ask(one, QUESTION, mode, config))["answer"] == FOUND
        assert chain.llm.calls[STEPS.index(field)].prompt.startswith(begins)
    steps = ["retrieve", "rag", "read_documents", "long_context"]
    assert [
        next(iter(one)) if isinstance(one, dict) else one for one in outline(tracer.root)["SelfRouteChain"]
    ] == steps


async def _later(words: dict[str, Any]) -> Any:
    return [HumanMessage(f"Later. {words['context']}")]


MADE = {
    "a value": RunnableLambda(lambda words: StringPromptValue(text=f"Value. {words['context']} {words['refusal']}")),
    "text": RunnableLambda(lambda words: f"Text. {words['context']}"),
    "messages": RunnableLambda(lambda words: [HumanMessage(f"Messages. {words['context']}")]),
    "a sequence": RunnableLambda(lambda words: {**words, "input": "Sequence."}) | OTHER,
    "only async": RunnableLambda(lambda _: (_ for _ in ()).throw(AssertionError), afunc=_later),
}


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name in MADE for mode in MODES if mode[0] == "a" or name != "only async"]
)
async def test_a_runnable_makes_the_prompt(mode: str, name: str) -> None:
    chain = a_chain(rag_prompt=MADE[name], long_context_prompt=MADE[name])
    assert (await ask(chain, {"input": QUESTION, "more": 1}, mode))["answer"] == FOUND
    assert chain.llm.steps == ["rag", "long_context"]


@every_mode
async def test_runnable_that_makes_no_prompt_is_refused(mode: str) -> None:
    for found in (None, 7, [1], {"context": "x"}):
        made = RunnableLambda(lambda _, found=found: found)
        with pytest.raises(ReplyError, match="rag_prompt and long_context_prompt must return a prompt"):
            await ask(a_chain(rag_prompt=made), QUESTION, mode)


class LengthFinishReasonError(Exception):
    """As OpenAI's client names it."""


@every_mode
async def test_prompt_that_raises_is_no_reply(mode: str) -> None:
    def rewriting(_: Any) -> str:
        raise LengthFinishReasonError

    ledger = SelfRouteLedger()
    with pytest.raises(LengthFinishReasonError):
        await ask(a_chain(rag_prompt=RunnableLambda(rewriting)), QUESTION, mode, {"callbacks": [ledger]})
    assert ledger.to_dict()["tokens"]["rag"]["total_tokens"] == 0


@every_mode
async def test_too_long_is_of_its_own_step(mode: str) -> None:
    refuses = ScriptedModel(failures={"rag": [ContextOverflowError("too long")]})
    drafts = refuses.with_fallbacks([ScriptedModel(draft=("unanswerable",))])
    asked: list[Any] = []

    def broken(words: Any) -> str:
        asked.append(words)
        msg = "no prompt"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="no prompt"):
        await ask(a_chain(llm=drafts, long_context_prompt=RunnableLambda(broken)), QUESTION, mode)
    assert len(asked) == 1


LACKING = PromptTemplate.from_template("Without. {input}")
HIDING = {
    "chat": ChatPromptTemplate([("human", "{input} {text}")]),
    "fields": LACKING.configurable_fields(template=WORDS),
    "alternative": _alternatives(lacking=LACKING),
    "default": LACKING.configurable_alternatives(CHOICE, other=OTHER),
}


@each_prompt
def test_prompt_that_hides_the_context_is_refused(field: str) -> None:
    """At once, or in the call that chooses it."""
    for hiding in HIDING.values():
        with pytest.raises(ConfigurationError, match=f"{field} must have the variable {{context}}"):
            a_chain(**{field: hiding})
    nested = OTHER.configurable_alternatives(CHOICE, nested=lambda: LACKING)
    for name, made in (("lacking", lambda: LACKING), ("nested", nested)):
        chain = a_chain(rag_prompt=_alternatives(**{name: made}))
        with pytest.raises(ConfigurationError, match=r"must have the variable \{context\}"):
            chain.invoke(QUESTION, _chosen(name))
        assert chain.llm.calls == []


OWN = "From {context} answer {input} or write {refusal}."


def test_no_dump_of_a_chain_shows_the_text_of_its_documents() -> None:
    chain = a_chain(documents=[Document("the secret text of a document")])
    for shown in (str(dumpd(chain)), repr(chain.model_dump()), repr(chain.with_retry())):
        assert "secret" not in shown
