"""Judge a whole reply of the last step by a wider rule: a denial anywhere in it counts.

The model has read whole documents, after the first step declined, and likes to describe what they hold before it says
that they do not hold the answer, so that the opening tells less. Each sentence is looked through by rules that need not
begin with it; what denies a fact and not the answer is no denial here either. Nothing comes after this verdict, so a
denial is read to the end of its sentence, which may still answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from selfroute.answerability.ending import ANSWERED, Verdict
from selfroute.answerability.gate import declines
from selfroute.answerability.spoken import said_in
from selfroute.languages.words import Refusal, compile_refusal, fold, mark_of, word_pattern

if TYPE_CHECKING:
    from selfroute.languages.automaton import State


def declines_anywhere(reply: str, refusal: str = "unanswerable") -> Verdict:
    """Return the verdict on a complete reply to whole documents: a denial anywhere in it counts.

    It declines if it is empty, if it or one of its sentences is the refusal, or if a sentence says, also in its middle,
    that the text does not tell, and does not answer after that. The time that this takes grows with the length of the
    reply.

    Args:
        reply: The reply of the model.
        refusal: The text that the prompt asks the model to write if it cannot answer.

    Examples:
        >>> declines_anywhere("Kew is a garden. The report does not mention its owner.").evidence
        'The report does not mention'
        >>> bool(declines_anywhere("We do not provide refunds after 30 days."))
        False
        >>> bool(declines_anywhere("The report does not mention any fatalities, only 3 injuries."))
        False
    """
    verdict = declines(reply, refusal)
    if verdict and verdict.signal != "phrase":
        return verdict
    return _denial(said_in(reply), compile_refusal(refusal), opening=verdict or None) or ANSWERED


def _denial(text: str, refusal: Refusal, *, opening: Verdict | None) -> Verdict | None:
    """Return the verdict on the first sentence that denies and does not answer after that; None if no sentence does.

    After "No" it answers that the text does not mention something, but not if it does not say whether or who.

    Args:
        text: The reply.
        refusal: The refusal.
        opening: The verdict on the opening of the reply, if that denies.
    """
    from selfroute.languages.grammars import grammar  # noqa: PLC0415 - the rules take long to load
    from selfroute.languages.notation import NOTHING  # noqa: PLC0415

    rules = grammar()
    denying, answering, telling = rules.denials, rules.answers, NOTHING
    no = _matches(text, 0, rules.no)
    at, begins, found = 0, 0, None if no else opening
    if found:
        at = text.index(found.evidence) + len(found.evidence)
        denying, answering, telling = NOTHING, NOTHING, rules.tells
    for start, end, word in _words(text, at):
        if denying is rules.denials and not found:
            begins = start
            denying = NOTHING if no and not _matches(text, start, rules.asks) else denying
            if word != "." and (ended := _is_refusal(text, start, refusal)):
                return Verdict(declined=True, signal="sentinel", evidence=text[start:ended])
        answering, telling = answering.after(word), telling.after(word)
        if answering.matched or telling.matched:
            found, denying, telling = None, NOTHING, NOTHING
        elif not found:
            denying = denying.after(word)
            if denying.matched:
                found = Verdict(declined=True, signal="phrase", evidence=text[begins:end])
                telling = rules.tells.after(word) if start == end else rules.tells
        if found and answering.dead and telling.dead:
            return found
        if word == "." and not found:
            denying, answering = rules.denials, rules.answers
    return found


def _matches(text: str, at: int, state: State) -> bool:
    """Return whether rules match the sentence that begins at a position."""
    for _, _, word in _words(text, at):
        state = state.after(word)
        if state.matched or state.dead or word == ".":
            break
    return state.matched


def _words(text: str, at: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield the words and marks of a text from a position on, each with where it begins and ends."""
    last = ""
    for found in word_pattern().finditer(text, at):
        start, end = found.span()
        if mark := mark_of(text[at:start], last=last, following=found[0], final=True):
            yield at, at, mark
        last = fold(found[0])
        yield start, end, last
        at = end
    yield at, at, "."


def _is_refusal(text: str, start: int, refusal: Refusal) -> int | None:
    """Return where the refusal ends that is the whole sentence beginning at `start`; None if the sentence is not it."""
    end = refusal.end_in(text, start)
    if end is None or end <= start:
        return None
    after = text[end : end + 200]
    following = next(_words(after), None)
    return end if (following and following[2] == ".") or refusal.ends_reply(after, 0) else None
