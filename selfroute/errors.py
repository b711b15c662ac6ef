"""The errors that Self-Route raises itself. Errors of a framework or a provider pass through unchanged."""

from __future__ import annotations

from functools import partial
from typing import Any


class SelfRouteError(Exception):
    """The base class of all errors that Self-Route raises itself."""


class ConfigurationError(SelfRouteError, ValueError):
    """A combination of options or parts cannot work; the message says what to change."""


class InputError(SelfRouteError, ValueError):
    """The input holds no usable question."""


class ReplyError(SelfRouteError, TypeError):
    """A function or component supplied by the user returned something of the wrong type."""


class DocumentNotFoundError(SelfRouteError, LookupError):
    """A retrieved passage names a document that does not exist."""


class NoReplyError(ReplyError):
    """A step ended without a reply that could be judged: it was filtered, refused, cut off, or a tool call.

    This says nothing about the documents, so it is not a decline. A retry or a fallback of the framework may help.

    Attributes:
        step: The step, `"rag"`, `"wider"` or `"long_context"`.
        finish_reason: How it ended, in the provider's own word; None if it says nothing.
        refusal: The text by which the provider or the model refused; empty if there was none.
    """

    def __init__(self, *message: str, step: str = "", finish_reason: str | None = None, refusal: str = "") -> None:
        """Note how the step ended."""
        super().__init__(*message)
        self.step, self.finish_reason, self.refusal = step, finish_reason, refusal

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the attributes, too."""
        how = partial(type(self), step=self.step, finish_reason=self.finish_reason, refusal=self.refusal)
        return how, self.args


class CopyError(SelfRouteError, TypeError):
    """A part cannot be copied or pickled, so neither can what it belongs to; the message names it."""
