"""What a question's models were sent: nothing new is what its pieces cover together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from selfroute.documents.sent import Sent

WORDS = [f"word{number}" for number in range(200)]
TEXT = " ".join(WORDS)


def sent(*pieces: str) -> Sent:
    made = Sent()
    made.add(pieces)
    return made


@examples(50)
@given(st.lists(st.integers(0, 180), min_size=1, max_size=12), st.integers(5, 60))
def test_a_text_was_sent_where_each_word_of_it_was(starts: list[int], length: int) -> None:
    pieces = [WORDS[start : start + length] for start in starts]
    covered = {word for piece in pieces for word in piece}
    made = sent(*map("\n".join, pieces))
    assert made.has_all([TEXT]) is (covered == set(WORDS))
    assert made.has_all([" ".join(piece) for piece in pieces])
    whole = sent(*[" ".join(WORDS[max(0, at - 5) : at + length]) for at in range(0, 200, length)])
    assert whole.has_all([TEXT])


@pytest.mark.parametrize(
    ("pieces", "text", "known"),
    [
        (["The pump was repaired at nine."], "The pump was repaired at nine.", True),
        (["The pump was  repaired\nat nine."], "The pump\twas repaired at nine.", True),
        (["The pump was repaired at nine."], "The pump was repaired at nine. * * *", True),
        (["The pump was repaired at nine."], "The pump was repaired at nine. ✓", False),
        (["The pump was repaired at nine."], "The pump was repaired at nine. No.", False),
        (["Yes."], "Yes. The pump was repaired.", False),
        ([], "The pump.", False),
        (["The pump was repaired at nine."], "", True),
    ],
)
def test_what_counts_as_new(pieces: list[str], text: str, *, known: bool) -> None:
    assert sent(*pieces).has_all([text]) is known


def test_a_text_that_repeats_itself_without_end_is_new() -> None:
    """So that looking for its pieces takes no time that matters."""
    dots = "." * 20_000
    form = f"Name {'_' * 200_000} Date {'_' * 200_000}"
    assert sent(*(form[at : at + 4_000] for at in range(0, 100_000, 4_000))).has_all([form]) is False
    assert sent(dots).has_all([dots, dots + "."]) is True
