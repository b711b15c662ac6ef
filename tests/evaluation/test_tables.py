"""The tables of an evaluation: figures worked out by hand, and the laws that intervals and comparisons keep."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from decimal import Decimal
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation_parts import a_question, a_result, an_evaluation, of_the_paper, results_of, usage
from selfroute.evaluation.reporting.papers import paper
from selfroute.evaluation.reporting.statistics import SAME, average, compare, interval
from selfroute.evaluation.results import STRATEGIES, Evaluation, Failure, Reason, Strategy
from selfroute.evaluation.table import Table

SCORES = st.lists(st.sampled_from((0.0, 0.2, 0.5, 0.8, 1.0)), min_size=2, max_size=40)
SETS = st.lists(SCORES, min_size=1, max_size=3)
few = settings(max_examples=30)


def keyed(sets: list[list[float]]) -> dict[tuple[str, str], float]:
    return {(f"set {n}", str(i)): score for n, scores in enumerate(sets) for i, score in enumerate(scores)}


def table(evaluation: Evaluation, name: str) -> Table:
    return {each.name: each for each in evaluation.tables()}[name]


def row(of: Table, *head: Any) -> dict[str, Any]:
    """The row that starts so, by column."""
    (found,) = [each for each in of.rows if each[: len(head)] == head]
    return dict(zip(of.columns, found, strict=True))


# --- the published figures ---------------------------------------------------------------------------------------


def test_the_papers_averages_are_those_of_its_rows_but_for_one() -> None:
    others = {
        (model, line)
        for model, figures in paper.MODELS.items()
        for line, of_line in figures.items()
        if of_line["Avg"] != pytest.approx(paper.average(of_line, paper.DATASETS), abs=0.006)
    }
    assert others == {("GPT-3.5-Turbo", "self_route")}


def test_table_7_and_table_4_average_the_sets_of_longbench() -> None:
    gemini = paper.MODELS["Gemini-1.5-Pro"]
    rag, self_route, _, tokens = paper.K[5]
    assert paper.average(gemini["rag"], paper.LONGBENCH) == pytest.approx(rag, abs=0.006)
    assert paper.average(gemini["self_route"], paper.LONGBENCH) == pytest.approx(self_route, abs=0.006)
    assert paper.average(gemini["token %"], paper.LONGBENCH) == pytest.approx(tokens, abs=0.006)
    assert paper.average(gemini["long_context"], paper.LONGBENCH) == pytest.approx(paper.K_LONG_CONTEXT, abs=0.006)
    without, given_ = (fmean(paper.BASED_ONLY_ON[name][n] for name in paper.LONGBENCH) for n in (0, 1))
    assert (round(without, 2), round(given_, 2)) == (50.57, 45.53)
    assert {name: figures[1] for name, figures in paper.BASED_ONLY_ON.items()} == {
        name: gemini["long_context"][name] for name in paper.DATASETS
    }


def test_table_5_repeats_table_1_for_all_questions() -> None:
    for line, figures in paper.MODELS["Gemini-1.5-Pro"].items():
        assert paper.CLOSED_BOOK[line][0] == figures["musique"]
        assert paper.CLOSED_BOOK[line][2] == paper.MODELS["GPT-3.5-Turbo"][line]["musique"]


# --- intervals and comparisons -----------------------------------------------------------------------------------


@few
@given(SETS)
def test_an_interval_holds_the_average_and_keeps_within_the_scores(sets: list[list[float]]) -> None:
    scores = keyed(sets)
    found = interval(scores)
    if all(len(set(of_set)) == 1 for of_set in sets):
        assert found is None
    else:
        assert found
        assert fmean(map(min, sets)) - 1e-9 <= found[0] <= average(scores) <= found[1] <= fmean(map(max, sets)) + 1e-9
    assert interval(scores) == found


def test_one_question_has_no_interval() -> None:
    assert interval({("a", "1"): 0.5}) is None
    assert interval({("a", "1"): 0.5, ("b", "1"): 0.1, ("b", "2"): 0.9}) is None
    assert interval({}) is None


def test_an_interval_is_that_of_theory_where_there_is_one() -> None:
    low, high = interval({("a", str(n)): float(n % 2) for n in range(400)}) or (0, 0)
    assert low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.005)
    assert high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.005)


def test_questions_on_one_document_tell_less_than_questions_on_many() -> None:
    scores = {("a", str(n)): float(n // 10 % 2) for n in range(400)}  # ten alike on each of forty documents
    documents = {key: str(int(key[1]) // 10) for key in scores}
    low, high = interval(scores) or (0, 0)
    wide_low, wide_high = interval(scores, documents) or (0, 0)
    assert wide_high - wide_low == pytest.approx((high - low) * math.sqrt(10), rel=0.1)


def test_of_few_documents_the_questions_are_resampled() -> None:
    scores = {("a", str(n)): float(n % 2) for n in range(40)}
    for documents in (1, 9):
        assert interval(scores, {key: str(int(key[1]) % documents) for key in scores}) == interval(scores)


@few
@given(SETS, st.randoms(use_true_random=False))
def test_a_comparison_the_other_way_round_says_the_opposite(sets: list[list[float]], random: Any) -> None:
    first, second = keyed(sets), keyed([random.sample(of_set, len(of_set)) for of_set in sets])
    one, other = compare(first, second), compare(second, first)
    assert one.difference == pytest.approx(-other.difference)
    assert (one.better, one.equal, one.worse) == (other.worse, other.equal, other.better)
    assert one.p == other.p
    assert (one.verdict, other.verdict) in {(SAME, SAME), ("better", "worse"), ("worse", "better")}
    if one.interval and other.interval:
        assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=0.05)


@few
@given(SETS)
def test_strategies_that_are_alike_show_no_difference(sets: list[list[float]]) -> None:
    found = compare(keyed(sets), keyed(sets))
    assert (found.difference, found.p, found.verdict) == (0, 1, SAME)
    assert found.better == found.worse == 0


def test_a_few_questions_prove_nothing_and_many_do() -> None:
    def all_won(n: int) -> str:
        return compare({("a", str(i)): 1.0 for i in range(n)}, {("a", str(i)): 0.0 for i in range(n)}).verdict

    assert [all_won(n) for n in (1, 2, 5)] == [SAME] * 3
    assert all_won(6) == "better"  # 2 of 2 ** 6 ways are as far apart


def test_the_p_value_of_a_few_questions_counts_all_ways_to_swap() -> None:
    scores = {("a", str(n)): score for n, score in enumerate((1.0, 1.0, 1.0, 0.0))}
    found = compare(scores, dict.fromkeys(scores, 0.5))
    assert found.p == 10 / 16  # at most one of the four differs from the rest: 2 and 8 of 16 ways
    assert (found.questions, found.difference, found.better, found.worse) == (4, 0.25, 3, 1)


def test_only_questions_that_both_answered_are_compared() -> None:
    found = compare({("a", "1"): 1.0, ("a", "2"): 0.0}, {("a", "1"): 0.5, ("a", "3"): 1.0})
    assert (found.questions, found.difference, found.interval) == (1, 0.5, None)


# --- Table 1 -----------------------------------------------------------------------------------------------------


def two_sets() -> Evaluation:
    """NarrativeQA with two questions, one of them declined, and a data set of our own with one."""
    return an_evaluation(
        [
            a_result("long_context", 0.8, id="1", usage=usage(0, 100)),
            a_result("rag", 0.4, id="1", usage=usage(10)),
            a_result("self_route", 0.4, id="1", usage=usage(10)),
            a_result("long_context", 0.6, id="2", usage=usage(0, 300), cut=True),
            a_result("rag", 0.0, id="2", usage=usage(10), signal="sentinel"),
            a_result("self_route", 0.6, id="2", usage=usage(10, 300), signal="sentinel"),
            a_result("long_context", 1.0, dataset="own", usage=usage(0, 50)),
            a_result("rag", 1.0, dataset="own", usage=usage(20)),
            a_result("self_route", 1.0, dataset="own", usage=usage(20)),
        ],
        settings={"k": [5]},
    )


def test_table_1_has_the_scores_the_answerable_share_and_the_tokens() -> None:
    main = table(two_sets(), "main")
    assert main.columns == ("", "k", "Avg", "low", "high", "narrativeqa", "own")
    figures = {line[0]: (line[1], line[2], *line[5:]) for line in main.rows}
    assert figures == {
        "long_context": ("", pytest.approx(85), pytest.approx(70), 100),
        "rag": (5, pytest.approx(60), pytest.approx(20), 100),
        "self_route": (5, pytest.approx(75), pytest.approx(50), 100),
        "answerable %": (5, 75, 50, 100),
        "token %": (5, 60, 80, 40),  # 320 of 400, and 20 of 50
        "rag token %": (5, 22.5, 5, 40),
        "questions": ("", 3, 2, 1),
    }
    assert any("cut in the middle" in note and "1 of 3" in note for note in main.notes)


def test_all_rows_are_as_long_as_the_columns_and_hold_plain_cells() -> None:
    evaluation = replace(of_the_paper(everything()), failures=[Failure("own", "1", "rag", 1, False, "TimeoutError")])
    made = evaluation.tables()
    assert [each.name for each in made] == [
        "main",
        "intervals",
        "paper",
        "comparisons",
        "money",
        "declines",
        "decline_rules",
        "k",
        "comparisons_by_dataset",
        "retrievers",
        "kinds",
        "differences",
        "agreement",
        "wins",
        "passkey",
        "based_only_on",
        "closed_book",
        "filtered",
        "reasons",
        "failures",
        "decisions",
    ]
    for each in made:
        assert each.rows
        assert all(len(line) == len(each.columns) for line in each.rows), each.name
        assert all(cell is None or type(cell) in (str, int, float) for line in each.rows for cell in line), each.name
        assert all(note.endswith(".") for note in each.notes), each.name


def everything() -> Evaluation:
    """An evaluation that has a bit of everything."""
    results = []
    for dataset in ("passkey", "musique", "own"):
        for k in (1, 5):
            results += results_of({"rag": (0.0, 1.0), "self_route": (0.5, 1.0)}, dataset=dataset, k=k)
        results += results_of({"long_context": (0.5, 1.0), "closed_book": (1.0, 0.0)}, dataset=dataset)
        results += results_of({"long_context": (0.25, 1.0)}, dataset=dataset, based_only_on=True)
    results += [replace(each, retriever="bm25") for each in results if each.strategy == "rag" and each.k == 1]
    reasons = [Reason("own", "1", 1, letter, "...") for letter in "AAB?"]
    return an_evaluation(results, reasons=reasons, settings={"k": [1, 5]})


def test_nothing_makes_no_tables() -> None:
    assert Evaluation((), ()).tables() == []


@pytest.mark.parametrize("strategy", ["rag", "long_context", "self_route"])
def test_each_strategy_can_run_alone(strategy: Any) -> None:
    names = [each.name for each in an_evaluation([a_result(strategy, 0.5)]).tables()]
    assert names[:2] == ["main", "intervals"]
    assert "comparisons" not in names


def test_only_questions_that_every_strategy_finished_are_compared() -> None:
    results = results_of({"long_context": (0.2, 0.4, 0.6), "rag": (0.0, 1.0)})
    evaluation = an_evaluation(results, [Failure("narrativeqa", "2", "rag", 5, False, "TimeoutError: late")])
    main = table(evaluation, "main")
    assert row(main, "long_context")["Avg"] == pytest.approx(30)
    assert row(main, "questions")["Avg"] == 2
    assert "Questions left out because not every strategy finished them: 1 (rag (k=5) 1)." in main.notes
    assert "Failures, which are not scored: 1." in main.notes
    assert table(evaluation, "failures").rows == (("rag", 5, 1, "TimeoutError: late"),)


def test_a_strategy_that_finished_nothing_does_not_empty_the_tables() -> None:
    failures = [Failure("narrativeqa", str(n), "long_context", None, False, "too long") for n in range(2)]
    evaluation = an_evaluation(results_of({"rag": (0.0, 1.0)}), failures)
    assert row(table(evaluation, "main"), "rag")["Avg"] == 50
    assert table(evaluation, "failures").rows == (("long_context", "", 2, "too long"),)


def where_the_second_step_fails(*, strategies: tuple[Strategy, ...] = STRATEGIES) -> Evaluation:
    """Five questions, of which two are declined: on these the long context fails, and elsewhere it is not needed."""
    results, failures = [], []
    for number in range(5):
        of_question: dict[str, Any] = {"id": str(number), "signal": "phrase" if number < 2 else "answered"}
        results.append(a_result("rag", float(number >= 2), **of_question))
        if number >= 2:
            results.append(a_result("self_route", 1.0, **of_question))
        else:
            failures.append(Failure("narrativeqa", str(number), "self_route", 5, False, "content filter"))
        if "long_context" in strategies:
            failures.append(Failure("narrativeqa", str(number), "long_context", None, False, "content filter"))
    return an_evaluation(results, failures, settings={"strategies": list(strategies), "k": [5]})


@pytest.mark.parametrize("strategies", [STRATEGIES, ("rag", "self_route")])
def test_the_answerable_share_is_of_all_drafts_where_declined_questions_are_left_out(strategies: Any) -> None:
    evaluation = where_the_second_step_fails(strategies=strategies)
    main = table(evaluation, "main")
    assert row(main, "rag")["Avg"] == 100  # of the three that are left
    assert row(main, "answerable %")["Avg"] == row(main, "answerable %")["narrativeqa"] == 60
    assert main.notes[0] == "Only 3 of 5 questions are compared; scores and tokens are for these."
    assert "Of those left out, the first step (k=5) declined 2, answered 0 and has no draft for 0." in main.notes
    assert any("not a fair sample" in note for note in main.notes)
    assert [line[:3] for line in table(of_the_paper(evaluation), "decisions").rows] == [
        ("answered", 3, 60),
        ("phrase", 2, 40),
    ]


def test_a_strategy_that_finished_nothing_is_said_to_have_failed() -> None:
    failed = where_the_second_step_fails()
    only_asked_for = replace(failed, failures=[each for each in failed.failures if each.strategy != "long_context"])
    for evaluation in (failed, only_asked_for):  # it is known by its failures, or by the settings only
        notes = table(evaluation, "main").notes
        assert "long_context was asked for but finished no question, so it has no figures." in notes
        for note in (*notes, *table(evaluation, "money").notes):
            assert "was not run" not in note
    without = where_the_second_step_fails(strategies=("rag", "self_route"))
    assert any("The long context was not run" in note for note in table(without, "main").notes)


def test_a_k_that_finished_nothing_is_named() -> None:
    results = results_of({"rag": (0.0, 1.0)}, k=5)
    evaluation = an_evaluation(results, [Failure("narrativeqa", "0", "rag", 100, False, "too long")])
    assert table(evaluation, "main").notes[0].startswith("rag (k=100) was asked for but finished no question")


def test_few_questions_that_are_left_out_are_counted_but_do_not_come_first() -> None:
    results = results_of({"rag": (1.0,) * 20, "long_context": (1.0,) * 18})
    notes = table(an_evaluation(results), "main").notes
    assert notes[0].startswith("Scores are")
    assert "Of those left out, the first step (k=5) declined 0, answered 2 and has no draft for 0." in notes
    assert not any("not a fair sample" in note for note in notes)


def test_a_data_set_that_is_left_out_whole_is_named() -> None:
    results = [a_result("rag"), a_result("long_context"), a_result("rag", dataset="lost")]
    main = table(an_evaluation(results), "main")
    assert "lost" not in main.columns
    assert "Data sets that are left out entirely: lost." in main.notes


def test_empty_replies_are_counted() -> None:
    results = [
        a_result("rag", id="1", answer=" ", draft=" "),  # one reply, not two
        a_result("rag", id="2", draft="", signal="empty"),
        a_result("rag", id="3", answer="", draft="unanswerable", signal="sentinel"),  # in the data set's own way
        a_result("long_context", id="1", answer="\n"),
        a_result("closed_book", id="1", answer=""),
        *(a_result("long_context", id=name) for name in "23"),
    ]
    (note,) = [note for note in table(an_evaluation(results), "main").notes if "Empty" in note]
    assert note.endswith(": rag (k=5) 2, long_context 1.")
    assert not [note for note in table(two_sets(), "main").notes if "Empty" in note]


@pytest.mark.parametrize("name", ["Avg", "Overall", "questions", "rag", "", "k", "this run"])
def test_a_data_set_may_have_any_name(name: str) -> None:
    def of(dataset: str) -> list[Table]:
        results = results_of({"rag": (0.0, 1.0), "long_context": (1.0, 1.0), "closed_book": (0.0, 1.0)})
        results += results_of(
            {"rag": (0.2, 0.2), "long_context": (0.4, 0.4), "closed_book": (0.0, 0.0)}, dataset=dataset
        )
        return an_evaluation(results).tables()

    for ours, usual in zip(of(name), of("usual"), strict=True):
        renamed = [tuple(name if cell == "usual" else cell for cell in line) for line in (usual.columns, *usual.rows)]
        assert [ours.columns, *ours.rows] == renamed


def test_without_the_long_context_its_tokens_are_estimated() -> None:
    results = [
        a_result("self_route", id="1", usage=usage(10, long_context_only=100)),
        a_result("self_route", id="2", usage=usage(30, long_context_only=100)),
        a_result("self_route", id="3", usage=usage(999)),  # the length of its documents is not known
    ]
    main = table(an_evaluation(results), "main")
    assert row(main, "token %")["Avg"] == 20
    assert any("estimate" in note for note in main.notes)
    unknown = table(an_evaluation([a_result("self_route", usage=usage(10))]), "main")
    assert row(unknown, "token %")["Avg"] is None


def test_closed_book_and_based_only_on_stay_out_of_the_other_tables() -> None:
    plain = two_sets()
    others = [a_result("closed_book", 1.0), a_result("long_context", 0.0, based_only_on=True)]
    assert table(replace(plain, results=[*plain.results, *others]), "main") == table(plain, "main")


def test_each_k_has_its_rows_and_other_tables_take_the_first_that_was_asked_for() -> None:
    results = results_of({"long_context": (1.0, 0.5)})
    results += results_of({"rag": (0.0, 0.5), "self_route": (1.0, 0.5)}, k=1)
    results += results_of({"rag": (1.0, 0.5), "self_route": (1.0, 0.5)}, k=5)
    evaluation = an_evaluation(results, settings={"k": [5, 1]})
    heads = [line[:3] for line in table(evaluation, "main").rows if line[0] in ("long_context", "rag")]
    assert heads == [("long_context", "", 75), ("rag", 1, 25), ("rag", 5, 75)]
    assert [line[:2] for line in table(evaluation, "money").rows] == [
        ("long_context", ""),
        ("rag", 1),
        ("self_route", 1),
        ("rag", 5),
        ("self_route", 5),
    ]
    assert any("k=5" in note for note in table(evaluation, "main").notes)
    by_k = table(evaluation, "k")
    assert [line[:3] for line in by_k.rows] == [(1, 25, 75), (5, 75, 75)]
    assert "The long context scores 75.00." in by_k.notes
    compared = table(evaluation, "comparisons")
    assert row(compared, "rag - long_context")["difference"] == 0
    assert any("k=5" in note for note in compared.notes)


def test_the_papers_figures_stand_beside_its_data_sets_only() -> None:
    beside = table(of_the_paper(two_sets()), "paper")
    assert beside.columns == ("", "row", "Avg", "narrativeqa")
    assert row(beside, "this run", "rag") == {
        "": "this run",
        "row": "rag",
        "Avg": pytest.approx(20),
        "narrativeqa": pytest.approx(20),
    }
    assert row(beside, "GPT-4O", "token %")["narrativeqa"] == 66.40
    own = of_the_paper(an_evaluation([a_result("rag", dataset="own")]))
    assert "paper" not in [each.name for each in own.tables()]


@pytest.mark.parametrize("data", [None, (), ["qmsum.jsonl", "own/qasper"], ["en.mc"], "musique", 5])
def test_own_data_with_the_names_of_the_papers_are_not_compared_with_them(data: Any) -> None:
    results = []
    for dataset in ("qmsum", "musique", "passkey"):
        results += results_of({"long_context": (0.5, 1.0), "closed_book": (1.0, 0.0)}, dataset=dataset)
        results += results_of({"long_context": (0.25, 1.0)}, dataset=dataset, based_only_on=True)
        for k in (1, 5):
            results += results_of({"rag": (0.0, 1.0), "self_route": (0.5, 1.0)}, dataset=dataset, k=k)
    about = {"k": [5, 1]} if data is None else {"k": [5, 1], "data": data}
    tables = an_evaluation(results, settings=about).tables()
    names = {each.name for each in tables}
    assert {"k", "based_only_on", "closed_book"} <= names
    assert not {"paper", "passkey", "differences", "agreement", "decisions"} & names
    assert not [head for each in tables for head in each.columns if "paper" in head or "Gemini" in head]
    assert not [note for each in tables for note in each.notes if "aper" in note or "35.32" in note]


def test_the_papers_figures_by_k_stand_beside_the_sets_of_longbench_only() -> None:
    def by_k(*names: str) -> Table:
        results = [a_result("rag", dataset=name, k=k) for name in names for k in (1, 5)]
        return table(of_the_paper(an_evaluation(results)), "k")

    assert row(by_k("qmsum", "musique"), 5)["paper rag"] == 37.92
    assert "This run's are without narrativeqa." in " ".join(by_k(*paper.LONGBENCH[1:]).notes)
    assert "without" not in " ".join(by_k(*paper.LONGBENCH).notes)
    assert not [head for head in by_k("qmsum", "en.mc").columns if "paper" in head]
    assert not [head for head in by_k("qmsum", "own").columns if "paper" in head]


def test_fewer_questions_than_the_papers_are_counted_beside_its_figures() -> None:
    results = results_of({"rag": (0.0, 1.0), "long_context": (0.5, 1.0), "closed_book": (0.0, 0.0)}, dataset="musique")
    results += results_of({"long_context": (1.0,)}, dataset="musique", based_only_on=True)
    results += [replace(each, k=1) for each in results if each.strategy == "rag"]
    found = {each.name: " ".join(each.notes) for each in of_the_paper(an_evaluation(results)).tables()}
    for name in ("paper", "k", "agreement", "closed_book"):
        assert "2 of 200 of musique" in found[name], name
    assert "1 of 200 of musique" in found["based_only_on"]
    few = of_the_paper(an_evaluation(results_of({"rag": (1.0, 0.0)}, dataset="passkey")))
    assert "2 of 590 of passkey" in " ".join(table(few, "passkey").notes)
    whole = of_the_paper(an_evaluation(results_of({"rag": (1.0,) * 200}, dataset="musique")))
    assert not [note for note in table(whole, "paper").notes if "200" in note]


def test_where_all_nine_sets_ran_their_averages_are_the_papers() -> None:
    nine = an_evaluation([a_result("rag", dataset=name) for name in paper.DATASETS])
    beside = table(of_the_paper(nine), "paper")
    assert row(beside, "Gemini-1.5-Pro", "self_route")["Avg"] == pytest.approx(46.41, abs=0.006)
    assert any("35.32" in note for note in beside.notes)


def test_a_run_that_was_stopped_says_so() -> None:
    stopped = replace(two_sets(), stopped="the cap was reached")
    assert "The run ended early: the cap was reached." in table(stopped, "main").notes


def test_intervals_say_which_documents_they_hold_for() -> None:
    results = results_of({"rag": (0.0, 1.0, 1.0)})
    shared = [a_question(str(n), document="one for all") for n in range(3)]
    alone = table(an_evaluation(results), "intervals")
    assert not alone.notes
    assert row(alone, "rag", 5, "narrativeqa")["questions"] == 3
    (note,) = table(an_evaluation(results, questions=shared), "intervals").notes
    assert "fewer than 10 known documents" in note


# --- the others --------------------------------------------------------------------------------------------------


def test_a_comparison_says_in_words_what_it_shows() -> None:
    evaluation = an_evaluation(results_of({"long_context": (0.0,) * 20, "rag": (1.0, 0.5) * 10}))
    found = row(table(evaluation, "comparisons"), "rag - long_context")
    assert (found["difference"], found["better"], found["worse"], found["verdict"]) == (75, 20, 0, "better")
    assert found["low"] < 75 < found["high"]
    assert float(found["p"]) < 0.001


def test_money_is_that_of_each_strategy_alone() -> None:
    evaluation = an_evaluation(
        [
            a_result("long_context", usage=usage(0, 100, cost="0.4")),
            a_result("rag", usage=usage(10, cost="0.1")),
            a_result("self_route", usage=usage(10)),
        ]
    )
    money = table(evaluation, "money")
    assert money.rows == (
        ("long_context", "", 1, 100, 2, "0.4000", 100, 0.5, 0.5),
        ("rag", 5, 1, 10, 1, "0.1000", 25, 0.5, 0.5),
        ("self_route", 5, 1, 10, 1, None, None, 0.5, 0.5),
    )
    assert "Cost not known: no price (self_route (k=5) 1 of 1)." in money.notes
    assert not [note for note in money.notes if "mean over the data sets" in note]
    assert [note for note in table(two_sets(), "money").notes if "mean over the data sets" in note]


def test_one_reason_for_costs_that_are_not_known_is_one_note() -> None:
    notes = table(an_evaluation(results_of({"rag": (1.0, 0.0), "long_context": (1.0, 0.0)})), "money").notes
    assert [note for note in notes if "not known" in note] == [
        "Cost not known: no price (long_context 2 of 2, rag (k=5) 2 of 2)."
    ]


def test_a_sum_of_dollars_has_four_decimals() -> None:
    results = [a_result("rag", id=str(n), usage=usage(10, cost="0.0000123456789")) for n in range(100)]
    assert row(table(an_evaluation(results), "money"), "rag")["US dollars"] == "0.0012"


def test_the_seconds_of_a_strategy_are_their_median_and_what_nearly_all_stay_within() -> None:
    results = [a_result("rag", id=str(n), seconds=float(n)) for n in range(101)]
    money = table(an_evaluation(results, settings={"concurrency": 7}), "money")
    figures = row(money, "rag")
    assert (figures["seconds"], figures["95 %"]) == (50, pytest.approx(95))
    assert any("7 questions asked at a time" in note for note in money.notes)
    assert not any("at a time" in note for note in table(an_evaluation(results), "money").notes)


def test_single_data_sets_are_compared_in_a_table_of_their_own() -> None:
    one = results_of({"rag": (0.0, 1.0), "long_context": (1.0, 1.0)})
    two = [*one, *results_of({"rag": (1.0,), "long_context": (0.0,)}, dataset="own")]
    assert "comparisons_by_dataset" not in [each.name for each in an_evaluation(one).tables()]
    assert [line[0] for line in table(an_evaluation(two), "comparisons").rows] == ["rag - long_context"]
    assert "comparisons_by_dataset" in table(an_evaluation(two), "comparisons").notes[0]
    apart = table(an_evaluation(two), "comparisons_by_dataset")
    assert [line[1:4] for line in apart.rows] == [("narrativeqa", 2, -50), ("own", 1, 100)]


def test_declines_are_right_where_there_is_no_answer() -> None:
    answers = {"0": (), "1": ("Unanswerable",), "2": ("",), "3": ("Paris",), "4": ("Rome",)}
    results = [
        a_result("long_context", id=name, k=None, answerable=name in said)
        for name, said in ((name, "0134") for name in answers)
    ]
    results += [
        a_result("rag", id=name, k=k, signal="phrase" if name in "023" else "answered")
        for name in answers
        for k in (5, 1)
    ]
    questions = [a_question(name, answers=given) for name, given in answers.items()]
    found = table(an_evaluation(results, questions=questions, settings={"k": [5, 1]}), "declines")
    third = pytest.approx(100 / 3)
    assert found.rows == (
        ("long_context", "", 2, 0, 3, third, pytest.approx(200 / 3), 100),
        ("rag", 5, 2, 50, 3, pytest.approx(200 / 3), third, 10),
    )
    assert any("k=5" in note for note in found.notes)
    usual = table(two_sets(), "declines")
    assert usual.columns == ("strategy", "k", "with an answer", "declined wrongly %", "token %")
    assert row(usual, "rag")["declined wrongly %"] == third


def test_without_the_long_context_its_cost_is_estimated() -> None:
    paid = usage(10, cost="0.1", cost_long_context_only="0.4")
    money = table(an_evaluation([a_result("self_route", usage=paid)]), "money")
    assert row(money, "self_route")["cost %"] == 25
    assert any("estimate" in note for note in money.notes)


@pytest.mark.parametrize(
    ("rag", "long_context", "centre"),
    [(0.5, 0.5, 0), (0.54, 0.5, 0), (0.35, 0.3, 10), (0.3, 0.35, -10), (0.0, 1.0, -100), (1.0, 0.0, 100)],
)
def test_a_difference_falls_into_the_bin_around_it(rag: float, long_context: float, centre: int) -> None:
    evaluation = an_evaluation(results_of({"rag": (rag,), "long_context": (long_context,)}))
    found = table(of_the_paper(evaluation), "differences")
    assert [line for line in found.rows if line[1]] == [(centre, 1, 100, pytest.approx(50 * (rag + long_context)))]


def test_agreement_counts_equal_answers_and_scores_that_are_close() -> None:
    results = [
        a_result("rag", 1.0, id="1", answer="Paris"),
        a_result("long_context", 1.0, id="1", answer=" Paris\n"),
        a_result("rag", 0.4, id="2"),
        a_result("long_context", 0.45, id="2"),
        a_result("rag", 0.4, id="3"),
        a_result("long_context", 0.5, id="3"),  # ten points apart, not less
        a_result("rag", 0.0, id="4"),
        a_result("long_context", 1.0, id="4"),
    ]
    rows = table(of_the_paper(an_evaluation(results)), "agreement").rows
    assert rows == (("identical answers %", 25, 63), ("scores less than 10 apart %", 50, 70))


def test_wins_are_counted_as_the_sequel_does() -> None:
    def pair(number: int, rag: tuple[float, float], reader: tuple[float, float], dataset: str) -> list[Any]:
        return [
            a_result(strategy, id=str(number), dataset=dataset, exact=exact, set_f1=f1)
            for strategy, (exact, f1) in (("rag", rag), ("long_context", reader))
        ]

    results = [
        *pair(1, (1, 0.5), (1, 0.9), "musique"),  # both are right: neither is better
        *pair(2, (0, 0.9), (1, 0.2), "musique"),  # long context only
        *pair(3, (1, 0.1), (0, 0.8), "musique"),  # RAG only
        *pair(4, (0, 0.1), (0, 0.8), "b"),  # both are wrong, long context less so
        *pair(5, (0, 0.3), (0, 0.2), "b"),
        *pair(6, (0, 0.2), (0, 0.2), "b"),
    ]
    wins = table(an_evaluation(results), "wins")
    assert wins.columns[2:] == ("LC correct", "RAG correct", "LC only", "RAG only", "LC better", "RAG better")
    assert wins.rows == (("musique", 3, 2, 2, 1, 1, 1, 1), ("b", 3, 0, 0, 0, 0, 1, 1), ("Overall", 6, 2, 2, 1, 1, 2, 2))


def test_retrievers_are_told_apart_only_where_the_scores_show_it() -> None:
    main = results_of({"rag": (0.0, 0.5) * 8})
    better, alike = (
        [replace(each, retriever=name, score=score(each.score)) for each in main]
        for name, score in (("tree", lambda _: 1.0), ("window", lambda value: value))
    )
    found = table(an_evaluation([*main, *better, *alike], settings={"k": [5], "retriever": "bm25"}), "retrievers")
    assert [(line[0], line[-1]) for line in found.rows] == [
        ("bm25", ""),
        ("tree", "better"),
        ("window", "no difference shown"),
    ]


def test_passkey_stands_beside_table_3() -> None:
    results = results_of({"rag": (1.0, 0.0), "long_context": (1.0, 1.0)}, dataset="passkey-larger")
    found = table(of_the_paper(an_evaluation(results)), "passkey")
    assert found.columns == ("data set", "rag", "long_context", "rag token %", "paper rag", "paper long_context")
    assert found.rows == (("passkey-larger", 50, 100, 10, 47.63, 64.24),)


def test_based_only_on_compares_what_was_asked_both_ways() -> None:
    results = results_of({"long_context": (1.0, 0.5, 0.0)}, dataset="qasper")
    results += results_of({"long_context": (0.5, 0.5)}, dataset="qasper", based_only_on=True)
    own = an_evaluation(results)
    assert table(of_the_paper(own), "based_only_on").rows == (("qasper", 2, 75, 50, 50.69, 47.83),)
    assert table(own, "based_only_on").rows == (("qasper", 2, 75, 50),)


def test_closed_book_leaves_out_what_the_model_knows() -> None:
    results = results_of({"long_context": (1.0, 0.5, 0.0), "rag": (1.0, 0.0, 0.0)}, dataset="musique")
    results += results_of({"closed_book": (1.0, 0.5)}, dataset="musique")  # and one that failed
    found = table(of_the_paper(an_evaluation(results)), "closed_book")
    assert row(found, "musique", "questions")["not from memory"] == 1
    scores = row(found, "musique", "long_context")
    assert (scores["all questions"], scores["not from memory"]) == (75, 50)
    assert scores["GPT-3.5-Turbo not from memory"] == 13.00


def test_a_decline_is_not_known_by_heart() -> None:
    results = results_of({"rag": (0.0, 1.0)}, dataset="own")
    results += [a_result("closed_book", 1.0, dataset="own", id=name, answerable=name == "1") for name in "01"]
    found = table(an_evaluation(results), "closed_book")
    assert row(found, "own", "rag")["not from memory"] == 0
    assert row(found, "own", "questions")["not from memory"] == 1


def test_closed_book_of_a_model_that_knows_it_all_leaves_nothing() -> None:
    results = [a_result("rag", dataset="own"), a_result("closed_book", dataset="own")]
    rows = table(an_evaluation(results), "closed_book").rows
    assert rows[:2] == (("own", "questions", 1, 0), ("own", "rag", 100, None))


def test_reasons_are_counted_by_data_set() -> None:
    reasons = [Reason("a", str(n), 5, letter, "") for n, letter in enumerate(["A", "A", "E", "answerable", "?"])]
    reasons.append(Reason("a", "9", 1, "B", ""))  # of another k
    found = table(an_evaluation([a_result("rag", dataset="a")], reasons=reasons), "reasons")
    assert found.rows == (("a", 2, 0, 0, 0, 1, 1, 1, 5),)


def test_decisions_show_what_was_missed() -> None:
    results = [
        a_result("rag", 0.5, id="1"),
        a_result("long_context", 1.0, id="1"),  # it should have read on
        a_result("rag", 0.0, id="2", signal="phrase"),
        a_result("long_context", 1.0, id="2"),
        a_result("rag", 1.0, id="3"),
        a_result("long_context", 0.0, id="3"),
    ]
    rows = table(of_the_paper(an_evaluation(results)), "decisions").rows
    assert rows == (
        ("answered", 2, pytest.approx(200 / 3), 75, 50, 1, 1),
        ("phrase", 1, pytest.approx(100 / 3), 0, 100, 1, 0),
    )


# --- the summary -------------------------------------------------------------------------------------------------


def test_the_summary_says_what_is_lost_and_what_is_saved() -> None:
    results = []
    for number in range(40):
        of_question: dict[str, Any] = {"id": str(number), "signal": "phrase" if number < 8 else "answered"}
        results.append(a_result("long_context", 1.0, id=str(number), usage=usage(0, 100, cost="0.4")))
        results.append(a_result("self_route", 1.0 if number % 2 else 0.5, **of_question, usage=usage(25, cost="0.08")))
        results.append(a_result("rag", 0.5 if number % 2 else 0.25, **of_question, usage=usage(10, cost="0.04")))
    first, second, third, *_ = an_evaluation(results).summary()
    said, _, interval_ = first.partition(" (95 %: ")
    assert said == "Self-Route scores 75.00, the long context 100.00: 25.00 less"
    assert interval_.endswith(" less) for 25 % of its input tokens and 20 % of its cost.")
    low, high = (float(end) for end in interval_.partition(" less)")[0].split(" to "))
    assert 0 < low < 25 < high < 50
    assert second.startswith("RAG alone scores 37.50: 37.50 less than Self-Route (95 %: ")
    assert third == "The first step answered 80 % of the questions."


def test_the_summary_claims_no_difference_that_is_not_shown() -> None:
    results = results_of({"long_context": (1.0, 0.5, 0.0), "self_route": (1.0, 0.0, 0.5), "rag": (1.0, 0.5, 0.0)})
    first, second, *_ = an_evaluation(results).summary()
    assert "the long context 50.00: no difference shown (95 %: " in first
    assert " less to " in first
    assert " more)" in first
    assert "no difference from Self-Route shown" in second
    assert "cost" not in f"{first} {second}"  # no price is known


@given(
    rag=st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=12, max_size=12),
    reader=st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=12, max_size=12),
)
@few
def test_the_summary_and_the_comparisons_agree(rag: list[float], reader: list[float]) -> None:
    evaluation = an_evaluation(results_of({"rag": rag, "long_context": reader}))
    found = row(table(evaluation, "comparisons"), "rag - long_context")
    words = {SAME: "no difference shown", "better": "more", "worse": "less"}[found["verdict"]]
    distance = "" if found["verdict"] == SAME else f"{abs(found['difference']):.2f} "
    assert f": {distance}{words}" in evaluation.summary()[0]


@pytest.mark.parametrize(
    ("strategy", "sentences"),
    [
        ("rag", ["RAG alone scores 50.00.", "The first step answered 100 % of the questions."]),
        ("long_context", ["The long context scores 50.00."]),
        ("self_route", ["Self-Route scores 50.00.", "The first step answered 100 % of the questions."]),
    ],
)
def test_the_summary_of_one_strategy_compares_nothing(strategy: Any, sentences: list[str]) -> None:
    assert an_evaluation([a_result(strategy, 0.5)]).summary()[:-1] == sentences


def test_the_summary_calls_an_estimate_an_estimate() -> None:
    paid = usage(10, long_context_only=100, cost="0.1", cost_long_context_only="0.4")
    first, *_ = an_evaluation([a_result("self_route", usage=paid)]).summary()
    assert first == (
        "Self-Route scores 100.00 for an estimated 10 % of the long context's input tokens and 25 % of its cost."
    )


def test_the_summary_names_the_data_sets_and_the_k_where_there_are_several() -> None:
    results = [a_result("rag", dataset=name, k=k) for name in ("a", "b") for k in (1, 5)]
    first, second, _ = an_evaluation(results, settings={"k": [5, 1]}).summary()
    assert first.startswith("On average over 2 data sets, with k=5, RAG alone scores 100.00")
    assert second == "The first step answered 100 % of the questions, on average over the data sets."


def test_the_summary_says_on_how_many_questions_it_rests() -> None:
    failed = where_the_second_step_fails()
    assert failed.summary()[-2] == (
        "This rests on 3 of 5 questions, those that the strategies finished; the long context finished none of them."
    )
    assert "rests" not in " ".join(two_sets().summary())
    lost = an_evaluation([a_result("rag", id="1"), a_result("long_context", id="2")])
    for nothing in (Evaluation((), ()), lost):
        assert nothing.summary() == ["No question was finished by every strategy, so there is nothing to compare."]


def test_an_evaluation_prints_as_its_recommendation_its_summary_and_its_main_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    evaluation = two_sets()
    assert repr(evaluation) == "Evaluation(3 questions, 9 results, 0 failures)"
    text = str(evaluation)
    assert " ".join(text.split()).startswith(" ".join([*evaluation.recommendation().words, *evaluation.summary()]))
    assert "Scores, answerable questions and input tokens" in text
    assert "(Table 1 of the paper)" not in text
    assert "(Table 1 of the paper)" in str(of_the_paper(evaluation))
    assert "Tokens, cost and time" not in text
    assert max(map(len, text.splitlines())) in range(60, 101)
    assert "\x1b" not in text
    assert "usage" not in text
    assert str(Evaluation((), ())) == "No question was finished by every strategy, so there is nothing to compare."


# --- the data frame ----------------------------------------------------------------------------------------------


def test_the_frame_has_a_row_for_each_question_and_strategy() -> None:
    evaluation = an_evaluation([a_result("rag", usage=usage(10, cost="0.10")), a_result("closed_book", 0.0)])
    frame = evaluation.frame
    assert frame["strategy"].tolist() == ["rag", "closed_book"]
    assert frame["question"].tolist() == ["What is 1?"] * 2
    assert frame["answers"].tolist() == [("answer 1",)] * 2
    assert frame["cost"].tolist() == [Decimal("0.10"), None]
    assert frame["signal"].tolist()[0] == "answered"
    assert frame["seconds"].tolist() == [0.5, 0.5]
    assert frame[["input_tokens", "output_tokens"]].to_numpy().tolist() == [[10, 1], [100, 1]]
    assert Evaluation((), ()).frame.columns.tolist() == frame.columns.tolist()


def test_what_an_evaluation_shows_names_the_extra_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas: pip install \"selfroute\[evaluate\]\""):
        _ = an_evaluation([a_result()]).frame
