"""What an evaluation is written to: the page, the files, the plots and the terminal."""

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
from hypothesis import given
from hypothesis import strategies as st

from evaluation_parts import a_look, a_question, a_result, an_evaluation, of_the_paper, results_of
from selfroute.command.terminal import open_console
from selfroute.errors import InputError
from selfroute.evaluation.reporting.browser import QuestionResults
from selfroute.evaluation.reporting.evidence import find_evidence
from selfroute.evaluation.reporting.export import save
from selfroute.evaluation.reporting.plots import CAPTIONS, plots
from selfroute.evaluation.reporting.report import html
from selfroute.evaluation.reporting.show import show_summary, show_tables
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.results import Evaluation, Failure, Passage, Reason, Result
from selfroute.evaluation.table import Cell, Table, as_text

PNG = b"\x89PNG\r\n\x1a\n"
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
    "mathematics": r"$\frac{$ \undefined",
}
STRATEGIES = ("long_context", "rag", "self_route")
DRAWN = set(CAPTIONS) - {"frontier"}  # which takes the replies of all steps


def _dataset(text: str) -> str:
    return text if text == "musique" else f"set {text}"


def full(text: str = "text", *, questions: int = 12, ks: Sequence[int] = (1, 5)) -> Evaluation:
    """An evaluation with everything in it, the same text wherever text from outside may be."""
    results = []
    for number in range(questions):
        level, signal = number / questions, "phrase" if number % 3 else "answered"
        for strategy in STRATEGIES:
            for k in (None,) if strategy == "long_context" else ks:
                fields: dict[str, Any] = {"dataset": _dataset(text), "id": f"{number} {text}", "k": k, "answer": text}
                if strategy != "long_context":
                    fields["decision"] = {"declined": signal != "answered", "signal": signal, "evidence": text}
                    fields["draft"] = f"draft {text}"
                    fields["passages"] = [Passage(f"{text} {rank}", 1 / (rank + 1)) for rank in range(k or 0)]
                score = 1 - level if strategy == "rag" else level
                results.append(a_result(strategy, score, **fields, signal=signal))
    failures = [Failure(_dataset(text), "failed", "rag", 5, False, text)]
    name = {"dataset": _dataset(text), "id": f"0 {text}"}
    looks = (a_look("graded", text, **name, prospect=80, confidence=42, judged=0.5, judged_by="model"),)
    found = an_evaluation(results, failures, settings={"k": list(ks), text: [1, text]}, stopped=text, looks=looks)
    asked = [
        replace(each, question=f"What {text}?", answers=(text, "b"), document=f"The whole document{'!' * number}")
        for number, each in enumerate(found.questions)
    ]
    reasons = [Reason(each.dataset, each.id, ks[0], "AB?"[index % 3], text) for index, each in enumerate(asked)]
    return replace(found, questions=asked, reasons=reasons)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, Path]:
    """An evaluation with all hostile texts in it, and the folder that it was saved to."""
    folder = tmp_path_factory.mktemp("saved")
    parts = [full(text, questions=2) for text in HOSTILE.values()]
    evaluation = Evaluation(
        questions=[each for part in parts for each in part.questions],
        results=[each for part in parts for each in part.results],
        failures=[each for part in parts for each in part.failures],
        reasons=[each for part in parts for each in part.reasons],
        settings={name: value for part in parts for name, value in part.settings.items()},
        stopped=" ".join(HOSTILE.values()),
    )
    save(evaluation, folder)
    return evaluation, folder


class Page(HTMLParser):
    """What a browser makes of a page: its elements, with the text in each."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes, without the marks: some texts have no sentences."""
        return [(tag, tuple(attributes)) for tag, attributes in self.tags if tag != "mark"]


@pytest.fixture(scope="module")
def harmless() -> Page:
    """The page of an evaluation with usual text in it."""
    return Page(html(full(questions=3), tables_=[], plots_={"k": PNG}))


def cells(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            yield from row


def shown(some: Sequence[Table], width: int) -> list[str]:
    stream = StringIO()
    console = open_console(stream)
    console.width = width
    show_tables(console, some)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_from_outside_adds_no_element_and_no_attribute_to_the_page(text: str, harmless: Page) -> None:
    hostile = Page(html(full(text, questions=3), tables_=[], plots_={"k": PNG}))
    assert hostile.shape() == harmless.shape()
    assert hostile.texts["script"] == harmless.texts["script"]
    assert hostile.texts["style"] == harmless.texts["style"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_from_outside_is_shown_as_it_is(text: str) -> None:
    visible = "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
    visible = visible.replace("\ufffd", "?") if "\ud800" in text else visible
    page = Page(html(full(text, questions=3), tables_=[], plots_={}))
    assert page.texts["h3"].startswith(f"What {visible}?".replace("\r", "\ufffd"))


CHARTER = "The charter was sealed. {0} Members pay 40 crowns a year. {0} The seal is blue."


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_document_adds_no_element_where_an_answer_stands_in_it(text: str) -> None:
    def page(within: str) -> Page:
        document = CHARTER.format(within)
        results = [a_result(answer="40 crowns", passages=[Passage(document)]), a_result("long_context", answer="40")]
        asked = [a_question(document=document)]
        return Page(html(replace(an_evaluation(results), questions=asked), tables_=[], plots_={}))

    found = page(text)
    assert found.shape() == page("or").shape()
    assert "40 crowns" in found.texts["mark"]
    visible = "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
    assert "".join(visible.split()) in "".join("".join(found.texts.values()).replace("?", "\ufffd").split())


def evidence(*results: Result, question: str = "What do members pay?", **fields: Any) -> str:
    """The page of one question on the charter."""
    fields = {"question": question, "document": CHARTER.format("Aye."), **fields}
    evaluation = an_evaluation(results, settings={"k": [5]})
    return html(replace(evaluation, questions=[replace(a_question(), **fields)]), tables_=[], plots_={})


PAID = "Members pay 40 crowns a year."
PASSAGES = [
    Passage("Tea at four."),
    Passage("Members pay 40 crowns a year. The seal is"),
    Passage(f"Aye. {PAID}"),
]
# The results, the question's fields, and what is marked.
MARKED: dict[str, tuple[list[Result], dict[str, Any], list[str]]] = {
    "the document": ([a_result("long_context", answer="40 crowns")], {}, [PAID]),
    "one place of two results": ([a_result("long_context", answer=each) for each in ("40 crowns", "40")], {}, [PAID]),
    "two places": (
        [a_result("long_context", answer=each) for each in ("40 crowns", "blue")],
        {},
        [PAID, "The seal is blue."],
    ),
    "the passages": ([a_result(answer="40 crowns", passages=PASSAGES)], {"document": None}, [PAID]),
    "both": ([a_result(answer="40 crowns", passages=PASSAGES)], {}, [PAID, PAID, PAID]),
    "declined": ([a_result("long_context", answer="40 crowns", answerable=False)], {}, []),
    "from memory": ([a_result("closed_book", answer="40 crowns")], {}, []),
    "another k": (
        [a_result(answer="", answerable=False), a_result(answer="40 crowns", k=9, passages=PASSAGES)],
        {},
        [],
    ),
    "an option": (
        [a_result("long_context", answer="B")],
        {"choices": ("4 pounds", "blue", "B flat", "green"), "question": "What?"},
        ["The seal is blue."],
    ),
    "the id of a document": ([a_result("long_context", answer="40 crowns")], {"document": "0123456789abcdef"}, []),
    "no document": ([a_result("long_context", answer="40 crowns")], {"document": None}, []),
    "no word of it": ([a_result("long_context", answer="Eels")], {"question": "Which fish?"}, []),
}


@pytest.mark.parametrize(("results", "fields", "marked"), MARKED.values(), ids=MARKED)
def test_where_an_answer_stands_is_marked(results: list[Result], fields: dict[str, Any], marked: list[str]) -> None:
    assert re.findall("<mark>(.*?)</mark>", evidence(*results, **fields), re.DOTALL) == marked


def test_an_excerpt_says_whose_answer_stands_there_and_where() -> None:
    results = [a_result(each, answer="40 crowns") for each in ("long_context", "self_route", "self_route")]
    page = Page(evidence(*results))
    at = CHARTER.format("Aye.").index("Members")
    assert f"Long context, Self-Route; character {at}, score " in page.texts["span"]
    assert "Where the answer stands in the document" in page.texts["summary"]


def test_of_a_document_only_what_is_around_an_answer_is_on_the_page(tmp_path: Path) -> None:
    document = f"It began in May. {'They spoke of tea. ' * 50}{PAID} {'They spoke of rain. ' * 50}It ended in June."
    evaluation = an_evaluation([a_result("long_context", answer="40 crowns")])
    save(replace(evaluation, questions=[a_question(document=document)]), tmp_path)
    files = {path.name: path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name, text in files.items() if PAID in text} == {"report.html", "results.json"}
    page = files["report.html"]
    assert f"They spoke of tea. <mark>{PAID}</mark> They spoke of rain." in page
    assert max(page.count("of tea"), page.count("of rain")) < 10
    assert not re.search("It began|It ended", page)


@given(text=st.text("ab. \n", max_size=60), answer=st.text("ab ", max_size=6))
def test_marks_change_no_character_of_a_passage(text: str, answer: str) -> None:
    results = [a_result(answer=answer, passages=[Passage(text), Passage(f"b {text}")])]
    question = a_question(document=text)
    found = find_evidence([(question, results, results[0].passages)])[question.key]
    assert ["".join(piece for piece, _ in pieces) for pieces in found.passages] == [text, f"b {text}"]
    for excerpt in found.excerpts:
        assert text[excerpt.start :].startswith(excerpt.text + excerpt.after.rstrip("…"))


def test_the_page_asks_the_network_for_nothing() -> None:
    page = Page(html(full(), plots_={"k": PNG}))
    addresses = [
        value or ""
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in {"src", "href", "action", "srcset", "data", "poster"}
    ]
    assert addresses
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
    assert "url(" not in page.texts["style"]
    policy = next(each["content"] or "" for _, each in page.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_page_has_every_question_once() -> None:
    evaluation = full(questions=7)
    evaluation = replace(evaluation, questions=[*evaluation.questions, a_question("never asked")])
    page = Page(html(evaluation, tables_=[], plots_={}))
    found = [attributes["id"] for tag, attributes in page.tags if tag == "article"]
    assert found == [f"question-{number}" for number in range(1, 10)]
    assert page.texts["h3"].count("What text?") == 8
    assert page.texts["h3"].count("never asked") == 1
    assert "Not asked." in page.texts["p"]


def test_the_page_lists_a_failure_to_say_why() -> None:
    failures = [Failure("narrativeqa", "1", "reason", 5, False, "too slow")]
    assert "reason, k = 5 failed: too slow" in html(an_evaluation([a_result()], failures), tables_=[], plots_={})


def test_the_page_has_heads_for_rows_and_columns_and_a_caption_for_every_table() -> None:
    page = Page(html(full(), plots_={"k": PNG}))
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    count = [tag for tag, _ in page.tags].count
    assert count("table") == count("caption")
    assert all(attributes.get("alt") for tag, attributes in page.tags if tag == "img")


@pytest.mark.parametrize(("ks", "shown_", "more"), [((3, 100), 3, 0), ((10, 3), 10, 0), ((100, 3), 10, 90)])
def test_of_passages_the_first_of_one_k_are_shown_once_and_the_others_counted(
    ks: tuple[int, int], shown_: int, more: int
) -> None:
    results = [
        a_result(strategy, k=k, passages=[Passage(f"passage {k}-{rank} of") for rank in range(k)])
        for k in sorted(ks)
        for strategy in ("rag", "self_route")
    ]
    page = html(an_evaluation(results, settings={"k": list(ks)}), tables_=[], plots_={})
    assert [page.count(f"passage {ks[0]}-{rank} of") for rank in range(ks[0])] == [1] * shown_ + [0] * more
    assert f"passage {ks[1]}-" not in page
    assert f"{ks[0]} passages (k = {ks[0]})" in page
    assert (f"and {more} more" in page) == bool(more)


def test_what_many_passages_weigh_is_bounded(tmp_path: Path) -> None:
    def bytes_of(*ks: int) -> list[int]:
        results = []
        for number in range(20):
            for k in ks:
                passages = [Passage(f"{number} {k} {rank} " * 100, 0.5) for rank in range(k)]
                results += [a_result(one, id=str(number), k=k, passages=passages) for one in ("rag", "self_route")]
        save(an_evaluation(results, settings={"k": list(ks)}), tmp_path)
        return [(tmp_path / name).stat().st_size for name in ("report.html", "results.json")]

    alone, beside_many = bytes_of(5), bytes_of(5, 100)
    assert all(many < 2 * few for few, many in zip(alone, beside_many, strict=True))
    assert bytes_of(100)[0] < 3 * alone[0]


@pytest.mark.parametrize(
    ("scores", "disagree", "worse"),
    [
        ((1.0, 1.0, 1.0), False, False),
        ((0.5, 0.0, 0.5), True, False),
        ((0.5, 0.0, 0.0), True, True),
        ((0.5, 0.5, 1.0), True, False),
        ((0.1 + 0.2, 0.3, 0.3), False, False),
    ],
)
def test_the_page_marks_where_strategies_disagree(
    scores: tuple[float, float, float], disagree: bool, worse: bool
) -> None:
    results = [a_result(strategy, score) for strategy, score in zip(STRATEGIES, scores, strict=True)]
    found = QuestionResults(a_question(), results, (), (), 5)
    assert (found.disagree, found.worse) == (disagree, worse)


def test_another_k_is_not_another_strategy() -> None:
    results = [a_result(score=score, k=k) for k, score in ((1, 0.0), (5, 1.0))]
    assert not QuestionResults(a_question(), results, (), (), 5).disagree
    assert QuestionResults(a_question(), [*results, a_result("long_context", 1.0)], (), (), 5).disagree


def test_no_cell_of_a_csv_file_is_computed(saved: tuple[Evaluation, Path]) -> None:
    _, folder = saved
    found = [cell for path in (folder / "questions.csv", *folder.glob("tables/*.csv")) for cell in cells(path)]
    words = [cell for cell in found if not _is_number(cell)]
    assert sum("=HYPERLINK" in cell for cell in words) > 50  # it is looked for where it is
    assert not [cell for cell in words if cell.strip().startswith(tuple("=+-@"))]
    assert not [cell for cell in found if set(cell) & set("\x00\x1b\r\x85")]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_questions_csv_has_a_row_for_each_question_and_strategy(saved: tuple[Evaluation, Path]) -> None:
    evaluation, folder = saved
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(evaluation.results) + len(evaluation.failures)
    count = len(evaluation.results)
    assert [row["score"] for row in rows[:count]] == [str(result.score) for result in evaluation.results]
    assert all(row["error"] and not row["score"] for row in rows[count:])


def test_what_a_version_with_other_strategies_saved_is_refused_in_one_line(
    saved: tuple[Evaluation, Path], tmp_path: Path
) -> None:
    text = (saved[1] / "results.json").read_text(encoding="utf-8")
    (tmp_path / "results.json").write_text(text.replace('"self_route"', '"magic"'), encoding="utf-8")
    with pytest.raises(InputError, match="had the strategies magic: evaluate again") as refused:
        Evaluation.load(tmp_path)
    assert "\n" not in str(refused.value)


def test_what_was_saved_is_read_back_with_ids_for_documents_and_the_passages_of_one_k(
    saved: tuple[Evaluation, Path],
) -> None:
    evaluation, folder = saved
    read = Evaluation.load(folder)
    ids = [replace(each, document=each.document_id) for each in evaluation.questions]
    # a tuple is a list in JSON
    assert replace(read, results=()) == replace(evaluation, questions=ids, results=())
    assert [_lists(each) for each in read.results] == [
        _lists(each if each.k == 1 else replace(each, passages=())) for each in evaluation.results
    ]
    assert tables(read) == tables(evaluation)


def _lists(result: Any) -> Any:
    return replace(result, passages=list(result.passages))


def test_results_json_has_each_passage_once_and_no_figure_that_json_lacks(tmp_path: Path) -> None:
    passages = [Passage("twice", float("nan")), Passage("once", float("inf"))]
    results = [a_result(id=str(number), passages=passages[: 2 - number]) for number in range(2)]
    save(an_evaluation(results, settings={"path": tmp_path, "none": None, "yes": True}), tmp_path)
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert written["passages"] == ["twice", "once"]
    assert written["results"][0]["passages"] == [{"text": 0, "score": None}, {"text": 1, "score": None}]
    assert written["settings"] == {"path": str(tmp_path), "none": None, "yes": True}


def test_the_texts_of_documents_are_in_no_file(saved: tuple[Evaluation, Path]) -> None:
    evaluation, folder = saved
    assert all((each.document or "").startswith("The whole document") for each in evaluation.questions)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"The whole document" in path.read_bytes()]


def test_all_files_are_written_and_written_again(tmp_path: Path) -> None:
    evaluation = of_the_paper(full("musique", questions=3))
    for _ in range(2):
        evaluation.save(tmp_path / "deep" / "folder")
    folder = tmp_path / "deep" / "folder"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    expected = {f"tables/{table.name}.csv" for table in tables(evaluation)} | {f"plots/{name}.png" for name in DRAWN}
    assert found == expected | {"results.json", "questions.csv", "looks.csv", "report.html"}


def test_the_summary_is_on_the_page_and_in_results_json(tmp_path: Path) -> None:
    evaluation = full(questions=3)
    evaluation.save(tmp_path)
    sentences = evaluation.summary()
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert len(sentences) > 2
    assert all(sentence in page.texts["p"] for sentence in sentences)
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["summary"] == sentences


def test_the_summary_is_shown_as_it_is_a_sentence_at_a_time() -> None:
    stream = StringIO()
    show_summary(open_console(stream), ["[red]One\x1b[2J.", "Two."])
    assert stream.getvalue() == "[red]One[2J.\nTwo.\n\n"


def test_an_evaluation_of_nothing_is_written(tmp_path: Path) -> None:
    Evaluation([], []).save(tmp_path)
    assert "0 questions" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert Evaluation.load(tmp_path) == Evaluation([], [], [], [])


@pytest.mark.parametrize(
    ("evaluation", "names"),
    [
        (of_the_paper(full("musique")), DRAWN),
        (full(), DRAWN - {"differences"}),
        (replace(full(ks=[5]), reasons=()), {"quality_tokens"}),
        (an_evaluation(results_of({"rag": [0.5, 1]})), set()),
        (an_evaluation(results_of({"closed_book": [0.5, 1]})), set()),
        (an_evaluation([a_result(id=str(k), k=k) for k in (1, 5)]), set()),
        (Evaluation([], []), set()),
    ],
)
def test_only_what_the_results_allow_is_drawn(evaluation: Evaluation, names: set[str]) -> None:
    drawn = plots(evaluation)
    assert set(drawn) == names
    assert all(image.startswith(PNG) for image in drawn.values())


def test_plots_are_those_of_the_results() -> None:
    one, same, other = (plots(of_the_paper(full("musique", questions=count))) for count in (12, 12, 17))
    assert one == same
    assert all(one[name] != other[name] for name in DRAWN)


def test_plots_of_quality_show_how_uncertain_it_is() -> None:
    def drawn(scores: Sequence[float]) -> dict[str, bytes]:
        by_k = [each for k in (1, 5) for each in results_of({"rag": scores}, k=k)]
        return plots(an_evaluation([*by_k, *results_of({"long_context": scores})], settings={"k": [5, 1]}))

    calm, scattered = drawn((0.5,) * 12), drawn((0.0, 1.0) * 6)
    assert all(calm[name] != scattered[name] for name in ("k", "quality_tokens"))


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (1234.5, "1,234.50"),
        (-0.125, "-0.12"),
        (1234567, "1,234,567"),
        (True, "yes"),
        ("1234", "1234"),
    ],
)
def test_a_cell_is_shown_as_people_read_it(cell: Cell, text: str) -> None:
    assert as_text(cell) == text


COLUMNS = ("", "Avg", "narrativeqa", "qasper", "multifieldqa_en", "hotpotqa", "2wikimqa", "musique", "qmsum", "En.QA")
WIDE = Table(
    "main", "Table 1", COLUMNS, (("rag", *range(1111111, 1111120)), ("self_route", *[0.5] * 8, None)), ("Note",)
)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 110, 200])
def test_no_figure_is_cut_however_narrow_the_terminal(width: int) -> None:
    lines = shown([WIDE], width)
    assert all(len(line.rstrip()) <= width for line in lines)
    words = " ".join(lines).split()
    figures = [word for word in words if word.startswith("1,111,")]
    assert sorted(figures) == [f"{number:,}" for number in range(1111111, 1111120)]
    assert words.count("0.50") == 8
    assert words.count("-") == 1
    assert "…" not in " ".join(words)


def test_a_table_that_is_too_wide_is_transposed() -> None:
    heads = {width: next(line for line in shown([WIDE], width)[1:] if line.strip()).split() for width in (60, 200)}
    assert heads == {60: ["rag", "self_route"], 200: list(COLUMNS[1:])}


FIGURES = st.one_of(st.none(), st.integers(0, 10**6), st.floats(-1e4, 1e4).map(lambda figure: round(figure, 2)))


@given(
    heads=st.lists(st.sampled_from(COLUMNS[1:]), min_size=1, max_size=12),
    rows=st.lists(st.lists(FIGURES, min_size=12, max_size=12), min_size=1, max_size=12),
    width=st.integers(40, 120),
)
def test_every_figure_of_any_table_is_shown_whole(heads: list[str], rows: list[list[Cell]], width: int) -> None:
    cut = tuple((f"row-{index}", *row[: len(heads)]) for index, row in enumerate(rows))
    lines = shown([Table("t", "title", ("", *heads), cut)], width)
    assert all(len(line.rstrip()) <= width for line in lines)
    words = [
        word for word in " ".join(lines).split() if not word.startswith("row-") and word not in (*COLUMNS, "title")
    ]
    assert sorted(words) == sorted(as_text(cell) for row in cut for cell in row[1:])


def test_the_parts_of_a_table_keep_what_names_the_rows() -> None:
    rows = tuple((pair, name, *[1234567] * 12) for pair in ("one", "two") for name in ("this", "that", "other") * 3)
    table = Table("t", "title", ("pair", "name", *[f"column-{index}" for index in range(12)]), rows)
    heads = [line.split() for line in shown([table], 60) if "pair" in line]
    assert len(heads) > 1
    assert all(head[:2] == ["pair", "name"] for head in heads)
    assert [each for head in heads for each in head[2:]] == list(table.columns[2:])


def test_no_control_character_of_a_table_reaches_the_terminal() -> None:
    table = Table("t", "\x1b[2J[red]title", ("\x07a", "b"), (("\x1b]0;x\x07", "[bold]b"),), ("\x9b31mnote",))
    text = "\n".join(shown([table], 80))
    assert text.isprintable() or not set(text) & set("\x1b\x07\x9b")
    assert "[red]title" in text
    assert "[bold]b" in text
