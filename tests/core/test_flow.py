"""The flow, without a loop over it, and the usage; and what the packages import."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import selfroute
from lanes import examples
from selfroute.answerability import Verdict
from selfroute.answerability.ending import ANSWERED, NO_PASSAGES, STARTED
from selfroute.calls.drivers import advance
from selfroute.effects import (
    NOTHING_MORE,
    Answer,
    Compare,
    Decide,
    Decided,
    Generate,
    Judged,
    ReadDocuments,
    Retrieve,
    Route,
)
from selfroute.flow import self_route
from selfroute.usage import Cost, StepUsage, Usage

SENTINEL = Verdict(declined=True, signal="sentinel", evidence="unanswerable")


@pytest.mark.parametrize("ladder", [("rag", "long_context"), ("rag", "sections", "long_context"), ("long_context",)])
def test_flow_where_nothing_leads_to_a_document(ladder: Any) -> None:
    begins = ladder[0]
    asked, verdict = self_route("Who?", ladder=ladder), NO_PASSAGES if begins == "rag" else STARTED
    asked.send(None)
    assert asked.send(None) == Decide(begins, verdict, verdict, since="rag", final=begins == "rag")
    if begins == "rag":
        with pytest.raises(StopIteration) as end:
            asked.send(Decided("rag", verdict))
        assert (end.value.value.route, end.value.value.text) == ("rag", "unanswerable")


def played(asked: Any, *results: Any) -> tuple[list[Any], Answer]:
    """The effects of a flow that is sent these results, and its answer."""
    effects = [asked.send(result) for result in (None, *results[:-1])]
    with pytest.raises(StopIteration) as end:
        asked.send(results[-1])
    return effects, end.value.value


UNSURE = Verdict(declined=False, signal="doubt", evidence="80 42", prospect=80, confidence=42)
STOPPED = replace(SENTINEL, ruling={"go": False, "by": "prospect", "reason": "10 < 20"})
LEFT = replace(UNSURE, ruling=NOTHING_MORE)
P, S, T, D = ["p"], ["s"], ["s", "t"], ["d"]  # passages, sections, more of them, documents
CLIMB: tuple[Route, ...] = ("rag", "sections", "sections", "long_context")


def test_flow_reads_and_proposes_before_it_asks() -> None:
    draft, first, second = Judged("", SENTINEL), Judged("", UNSURE), Judged("", SENTINEL)
    more, whole = Decided("sections", SENTINEL), Decided("long_context", SENTINEL)
    effects, answer = played(
        self_route("Who?", CLIMB), P, draft, S, more, first, T, more, second, whole, D, Judged("Ms", ANSWERED)
    )
    assert effects == [
        Retrieve("Who?"),
        Generate("rag", P),
        ReadDocuments(P, step="sections"),
        Decide("sections", SENTINEL, SENTINEL, context=S),
        Generate("sections", S),
        ReadDocuments(P, step="sections", rung=1),
        Decide("sections", SENTINEL, UNSURE, since="sections", context=T),
        Generate("sections", T, rung=1),
        Decide("long_context", SENTINEL, SENTINEL, since="sections"),
        ReadDocuments(P),
        Generate("long_context", D),
    ]
    assert answer == Answer("Ms", "long_context", True, SENTINEL, P, D)


ENDS: dict[str, tuple[tuple[Route, ...], tuple[Any, ...], list[Any], Answer]] = {
    "the draft answers": (
        ("rag", "long_context"),
        (P, Judged("Ms", ANSWERED), None),
        [Retrieve("Who?"), Generate("rag", P), Decide("rag", ANSWERED, ANSWERED, final=True)],
        Answer("Ms", "rag", True, ANSWERED, P, P),
    ),
    "no step answers": (
        ("rag", "long_context"),
        (P, Judged("", SENTINEL), Decided("long_context", SENTINEL), D, Judged("", SENTINEL)),
        [Decide("long_context", SENTINEL, SENTINEL), ReadDocuments(P), Generate("long_context", D)],
        Answer("unanswerable", "long_context", False, SENTINEL, P, D),
    ),
    "nothing is retrieved": (
        ("rag", "long_context"),
        ([], Decided("long_context", NO_PASSAGES), D, Judged("Ms", ANSWERED)),
        [Decide("long_context", NO_PASSAGES, NO_PASSAGES), ReadDocuments([]), Generate("long_context", D)],
        Answer("Ms", "long_context", True, NO_PASSAGES, [], D),
    ),
    "there is nowhere to go to": (
        ("rag",),
        (P, Judged("", SENTINEL), None),
        [Decide("rag", SENTINEL, SENTINEL, final=True)],
        Answer("unanswerable", "rag", False, SENTINEL, P, P),
    ),
    "a doubt has nowhere to go to": (
        ("rag",),
        (P, Judged("", UNSURE), None, Judged("Ms", ANSWERED)),
        [Decide("rag", UNSURE, UNSURE, final=True), Generate("rag", P, resumed=True)],
        Answer("Ms", "rag", True, UNSURE, P, P),
    ),
    "a doubt is left as the sections are skipped": (
        ("rag", "sections"),
        (P, Judged("", UNSURE), None, None, Judged("Ms", ANSWERED)),
        [
            ReadDocuments(P, step="sections"),
            Decide("rag", LEFT, UNSURE, final=True),
            Generate("rag", P, resumed=True),
        ],
        Answer("Ms", "rag", True, LEFT, P, P),
    ),
    "a doubt about sections is the last word": (
        ("rag", "sections", "sections"),
        (
            P,
            Judged("", SENTINEL),
            S,
            Decided("sections", SENTINEL),
            Judged("", UNSURE),
            (),
            None,
            Judged("Ms", ANSWERED),
        ),
        [
            ReadDocuments(P, step="sections", rung=1),
            Decide("sections", replace(SENTINEL, ruling=NOTHING_MORE), UNSURE, since="sections", final=True),
            Generate("sections", S, resumed=True),
        ],
        Answer("Ms", "sections", True, replace(SENTINEL, ruling=NOTHING_MORE), P, S),
    ),
    "documents hold nothing new": (
        ("rag", "long_context"),
        (P, Judged("", SENTINEL), Decided("long_context", SENTINEL), None, None),
        [
            ReadDocuments(P),
            Decide("rag", replace(SENTINEL, ruling=NOTHING_MORE), SENTINEL, final=True),
        ],
        Answer("unanswerable", "rag", False, replace(SENTINEL, ruling=NOTHING_MORE), P, P),
    ),
    "sections are hopeless": (
        CLIMB,
        (P, Judged("", SENTINEL), S, Decided("sections", SENTINEL), Judged("", STOPPED)),
        [Decide("sections", SENTINEL, SENTINEL, context=S), Generate("sections", S)],
        Answer("unanswerable", "sections", False, SENTINEL, P, S),
    ),
    "a doubt stays as sections are refused": (
        CLIMB,
        (P, Judged("", UNSURE), S, Decided("rag", UNSURE, granted=False), Judged("Ms", ANSWERED)),
        [Decide("sections", UNSURE, UNSURE, context=S), Generate("rag", P, resumed=True)],
        Answer("Ms", "rag", True, UNSURE, P, P),
    ),
    "a decline is stopped": (
        CLIMB,
        (P, Judged("", STOPPED), None),
        [Decide("rag", STOPPED, STOPPED, final=True)],
        Answer("unanswerable", "rag", False, STOPPED, P, P),
    ),
    "sections settle it": (
        CLIMB,
        (P, Judged("", UNSURE), S, Decided("sections", UNSURE), Judged("Ms", ANSWERED)),
        [Decide("sections", UNSURE, UNSURE, context=S), Generate("sections", S)],
        Answer("Ms", "sections", True, UNSURE, P, S),
    ),
    "there are no documents": (
        CLIMB,
        (P, Judged("", SENTINEL), (), (), Decided("long_context", SENTINEL), ()),
        [ReadDocuments(P, step="sections", rung=1), Decide("long_context", SENTINEL, SENTINEL), ReadDocuments(P)],
        Answer("unanswerable", "long_context", False, SENTINEL, P, ()),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_flow_ends(name: str) -> None:
    ladder, results, last, expected = ENDS[name]
    effects, answer = played(self_route("Who?", ladder), *results)
    assert (effects[-len(last) :], answer) == (last, expected)


def test_flow_compares_passages_and_documents() -> None:
    for is_most, then in ((True, Decide("long_context", STARTED, STARTED)), (False, Generate("rag", P))):
        asked = self_route("Who?", CLIMB, compares=True)
        asked.send(None)
        assert asked.send(P) == Compare(P)
        assert asked.send(is_most) == then
    asked = self_route("Who?", CLIMB, compares=True)
    asked.send(None)
    assert asked.send([]) == ReadDocuments([], step="sections")  # there is nothing to compare


VERDICTS = [ANSWERED, SENTINEL, UNSURE, STOPPED, replace(SENTINEL, signal="empty")]
LADDERS: list[tuple[Route, ...]] = [
    ("rag",),
    ("long_context",),
    ("rag", "sections"),
    ("rag", "long_context"),
    ("rag", "sections", "long_context"),
    CLIMB,
]


def climbed(ladder: Sequence[Route], passages: list[str], data: st.DataObject) -> tuple[list[tuple[Any, Any]], Answer]:
    """Each effect of a flow, with whatever came of it; and the answer."""
    asked, done = self_route("Who?", ladder), list[tuple[Any, Any]]()
    result: Any = None
    while not isinstance(effect := advance(asked.send, result), Answer):
        if isinstance(effect, Retrieve):
            result = passages
        elif isinstance(effect, ReadDocuments):
            repeated = [None] if effect.step == "long_context" else []  # documents that hold nothing new
            result = data.draw(st.sampled_from([[], [f"text {len(done)}"], *repeated]))
        elif isinstance(effect, Decide):
            granted = effect.final or data.draw(st.booleans())
            result = Decided(effect.route if granted else effect.since, effect.decision, granted=granted)
        else:
            assert isinstance(effect, Generate)
            result = Judged("x", ANSWERED if effect.resumed else data.draw(st.sampled_from(VERDICTS)))
        done.append((effect, result))
    return done, effect


@examples(200)
@given(ladder=st.sampled_from(LADDERS), passages=st.sampled_from([[], P]), data=st.data())
def test_flow_keeps_to_the_ladder(ladder: tuple[Route, ...], passages: list[str], data: st.DataObject) -> None:
    done, answer = climbed(ladder, passages, data)
    asked = [(one, reply) for one, reply in done if isinstance(one, Generate) and not one.resumed]
    rulings = [(one, ruling) for one, ruling in done if isinstance(one, Decide)]
    # The steps are those of the ladder, in its order, and each but the last one left the question open.
    rest = iter(ladder)
    assert all(one.step in rest for one, _ in asked)
    assert all(reply.verdict.escalates for _, reply in asked[:-1])
    # Each step after the draft was granted, and nothing is proposed after a refusal.
    granted = [one.route for one, ruling in rulings if ruling.granted and not one.final]
    paid = [one.step for one, _ in asked if one.step != "rag"]
    assert granted[: len(paid)] == paid
    repeated = any(isinstance(one, ReadDocuments) and result is None for one, result in done)
    missing = answer.context == [] and answer.route == "long_context" and bool(granted)
    assert len(granted) - len(paid) == (repeated or missing)
    assert all(ruling.granted for _, ruling in rulings[:-1])
    # That a question ends where it began, or before documents that hold nothing new, is said once.
    proposed = [one for one, _ in rulings if not one.final]
    left_open = bool(asked) and asked[-1][1].verdict.escalates and asked[-1][0].step != ladder[-1]
    ends_early = left_open and rulings[-1][1].granted and not missing
    assert len(rulings) - len(proposed) == (not proposed or ends_early)
    # A reply in doubt is continued, as the last thing, if nothing better came; nothing else is.
    unsure = bool(asked) and asked[-1][1].verdict.signal == "doubt" and answer.context == asked[-1][0].context
    resumed = [at for at, (one, _) in enumerate(done, 1) if isinstance(one, Generate) and one.resumed]
    assert resumed == [len(done)] * unsure
    # The answer is that of the last reply, from what it read, unless there are no documents.
    if asked and answer.context:
        assert (answer.route, answer.context) == (asked[-1][0].step, asked[-1][0].context)
        assert answer.answerable is (unsure or asked[-1][1].verdict.signal == "answered")
    else:
        assert (answer.text, answer.answerable) == ("unanswerable", False)
    drafted = [reply.verdict for one, reply in asked if one.step == "rag"]
    first = drafted[0] if drafted else NO_PASSAGES if "rag" in ladder else STARTED
    assert answer.decision == (replace(first, ruling=NOTHING_MORE) if ends_early else first)


dollars = st.decimals(0, 10, places=6, allow_nan=False).map(Cost)
costs = dollars | st.sampled_from(["no such model", "no prices"]).map(lambda reason: Cost(None, reason))
counts = st.builds(StepUsage, *[st.integers(0, 10**6)] * 3, st.booleans(), st.integers(0, 10**6), costs)
usages = st.builds(Usage, *[st.none() | counts] * 3, st.none() | st.integers(0, 10**6), costs)


@given(usages, usages, usages)
def test_usage_adds_up(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Usage() == one
    assert (one + two).total_tokens == one.total_tokens + two.total_tokens
    assert (one + two).estimated == (one.estimated or two.estimated)
    assert (one + two).as_dict()["total_tokens"] == (one + two).total_tokens
    assert (one + two).input_tokens == sum(step.input_tokens for of in (one, two) for step in of.steps.values())
    assert (one + two).steps.keys() == one.steps.keys() | two.steps.keys()
    assert json.loads(json.dumps(one.as_dict())) == one.as_dict()


def test_usage_as_a_dict_has_the_keys_of_the_contract() -> None:
    usage = Usage.of("rag", StepUsage(10, 2, 4))
    assert usage.as_dict() == {
        "rag": {"input_tokens": 10, "output_tokens": 2, "cached_tokens": 4},
        "sections": None,
        "long_context": None,
        "total_tokens": 12,
        "estimated": False,
        "long_context_only": None,
        "token_ratio": None,
        "cost": None,
        "cost_long_context_only": None,
        "cost_unknown": "it was not asked for",
        "ledger": {},
    }


def imported(*statements: str) -> list[set[str]]:
    """Return the top-level modules that a fresh interpreter holds after each of some statements."""
    show = "\nprint(*{name.split('.')[0] for name in sys.modules})\n"
    code = "import sys\n" + show.join([*statements, ""])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)  # noqa: S603
    return [set(line.split()) for line in done.stdout.splitlines()]


ROOT = Path(selfroute.__file__).parent
BEYOND = {"cli.py", "command", "demo", "evaluation", "files"}  # the core
CORE = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in BEYOND)


WITH_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def test_imports_of_the_core() -> None:
    names = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in CORE]
    bare, fresh = imported("", "".join(f"import {name.removesuffix('.__init__')}\n" for name in names))
    found = {name for name in fresh - bare if name not in sys.stdlib_module_names and name[:11] != "_sysconfigd"}
    assert found - WITH_PYDANTIC == {"selfroute"}


def test_what_a_wheel_without_extras_offers_imports_no_pydantic() -> None:
    (fresh,) = imported("import selfroute, selfroute.answerability, selfroute.usage.ledger")
    assert not fresh & WITH_PYDANTIC


OPTIONAL = {"genai_prices", "opentelemetry", "pandas"}  # asked for where they are needed, and done without


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_of_each_module_of_the_core(path: Path) -> None:
    module = ast.parse(path.read_text())
    for part in ast.walk(module):
        modules = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        modules += [part.module or ""] if isinstance(part, ast.ImportFrom) else []
        allowed = {*sys.stdlib_module_names, "selfroute", "pydantic"} | (set() if part in module.body else OPTIONAL)
        assert all(module.split(".")[0] in allowed for module in modules)


HEAVY = {
    *("langchain", "langchain_openai", "langchain_google_genai", "langchain_chroma", "langchain_huggingface"),
    *("langchain_classic", "langchain_text_splitters", "langgraph", "openai", "google", "chromadb", "torch"),
    *("transformers", "sentence_transformers", "typer", "rich"),
}


def test_imports_of_the_langchain_package() -> None:
    (fresh,) = imported("import langchain_selfroute")
    assert "langchain_core" in fresh
    assert not fresh & {*HEAVY, "numpy", "llama_index", "llamaindex_selfroute"}


def test_imports_of_the_llamaindex_package() -> None:
    framework, fresh = imported("import llama_index.core", "import llamaindex_selfroute")
    assert not fresh & {*HEAVY, "langchain_core", "langchain_selfroute"}
    more = fresh - framework - sys.stdlib_module_names
    assert more == {"selfroute", "llamaindex_selfroute"}


@pytest.mark.parametrize(
    ("package", "framework", "name", "extra"),
    [
        ("langchain_selfroute", "langchain_core", "langchain-core", "langchain"),
        ("llamaindex_selfroute", "llama_index", "llama-index-core", "llamaindex"),
    ],
)
def test_a_missing_framework_is_named_with_what_to_install(package: str, framework: str, name: str, extra: str) -> None:
    code = f"import sys\nsys.modules[{framework!r}] = None\nimport {package}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)  # noqa: S603
    assert f'ImportError: {package} needs {name}: pip install "selfroute[{extra}]"' in done.stderr
