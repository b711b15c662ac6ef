"""The errors that Self-Route raises itself. Errors of a framework or a provider pass through unchanged."""


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


class CopyError(SelfRouteError, TypeError):
    """A part cannot be copied or pickled, so neither can what it belongs to; the message names it."""
