"""A recommendation and a calibration in words, and in the lines of code to paste."""

from __future__ import annotations

from collections.abc import Iterator

from selfroute.calls.settings import Sections
from selfroute.evaluation.calibrating.evidence import FEWEST_QUESTIONS
from selfroute.evaluation.calibrating.recommendation import BreakEven, Name, Recommendation
from selfroute.evaluation.calibrating.rows import GRADED, Rule
from selfroute.evaluation.sampling import FEWEST_DOCUMENTS
from selfroute.evaluation.table import Cell, Table
from selfroute.policies.calibration import Calibration, Figures, tokens_text

_EQUAL = 1e-9
_IN_WORDS: dict[Name, str] = {
    "rag": "stay with RAG, and let it decline",
    "self_route": "take Self-Route as it is",
    "sections": "take Self-Route with sections",
    "graded": "take graded answerability",
    "graded_sections": "take graded answerability with sections",
    "calibrated": "take the calibrated rule",
    "calibrated_for_quality": "take the rule that was calibrated for quality",
    "long_context": "read the whole documents at once",
}
_SHORT: dict[Name, str] = {
    "rag": "RAG",
    "self_route": "Self-Route",
    "sections": "Self-Route with sections",
    "graded": "graded answerability",
    "graded_sections": "graded answerability with sections",
    "calibrated": "the calibrated rule",
    "calibrated_for_quality": "the rule calibrated for quality",
    "long_context": "the long context",
}


def code_of(rule: Rule, sections: Sections) -> str:
    """Return the arguments to paste into the constructor of the chain or engine, with the import that they need.

    Args:
        rule: The rule to follow.
        sections: The tokens of its sections; None if it reads none.
    """
    if rule.strategy == "rag":
        return "from selfroute.policies import Never\n\nescalation=Never(),"
    if rule.strategy == "long_context":
        return 'start="long_context",'
    arguments = []
    if rule.strategy in GRADED:
        arguments = ['answerability="graded"', f"doubt_below={rule.doubt_below}", f"stop_below={rule.stop_below}"]
    if sections:
        arguments.append(f"sections={sections}")
    return ", ".join(arguments) + "," if arguments else "# no argument: this is the default"


def rule_in_words(calibration: Calibration) -> str:
    """Return what a calibration does, in a sentence."""
    if calibration.escalate == "never":
        return "Never escalate: stay with RAG, and let it decline."
    step = "read the whole documents"
    if calibration.sections:
        step = f"read {tokens_text(calibration.sections)} tokens of sections; if they do not settle it, {step}"
    if calibration.escalate == "declined":
        return f"Escalate every decline: {step}."
    return (
        f"Escalate a decline with a prospect of {calibration.stop_below} or more, and an answer with a confidence "
        f"below {calibration.doubt_below}: {step}."
    )


def gains_table(calibration: Calibration) -> Table:
    """Return the gain over each plain strategy: quality, tokens and dollars, question by question."""
    rows: list[tuple[Cell, ...]] = []
    for name, gain in calibration.gains.items():
        low, high = (None if end is None else f"{100 * end:+.1f}" for end in (gain.low, gain.high))
        dollars = None if gain.dollars is None else f"{gain.dollars:+.6f}"
        rows.append((name, f"{100 * gain.gain:+.1f}", low, high, f"{100 * gain.token_share:+.1f}", dollars))
    columns = ("over", "gain", "low", "high", "tokens %", "dollars")
    note = (
        "gain is in points of 100, with its 95 % interval. tokens and dollars are how much more (+) or less (-) a "
        "question takes; tokens are a percentage of the long context's."
    )
    return Table("gains", "Gain over each plain strategy", columns, tuple(rows), (note,))


def sentences_of(found: Recommendation) -> Iterator[str]:
    """Yield a recommendation in words: what to take, why, and the numbers of questions behind it."""
    here = "On this document, " if found.counts.documents == 1 else "On these documents, "
    where, advice = here if found.few_documents else "", _IN_WORDS[found.strategy]
    yield f"{where or advice[0].upper()}{advice if where else advice[1:]}: {in_words(found.figures[found.strategy])}."
    few_questions = found.counts.questions < FEWEST_QUESTIONS
    if few_questions:
        yield f"Fewer than {FEWEST_QUESTIONS} questions are too few to tell strategies apart."
    if found.strategy == found.best:
        cheapest = "" if few_questions else ", and nothing cheaper is level with it"
        yield f"No strategy has a higher quality{cheapest}."
    else:
        best = _SHORT[found.best]
        behind = found.behind[found.strategy]
        yield f"{best[0].upper()}{best[1:]} has the highest quality, {in_words(found.figures[found.best])}."
        if behind.gain < -_EQUAL:
            yield f"The difference, {behind}, could be chance."
    plain: tuple[Name, ...] = ("self_route", "rag")
    others = [f"{_SHORT[name]} {in_words(found.figures[name])}" for name in plain if name != found.strategy]
    yield f"For comparison: {', '.join(others)}."
    cheaper, behind = found.figures["calibrated"], found.behind["calibrated"]
    if behind.is_distinguishable and cheaper.token_share < found.figures[found.strategy].token_share:
        yield (
            f"If that is too expensive: the calibrated rule, within Self-Route's tokens, has "
            f"{in_words(found.figures['calibrated'])}, {behind} from the best."
        )
    yield f"This rests on {found.counts}."
    if "calibrated" in found.strategy:
        yield "The figures of a calibrated rule come from documents that did not take part in the choice."
    if found.few_documents:
        yield f"With fewer than {FEWEST_DOCUMENTS} documents, this says nothing about other documents."
    yield _break_even_text(found.break_even)


def words_of(recommendation: Recommendation) -> str:
    """Return the same, a sentence on each line."""
    return "\n".join(sentences_of(recommendation))


def in_words(figures: Figures) -> str:
    """Return figures with their interval: "84.1 [78.2, 89.7] for 30 % of the tokens"."""
    text = str(figures)
    if figures.low is None or figures.high is None:
        return text
    return text.replace(" for ", f" [{100 * figures.low:.1f}, {100 * figures.high:.1f}] for ", 1)


def _break_even_text(found: BreakEven) -> str:
    yours = "" if found.own is None else f"; here {100 * found.own:.0f} % are"
    if found.share is None:
        here = yours and f"{yours} unanswerable"
        return f"The break-even share of unanswerable questions needs questions of both kinds{here}."
    between = ""
    if found.low is not None and found.high is not None and found.low < found.high:
        between = f" [{100 * found.low:.0f}, {100 * found.high:.0f}]"
    if found.share <= 0:
        return f"Self-Route is not better than RAG, however few questions are unanswerable{between}{yours}."
    if found.share >= 1:
        return f"Self-Route is better than RAG, however many questions are unanswerable{between}{yours}."
    share = f"{100 * found.share:.0f} %{between}"
    return f"Self-Route is better than RAG if fewer than {share} of the questions are unanswerable{yours}."
