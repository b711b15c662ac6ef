"""PassKey's two variants (section 5.4, Table 3), which show how much depends on the wording of the question."""

from __future__ import annotations

import random
import re
import string
from dataclasses import replace

from selfroute.errors import InputError
from selfroute_workbench.evaluation.questions import Question

SPECIAL_TOKEN = "passkey-special-token"  # noqa: S105 - the name of a data set
LARGER = "passkey-larger"

_KEY = re.compile(r"The pass key is (?P<key>[0-9]+)\. Remember it\. (?P=key) is the pass key\.")


def special_token(question: Question) -> Question:
    """Return the question in words that are not in the text (variant 1)."""
    return replace(question, dataset=SPECIAL_TOKEN, question="What is the special token hidden inside the texts?")


def larger(question: Question) -> Question:
    """Hide a second key in another line of the text, and ask which one is larger (variant 2).

    The paper gives no details. Here the second key has as many digits and the same sentences, on a new line that is not
    next to the first one's. The question's id seeds the draw of key and line, so that they are the same in every run.

    Raises:
        InputError: Its document has no pass key.
    """
    hidden = _KEY.search(question.document or "")
    if hidden is None:
        msg = f"{question.dataset} {question.id}: the document has no 'The pass key is ...'; is it InfiniteBench's?"
        raise InputError(msg)
    draw = random.Random(question.id)  # noqa: S311 - not a secret, and the same in every run
    first = second = hidden["key"]
    while second == first:
        second = "".join(draw.choices(string.digits, k=len(first)))
    lines = hidden.string.split("\n")
    line = hidden.string.count("\n", 0, hidden.start())
    apart = [place for place in range(len(lines) + 1) if place not in (line, line + 1)]
    place = draw.choice(apart or [line, line + 1])
    lines.insert(place, f"The pass key is {second}. Remember it. {second} is the pass key.")
    if place <= line:
        first, second = second, first
    return replace(
        question,
        dataset=LARGER,
        question="Which passkey is larger? First or second?",
        answers=("First" if first > second else "Second",),
        metric="first_or_second",
        document="\n".join(lines),
    )
