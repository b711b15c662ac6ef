"""What a judge's grades do to tables, sentences, files and the page; and how far others agree with them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation_parts import a_question, a_result, an_evaluation, of_the_paper, usage
from selfroute.errors import InputError
from selfroute.evaluation.grades import Agreement, load_grades
from selfroute.evaluation.judging import JUDGE
from selfroute.evaluation.records import STRATEGIES
from selfroute.evaluation.reporting.compared import ComparedResults
from selfroute.evaluation.reporting.report import html
from selfroute.evaluation.reporting.tables import tables
from selfroute.evaluation.results import Evaluation
from selfroute.evaluation.table import Table

WORDS = {"rag": 0.9, "long_context": 0.2, "self_route": 0.5}  # by words RAG is best, by meaning the long context
MEANT = {"rag": 0.0, "long_context": 1.0, "self_route": 0.5}
PAID = {"calls": 20, "input_tokens": 12_345, "output_tokens": 99, "cost": "0.0125"}
SETTINGS = {"judge": {"model": "openai:judge", "prompt": JUDGE, **PAID}}


def judged_evaluation(questions: int = 20, *, dataset: str = "own", **fields: Any) -> Evaluation:
    """By every strategy: on every fourth question all of them are right."""
    results = []
    for number in range(questions):
        for name in STRATEGIES:
            by = "rule" if name == "rag" and number % 2 else "model"
            given = {"judged": MEANT[name] if number % 4 else 1.0, "judged_by": by, "answer": f"{name} {number}"}
            results.append(a_result(name, WORDS[name], dataset=dataset, id=str(number), usage=usage(1, 9), **given))
    return an_evaluation(results, settings=SETTINGS, **fields)


def table(evaluation: Evaluation, name: str) -> Table:
    return next(each for each in tables(evaluation) if each.name == name)


def scores(found: Table) -> dict[Any, Any]:
    return {row[0]: row[2] for row in found.rows if row[0] in STRATEGIES}


def test_where_there_is_a_judge_the_headlines_are_its() -> None:
    done = judged_evaluation()
    first, second, *_, last = done.summary()
    assert first.startswith("Judged by meaning, Self-Route scores 62.50, the long context 100.00: 37.50 less")
    assert second.startswith("RAG alone scores 25.00")
    assert last == "By F1 instead: RAG alone 90.00, the long context 20.00, Self-Route 50.00."
    assert scores(table(done, "main")) == {"rag": 25, "long_context": 100, "self_route": 62.5}
    assert table(done, "main").title.startswith("Judged correctness")
    assert scores(table(done, "main_own_metric")) == {name: pytest.approx(100 * each) for name, each in WORDS.items()}
    assert table(done, "main_own_metric").title.endswith("by F1")
    assert "Judged by meaning" in str(done)


def test_differences_and_intervals_are_those_of_the_grades_by_document() -> None:
    done = judged_evaluation()
    bare: dict[str, Any] = {"judged": None, "judged_by": None}
    graded = [replace(each, score=each.judged or 0.0, **bare) for each in done.results]
    as_scores = replace(done, results=graded, settings={})
    for name in ("comparisons", "intervals"):
        assert table(done, name).rows == table(as_scores, name).rows
    by_words = replace(done, results=[replace(each, **bare) for each in done.results], settings={})
    for name in ("main", "comparisons", "intervals"):
        assert table(done, f"{name}_own_metric").rows == table(by_words, name).rows


def test_what_stands_beside_the_papers_figures_is_by_the_data_sets_own_metrics() -> None:
    done = of_the_paper(judged_evaluation(dataset="musique"))
    own = next(row for row in table(done, "paper").rows if row[:2] == ("this run", "rag"))
    assert own[2] == pytest.approx(90)
    assert scores(table(done, "main"))["rag"] == 25


def test_where_there_is_none_one_sentence_says_what_words_cannot_see() -> None:
    results = [a_result(name, 0.5) for name in STRATEGIES]
    done = an_evaluation(results)
    (sentence,) = [each for each in done.summary() if "brevity" in each]
    assert sentence.startswith("F1 scores brevity and wording, not meaning. A summary of two points out of six")
    assert sentence in html(done, tables_=[], plots_={}).replace("&#39;", "'")
    assert not any("brevity" in each for each in judged_evaluation().summary())
    for metric, told in {"rouge_l": True, "choice": False, "passkey": False}.items():
        asked = [a_question(metric=metric, answers=("a", "A"), choices=("a", "b"))]
        assert any("brevity" in each for each in replace(done, questions=asked).summary()) is told


def test_the_page_has_the_prompt_and_a_sample_of_the_grades() -> None:
    done = judged_evaluation(40)
    page = html(done, plots_={})
    assert "You compare answers with reference answers." in page
    assert "0.50 <" not in page
    paid = "That took 20 calls with 12,345 input and 99 output tokens, for $0.0125."
    assert paid in page
    assert any(paid in note for note in table(done, "main").notes)
    sample = table(done, "judged_sample")
    assert (len(sample.rows), sample.columns[-1]) == (24, "grade")
    assert sample.rows == table(judged_evaluation(40), "judged_sample").rows
    by = {(each.id, each.answer): each for each in done.results}
    for _, name, question, references, answer, given in sample.rows:
        one = by[name, answer]  # type: ignore[index]
        assert (one.judged_by, f"{one.judged:g}") == ("model", given)
        assert (question, references) == (f"What is {name}?", f"answer {name}")
    assert "24 of 100 grades" in sample.notes[0]
    assert "judged_sample" not in {each.name for each in tables(an_evaluation([a_result()]))}


def test_grades_are_in_every_file_and_read_back(tmp_path: Path) -> None:
    done = judged_evaluation(4)
    (tmp_path / "grades.jsonl").write_text('{"id": 1, "rag": 0, "long_context": 0.5}\n')
    done = done.with_grades(tmp_path / "grades.jsonl")
    done.save(tmp_path / "out")
    read = Evaluation.load(tmp_path / "out")
    assert [(each.judged, each.judged_by) for each in read.results] == [
        (each.judged, each.judged_by) for each in done.results
    ]
    assert read.other_grades == done.other_grades
    assert tables(read) == tables(done)
    with (tmp_path / "out" / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["judged"], row["judged_by"]) for row in rows[:2]] == [("1.0", "model"), ("1.0", "model")]
    assert {"input_tokens", "cost", "route", "answerable"} <= rows[0].keys()
    assert list(done.frame["judged"]) == [each.judged for each in done.results]
    saved = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert saved["settings"]["judge"]["prompt"] == JUDGE


def test_only_questions_with_all_grades_are_compared_by_them() -> None:
    done = judged_evaluation(4)
    results = [
        replace(each, judged=None, judged_by=None) if (each.id, each.strategy) == ("2", "rag") else each
        for each in done.results
    ]
    partly = replace(done, results=results)
    assert [name for _, name in ComparedResults.of(partly).keys] == ["0", "1", "3"]
    assert len(ComparedResults.of(partly, "score").keys) == 4


# --- agreement ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "equal", "kappa"),
    [
        ([(1.0, 1.0), (0.0, 0.0), (0.5, 0.5)], 1, 1),
        ([(1.0, 0.0), (0.0, 1.0)], 0, -1),
        ([(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)], 0.5, 0),
        (
            [(1.0, 1.0)] * 20 + [(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 10 + [(0.0, 0.0)] * 15,
            0.7,
            0.4,
        ),  # Cohen's textbook case
        ([(1.0, 1.0), (1.0, 1.0)], 1, None),
    ],
)
def test_kappa_is_what_is_left_of_agreement_without_chance(
    pairs: list[tuple[float, float]], equal: float, kappa: float | None
) -> None:
    found = Agreement.of(pairs)
    assert found.equal == pytest.approx(equal)
    assert found.kappa == (kappa if kappa is None else pytest.approx(kappa))


def test_other_grades_are_compared_answer_by_answer(tmp_path: Path) -> None:
    done = judged_evaluation(4)
    rows = [{"id": str(n), "rag": 1 if n % 4 == 0 else 0.5, "long_context": 1, "sections": 0.5} for n in range(4)]
    rows.append({"id": "99", "rag": 0})
    path = tmp_path / "grades.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = table(done.with_grades(path), "judge_agreement")
    assert found.columns == ("", "answers", "equal %", "kappa", "judge's mean", "others' mean")
    by = {row[0]: row[1:] for row in found.rows}
    assert by["all"] == (8, 62.5, pytest.approx(15 / 39), 62.5, 81.25)
    assert by["long_context"] == (4, 100, None, 100, 100)
    assert by["rag"][:2] == (4, 25)
    assert by["without those by rule"][0] == 6
    assert "self_route" not in by
    path.write_text('{"id": "nobody", "rag": 1}\n')
    assert table(done.with_grades(path), "judge_agreement").rows == (("all", 0),)


def test_an_id_that_is_in_two_data_sets_needs_its_data_set(tmp_path: Path) -> None:
    north, south = judged_evaluation(2, dataset="north"), judged_evaluation(2, dataset="south")
    both = replace(north, questions=[*north.questions, *south.questions], results=[*north.results, *south.results])
    path = tmp_path / "grades.jsonl"
    path.write_text('{"id": "1", "rag": 1}\n')
    with pytest.raises(InputError, match="'1' is in north, south: add the dataset"):
        both.with_grades(path).tables()
    path.write_text('{"id": "1", "rag": 1, "dataset": "south"}\n')
    assert table(both.with_grades(path), "judge_agreement").rows[0][:2] == ("all", 1)


def test_rows_of_other_models_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "grades.jsonl"
    path.write_text('{"id": "1", "model": "gpt-4o-mini", "rag": 1}\n{"id": "1", "model": "claude", "rag": 0}\n')
    assert [each.grade for each in load_grades(path, model="openai:claude")] == [0.0]
    with pytest.raises(InputError, match="holds no grade for openai:other, only for claude, gpt-4o-mini"):
        load_grades(path, model="openai:other")
    with pytest.raises(InputError, match="was graded before; grade it once, or say which model's"):
        load_grades(path)
    assert [each.grade for each in judged_evaluation().with_grades(path, model="claude").other_grades] == [0.0]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"rag": 1}', "write the question's id"),
        ('{"id": ["1"], "rag": 1}', "write the question's id"),
        ('{"id": "1", "rag": 0.7}', "rag must be a grade, 1, 0.5 or 0; it is 0.7"),
        ('{"id": "1", "rag": true}', "must be a grade"),
        ('{"id": "1", "rag": "good"}', "must be a grade"),
        ('{"id": "1", "rag": [1]}', "must be a grade"),
        ('{"id": "1"}', "holds no grade"),
        ("", "holds no grade"),
        ("[1]", "not a JSON object"),
    ],
)
def test_grades_that_cannot_be_read_are_said_with_their_line(row: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "grades.jsonl"
    path.write_text(row)
    with pytest.raises(InputError, match=says):
        load_grades(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_grades(tmp_path / "missing.jsonl")
