"""Draw the papers' figures from the tables of a study: 1 to 4 of Li et al. (2024), 3 to 7 of the sequel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from pandas import DataFrame  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

from selfroute_workbench.evaluation.table import Table

from .compared import WINS, Pair, kept_of, pairs_of
from .metrics import SEQUEL
from .study import Study
from .tables import JUDGED

LC, RAG = "#4c72b0", "#dd8452"
_COLOURS = {"long context": LC, "RAG": RAG, "Self-Route": "#55a868"}
_TOKENS = "tokens, % of the long context's"
_WORDS = 15


def draw(study: Study, tables: Sequence[Table], folder: Path, model: str) -> list[Path]:
    """Draw each figure that a study has tables for, and write what the model of this name answered beside them."""
    by_name, paths = {table.name: table for table in tables}, [folder / "answers.csv"]
    _answers(study).to_csv(paths[0], index=False)
    first, names = next(iter(study.results)), ", ".join(dict.fromkeys(one.dataset for one in study.questions))
    run = f"{len(study.questions):,} questions of {names}; {model}; {first.label}"
    for name, title, figure in _figures(study, by_name):
        figure.suptitle(title)
        figure.supxlabel(run, fontsize=8)
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=200)
    return paths


def _figures(study: Study, tables: Mapping[str, Table]) -> Iterator[tuple[str, str, Figure]]:
    of_paper: Mapping[str, tuple[str, Callable[[Table], Figure], str]] = {
        "main": ("figure-1", _overview, "Performance and cost (Figure 1)"),
        "differences": ("figure-2", _differences, "RAG's scores minus the long context's (Figure 2)"),
        "k": ("figure-3", _by_k, "By the number of passages (Figure 3)"),
        "reasons": ("figure-4", _reasons, "Why the passages were not enough (Figure 4)"),
    }
    for name, (file, make, title) in of_paper.items():
        if name in tables:
            yield file, title, make(tables[name])
    if "kinds" not in tables:
        return
    kinds = _frame(tables["kinds"])
    for number, (how, what) in enumerate(product(("only", "better"), (("source", "kind"), ("question",))), 3):
        if len(frame := kinds[kinds.by.isin(what)]):
            title = f"LC {how} and RAG {how} by strict match, by {what[0]} (the sequel's Figure {number})"
            yield f"sequel-figure-{number}", title, _kinds(frame, how)
    if words := _words(kept_of(study)):
        yield "sequel-figure-7", "Words of questions that one alone answers (the sequel's Figure 7)", words


def _answers(study: Study) -> DataFrame:
    """Return what RAG and the long context answered to each question."""
    asked, said = ("dataset", "id", "question", "kind", "answers"), ("answer", "answerable", "score", "judged")
    rows = (
        [getattr(pair.question, name) for name in asked]
        + [getattr(result, name) for result in (pair.rag, pair.whole) for name in said]
        for pair in pairs_of(study, next(iter(study.results.values())))
    )
    return DataFrame(rows, columns=[*asked, *(f"{of} {name}" for of in ("RAG", "LC") for name in said)])


def _axes(count: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(5.5 * count if count > 1 else 7, 4), layout="constrained")
    return figure, figure.subplots(1, count)


def _frame(table: Table) -> DataFrame:
    return DataFrame(table.rows, columns=list(table.columns))


def _overview(table: Table) -> Figure:
    """Draw (a) performance and (b) cost, of the first variant."""
    average = _frame(table).drop_duplicates("").set_index("").Avg.astype(float)
    ending = JUDGED if f"RAG{JUDGED}" in average else ""
    scores = [average[f"{name}{ending}"] for name in _COLOURS]
    shares = [100.0, average["RAG token %"], average["token %"]]
    figure, both = _axes(2)
    for axes, values, label in zip(both, (scores, shares), (f"score{ending}", _TOKENS), strict=True):
        axes.bar_label(axes.bar(list(_COLOURS), values, color=list(_COLOURS.values())), fmt="%.1f")
        axes.set_ylabel(label)
        axes.margins(y=0.1)
    return figure


def _differences(table: Table) -> Figure:
    figure, axes = _axes()
    frame, colours = _frame(table), ScalarMappable(Normalize(0, 100), "viridis")
    axes.bar(frame.difference, frame["share %"], width=9, color=colours.to_rgba(frame["average score"].to_numpy()))
    ending = JUDGED if JUDGED in table.title else ""
    axes.set(xlim=(-107, 107), xlabel=f"score of RAG - score of the long context{ending}", ylabel="questions, %")
    figure.colorbar(colours, ax=axes, label="average score of both")
    return figure


def _by_k(table: Table) -> Figure:
    figure, both = _axes(2)
    frame = _frame(table).astype({"k": str}).set_index("k").astype(float)
    frame["long context token %"] = 100.0
    score = f"score{JUDGED if JUDGED in table.title else ''}"
    for axes, ending, label in zip(both, ("", " token %"), (score, _TOKENS), strict=True):
        for name, colour in _COLOURS.items():
            style = "--" if name == "long context" else "o-"
            frame[f"{name}{ending}"].plot(ax=axes, style=style, color=colour, label=name, ylim=(0, None))
        axes.set(xlabel="passages (k)", ylabel=label, xticks=range(len(frame)), xticklabels=frame.index)
    both[0].legend()
    return figure


def _reasons(table: Table) -> Figure:
    figure, axes = _axes()
    _frame(table).plot.bar(x="", ax=axes, stacked=True, rot=0, xlabel="", ylabel="questions")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    axes.yaxis.get_major_locator().set_params(integer=True)
    for bars in axes.containers:
        axes.bar_label(bars, label_type="center", fmt=lambda count: f"{count:.0f}" if count else "")
    return figure


def _kinds(frame: DataFrame, how: str) -> Figure:
    figure, axes = _axes()
    counts, names = frame[[f"LC {how}", f"RAG {how}"]], frame[""] + "\n(" + frame.questions.astype(str) + ")"
    shares = counts.mul(100 / frame.questions, axis=0).set_index(names)
    shares.plot.bar(ax=axes, rot=0, xlabel="", ylabel="questions, %", color=[LC, RAG])
    for bars, column in zip(axes.containers, counts, strict=True):
        axes.bar_label(bars, counts[column])
    return figure


def _words(pairs: Sequence[Pair]) -> Figure | None:
    """Draw the words with the highest TF-IDF in the questions that one alone answers, which are one document a side."""
    sides = {name: [one.question.question for one in pairs if name in one.wins(SEQUEL["text"])] for name in WINS[2:4]}
    texts = [" ".join(questions) for questions in sides.values()]
    vectorizer = TfidfVectorizer(stop_words="english")
    if not any(map(vectorizer.build_analyzer(), texts)):
        return None
    weights = vectorizer.fit_transform(texts).toarray().T
    heads = [f"{name} ({len(asked)})" for name, asked in sides.items()]
    frame = DataFrame(weights, columns=heads, index=vectorizer.get_feature_names_out())
    best = frame.sum(axis=1).sort_values(ascending=False, kind="stable").index[:_WORDS]
    figure, axes = _axes()
    frame.loc[best[::-1]].plot.barh(ax=axes, color=[LC, RAG], xlabel="TF-IDF", ylabel="")
    return figure
