"""The errors of Self-Route. What a framework or a provider raises passes through untouched."""


class SelfRouteError(Exception):
    """Root of every error that this project raises itself."""


class ConfigurationError(SelfRouteError, ValueError):
    """A part was put together in a way that cannot work; the message says what to do."""


class InputError(SelfRouteError, ValueError):
    """A call was given something that is no question."""


class ReplyError(SelfRouteError, TypeError):
    """A part that the user supplied returned something of the wrong type."""


class DocumentNotFoundError(SelfRouteError, LookupError):
    """A retrieved passage names a document that is not there."""
