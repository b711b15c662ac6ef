"""Passages, documents and the window: budgets, trimming, and less when a model says that it was too long."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from pydantic import Field

import langchain_parts
import llamaindex_parts
from both_parts import Outcome, Pipeline, Text, document, model, pipeline
from hosts_parts import QUESTION, STREAMS, wheres
from scenarios import FINAL, FOUND, WHOLE
from selfroute.documents.label import Label
from selfroute.flow import MOST_RETRIES
from selfroute.languages.tokens import count_tokens

everywhere = wheres()
PASSAGE = "Ms Okafor took the chair at nine."


def words(text: str) -> int:
    """Count tokens as the scripted models do."""
    return len(text.split())


def long_text(size: int = 600) -> str:
    """Return a long text with the passage in its last tenth."""
    filler = [f"{WHOLE} word{n}." for n in range(size // 4)]
    filler.insert(len(filler) * 9 // 10, PASSAGE)
    return " ".join(filler)


def a_document(where: str, size: int = 600, source: str = "May", **metadata: Any) -> Any:
    return document(where, Text(long_text(size), source, metadata={"source": source, "pages": [1, 2], **metadata}))


def long(where: str, **parts: Any) -> Pipeline:
    """Make one over a long document and its passage."""
    found = {"documents": [a_document(where)]}
    if "retriever" not in parts:
        found["passages"] = [PASSAGE]
    return pipeline(where, **{**found, **parts})


def after(tokens: int, where: str) -> Any:
    """Return the question after a history of some tokens, or in LlamaIndex after as much of its own."""
    before = "word " * (tokens * 4 // 5)
    if where.startswith("langchain"):
        return {"input": QUESTION, "chat_history": [HumanMessage(before), AIMessage("Yes.")]}
    return before + QUESTION


class BadRequestError(Exception):
    """What a client raises for an error that it knows no type for."""

    status_code = 400

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def again(number: int = 0) -> BadRequestError:
    return BadRequestError(f"too long, {number}", "context_length_exceeded")


TOO_LONG: dict[str, Exception] = {
    "by its code": BadRequestError("no words to go by", "context_length_exceeded"),
    "vllm": BadRequestError(
        "This model's maximum context length is 400 tokens. However, you requested 640 tokens in the messages. "
        "Please reduce the length of the messages."
    ),
    "in words": ValueError("prompt is too long: 640 tokens > 400 maximum"),
}
TYPED = ContextOverflowError("no words to go by")  # by LangChain's own type
refused = pytest.mark.parametrize("error", [*TOO_LONG.values(), TYPED], ids=[*TOO_LONG, "typed"])


def met(where: str, error: Exception) -> Exception:
    """Return the error as the host's clients raise it."""
    return TOO_LONG["by its code"] if error is TYPED and where.startswith("llamaindex") else error


# What is refused as too long


@everywhere
@refused
def test_a_prompt_that_is_too_long_is_sent_once_more_with_less(where: str, error: Exception) -> None:
    documents = [a_document(where)]
    one = long(where, documents=documents, failures={"long_context": [met(where, error)]}, usage=True)
    told = one.now()
    assert (told.answer, one.model.steps) == (FOUND, ["rag", "long_context", "long_context"])
    _, first, second = told.prompts
    assert words(second) < words(first)
    (read,) = told.read
    assert read in second
    assert PASSAGE in read
    assert told.labels[0]["trimmed"] is True
    assert documents == [a_document(where)]
    assert told.usage["long_context"]["input_tokens"] == words(second)


@everywhere
@refused
def test_less_is_sent_until_it_fits_at_most_half_each_time(where: str, error: Exception) -> None:
    hardly_less = ValueError("prompt is too long: 640 tokens > 600 maximum")
    one = long(where, failures={"long_context": [met(where, error), hardly_less, again()]})
    told = one.now()
    _, *prompts = map(count_tokens, told.prompts)
    around = prompts[-1] - count_tokens(told.read[0])
    read = [prompt - around for prompt in prompts]
    assert read[2] <= read[1] // 2 + 2  # estimates of a text do not add up to the token
    assert read[3] <= read[2] // 2 + 2
    assert PASSAGE in told.read[0]


RAISED: dict[str, list[Exception]] = {  # the errors that a model gives in turn; the last one is raised
    "what never fits": [again(number) for number in range(MOST_RETRIES + 1)],
    "another error of the retry": [again(), OSError("down")],
    "nothing left to send": [again()],
}


@everywhere
@pytest.mark.parametrize("name", RAISED)
def test_too_long_without_help_is_raised(where: str, name: str) -> None:
    errors, nothing = RAISED[name], {}
    if name.startswith("nothing"):
        nothing = {"documents": ["Zq"], "marker": "Zq"}
    one = long(where, failures={"long_context": [*errors, again(99)]}, **nothing)
    with pytest.raises(type(errors[-1])) as raised:
        one.now()
    assert raised.value is errors[-1]
    assert one.model.steps == ["rag"] + ["long_context"] * len(errors)


@wheres(modes=STREAMS)
def test_too_long_after_the_first_text(where: str) -> None:
    said = ("Ms", " Okafor", " took", " the", " chair", ".", *(f" word{n}" for n in range(20)))
    final = model(where, final=said, breaks_after=15, breaks_with=again())
    with pytest.raises(BadRequestError):
        long(where, long_context_llm=final).now()
    assert len(final.calls) == 1
    final = model(where, final=("Un", "a"), breaks_after=1, breaks_with=again(), breaks_calls=1)
    assert (long(where, long_context_llm=final).now().answer, len(final.calls)) == ("Una", 2)


# Passages


MANY = [Text(f"Minute {n}: nothing of note was said.", metadata={"page": n}) for n in range(100)]


def check_first(told: Outcome, at_least: int, at_most: int) -> None:
    """The first of many passages were read."""
    assert (told.answer, told.route) == (FOUND, "rag")
    assert told.retrieved == 100
    assert [metadata["page"] for _, metadata in told.context] == list(range(len(told.read)))
    assert at_least <= len(told.read) <= at_most


@everywhere
@refused
def test_passages_that_are_too_long(where: str, error: Exception) -> None:
    one = long(where, passages=MANY, failures={"rag": [met(where, error)]}, draft=FINAL)
    check_first(one.now(), 20, 70)
    assert one.model.steps == ["rag", "rag"]
    never = long(where, passages=MANY, failures={"rag": [again(number) for number in range(99)]})
    with pytest.raises(BadRequestError):
        never.now()
    assert (set(never.model.steps), 1 < len(never.model.steps) <= 1 + MOST_RETRIES) == ({"rag"}, True)


@everywhere
def test_passages_fill_the_window(where: str) -> None:
    check_first(told := long(where, passages=MANY, draft=FINAL, window=500).now(), 9, 59)
    (prompt,) = told.prompts
    assert ("page: 8" in prompt) is where.startswith("llamaindex")  # what a node shows beside its text counts
    assert count_tokens(prompt) < 500
    one = long(where, passages=["word " * 1000, *MANY], draft=FINAL, window=500)
    before, told = deepcopy(one.asked.retriever.passages), one.now()
    (read,) = told.read
    assert 100 < words(read) < 500
    assert told.labels[0]["trimmed"] is True
    assert one.asked.retriever.passages == before
    for budget in (1, 1000):  # which is for documents alone
        told = long(where, draft=("Mr Lin.",), max_context_tokens=budget).now()
        assert (told.answer, told.read) == ("Mr Lin.", [PASSAGE])


@everywhere
@pytest.mark.parametrize("route", ["rag", "long_context"])
def test_window_has_room_for_question_and_history(where: str, route: str) -> None:
    one = long(
        where,
        documents=[a_document(where, 8000)],
        passages=[PASSAGE, *MANY * 5],
        draft=FINAL if route == "rag" else ("unanswerable",),
        window=3000,
    )
    told = one.now(after(1200, where))
    assert told.route == route
    assert all(2100 < count_tokens(prompt) < 2900 for prompt in told.prompts)


@everywhere
@pytest.mark.parametrize("looks", ["sections", "long_context"])
def test_max_context_tokens_has_room_for_question_and_history(where: str, looks: str) -> None:
    options: Any = {"max_documents": 0, "sections": 1800, "looks": (FINAL,)} if looks == "sections" else {}
    one, prompts = long(where, documents=[a_document(where, 8000)], max_context_tokens=2000, **options), []
    for before in (0, 150, 1200):
        told = one.now(after(before, where))
        assert (told.route, PASSAGE in " ".join(told.read)) == (looks, True)
        prompts.append((sum(map(count_tokens, told.read)), count_tokens(told.prompts[-1])))
    assert prompts[0][0] == prompts[1][0] > 1500  # a short one takes nothing
    assert prompts[0][0] > prompts[2][0] > 400
    assert prompts[2][1] <= 2000 + 300


@everywhere
@pytest.mark.parametrize("before", [1800, 3000])
def test_a_history_that_leaves_no_room_is_said_so(where: str, before: int, caplog: pytest.LogCaptureFixture) -> None:
    one = long(where, documents=[a_document(where, 8000)], max_context_tokens=2000)
    for _ in range(2):
        told = one.now(after(before, where))
        assert PASSAGE in told.read[0]
        assert told.labels[0]["trimmed"] is True
        assert 100 < count_tokens(told.read[0]) <= (200 if before > 2000 else 450)
    assert ["send a shorter history" in record.getMessage() for record in caplog.records] == [True] * (before > 2000)


# Documents and the budget


@everywhere
def test_documents_fill_the_budget_the_best_first_and_no_more(where: str) -> None:
    for budget, more in ((100, {}), (300, {"selfroute": "mine"}), (599, {})):  # a key of somebody else's does no harm
        document = a_document(where, **more)
        one = long(where, documents=[document], max_context_tokens=budget)
        told = one.now()
        (read,) = told.read
        assert budget * 0.8 <= count_tokens(read) <= budget
        assert PASSAGE in read
        assert (told.names, told.context[0][1]["pages"]) == (["May"], [1, 2])
        assert told.labels[0]["trimmed"] is True
        assert document.metadata.get("selfroute") == more.get("selfroute")
        assert one.model.steps == ["rag", "long_context"]
    documents = [a_document(where, 400 + 4 * at, name) for at, name in enumerate(("May", "June", "July"))]
    before, budget = deepcopy(documents), count_tokens(long_text(400)) * 3 // 2
    told = long(where, documents=documents, max_context_tokens=budget).now()
    assert (told.names, told.read[0]) == (["May", "June"], long_text(400))
    assert sum(map(count_tokens, told.read)) <= budget
    assert told.labels[1]["trimmed"] is True
    assert documents == before


@everywhere
def test_label_is_kept_out_of_prompts(where: str) -> None:
    told_before = {"method": "offsets", "chunks": 7, "gaps": [[3, 9]], "trimmed": False}
    how = Label(told_before, length=len(long_text()))
    for fields in ({"max_context_tokens": 100}, {}):
        labelled = a_document(where, selfroute=how)
        one = long(where, documents=[labelled], **fields)
        told = one.now()
        start, end = told.labels[0].get("read", (0, len(long_text())))
        assert told.read == [long_text()[start:end]]
        assert told.labels[0] == {**how, **({"trimmed": True, "read": [start, end]} if fields else {})}
        assert how["trimmed"] is False
        assert not any(word in told.prompts[-1] for word in ("selfroute", "method", "offsets", "trimmed"))


@everywhere
def test_a_budget_for_nothing_asks_no_model(where: str) -> None:
    one = long(
        where, documents=["\N{GOTHIC LETTER AHSA}" * 9], max_context_tokens=1, final=None
    )  # each takes more than a token
    told = one.now()
    assert (told.answerable, told.read, one.model.steps) == (False, [], ["rag"])


@everywhere
def test_budget_goes_before_the_window(where: str) -> None:
    (read,) = long(where, long_context_llm=model(where, final=FINAL, window=128_000), max_context_tokens=50).now().read
    assert words(read) <= 50
    (read,) = long(where, max_context_tokens=100).now().read
    assert 300 <= len(read) <= 400
    first = model(where, draft=("unanswerable",), window=1000)
    assert long(where, llm=first, long_context_llm=model(where, final=FINAL)).now().read == [long_text()]


# The model's own window


class OllamaModel(langchain_parts.ScriptedModel):
    """Has a window of its own, which the server keeps to, whatever the model could take."""

    num_ctx: int | None = None


class OllamaLLM(llamaindex_parts.ScriptedLLM):
    """Tells its server which window to keep, even the default one."""

    additional_kwargs: Any = Field(default_factory=dict)


OllamaLLM.__module__ = "llama_index.llms.ollama.base"  # which is how its package is known


def profiled(profile: Any = None, **fields: Any) -> Any:
    return langchain_parts.ScriptedModel(final=FINAL, profile=profile, **fields)


def declaring(window: int) -> Any:
    return llamaindex_parts.ScriptedLLM(final=FINAL, context_window=window)


def ollama(num_ctx: int | None = 2000) -> Any:
    return OllamaModel(final=FINAL, num_ctx=num_ctx, profile={"max_input_tokens": 128_000 if num_ctx else 3000})


NARROW = {"max_input_tokens": 3000}
WINDOWS: dict[str, tuple[Callable[[], Any], int | None]] = {  # the model, and the window that is kept
    "langchain: a profile": (lambda: profiled(NARROW), 3000),
    "langchain: bound": (lambda: profiled(NARROW).bind(stop=["\n"]), 3000),
    "langchain: with retries": (lambda: profiled(NARROW).with_retry(), 3000),
    "langchain: with fallbacks": (lambda: profiled(NARROW).with_fallbacks([langchain_parts.ScriptedModel()]), 3000),
    "langchain: Ollama": (ollama, 2000),
    "langchain: Ollama, bound": (lambda: ollama(6000).bind(options={"num_ctx": 1500}), 1500),
    "langchain: Ollama, told nothing": (lambda: ollama(None), 3000),
    "langchain: no profile": (profiled, None),
    "langchain: another profile": (lambda: profiled({"max_output_tokens": 5}), None),
    "llamaindex: declared": (lambda: declaring(3000), 3000),
    "llamaindex: one more than the host's default": (lambda: declaring(DEFAULT_CONTEXT_WINDOW + 1), 3901),
    "llamaindex: the host's default": (lambda: declaring(DEFAULT_CONTEXT_WINDOW), None),
    "llamaindex: of no size": (lambda: declaring(0), None),
    "llamaindex: Ollama, default": (lambda: OllamaLLM(final=FINAL), DEFAULT_CONTEXT_WINDOW),
    "llamaindex: Ollama, by an option": (
        lambda: OllamaLLM(final=FINAL, context_window=128_000, additional_kwargs={"num_ctx": 2000}),
        2000,
    ),
}


@pytest.mark.parametrize("mode", ["whole", "awhole", "stream", "astream"])
@pytest.mark.parametrize("name", WINDOWS)
def test_window_of_a_model(name: str, mode: str) -> None:
    make, window = WINDOWS[name]
    where = f"{name.partition(':')[0]} {mode}"
    (read,) = long(where, documents=[a_document(where, 8000)], long_context_llm=make()).now().read
    assert PASSAGE in read
    assert read == long_text(8000) if window is None else window / 3 < count_tokens(read) < window


# What the provider counts


@everywhere
def test_a_prompt_that_the_provider_has_cut_is_said_so(where: str, caplog: pytest.LogCaptureFixture) -> None:
    documents = [a_document(where, 4000, "May"), a_document(where, 40, "June")]
    cutting = model(where, final=FINAL, label="small", tokens=lambda prompt: min(words(prompt), 300))
    one = long(where, documents=documents, long_context_llm=cutting)
    original = one.asked
    others = [copy(original), deepcopy(original)]
    if where.startswith("langchain"):
        others.insert(0, original.with_config(tags=["t"]))
    for one.asked in (original, original, *others):
        told = one.now()
    assert told.usage["long_context"]["input_tokens"] == 300
    assert ["small" in record.getMessage() for record in caplog.records] == [True] * 2, "once by it, once by another"
    if where.startswith("langchain"):
        assert all("num_ctx" in record.getMessage() for record in caplog.records)
    if where not in {"langchain stream", "langchain astream"}:  # which have given them away before anything is counted
        assert [label["trimmed"] for label in told.labels] == ["provider"] * 2
    assert told.read == [long_text(4000), long_text(40)]
    assert "selfroute" not in documents[0].metadata


@everywhere
def test_prompt_from_a_cache_is_not_taken_for_cut(where: str, caplog: pytest.LogCaptureFixture) -> None:
    told = long(where, documents=[a_document(where, 4000)], usage=True).now()  # half of it comes from the cache
    assert told.usage["long_context"]["cached_tokens"] > 1000
    assert not (told.labels[0] or {}).get("trimmed")
    assert caplog.records == []


JAPANESE = "委員会は四月の会議でクレーンの修理を決定し、予算を承認しました。"
REFUSED = "Your input exceeds the context window of this model. Please adjust your input and try again."


def by_characters(where: str, rate: float = 0.87, **fields: Any) -> Any:
    """Make a model that counts tokens by characters, as models do in Japanese, and refuses what is too long."""
    counting = {"tokens": lambda prompt: len(prompt) * rate, "limit": 3000, "refuses": lambda _: ValueError(REFUSED)}
    return model(where, final=FINAL, **{**counting, **fields})


@everywhere
@pytest.mark.parametrize(("window", "tries"), [(3000, 1), (None, 5)], ids=["named", "unnamed"])
def test_text_of_another_script_is_fitted_by_halving(where: str, window: int | None, tries: int) -> None:
    final = by_characters(where, window=window, marker=JAPANESE)
    documents = [JAPANESE * 1000]
    (read,) = long(where, documents=documents, long_context_llm=final).now().read
    assert len(final.calls) == tries
    assert 1000 < len(read) < (window or 3500)


@everywhere
@pytest.mark.parametrize("limit", [{}, {"max_context_tokens": 2000}], ids=["window", "budget"])
def test_window_learns_how_the_provider_counts(where: str, limit: dict[str, int]) -> None:
    """A text of rare words, which takes twice the tokens that it seems to."""
    final = by_characters(where, 0.5, limit=2700, window=3000)
    one = long(where, documents=[a_document(where, 8000)], long_context_llm=final, **limit)
    for _ in range(2):
        one.now()
    before = len(final.calls)
    (read,) = one.now().read
    assert len(final.calls) == before + 1
    assert 500 < len(read) * 0.5 <= limit.get("max_context_tokens", 3000) * 1.1


@everywhere
def test_window_is_filled_by_the_providers_counts(where: str) -> None:
    """A model that has a token for each word, where one for four characters is estimated."""
    final = model(where, final=FINAL, usage=True, window=5000)
    one = long(where, documents=[a_document(where, 8000)], long_context_llm=final)
    lengths = [words(one.now().read[0]) for _ in range(3)]
    assert lengths[0] < lengths[1] < 5000 * 9 // 10 - 1000 == 3500
    assert 3300 < lengths[2] <= 3550
