"""Prompts as LangChain has them: listed, chosen by the config of a call, or made by a runnable."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableConfig, RunnableLambda

from langchain_parts import MODES, QUESTION, TreeTracer, a_chain, ask, outline
from langchain_selfroute import SelfRouteChain
from scenarios import FOUND
from selfroute.errors import ConfigurationError, ReplyError

PLAIN = PromptTemplate.from_template("Plain. {context} {input}")
OTHER = ChatPromptTemplate([("system", "Other."), ("human", "{context} {input} {refusal}")])
STEPS = ("rag_prompt", "long_context_prompt")
CHOICE = ConfigurableField(id="wording")


def _alternatives(**others: Any) -> Any:
    return PLAIN.configurable_alternatives(CHOICE, default_key="plain", **{"other": OTHER, **others})


def _chosen(key: str) -> RunnableConfig:
    return {"configurable": {"wording": key}}


def test_both_prompts_are_listed() -> None:
    chain = a_chain(rag_prompt=PLAIN, long_context_prompt=_alternatives())
    assert chain.get_prompts() == [PLAIN, PLAIN]
    assert chain.get_prompts(_chosen("other")) == [PLAIN, OTHER]
    default = a_chain()
    assert default.get_prompts() == [default.rag_prompt, default.long_context_prompt]


@pytest.mark.parametrize("field", STEPS)
@pytest.mark.parametrize("mode", MODES)
async def test_the_config_of_a_call_chooses_the_prompt(mode: str, field: str) -> None:
    chain = a_chain(**{field: _alternatives()})
    assert "wording" in {spec.id for spec in chain.config_specs}
    index = STEPS.index(field)
    for config, begins in ((None, "Plain."), (_chosen("other"), "Other."), (_chosen("plain"), "Plain.")):
        chain.llm.calls.clear()
        assert (await ask(chain, QUESTION, mode, config))["answer"] == FOUND
        assert chain.llm.calls[index].prompt.startswith(begins)
    bound = chain.with_config(_chosen("other"))
    chain.llm.calls.clear()
    await ask(bound, QUESTION, mode)
    assert chain.llm.calls[index].prompt.startswith("Other.")


@pytest.mark.parametrize("mode", MODES)
async def test_the_config_of_a_call_changes_a_prompt(mode: str) -> None:
    template = PLAIN.configurable_fields(template=ConfigurableField(id="words"))
    chain = a_chain(rag_prompt=template)
    config: RunnableConfig = {"configurable": {"words": "Changed. {input} {context}"}}
    assert (await ask(chain, QUESTION, mode, config))["answer"] == FOUND
    assert chain.llm.calls[0].prompt.startswith("Changed.")


@pytest.mark.parametrize("mode", MODES)
async def test_a_chosen_prompt_is_no_run_of_a_trace(mode: str) -> None:
    tracer = TreeTracer()
    await ask(a_chain(rag_prompt=_alternatives()), QUESTION, mode, {"callbacks": [tracer], **_chosen("other")})
    assert [next(iter(one)) if isinstance(one, dict) else one for one in outline(tracer.root)["SelfRouteChain"]] == [
        "retrieve",
        "rag",
        "read_documents",
        "long_context",
    ]


async def _later(words: dict[str, Any]) -> Any:
    return [HumanMessage(f"Later. {words['context']}")]


MADE = {
    "a value": RunnableLambda(lambda words: StringPromptValue(text=f"Value. {words['context']} {words['refusal']}")),
    "text": RunnableLambda(lambda words: f"Text. {words['context']}"),
    "messages": RunnableLambda(lambda words: [HumanMessage(f"Messages. {words['context']}")]),
    "a sequence": RunnableLambda(lambda words: {**words, "input": "Sequence."}) | OTHER,
    "a binding": OTHER.with_config(tags=["x"]),
    "only async": RunnableLambda(lambda _: (_ for _ in ()).throw(AssertionError), afunc=_later),
}


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name in MADE for mode in MODES if mode[0] == "a" or name != "only async"]
)
async def test_a_runnable_makes_the_prompt(mode: str, name: str) -> None:
    chain = a_chain(rag_prompt=MADE[name], long_context_prompt=MADE[name])
    assert (await ask(chain, {"input": QUESTION, "more": 1}, mode))["answer"] == FOUND
    assert chain.llm.steps == ["rag", "long_context"]


@pytest.mark.parametrize("found", [None, 7, [1], {"context": "x"}], ids=repr)
@pytest.mark.parametrize("mode", MODES)
async def test_what_is_no_prompt_is_said(mode: str, found: Any) -> None:
    with pytest.raises(ReplyError, match="rag_prompt and long_context_prompt must return a prompt"):
        await ask(a_chain(rag_prompt=RunnableLambda(lambda _: found)), QUESTION, mode)


LACKING = PromptTemplate.from_template("Without. {input}")


@pytest.mark.parametrize("field", STEPS)
@pytest.mark.parametrize(
    "prompt",
    [
        LACKING,
        LACKING.configurable_fields(template=ConfigurableField(id="words")),
        _alternatives(lacking=LACKING),
        LACKING.configurable_alternatives(CHOICE, other=OTHER),
    ],
    ids=["template", "fields", "alternative", "default"],
)
def test_a_prompt_that_would_hide_the_context_is_refused_at_once(prompt: Any, field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} must have the variable {{context}}"):
        a_chain(**{field: prompt})


def test_a_prompt_that_turns_out_to_hide_the_context_is_refused() -> None:
    nested = OTHER.configurable_alternatives(CHOICE, nested=lambda: LACKING)
    for name, made in (("lacking", lambda: LACKING), ("nested", nested)):
        chain = a_chain(rag_prompt=_alternatives(**{name: made}))
        with pytest.raises(ConfigurationError, match=r"must have the variable \{context\}"):
            chain.invoke(QUESTION, _chosen(name))
        assert chain.llm.calls == []


@pytest.mark.parametrize("given", ["{context} {input}", 7, None], ids=repr)
def test_what_is_no_runnable_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="rag_prompt"):
        SelfRouteChain(**{**vars(a_chain()), "rag_prompt": given})
