"""Compare strategies of escalation on recorded replies: quality, tokens and dollars, and which one is recommended.

    python benchmarks/policies.py FOLDER... [--json] [--model NAME]

A folder holds `questions.jsonl` (`id`, `document`, `question`, `answerable`, and `answers` or `reference`),
`documents/`, and `replies/MODEL.jsonl` (`id`, `rag`, `long_context`). Optional are `passages.jsonl` (of each draft),
`graded.jsonl` and `sections.jsonl` (graded drafts, and replies over sections after them; a row may name its `model`),
and grades from 0 to 1 in `grades.jsonl` or `grades_sample.jsonl`, or as `grade` in the row of a reply. Where a model
has grades, only the questions with grades count; else quality is the F1 over all references, and an answer to a
question that the document does not answer scores 0, its decline 1.

Quality is from 0 to 100, with a 95 % interval over documents; `token_share` is the share of the long context's tokens;
dollars are per question, at today's prices, null where there is no price. A token is four characters of text: of the
documents, the passages and the reply; the prompts' own words, the same for all strategies, are left out. Where no
passages are recorded, a draft reads 3,000 tokens. `calibrated` is cross-validated by document, within the tokens of
Self-Route, and `calibrated_for_quality` within those of the long context.

Each question is led through the real chain by every rule of the tables, with the recorded replies as its models; where
it takes other steps than the tables count, the script stops. Where no reply over sections was recorded, the chain is
asked without sections, so that the document follows at once. If only the questions that some bound sends on were asked
again, rules with a higher bound miss some. A document so short that the chain skips its sections counts as if it had
read them.

Where there are replies over sections, a second table shows what the chain itself comes to by several bounds of draft
and sections, beside what the recorded numbers and lengths say; here skipped sections are not counted. Its tokens are
those of the prompts that it sends, with all their words. Sections have about as many tokens as the recorded prompts,
then as many as the documentation advises. It also says how much of the recorded prompts they hold. What these held was
not recorded, so they are built anew (the passages and the eight best other chunks by BM25), and their lengths compared.

The recordings are not part of this project: if a folder is missing, the script says so and leaves it out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import replayed_sections
from replayed_chain import SECTION_TOKENS, Recording, ask, options_of, with_numbers
from replayed_sections import Asked
from selfroute.answerability import declines
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute_workbench.evaluation.choosing import Options, choose_options, cross_validated
from selfroute_workbench.evaluation.looks import Step
from selfroute_workbench.evaluation.metrics import f1
from selfroute_workbench.evaluation.replay import GRADED, Rule
from selfroute_workbench.evaluation.trials import Evidence, Figures, GradedLook, Row, counts_of
from selfroute_workbench.evaluation.verdict import Verdict, verdict_of

Json = dict[str, Any]
TOKENS_OF_PASSAGES = 3_000  # five of 600, as the filings' questions were asked
ANY = "*"
PROVIDERS = ("openai", "anthropic", "google", "mistral", "deepseek", "cohere")


class Recorded:
    """The recordings of one folder for one model.

    Args:
        folder: The folder.
        model: The model, as its file of replies is named.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self._folder, self._model = folder, model
        self.questions = self._rows("questions.jsonl")
        self.replies = self._rows(f"replies/{model}.jsonl")
        self._passages = self._rows("passages.jsonl")
        # a row that names no model is of the only one there is
        of = model if models_of(folder) == [model] else None
        self.grades = self._rows("grades.jsonl", of) or self._rows("grades_sample.jsonl", of)
        self._graded = self._rows("graded.jsonl", of)
        self._sections = self._rows("sections.jsonl", of)
        self._texts: dict[str, str] = {}

    def recording(self, key: str, strategy: str) -> Recording:
        """Return what the chain is replayed with, if it asks a question by a strategy."""
        replies, passages = self.replies[key], self._passages.get(key, {}).get("passages") or ["A passage."]
        found = {"rag": replies["rag"], "long_context": replies["long_context"]}
        if strategy in GRADED:
            draft, second = self._graded[key], self._sections.get(key)
            found["rag"] = with_numbers(draft["reply"], draft.get("prospect"), draft.get("confidence"))
            if second:
                found["sections"] = with_numbers(second["reply"], second.get("confidence"))
        question = self.questions[key]
        return Recording(question["question"], passages, self._text(question["document"]), found)

    def asked(self, rows: list[Row]) -> list[Asked]:
        """Return the questions of these rows, as they are led through sections; none if no such reply was recorded."""
        if not any("graded_sections" in row.looks for row in rows) or not all("graded" in row.looks for row in rows):
            return []
        found = []
        steps: dict[str, Step] = {"rag": "graded", "sections": "graded_sections", "long_context": "long_context"}
        for key, row in zip(self.keys(), rows, strict=True):
            known = {name: row.looks[step][0] for name, step in steps.items() if step in row.looks}
            characters = self._sections.get(key, {}).get("prompt_characters")
            found.append(Asked(key, self.recording(key, "graded_sections"), known, characters))
        return found

    def keys(self) -> Iterator[str]:
        """Yield the ids of the questions that have a draft and a reply over the document, and a grade if any has."""
        for key in self.questions:
            graded = key in self.grades if self.grades else True
            if graded and {"rag", "long_context"} <= self.replies.get(key, {}).keys():
                yield key

    def rows(self) -> Iterator[Row]:
        """Yield these questions with all their replies."""
        for key in self.keys():
            yield self._row(key, self.questions[key], self.replies[key])

    def _row(self, key: str, question: Json, replies: Json) -> Row:
        whole = len(self._text(question["document"])) / 4
        grades = self.grades.get(key, {})
        passages = self._passages.get(key)
        read = sum(map(len, passages["passages"])) / 4 if passages else min(TOKENS_OF_PASSAGES, whole)
        sections = self._look("sections", key, self._sections.get(key), tokens=min(SECTION_TOKENS, whole))
        looks: dict[Step, GradedLook | None] = {
            "rag": self._reply(key, replies["rag"], grades.get("rag"), tokens=read),
            "graded": self._look("graded", key, self._graded.get(key), tokens=read),
            "graded_sections": sections,
            "long_context": self._reply(key, replies["long_context"], grades.get("long_context"), tokens=whole),
        }
        known = {step: (look,) for step, look in looks.items() if look}
        return Row(question["document"], known, question["answerable"])

    def _look(self, step: str, key: str, found: Json | None, *, tokens: float) -> GradedLook | None:
        if found is None:
            return None
        grade = found.get("grade", self.grades.get(key, {}).get(step))
        if self.grades and grade is None:
            return None
        tokens = found.get("prompt_characters", 4 * tokens) / 4
        look = self._reply(key, found["reply"], grade, tokens=tokens)
        return replace(look, prospect=found.get("prospect"), confidence=found.get("confidence"))

    def _reply(self, key: str, text: str, grade: float | None, *, tokens: float) -> GradedLook:
        question, declined = self.questions[key], bool(declines(text))
        if grade is not None:
            quality = grade
        elif question["answerable"]:
            quality = 0.0 if declined else f1(text, question.get("answers") or [question["reference"]])
        else:
            quality = float(declined)
        counts = StepUsage(round(tokens), round(len(text) / 4))
        return GradedLook(float(quality), tokens, declined, dollars=dollars_of(self._model, counts))

    def _text(self, document: str) -> str:
        if document not in self._texts:
            self._texts[document] = (self._folder / "documents" / document).read_text(encoding="utf-8")
        return self._texts[document]

    def _rows(self, name: str, of: str | None = ANY) -> dict[str, Json]:
        """Return the rows of a file by the id of their question, if they are of this model; none if it is missing."""
        path = self._folder / name
        if not path.exists():
            return {}
        with path.open(encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines if line.strip()]
        return {row["id"]: row for row in found if row.get("model", of) in (self._model, ANY)}


def rows_of(folder: Path, model: str) -> list[Row]:
    """Return the questions of a folder with the replies of a model."""
    return list(Recorded(folder, model).rows())


def follow(recorded: Recorded, rows: list[Row], rules: Iterable[Rule]) -> None:
    """Lead every question through the real chain by each rule.

    Raises:
        SystemExit: The chain takes other steps than the rule says, and not since a document is short.
    """
    for rule in rules:
        below = rule.doubt_below[0] if len(rule.doubt_below) == 1 else rule.doubt_below
        options = options_of(rule.strategy, doubt_below=below, stop_below=rule.stop_below)
        for key, row in zip(recorded.keys(), rows, strict=True):
            counted = tuple(_step_of(look, row) for look in rule.follow(row.looks) or ())
            found = ask(recorded.recording(key, rule.strategy), options)
            if (found.ran, found.shown) != (counted, counted[-1]) and not found.skips(counted):
                steps = f"{found.ran} and shows {found.shown}, but {counted} was counted"
                sys.exit(f"{key}, {rule}: the chain takes {steps}")


def _step_of(look: GradedLook, row: Row) -> str:
    step = next(step for step, looks in row.looks.items() if looks[0] is look)
    return {"graded": "rag", "graded_sections": "sections"}.get(step, step)


def choose(rows: list[Row]) -> tuple[Evidence, dict[str, Options], Verdict]:
    """Return the questions, the options that are chosen by them, and the verdict on the plain strategies."""
    evidence = Evidence(rows)
    budgets = {"calibrated": None, "calibrated_for_quality": 1.0}
    chosen = {name: choose_options(rows, sections=SECTION_TOKENS, token_share=share) for name, share in budgets.items()}
    rules = {strategy: Rule.default(strategy) for strategy in evidence.strategies}
    return evidence, chosen, verdict_of(evidence, rules, SECTION_TOKENS)


def rules_of(evidence: Evidence, chosen: Mapping[str, Options]) -> list[Rule]:
    """Return the rules of the tables: the plain ones, and those that any fold chose."""
    folds = [rule for share in (None, 1.0) for rule in cross_validated(evidence, token_share=share)[1]]
    plain = [Rule.default(strategy) for strategy in evidence.strategies]
    return list(dict.fromkeys([*plain, *(options.rule for options in chosen.values()), *folds]))


def models_of(folder: Path) -> list[str]:
    """Return the models whose replies a folder holds."""
    return sorted(path.name.removesuffix(".jsonl") for path in (folder / "replies").glob("*.jsonl"))


def dollars_of(model: str, counts: StepUsage) -> float | None:
    """Return what a step costs at today's prices, None if no provider lists the model."""
    provider = provider_of(model)
    cost = cost_of(PricedModel(model, provider), counts) if provider else None
    return None if cost is None or cost.dollars is None else float(cost.dollars)


def provider_of(model: str, known: dict[str, str | None] = {}) -> str | None:  # noqa: B006 - it is a cache
    """Return the provider that lists a model by this very name."""
    if model not in known:
        priced = (each for each in PROVIDERS if cost_of(PricedModel(model, each), StepUsage(1, 1)).dollars is not None)
        known[model] = next(priced, None)
    return known[model]


def figures(chosen: Mapping[str, Options], verdict: Verdict) -> dict[str, Figures]:
    """Return the figures of each strategy; those of the calibrated ones are cross-validated by document."""
    return {**verdict.figures, **{name: options.figures for name, options in chosen.items()}}


def shown(found: Figures) -> Json:
    """Return figures as they are printed: quality in points of 100."""
    low, high = (found.quality if end is None else end for end in (found.low, found.high))
    return {
        "quality": round(100 * found.quality, 4),
        "low": round(100 * low, 4),
        "high": round(100 * high, 4),
        "token_share": round(found.token_share, 6),
        "dollars": found.dollars,
    }


def bounds_table(evidence: Evidence) -> Mapping[str, Figures]:
    """Return the figures of other bounds."""
    if "graded" not in evidence.strategies:
        return {}
    rules = {"graded, no doubt": Rule("graded", (0,), 20), "graded, doubt below 70": Rule("graded", (70,), 20)}
    return {name: evidence.figures(evidence.trial(rule)) for name, rule in rules.items()}


def report(folder: Path, model: str, rows: list[Row]) -> None:
    """Print the table of one model, and the verdict."""
    recorded, (evidence, chosen, verdict) = Recorded(folder, model), choose(rows)
    follow(recorded, rows, rules_of(evidence, chosen))
    print(f"\n{folder.name}, {model}: {counts_of(evidence)}.\n")
    print(f"{'':24}{'quality':>8}{'95 % interval':>16}{'tokens':>8}{'dollars':>11}")
    for name, each in {**figures(chosen, verdict), **bounds_table(evidence)}.items():
        row = shown(each)
        interval = f"{row['low']:.1f} to {row['high']:.1f}"
        dollars = "" if row["dollars"] is None else f"{row['dollars']:.6f}"
        print(f"{name:24}{row['quality']:8.1f}{interval:>16}{100 * row['token_share']:7.1f}%{dollars:>11}")
    print(f"\n{verdict}\nCalibrated: {json.dumps(chosen['calibrated'])}")
    for note in chosen["calibrated"].notes:
        print(f"Calibrated: {note}")
    if asked := recorded.asked(rows):
        print("\n" + "\n".join(replayed_sections.table(replayed_sections.figures_of(asked))))


def main() -> int:
    """Print the tables, or JSON; the exit code is 1 if no folder was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--model", action="append", help="only this model (may be repeated)")
    options = parser.parse_args()
    result: dict[str, Json] = {}
    for folder in options.folders:
        if not (folder / "questions.jsonl").exists():
            print(f"Skipped: no recordings at {folder}.", file=sys.stderr)
            continue
        result[str(folder)] = {}
        for model in models_of(folder):
            rows = rows_of(folder, model) if not options.model or model in options.model else []
            if rows and options.json:
                recorded, (evidence, chosen, verdict) = Recorded(folder, model), choose(rows)
                follow(recorded, rows, rules_of(evidence, chosen))
                named = {name: shown(each) for name, each in figures(chosen, verdict).items()}
                result[str(folder)][model] = {**named, "recommended": verdict.strategy}
                if asked := recorded.asked(rows):
                    result[str(folder)][model]["replayed_sections"] = replayed_sections.figures_of(asked)
            elif rows:
                report(folder, model, rows)
    if options.json:
        print(json.dumps(result, indent=2))
    return 0 if result else 1


if __name__ == "__main__":
    sys.exit(main())
