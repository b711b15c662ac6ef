"""A calibration: the best time to escalate on some questions, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from selfroute.errors import ConfigurationError

Escalate = Literal["never", "declined", "graded"]
Strategy = Literal["rag", "self_route", "sections", "graded", "graded_sections", "long_context"]
STRATEGIES: tuple[Strategy, ...] = ("rag", "self_route", "sections", "graded", "graded_sections", "long_context")
"""The strategies that a calibration is compared with: those that need none."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a strategy.

    Attributes:
        quality: The mean value of its answers; with wrong answers at a price of 1, their mean quality, from 0 to 1.
        low: The lower end of its 95 % interval; None if there is none.
        high: The upper end.
        token_share: Its tokens as a share of the long context's.
        dollars: What a question costs on average; None if a price is not known.
    """

    quality: float
    low: float | None
    high: float | None
    token_share: float
    dollars: float | None

    def __str__(self) -> str:
        """Return them in words: "85.4 for 42 % of the tokens"."""
        dollars = f" ({dollars_text(self.dollars)} a question)" if self.dollars is not None else ""
        return f"{100 * self.quality:.1f} for {100 * self.token_share:.0f} % of the tokens{dollars}"


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one strategy is than another on the same questions.

    Attributes:
        gain: The mean difference of the values, from -1 to 1 where wrong answers have a price of 1.
        low: The lower end of its 95 % interval; None if all differences are equal, or there is one unit.
        high: The upper end.
        token_share: How many tokens more it needs, as a share of the long context's.
        dollars: How many dollars more a question costs on average; None if a price is not known.
    """

    gain: float
    low: float | None
    high: float | None
    token_share: float
    dollars: float | None

    @property
    def is_distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = (self.gain if end is None else end for end in (self.low, self.high))
        return low > 0 or high < 0

    def __str__(self) -> str:
        """Return the gain in points with its interval: "+4.9 [+1.2, +9.3]"."""
        between = "" if self.low is None or self.high is None else f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f"{100 * self.gain:+.1f}{between}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of questions and documents behind a calibration.

    Attributes:
        questions: The number of questions.
        documents: The number of documents.
        declined: How many plain drafts declined.
        unanswerable: How many questions are known to have no answer in the documents.
    """

    questions: int
    documents: int
    declined: int
    unanswerable: int

    @property
    def basis(self) -> str:
        """The questions and documents, in words."""
        questions, documents = (
            f"{count:,} {name}{'' if count == 1 else 's'}"
            for count, name in ((self.questions, "question"), (self.documents, "document"))
        )
        return f"{questions} on {documents}"

    def __str__(self) -> str:
        """Return all of it in words."""
        return (
            f"{self.basis}. Declined drafts: {self.declined:,}. Questions known to be unanswerable: "
            f"{self.unanswerable:,}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The best time to escalate on some questions.

    Attributes:
        escalate: `"never"`; `"declined"`: every decline, as published; `"graded"`: by the draft's two numbers.
        doubt_below: The bound of the confidence; None unless graded.
        stop_below: The bound of the prospect; None unless graded.
        sections: The tokens of the sections that are read before whole documents, as in a chain; None for no sections.
        token_share: The budget that was asked for; None for Self-Route's.
        price_of_wrong: What a wrong answer costs; what a decline costs is 1 at most.
        counts: How much it rests on.
        figures: The figures of this choice on documents that did not take part in it.
        gains: How much better that is than each plain strategy.
        notes: Its limits, in words.
        model: The model that answered; None if it is not known.
        prompts: The hash of the prompts of the draft and of the long context (see `hash_of`); None if they were not
            given.
    """

    escalate: Escalate
    doubt_below: int | None = None
    stop_below: int | None = None
    sections: int | tuple[int, ...] | None = None
    token_share: float | None = None
    price_of_wrong: float = 1.0
    counts: Counts
    figures: Figures
    gains: Mapping[str, Gain] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()
    model: str | None = None
    prompts: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of a chain or engine that it sets, besides whether to escalate at all."""
        graded = {"answerability": "graded", "doubt_below": self.doubt_below, "stop_below": self.stop_below}
        sections = {"sections": self.sections} if self.sections else {}
        return {**(graded if self.escalate == "graded" else {}), **sections}

    def check_prompts(self, *prompts: str) -> None:
        """Refuse prompts that it was not made for.

        Args:
            prompts: The draft's prompt and that of the long context, as templates.

        Raises:
            ConfigurationError: The prompts differ from those whose hash it keeps.
        """
        if self.prompts is not None and self.prompts != hash_of(*prompts):
            msg = (
                "this calibration was made with other prompts, so its bounds mean nothing here: evaluate with the "
                "prompts of this chain, and calibrate again"
            )
            raise ConfigurationError(msg)


def hash_of(*prompts: str) -> str:
    """Return the hash of some prompts, in their order."""
    import hashlib  # noqa: PLC0415 - only calibrations need it, and a chain without one imports this module, too

    joined = b"".join(b"%d:%b" % (len(each), each) for each in (prompt.encode() for prompt in prompts))
    return hashlib.sha256(joined).hexdigest()


def tokens_text(sections: int | Sequence[int] | None) -> str:
    """Return numbers of sections in words: "4,000", "4,000 and then 16,000"; empty if there are none."""
    each = (sections,) if isinstance(sections, int) else sections or ()
    return " and then ".join(f"{tokens:,}" for tokens in each)


def dollars_text(dollars: float) -> str:
    """Return an amount with three significant digits: "$0.00213"."""
    return f"${dollars:.3g}" if dollars >= 1e-4 else f"${dollars:.2e}"  # noqa: PLR2004
