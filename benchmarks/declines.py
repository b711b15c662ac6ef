"""Score the decline detector on real replies: precision, recall, and how long answers are held back.

    python benchmarks/declines.py [--labelled FILE] [--replies FOLDER] [--sample 20 --seed 1]

The labelled replies are JSON lines with `reply`, `label` (`decline`, `answer`; others are left out), and where known
`model` or `lang`, for each of which a score is printed. The detector is compared with three common ways: comparing the
whole reply with the refusal word, looking for that word anywhere in it, and a plain pattern over the first 160
characters. Each is also judged behind two numbers, written in several ways, as a graded draft is, and replies to whole
documents by the rule of the second step, where a denial anywhere counts. The delay is how long a reader of a stream
waits: how much of a real answer has arrived when its first text is shown, in characters, words and pieces (some four
characters, like tokens). Each labelled reply is also cut in many ways, which must not change its verdict. `--sample`
prints some unlabelled replies from both sides of the verdict, for a person to read.

The recordings are not part of this project: if they are missing, the script says so and ends. Exit code 1 if a target
is missed: precision 0.98, recall 0.95, a median of three words held back, the same verdict for any cut.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfroute.answerability import Gate, declines, declines_anywhere
from selfroute.answerability.graded import GradedGate

RECORDED = Path(__file__).resolve().parent.parent.parent / "shared" / "recorded"
REFUSAL = "unanswerable"
PRECISION, RECALL, WORDS_HELD = 0.98, 0.95, 3
PIECE = re.compile(r"\s*\S{1,4}")
NEGATED = re.compile(
    r"\b(?:not|no|nor|never|cannot|unable|lacks?|insufficient)\b[^.!?\n]{0,60}?"
    r"(?:mention|contain|provi|speci|inclu|stat|discuss|descri|address|enough|sufficient|availab|given|find|found"
    r"|answer|determin|information|explicit|detail|disclos|indicat|refer|compar)"
    r"|n['\u2019]t (?:mention|contain|provid|say)",
    re.IGNORECASE,
)

Json = dict[str, Any]
DETECTORS: dict[str, Callable[[str], bool]] = {
    "selfroute": lambda reply: bool(declines(reply)),
    "plain pattern": lambda reply: bool(NEGATED.search(reply[:160])),
    "substring": lambda reply: REFUSAL in reply.lower(),
    "exact match": lambda reply: reply.strip().lower() == REFUSAL,
}


# Ways in which models write the two numbers of a graded reply.
HEADS = (
    "80 40\n",
    "80\n40\n",
    "Prospect: 80\nConfidence: 40\n\n",
    "**80** **40**\n\n",
    "80% 40%\n",
    "80-90 40-50\n",
    "80 40 ",
)


def graded(reply: str) -> bool:
    """Return whether a reply behind two numbers declines."""
    gate = GradedGate()
    gate.feed(reply)
    gate.end()
    return bool(gate.verdict)


@dataclass(frozen=True)
class Score:
    """A detector's result: the replies that it judged, each with whether it declines and whether it was found to."""

    judged: list[tuple[Json, bool, bool]]

    @property
    def precision(self) -> float:
        """The share of real declines among the replies found to decline; NaN if no reply was found to decline."""
        taken = [declined for _, declined, taken in self.judged if taken]
        return sum(taken) / len(taken) if taken else math.nan

    @property
    def recall(self) -> float:
        """The share of the real declines that were found; NaN if no reply really declines."""
        declined = [taken for _, declined, taken in self.judged if declined]
        return sum(declined) / len(declined) if declined else math.nan

    @property
    def wrong(self) -> list[tuple[Json, bool]]:
        """The misjudged replies, each with whether it declines."""
        return [(row, declined) for row, declined, taken in self.judged if declined != taken]

    def __str__(self) -> str:
        return f"{self.precision:9.3f}  {self.recall:6.3f}  {len(self.judged):7}  {len(self.wrong):5}"


def lines_of(path: Path) -> list[Json]:
    """Read a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def group_of(row: Json) -> str:
    """Return the model that wrote a reply; if it is not known, the language."""
    return str(row.get("model") or row.get("lang") or "all")


def score(rows: Iterable[Json], detector: Callable[[str], bool]) -> Score:
    """Let a detector judge the labelled replies."""
    return Score([(row, row["label"] == "decline", detector(row["reply"])) for row in rows])


def held(pieces: Sequence[str]) -> tuple[int, int, int] | None:
    """Return how many characters, words and pieces of a streamed reply are held back; None if it declines."""
    gate, waiting = Gate(), ""
    for count, piece in enumerate(pieces):
        if gate.feed(piece):
            return len(waiting), len(waiting.split()), count
        waiting += piece
    return (len(waiting), len(waiting.split()), len(pieces)) if gate.end() else None


def cut(reply: str, order: random.Random) -> Iterator[list[str]]:
    """Cut a reply into its characters, into pieces, and at random places."""
    yield list(reply)
    yield PIECE.findall(reply)
    for _ in range(20):
        places = sorted(order.choices(range(len(reply) + 1), k=order.randint(1, 12)))
        yield [reply[start:end] for start, end in zip([0, *places], [*places, len(reply)], strict=True)]


def changed(replies: Iterable[str]) -> list[str]:
    """Return the replies for which some cut changes the verdict or the text."""
    order, found = random.Random(0), []  # noqa: S311
    for reply in replies:
        verdict = declines(reply)
        for pieces in cut(reply.rstrip(), order):
            gate = Gate()
            shown = "".join([*map(gate.feed, pieces), gate.end()])
            if (gate.verdict, shown) != (verdict, "" if verdict else "".join(pieces)):
                found.append(reply)
                break
    return found


def delay(name: str, replies: Iterable[str]) -> float:
    """Print how long these answers are held back, and return the median in words."""
    waits = [wait for reply in replies if (wait := held(PIECE.findall(reply)))]
    print(f"\n{name}: {len(waits)} answers      median     95 %")
    columns = list(zip(*waits, strict=True))
    for unit, column in zip(("characters", "words", "pieces"), columns, strict=True):
        print(f"  held {unit:12} {statistics.median(column):24.0f} {sorted(column)[int(0.95 * len(column))]:8}")
    return float(statistics.median(columns[1]))


def show(replies: Sequence[str], count: int, *, seed: int) -> None:
    """Print some replies from both sides of the verdict."""
    order = random.Random(seed)  # noqa: S311
    for declined in (True, False):
        side = [reply for reply in replies if bool(declines(reply)) == declined]
        print(f"\n{'declines' if declined else 'answers'}: {len(side)} of {len(replies)}; {count} of them:")
        for reply in order.sample(side, min(count, len(side))):
            print(f"  {' '.join(reply.split())[:200]}")


def main() -> int:
    """Print the scorecard; the exit code is 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, default=RECORDED / "labelled_replies.jsonl")
    parser.add_argument("--replies", type=Path, default=RECORDED / "replies", help="folder of replies without labels")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N unlabelled replies from each side")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not options.labelled.exists():
        print(f"Skipped: no labelled replies at {options.labelled}; say where with --labelled.")
        return 0

    rows = [row for row in lines_of(options.labelled) if row["label"] in ("decline", "answer")]
    print(f"{len(rows)} labelled replies\n\n{'':28}precision  recall  replies  wrong")
    for name, detector in DETECTORS.items():
        print(f"{name:28}{score(rows, detector)}")
    numbered = [{**row, "reply": head + row["reply"]} for row in rows for head in HEADS]
    print(f"{'selfroute, behind numbers':28}{score(numbered, graded)}")
    whole = [row for row in rows if row.get("step") == "long_context"]
    if whole:
        print(f"{'selfroute, second step':28}{score(whole, lambda reply: bool(declines_anywhere(reply)))}")
    groups: dict[str, list[Json]] = defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
    own = DETECTORS["selfroute"]
    for group in sorted(groups):
        print(f"  {group:26}{score(groups[group], own)}")
    total = score(rows, own)
    for row, declined in total.wrong:
        verdict = declines(row["reply"])
        what = "missed" if declined else f"not a decline, but found {verdict.evidence!r}"
        print(f"\n  {group_of(row)}, {row.get('id')}: {what}\n    {' '.join(row['reply'].split())[:300]}")

    cuts = changed(row["reply"] for row in rows)
    print(f"\nCut in 22 ways each, {len(cuts)} of {len(rows)} replies get another verdict or lose text.")
    for reply in cuts:
        print(f"  changed: {' '.join(reply.split())[:200]}")
    words = delay("labelled", (row["reply"] for row in rows if row["label"] == "answer"))
    files = sorted(options.replies.glob("*.jsonl"))
    replies = [reply for file in files for row in lines_of(file) for key, reply in row.items() if key != "id"]
    if replies:
        delay("recorded, without labels", replies)
        if options.sample:
            show(replies, options.sample, seed=options.seed)
    met = total.precision >= PRECISION and total.recall >= RECALL and words <= WORDS_HELD and not cuts
    print(f"\nTargets (precision {PRECISION}, recall {RECALL}, {WORDS_HELD} words) {'met' if met else 'MISSED'}.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
