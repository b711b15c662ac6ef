"""The findings of a check, as data and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any, Literal

Subject = Literal["source", "wall", "document", "window", "prices", "prompt"]
Remark = tuple[bool | None, str, str]
"""What a finding holds in addition to its subject."""
_MARKS = {True: "ok", False: "PROBLEM", None: "?"}
_WIDTH = 110  # characters of a printed line
_INDENT = " " * 19
_BEFORE_ADVICE = f"{_INDENT}-> "


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one part of a pipeline.

    Attributes:
        subject: One of `"source"` (do the passages name their documents?), `"wall"` (may the last step read them?),
            `"document"` (was one rebuilt completely?), `"window"` (does it fit the model?), `"prices"` (what does a
            question cost?) and `"prompt"` (does it show the question and ask for the refusal?).
        ok: False if something must be changed; None if it could not be tried, or is not known.
        message: What was found.
        advice: What to do about it; empty if there is nothing to do.
    """

    subject: Subject
    ok: bool | None
    message: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        found = _wrapped(f"{_MARKS[self.ok]:<9}{self.subject:<10}{self.message}")
        return f"{found}\n{_wrapped(_BEFORE_ADVICE + self.advice)}" if self.advice else found


class Findings(tuple[Finding, ...]):
    """The findings of a check, one for each subject, in a fixed order. `print` shows them as a list.

    Example:
        ```python
        from selfroute.checking import Finding, Findings

        findings = Findings([Finding("window", None, "the model does not report it", "set max_context_tokens")])
        assert findings.ok
        print(findings)
        ```
    """

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """Whether nothing must be changed; findings that could not be tried do not count."""
        return not any(finding.ok is False for finding in self)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


def _wrapped(text: str) -> str:
    return fill(text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
