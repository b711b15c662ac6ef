"""Both hosts, all modes: nothing is paid for that reads nothing new, and the first sections are chosen widely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

import one_store
from both_parts import Outcome, Pipeline, Text, everywhere, far_apart, pipeline, seen, store_of, stored
from scenarios import FINAL, FOUND
from selfroute.languages.tokens import count_tokens
from selfroute.policies import Case
from steering import LIN, LOOKED, UNANSWERABLE, long_text

DEFAULTS: dict[str, Any] = {"answerability": None, "sections": "auto"}
BEGINNING = "Read the following text"  # of a prompt with whole documents
SOURCES = ("listed", "called", "stored")
every_source = pytest.mark.parametrize("source", SOURCES)
NINE, TEN = "The harbour office opens at nine.", "The reading room opens at ten."
LONG = long_text("pier A", 12)
PARAGRAPHS = long_text("pier B", 3).split("\n\n")


class Store(NamedTuple):
    """The documents by their names, and the passages that are found."""

    texts: Mapping[str, str]
    passages: Sequence[Text]


def whole(*names: str, **texts: str) -> Store:
    """Documents that are passages; the names say in which order they are found."""
    return Store(texts, [Text(texts[name], name, 0) for name in names or texts])


def begun(paragraphs: int = 1) -> Store:
    """A document of which these paragraphs are found."""
    text = "\n\n".join(PARAGRAPHS)
    return Store({"b": text}, [Text(one, "b", text.index(one)) for one in PARAGRAPHS[:paragraphs]])


KNOWN = {
    "one chunk a document": whole(a=NINE, b=TEN),
    "one document": whole(a=NINE),
    "passages twice": whole("a", "b", "a", "b", a=NINE, b=TEN),
    "two documents with one text": whole(a=NINE, b=NINE),
    "long documents as passages": whole(a=LONG, b=TEN),
    "all chunks of a document": begun(3),
}
NEW = {
    "a document that goes on": begun(2),
    "a document that goes on, found twice": begun()._replace(passages=begun().passages * 2),
}
every_store = pytest.mark.parametrize("name", KNOWN)


def asking(where: str, store: Store, source: str = "listed", **more: Any) -> Pipeline:
    """A chain or an engine over documents from a kind of source; no step after the draft may be asked."""
    documents: Any = [Text(text, name) for name, text in store.texts.items()]
    if source == "stored":
        chunks = {(one.name, one.start): one for one in store.passages}
        chunks |= {(name, 0): Text(text, name, 0) for name, text in store.texts.items() if (name, 0) not in chunks}
        for (name, start), one in [*chunks.items()]:  # what no passage holds is a chunk, too
            end = start + len(one.text)
            if not any(other == name and at >= end for other, at in chunks) and store.texts[name][end:].strip():
                chunks[name, end] = Text(store.texts[name][end:], name, end)
        documents = stored(where, store_of(where, [*chunks.values()]), open_to_all=True)
    fields = {"final": None, "marker": BEGINNING, "documents": documents, "passages": store.passages}
    one = pipeline(where, **{**fields, **DEFAULTS, **more})
    if source == "called":
        listed = one.holder.documents
        one = pipeline(where, **{**fields, **DEFAULTS, **more, "documents": lambda *_: listed})
    return one


def never_asked(case: Case) -> bool:
    """Fail."""
    pytest.fail(f"the policy was asked for {case.step}")


def check_nothing_more(found: Outcome, *, route: str = "rag", answer: str = "unanswerable") -> None:
    """Hold an outcome against the law: only the steps up to this one are paid for."""
    doubted = found.decision["signal"] == "doubt"
    assert (found.route, found.answer, found.answerable) == (route, answer, doubted)
    assert "".join(found.pieces) == answer
    ruling = found.decision["ruling"]
    assert (set(ruling), ruling["go"], ruling["by"]) == ({"go", "by", "reason"}, False, "nothing_more")
    assert found.usage["long_context"] is None
    assert found.read


@everywhere
@every_store
@every_source
async def test_documents_that_the_draft_has_read_are_not_paid_for(name: str, source: str, where: str) -> None:
    for sections in ("auto", None):
        one = asking(where, KNOWN[name], source, sections=sections)
        with seen(one) as watched:
            found = await one.ask()
        check_nothing_more(found)
        assert (found.steps, found.usage["sections"]) == (["rag"], None)
        assert found.retrieved >= len({one.name for one in KNOWN[name].passages})  # LlamaIndex leaves out what repeats
        last = watched.decisions[-1]
        assert (last["route"], last["decision"]) == ("rag", found.decision)
        assert source == "called" or len(watched.decisions) == 1


@everywhere
@pytest.mark.parametrize("name", NEW)
@every_source
async def test_documents_that_hold_more_are_read(name: str, source: str, where: str) -> None:
    found = await asking(where, NEW[name], source, final=FINAL).ask()
    assert (found.steps, found.route, found.answer) == (["rag", "long_context"], "long_context", FOUND)
    assert (found.decision["ruling"], [text.split() for text in found.read]) == (
        None,
        [text.split() for text in NEW[name].texts.values()],
    )


@everywhere
@every_source
async def test_passages_that_the_draft_did_not_read_are_new(source: str, where: str) -> None:
    found = await asking(where, KNOWN["one chunk a document"], source, final=FINAL, draft_passages=1).ask()
    assert (found.steps, found.answer) == (["rag", "long_context"], FOUND)


@everywhere
@every_store
@every_source
async def test_no_policy_is_asked_for_nothing(name: str, source: str, where: str) -> None:
    check_nothing_more(await asking(where, KNOWN[name], source, escalation=never_asked).ask())


@everywhere
@every_store
@every_source
async def test_a_doubt_stands_where_there_is_no_more(name: str, source: str, where: str) -> None:
    """Its words come piece by piece, and no number."""
    for sections, escalation in (("auto", None), (None, None), ("auto", never_asked)):
        more = {"draft": ("80 42\n", "Mr Lin took ", "the chair ", "at nine."), "escalation": escalation}
        found = await asking(where, KNOWN[name], source, sections=sections, **more).ask()
        check_nothing_more(found, answer=LIN)
        assert (found.steps, found.decision["signal"]) == (["rag"], "doubt")
        assert (found.decision["prospect"], found.decision["confidence"]) == (80, 42)


@everywhere
@every_source
async def test_a_doubt_that_is_a_decline_is_none(source: str, where: str) -> None:
    found = await asking(where, KNOWN["one document"], source, draft=("80 42\n", "unanswerable")).ask()
    assert (found.answer, found.answerable, found.decision["ruling"]["by"]) == ("unanswerable", False, "nothing_more")


@everywhere
@every_store
@every_source
async def test_no_more_where_documents_are_forbidden(name: str, source: str, where: str) -> None:
    check_nothing_more(await asking(where, KNOWN[name], source, max_documents=0).ask())


@far_apart
@every_source
async def test_auto_reads_documents_that_are_the_passages_at_once(source: str, where: str) -> None:
    found = await asking(where, KNOWN["one chunk a document"], source, draft=None, final=FINAL, start="auto").ask()
    assert (found.steps, sorted(found.read), found.answer) == (["long_context"], sorted([NINE, TEN]), FOUND)


@pytest.mark.parametrize("mode", ["whole", "awhole", "stream", "astream"])
@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
async def test_documents_that_sections_held_are_not_paid_for(framework: str, mode: str) -> None:
    model = one_store.Model()
    found = await one_store.ask(_over_one_store(framework, model, mode), mode=mode)
    check_nothing_more(found, route="sections")
    assert len(model.prompts) == 2
    assert len(set(found.names)) > 1


@pytest.mark.parametrize("mode", ["whole", "awhole", "stream", "astream"])
@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
async def test_an_answer_of_sections_in_doubt_stands_where_there_is_no_more(framework: str, mode: str) -> None:
    model = one_store.Model("80 42\nFenella")
    found = await one_store.ask(_over_one_store(framework, model, mode), mode=mode)
    check_nothing_more(found, route="sections", answer="Fenella")
    assert len(model.prompts) == 2


def _over_one_store(framework: str, model: one_store.Model, mode: str) -> Any:
    """Sections of 600 tokens from eight documents, which hold all of the best one."""
    options: dict[str, Any] = {"sections": 600, "max_documents": 1}
    if framework == "llamaindex":
        options["streaming"] = mode.endswith("stream")
    return one_store.pipeline(framework, model=model, **options)


# Wide before deep


def short_documents(number: int) -> Store:
    """So many documents of some 700 tokens; of each, the beginning is found."""
    texts = {f"page {n}": long_text(f"pier {n}", 4) for n in range(number)}
    return Store(texts, [Text(text[:120], name, 0) for name, text in texts.items()])


MANY, FEW = short_documents(24), short_documents(9)
AUTO = 4_000  # tokens of the first sections at least
WIDE = {"source": "stored", "draft_passages": 3}


@everywhere
async def test_first_sections_come_from_all_documents(where: str) -> None:
    """They are more than the two documents of the last step together."""
    found = await asking(where, MANY, **WIDE, looks=(LOOKED,)).ask()
    assert (found.steps, found.route, found.answer) == (["rag", "sections"], "sections", "Ms Duarte led the vote.")
    last = sum(sorted(map(count_tokens, MANY.texts.values()))[-2:])
    assert last < AUTO / 2 < sum(map(count_tokens, found.read)) <= AUTO
    assert len({*found.names}) > 2


@everywhere
async def test_further_sections_are_held_against_the_last_step(where: str) -> None:
    found = await asking(where, MANY, **WIDE, looks=(UNANSWERABLE,), final=FINAL).ask()
    assert (found.steps, found.answer) == (["rag", "sections", "long_context"], FOUND)
    assert len(found.read) == 2


@everywhere
async def test_first_sections_are_left_out_of_few_documents(where: str) -> None:
    assert AUTO < sum(map(count_tokens, FEW.texts.values())) < 2 * AUTO
    found = await asking(where, FEW, **WIDE, final=FINAL).ask()
    assert (found.steps, found.answer, len(found.read)) == (["rag", "long_context"], FOUND, 2)


ROWS = Store(
    texts := {f"row {n}": f"Row {n}: the pump of boat {n} was repaired at the yard." for n in range(12)},
    [Text(text, name, 0) for name, text in texts.items()],
)


@everywhere
@pytest.mark.parametrize("drafted", [1, 5])
async def test_rows_that_the_draft_did_not_read_are_read_together(drafted: int, where: str) -> None:
    """The first sections have room for all of them, and the last step for two."""
    found = await asking(where, ROWS, "stored", draft_passages=drafted).ask()
    check_nothing_more(found, route="sections")
    assert len(found.prompts) == 2
    assert all(text in found.prompts[1] for text in texts.values())


@everywhere
async def test_further_sections_are_held_against_what_fits(where: str) -> None:
    texts = {"a": long_text("pier A", 200), "b": long_text("pier B", 200)}
    store = Store(texts, [Text(text[:120], name, 0) for name, text in texts.items()])
    options = {"source": "stored", "looks": (UNANSWERABLE, None), "final": FINAL, "max_context_tokens": 6_000}
    found = await asking(where, store, **options).ask()
    assert (found.steps, found.answer) == (["rag", "sections", "long_context"], FOUND)


@far_apart
async def test_auto_reads_all_that_the_draft_would(where: str) -> None:
    """Also where passages that it does not read point to another document, which may be ranked first."""
    third = long_text("pier C", 3)
    store = whole("a", "b", "c", a=NINE, b=TEN, c=third)
    found = await asking(where, store, "stored", draft_passages=2, start="auto", draft=("90 90\n", LIN)).ask()
    assert (found.steps, found.answer) == (["rag"], LIN)


@everywhere
@pytest.mark.parametrize("draft", [UNANSWERABLE, ("80 42\n", LIN)], ids=["declined", "doubt"])
async def test_what_is_trimmed_to_what_was_read_is_not_paid_for(draft: Any, where: str) -> None:
    """No policy is asked for it either."""
    text = long_text("pier A", 40)
    store = Store({"a": text}, [Text(text[:8_000], "a", 0)])
    for escalation in (None, never_asked):
        options = {"sections": None, "max_context_tokens": 300, "draft": draft, "escalation": escalation}
        found = await asking(where, store, "stored", **options).ask()
        assert (found.steps, found.decision["ruling"]["by"]) == (["rag"], "nothing_more")
        assert found.answer == (LIN if draft != UNANSWERABLE else "unanswerable")


@everywhere
@pytest.mark.parametrize("sections", ["auto", None])
async def test_a_doubt_stands_where_a_callable_has_no_documents(sections: Any, where: str) -> None:
    fields = {"final": None, "draft": ("80 42\n", LIN), "passages": KNOWN["one document"].passages}
    found = await pipeline(where, **DEFAULTS | {"sections": sections}, documents=lambda *_: [], **fields).ask()
    assert (found.route, found.answer, found.answerable) == ("rag", LIN, True)


@far_apart
async def test_check_says_what_is_read_already(where: str) -> None:
    for more, said in (({}, "reading the document is skipped"), ({"start": "auto"}, "reading the document takes")):
        checked = asking(where, KNOWN["one document"], "listed", **more).asked.check("Who?")
        [prices] = [one.message for one in checked if one.subject == "prices"]
        assert said in prices
        assert ("a draft takes" in prices) is not bool(more)
