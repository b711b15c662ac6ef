"""The errors that Self-Route raises itself. Errors of a framework or a provider pass through unchanged."""

from __future__ import annotations

from functools import partial
from typing import Any


class SelfRouteError(Exception):
    """The base class of all errors that Self-Route raises itself."""


class ConfigurationError(SelfRouteError, ValueError):
    """A combination of options or parts cannot work; the message says what to change."""


class InputError(SelfRouteError, ValueError):
    """The input contains no usable question."""


class ReplyError(SelfRouteError, TypeError):
    """A function or component supplied by the user returned something of the wrong type."""


class DocumentNotFoundError(SelfRouteError, LookupError):
    """A retrieved passage names a document that does not exist."""


class NoReplyError(ReplyError):
    """A step ended without a reply that could be judged: it was filtered, refused, cut off, or a tool call.

    This says nothing about the documents, so it is not a decline. A retry or a fallback of the framework may help.

    Attributes:
        step: The step, `"rag"`, `"sections"` or `"long_context"`.
        finish_reason: The provider's own word for how it ended; None if the provider does not say.
        refusal: The text of the refusal by the provider or the model; empty if there was no text.
    """

    def __init__(self, *message: str, step: str = "", finish_reason: str | None = None, refusal: str = "") -> None:
        """Note how the step ended."""
        super().__init__(*message)
        self.step, self.finish_reason, self.refusal = step, finish_reason, refusal

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the attributes, too."""
        how = partial(type(self), step=self.step, finish_reason=self.finish_reason, refusal=self.refusal)
        return how, self.args


class UnknownOptionError(ConfigurationError, TypeError):
    """There is no option of that name; the message has the nearest one."""
