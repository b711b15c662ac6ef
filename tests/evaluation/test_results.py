"""The tables of an evaluation, worked out by hand; the files that it is written to; and the page."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from choosing_parts import evaluated, made_up
from look_parts import a_look, a_question
from selfroute_workbench.command.terminal import open_console
from selfroute_workbench.evaluation.judging import JUDGE
from selfroute_workbench.evaluation.looks import Failure, Look, Passage
from selfroute_workbench.evaluation.questions import Question
from selfroute_workbench.evaluation.results import Evaluation
from selfroute_workbench.evaluation.show import show_summary, show_tables
from selfroute_workbench.evaluation.table import Cell, Table

JUDGED = {"model": "openai:judge", "prompt": JUDGE, "calls": 3, "input_tokens": 12_345, "output_tokens": 99}
STRATEGIES = ("yours", "rag", "paper", "long_context")


def look(name: str, step: Any, quality: float, **fields: Any) -> Look:
    fields = {"input_tokens": 39 if step == "sections" else 100 if step == "long_context" else 10, **fields}
    return a_look(step, f"{step} {name}", id=name, judged=quality, judged_by="model", score=0.25, **fields)


def taken(strategy: Any, *looks: Look) -> list[Look]:
    """Looks as a strategy took them."""
    return [replace(each, strategy=strategy) for each in looks]


def of_question(name: str, draft: Look, sections: Look | None, whole: Look) -> list[Look]:
    """What each strategy took of a question: yours reads sections, and documents if these decline."""
    more = [] if not draft.declined or sections is None else [sections, *([whole] if sections.declined else [])]
    return [
        *taken("yours", draft, *more),
        *taken("rag", draft),
        *taken("paper", draft, *([whole] if draft.declined else [])),
        *taken("long_context", whole),
    ]


# One is answered by the draft, one by sections, one by the document, and one has no answer and is declined for good.
LOOKS = [
    *of_question(
        "draft",
        look("draft", "rag", 1.0, cost="0.001"),
        None,
        look("draft", "long_context", 1.0, cost="0.01"),
    ),
    *of_question(
        "sections",
        look("sections", "rag", 0.0, declined=True, cost="0.001"),
        look("sections", "sections", 1.0, cost="0.004"),
        look("sections", "long_context", 0.5, cost="0.01"),
    ),
    *of_question(
        "whole",
        look("whole", "rag", 0.0, declined=True, cost="0.001"),
        look("whole", "sections", 0.0, declined=True, cost="0.004"),
        look("whole", "long_context", 1.0, cost="0.01", cut=True),
    ),
    *of_question(
        "none",
        look("none", "rag", 1.0, declined=True, cost="0.001"),
        look("none", "sections", 1.0, declined=True, cost="0.004"),
        look("none", "long_context", 0.0, cost="0.01"),
    ),
]
QUESTIONS = [
    a_question(name, answers=() if name == "none" else ("x",), kind=name)
    for name in ("draft", "sections", "whole", "none")
]


def done(looks: Sequence[Look] = LOOKS, questions: Sequence[Question] = QUESTIONS, **fields: Any) -> Evaluation:
    own = {"sections": 4_000}
    settings = {"strategies": list(STRATEGIES), "options": {"yours": own}, "judge": {**JUDGED, "cost": "0.0125"}}
    return Evaluation(questions, looks, **{"settings": settings, **fields})


def table(evaluation: Evaluation, name: str) -> Table:
    return {each.name: each for each in evaluation.tables()}[name]


def column(of: Table, name: str) -> list[Cell]:
    return [row[of.columns.index(name)] for row in of.rows]


# The tables of the four questions, by hand: 11 tokens a draft, 40 for sections, 101 a document, 404 of all documents.
BY_HAND = {
    ("main", "quality"): ["75.0", "50.0", "62.5", "62.5"],
    ("main", "tokens %"): ["90.6", "10.9", "85.9", "100.0"],
    ("main", "\N{MULTIPLICATION SIGN} RAG"): ["8.3", "1.0", "7.9", "9.2"],
    ("main", "$/1,000"): ["9.00", "1.00", "8.50", "10.00"],
    ("main", "documents %"): ["50.0", "0.0", "75.0", "100.0"],
    ("abstention", "right answer"): [3, 1, 3, 3],
    ("abstention", "right abstention"): [0, 1, 0, 0],
    ("abstention", "over-refusal"): [0, 2, 0, 0],
    ("abstention", "unsupported"): [1, 0, 1, 1],
    ("costs", "input tokens"): [357, 40, 340, 400],
    ("costs", "US dollars"): ["0.0360", "0.0040", "0.0340", "0.0400"],
}


def test_tables_by_hand() -> None:
    made = done()
    assert {place: column(table(made, place[0]), place[1]) for place in BY_HAND} == BY_HAND
    for name in ("main", "abstention", "costs"):
        assert column(table(made, name), "") == ["yours", "RAG", "the paper's rule", "long context"]
    assert table(made, "main").title == "Judged correctness, 4 questions"
    unpriced = [replace(each, cost=None) if each.step == "sections" else each for each in LOOKS]
    assert column(table(done(unpriced), "costs"), "US dollars") == [None, "0.0040", "0.0340", "0.0400"]
    found = {row[:2]: row[2:] for row in table(made, "differences").rows}
    assert (found["yours", "RAG"][0], found["yours", "RAG"][2:5]) == ("+25.0", (2, 1, 1))
    assert (found["long context", "RAG"][0], {row[-1] for row in found.values()}) == ("+12.5", {"no difference shown"})
    assert list(found) == [
        *[("yours", other) for other in ("RAG", "the paper's rule", "long context")],
        *[(other, "RAG") for other in ("the paper's rule", "long context")],
    ]
    assert [row[:3] for row in table(made, "parts").rows] == [("kind", one.kind, 1) for one in QUESTIONS]


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        (
            done(LOOKS[:-1]),
            "1 of 4 questions are left out: not every strategy finished them, or the judge did not grade",
        ),
        (done([*LOOKS[:-1], replace(LOOKS[-1], judged=None, judged_by=None)]), "1 of 4 questions are left out"),
        (done(), "On 1 questions the document did not fit the model's window"),
        (done([replace(LOOKS[0], answer=" "), *LOOKS[1:]]), "Replies without text, as after a content filter"),
        (done(stopped="the cap is reached"), "The run ended early: the cap is reached."),
        (done(), "That took 3 calls with 12,345 input and 99 output tokens, for $0.0125."),
        (done([replace(each, judged=None, judged_by=None) for each in LOOKS]), "The judge graded no answer"),
        (done(settings={"strategies": ["rag"]}, looks=[a_look(id="draft")]), "Scores compare words (F1), not meaning."),
        (done(questions=[replace(each, document=None) for each in QUESTIONS]), "4 questions do not say which document"),
        (done(), "With fewer than 10 documents"),
        (done(), 'yours: {"sections": 4000}.'),
        (evaluated(made_up(9, 3)), "yours: the default setting."),
        (done(), "RAG with 20 passages is left out: the retriever cannot be told to find so many."),
    ],
    ids=[
        "unfinished",
        "ungraded",
        "cut",
        "empty",
        "stopped",
        "judge",
        "no grade",
        "words",
        "documents",
        "few",
        "options",
        "defaults",
        "not widened",
    ],
)
def test_main_table_notes(evaluation: Evaluation, said: str) -> None:
    assert any(said in note for note in table(evaluation, "main").notes)


def test_failures_table() -> None:
    failures = [Failure("minutes", str(number), "rag", "no reply (TimeoutError)") for number in range(3)]
    assert table(done(failures=failures), "failures").rows == (("RAG", "no reply (TimeoutError)", 3),)


# --- files -----------------------------------------------------------------------------------------------------------

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing": "</script></style></title></textarea><img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "comment": "<!-- --><![CDATA[ <svg/onload=alert(1)>",
    "template": "{{ 7*7 }}{% for x in y %}{# #}",
    "url": '<a href="javascript:alert(1)">javascript:alert(1)</a>',
    "formula": '=HYPERLINK("http://example.com","here")',
    "command": "@SUM(1+1)*cmd|' /C calc'!A0",
    "late formula": " \t+1,2\r\n-3",
    "null": "a\x00b\x1b[31mc\x85",
    "surrogate": "a\ud800b",
    "entity": "&lt;b&gt; &amp; &",
}


def full(text: str = "text") -> Evaluation:
    """An evaluation with everything in it, the same text wherever text from outside may be."""
    questions, looks = [], []
    for number in range(6):
        name = {"dataset": f"set {text}", "id": f"{number} {text}"}
        questions.append(
            Question(
                name["dataset"], name["id"], f"What {text}?", (text, "b"), document=f"The whole document{'!' * number}"
            )
        )
        passages = tuple(Passage(f"{text} {rank}", 1 / (rank + 1)) for rank in range(2))
        judged = {"judged": number / 5, "judged_by": "model", "score": 1 - number / 5}
        looks += [
            a_look("rag", f"draft {text}", declined=bool(number % 2), passages=passages, **name, **judged),
            a_look("rag", text, strategy="yours", prospect=80, confidence=42, **name, **judged),
            a_look("long_context", text, strategy="long_context", **name, **judged),
        ]
    settings = {
        "strategies": ["yours", "rag", "long_context"],
        "given": [1, text],
        "judge": {**JUDGED, "cost": None},
    }
    failures = [Failure(f"set {text}", "failed", "rag", text)]
    return Evaluation(questions, looks, failures, settings, text)


@pytest.fixture(scope="module", params=HOSTILE.values(), ids=HOSTILE)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, Path]:
    """An evaluation with a hostile text in it, and the folder that it was saved to."""
    folder = tmp_path_factory.mktemp("saved") / "deep"
    evaluation = full(request.param)
    for _ in range(2):  # also over an earlier one
        evaluation.save(folder)
    return evaluation, folder


def cells(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            yield from row


def test_save_hostile_cells(saved: tuple[Evaluation, Path]) -> None:
    _, folder = saved
    for path in folder.rglob("*.csv"):
        for cell in cells(path):
            assert (
                not cell.lstrip(" \n").startswith(tuple("=+@\t\r")) or cell.lstrip("+-").replace(".", "").isdigit()
            ), cell
            assert not set(cell) & {"\x00", "\x1b", "\x85"}
    assert not [path for path in folder.rglob("*") if path.is_file() and b"The whole document" in path.read_bytes()]


def test_save_json(tmp_path: Path) -> None:
    passages = [Passage("twice", float("nan")), Passage("once", float("inf"))]
    looks = [a_look(id=str(number), passages=passages[: 2 - number]) for number in range(2)]
    questions = [a_question(str(number)) for number in range(2)]
    settings = {"strategies": ["rag"], "path": tmp_path, "none": None, "yes": True}
    Evaluation(questions, looks, settings=settings).save(tmp_path)
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert written["passages"] == ["twice", "once"]
    assert written["looks"][0]["passages"] == [{"text": 0, "score": None}, {"text": 1, "score": None}]
    assert written["settings"] == {"strategies": ["rag"], "path": str(tmp_path), "none": None, "yes": True}


def test_save_nothing_and_to_dataframe(tmp_path: Path) -> None:
    Evaluation([], []).save(tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["questions"] == []
    pytest.importorskip("pandas")
    frame = done().to_dataframe()
    assert len(frame) == len(done().results) == 16
    assert list(frame[frame["strategy"] == "yours"]["route"]) == ["rag", "sections", "long_context", "long_context"]
    assert len(frame.columns) < 20


def test_evaluation_replay() -> None:
    made = evaluated(made_up(60, 12))
    yours = [each.paid for each in made.results if each.strategy == "yours"]
    found = made.replay()
    assert [[replace(look, strategy="yours") for look in each.paid] for each in found] == [list(paid) for paid in yours]
    assert found == made.replay((70, 60, 50), (20, 50), True)
    assert sum(each.input_tokens for each in made.replay(0, 90)) < sum(each.input_tokens for each in made.replay(90, 0))
    assert {each.route for each in made.replay(0, 0)} == {"rag", "sections", "long_context"}
    assert {each.route for each in made.replay(0, 0, documents=False)} == {"rag", "sections"}


# --- the page ---------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes."""
        return [(tag, tuple(attributes)) for tag, attributes in self.tags]


def test_page_escapes(saved: tuple[Evaluation, Path], tmp_path: Path) -> None:
    full().save(tmp_path)
    hostile, harmless = (Page((folder / "report.html").read_text("utf-8")) for folder in (saved[1], tmp_path))
    assert hostile.shape() == harmless.shape()
    text = saved[0].stopped or ""
    visible = "".join(each if each.isprintable() or each in "\n\t\u2028" else "\ufffd" for each in text)
    visible = visible.replace("\ufffd", "?") if "\ud800" in text else visible
    assert f"What {visible}?" in hostile.text


def test_page_is_static(tmp_path: Path) -> None:
    evaluated(made_up(200, 20)).save(tmp_path)
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(names)
    assert not [name for _, given in page.tags for name in given if name in {"src", "href"} or name.startswith("on")]
    policy = next(given["content"] for _, given in page.tags if "http-equiv" in given)
    assert (policy or "").startswith("default-src 'none'")
    assert names.count("details") == names.count("summary") == 200
    assert {"svg", "circle"} <= set(names)
    assert page.text.count("It pays: nothing that costs less") == 1
    assert "Options that would do better" not in page.text
    evaluated(made_up(200, 20, incomplete=0, graded=False, far=0)).save(tmp_path)
    assert "Options that would do better than yours" in Page((tmp_path / "report.html").read_text("utf-8")).text


def test_page_question(tmp_path: Path) -> None:
    failures = [Failure(*QUESTIONS[2].key, "long_context", "RateLimitError: wait")]
    done(failures=failures).save(tmp_path)
    text = (tmp_path / "report.html").read_text("utf-8").partition("Question by question")[2]
    whole = text.partition("What is whole?")[2]
    for shown in ("long_context whole", "declined", "Failed, long context: RateLimitError: wait", "Reference: x"):
        assert shown in whole
    assert "Reference: it has no answer" in text


# --- the terminal ----------------------------------------------------------------------------------------------------


def shown(some: Sequence[Table], width: int) -> list[str]:
    stream = StringIO()
    console = open_console(stream)
    console.width = width
    show_tables(console, some)
    return stream.getvalue().splitlines()


def test_evaluation_str() -> None:
    text = str(evaluated(made_up(200, 20)))
    assert re.match(r"Yours: 100\.0 for [\d.]+ % of the long context's tokens, [\d.]+ times RAG's; \+", text)
    assert "Judged correctness, 200 questions" in text
    assert "Tokens, cost and time" not in text


def test_show_tables_wide() -> None:
    rows = tuple((name, *[1_234_567 + at for at in range(12)]) for name in ("this", "that", "two words"))
    wide = Table("t", "title", ("pair", *[f"column-{index}" for index in range(12)]), rows)
    lines = shown([wide], 60)
    heads = [line.split() for line in lines if "pair" in line]
    assert len(heads) > 1
    assert [each for head in heads for each in head[1:]] == list(wide.columns[1:])
    assert sum(line.count("1,234,5") for line in lines) == 36
    assert max(map(len, lines)) <= 60


def test_show_tables_control_characters() -> None:
    odd = Table("t", "\x1b[2J[red]title", ("\x07a", "b"), (("\x1b]0;x\x07", "[bold]b"),), ("\x9b31mnote",))
    text = "\n".join(shown([odd], 80))
    assert not set(text) & set("\x1b\x07\x9b")
    assert "[red]title" in text
    assert "[bold]b" in text
    stream = StringIO()
    show_summary(open_console(stream), ["[red]One\x1b[2J.", "Two."])
    assert stream.getvalue() == "[red]One[2J.\nTwo.\n\n"
