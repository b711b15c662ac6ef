"""Makes the page of an evaluation: one HTML file without a script, which loads nothing.

What models, documents and questions say is data: `_tag` escapes every text, and the page's Content-Security-Policy
forbids all that is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from math import log10
from typing import Any

from selfroute import __version__
from selfroute.usage.ledger_text import STEP_NAMES, dollars
from selfroute_workbench.evaluation.looks import TITLES, Failure, Look, Passage, Result
from selfroute_workbench.evaluation.questions import Question, choice_lines
from selfroute_workbench.evaluation.record import Record
from selfroute_workbench.evaluation.table import CONTROL, Table, as_text, is_figures
from selfroute_workbench.evaluation.verdict import Verdict

BETTER = "Options that would do better than yours"
_LONGEST = 3_000  # characters of a text; the middle of a longer one is left out
_INVISIBLE = dict.fromkeys(CONTROL, "\N{REPLACEMENT CHARACTER}")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM = 640, 300, 44, 150, 34
_LEAST_SHARE, _LINE, _NAME = 0.003, 15, 130
_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --line: #8885; --faint: #888; --accent: #0a7d5a }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.verdict { border-left: 4px solid var(--accent); padding: .3rem 1rem; font-size: 1.1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
.figure { text-align: right; font-variant-numeric: tabular-nums }
.note, .faint { color: var(--faint); font-size: .85rem }
details { border-bottom: 1px solid var(--line); padding: .4rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
.text { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 30rem }
svg { max-width: 100%; height: auto } svg text { font-size: 12px; fill: currentColor }
.axis { stroke: var(--line) } .dot { fill: var(--accent) } .bar { stroke: var(--accent) }
"""


class _Html(str):
    """Markup that was made here."""

    __slots__ = ()


def _tag(name: str, *inside: str, **attributes: object) -> _Html:
    """Return an element; all text inside and in its attributes is escaped, but for elements that were made here."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{_escaped(str(each))}"' for key, each in attributes.items())
    return _Html(f"<{name}{given}>{''.join(map(_escaped, inside))}</{name}>")


def _escaped(text: str) -> str:
    if isinstance(text, _Html):
        return text
    return escape(text.translate(_INVISIBLE).encode("utf-8", "replace").decode())


def _shortened(text: str) -> str:
    kept = _LONGEST // 2
    left_out = len(text) - 2 * kept
    return text if left_out <= 0 else f"{text[:kept]} … [{left_out:,} characters left out] … {text[-kept:]}"


def page_of(evaluation: Record, *, verdict: Verdict, advice: Sequence[str], tables: Sequence[Table]) -> str:
    """Make the page."""
    head = (
        _Html(f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(_CSP)}">'),
        _Html('<meta name="viewport" content="width=device-width">'),
        _tag("title", "Evaluation of Self-Route"),
        _Html(f"<style>{_STYLE}</style>"),
    )
    body = (
        _tag("h1", "Evaluation of Self-Route"),
        _tag("div", *(_tag("p", line) for line in verdict.lines), class_="verdict"),
        *([_tag("p", f"The run ended early: {evaluation.stopped}.")] if evaluation.stopped else []),
        *([_tag("h2", BETTER)] if advice else []),
        *(_tag("p", each) for each in advice),
        *_chart(verdict),
        _tag("h2", "How sure is this?"),
        _tag("ul", *(_tag("li", note) for table in tables[:1] for note in table.notes)),
        *(each for at, table in enumerate(tables) for each in _table(table if at else replace(table, notes=()))),
        _tag("h2", "Question by question"),
        *_questions(evaluation),
        _tag("h2", "Settings"),
        _settings(evaluation),
        _tag("p", f"selfroute {__version__}", class_="faint"),
    )
    page = _tag("html", _tag("head", *head), _tag("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _table(table: Table) -> Iterator[_Html]:
    figures = [bool(at) and is_figures(row[at] for row in table.rows) for at in range(len(table.columns))]
    classes = ["figure" if each else "text" for each in figures]

    def row(name: str, cells: Sequence[Any]) -> _Html:
        shown = (_shortened(as_text(cell, unknown="\N{EN DASH}")) for cell in cells)
        return _tag("tr", *(_tag(name, cell, class_=kind) for cell, kind in zip(shown, classes, strict=True)))

    yield _tag("h2", table.title)
    rows = _tag("tbody", *(row("td", cells) for cells in table.rows))
    yield _tag("div", _tag("table", _tag("thead", row("th", table.columns)), rows), class_="scroll")
    yield from (_tag("p", note, class_="note") for note in table.notes)


def _settings(evaluation: Record) -> _Html:
    judge = evaluation.settings.get("judge")
    shown = {**evaluation.settings, "judge": judge and judge["model"]}
    rows = (
        _tag("tr", _tag("td", name), _tag("td", value if isinstance(value, str) else json.dumps(value, default=str)))
        for name, value in shown.items()
        if value is not None
    )
    prompt = [_tag("details", _tag("summary", "The judge's prompt"), _text(judge["prompt"]))] if judge else []
    return _tag("div", _tag("table", *rows), *prompt, class_="scroll")


def _text(text: str) -> _Html:
    return _tag("div", _shortened(text), class_="text")


def _questions(evaluation: Record) -> Iterator[_Html]:
    """Yield each question: what is asked, the references, and what each strategy made of it."""
    results: dict[object, list[Result]] = {}
    failures: dict[object, list[Failure]] = {}
    for result in evaluation.results:
        results.setdefault(result.key, []).append(result)
    for failure in evaluation.failures:
        failures.setdefault(failure.key, []).append(failure)
    for question in evaluation.questions:
        yield _question(question, results.get(question.key, []), failures.get(question.key, []))


def _question(question: Question, results: Sequence[Result], failures: Sequence[Failure]) -> _Html:
    about = " · ".join(filter(None, (question.dataset, question.id, question.kind, question.source)))
    names = ("strategy", "answered by", "answer", "score", "judged", "tokens", "cost", "seconds")
    rows = []
    for each in results:
        figures = (
            f"{each.score:.2f}",
            "\N{EN DASH}" if each.judged is None else f"{each.judged:g}",
            f"{each.usage.total_tokens:,}",
            "\N{EN DASH}" if each.cost is None else dollars(str(each.cost)),
            f"{each.seconds:.1f}",
        )
        cells = (_tag("td", TITLES[each.strategy]), _tag("td", STEP_NAMES[each.route]), _tag("td", _answer(each.shown)))
        rows.append(_tag("tr", *cells, *(_tag("td", figure, class_="figure") for figure in figures)))
    drafts = {tuple(look.passages): each.strategy for each in reversed(results) for look in each.paid if look.passages}
    return _tag(
        "details",
        _tag("summary", _shortened(question.question), *([_tag("b", " failed")] if failures else [])),
        _tag("p", about, class_="faint"),
        *([_text(choice_lines(question.choices))] if question.choices else []),
        _tag("p", "Reference: ", _shortened(" | ".join(question.answers) or "it has no answer")),
        *(_tag("p", f"Failed, {TITLES[each.strategy]}: {each.error}") for each in failures),
        _tag("div", _tag("table", _tag("tr", *(_tag("th", name) for name in names)), *rows), class_="scroll"),
        *(_passages(passages, TITLES[name]) for passages, name in reversed(drafts.items())),
    )


def _answer(look: Look) -> _Html:
    numbers = ((name, getattr(look, name)) for name in ("prospect", "confidence"))
    said = ", ".join(f"{name} {value}" for name, value in numbers if value is not None)
    marks = " ".join(filter(None, ["declined" if look.declined else "", said, "(cut to fit)" if look.cut else ""]))
    return _tag("div", _text(look.answer), _tag("span", marks, class_="faint"))


def _passages(passages: Sequence[Passage], name: str) -> _Html:
    shown = (_tag("li", _text(passage.text)) for passage in passages)
    return _tag("details", _tag("summary", f"{len(passages)} passages of the draft ({name})"), _tag("ol", *shown))


def _chart(verdict: Verdict) -> Iterator[_Html]:
    """Yield the chart of quality against tokens, if there are two strategies to compare."""
    points = sorted(verdict.figures.items(), key=lambda point: -point[1].quality)
    if len(points) < 2:  # noqa: PLR2004 - one point says nothing
        return
    ends = [end for _, each in points for end in (each.low, each.high, each.quality) if end is not None]
    low, high = 100 * min(ends) - 2, min(100 * max(ends) + 2, 102)
    least = log10(max(min(each.token_share for _, each in points) * 0.8, _LEAST_SHARE))
    most = log10(max(1.0, *(each.token_share for _, each in points)))

    def x(share: float) -> float:
        along = (log10(max(share, _LEAST_SHARE)) - least) / (most - least or 1)
        return round(_LEFT + along * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(quality: float) -> float:
        return round((_HEIGHT - _BOTTOM) * (high - 100 * quality) / (high - low) + 6, 1)

    inside: list[_Html] = []
    for percent in (0.3, 1, 3, 10, 30, 100):
        if least <= log10(percent / 100) <= most:
            at = x(percent / 100)
            inside.append(_tag("line", x1=at, x2=at, y1=6, y2=_HEIGHT - _BOTTOM + 6, class_="axis"))
            inside.append(_tag("text", f"{percent:g} %", x=at, y=_HEIGHT - 8, text_anchor="middle"))
    for points_of_100 in (each for each in range(0, 101, 10) if low < each < high):
        at = y(points_of_100 / 100)
        inside.append(_tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=at, y2=at, class_="axis"))
        inside.append(_tag("text", str(points_of_100), x=_LEFT - 8, y=at + 4, text_anchor="end"))
    taken: list[tuple[float, float]] = []
    for name, figures in points:
        at, height, beside = x(figures.token_share), y(figures.quality), y(figures.quality) + 4
        ends = [figures.quality if end is None else end for end in (figures.low, figures.high)]
        while any(abs(at - left) < _NAME and abs(beside - top) < _LINE for left, top in taken):
            beside += _LINE  # no name stands over another
        taken.append((at, beside))
        inside.append(_tag("line", x1=at, x2=at, y1=y(ends[0]), y2=y(ends[1]), class_="bar"))
        label = _tag("title", f"{TITLES[name]}: {figures}")
        inside.append(_tag("circle", label, cx=at, cy=height, r=5, class_="dot"))
        inside.append(_tag("text", TITLES[name], x=at + 9, y=round(beside, 1)))
    yield _tag("h2", "Quality against tokens")
    yield _tag("svg", *inside, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT, role="img")
    yield _tag("p", "Across: tokens, as a share of the long context's. Bars are 95 % intervals.", class_="note")
