"""Describe an error in one line, in the provider's own words and without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b")
_SECRET_VARIABLE = re.compile(r"\w*(?:_KEY|_TOKEN|SECRET|PASSWORD|PASSWD|_PWD)", re.IGNORECASE)
_MAX_LENGTH = 300  # characters of a message
_MIN_SECRET_LENGTH = 8  # shorter values of variables may be ordinary words

_HIDDEN = "***"
_VALUE = r"""(?:"[^"]*"|'[^']*'|\\?["']?[^\s;&"']{%d,})"""  # in quotes, or up to the next separator
_IS = r"""\\?["']?\s*[=:]\s*"""
_KEYS = (  # each service begins its keys in its own way
    r"(?:sk|pk|rk|gsk|xai|pplx|nvapi|tvly|lsv2|glpat|r8)[-_][\w*-]{8,}"
    r"|(?:gh[pousr]|github_pat|hf|npm|dop_v1)_[A-Za-z0-9_*]{16,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9*]{12,}"
    r"|AIza[\w*-]{12,}|ya29\.[\w*.-]{8,}|GOCSPX-[\w*-]{8,}"
    r"|xox[a-z]-[\w*-]{8,}|xapp-[\w*-]{8,}|dapi[0-9a-f]{32}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"  # a JSON web token
)
_LABELS = (
    r"(?:api[_ -]?key(?:\s+provided)?|(?:access|account|client|private|shared|signing)[_ -]?(?:access[_-]?)?key"
    r"|client[_ -]?id[_ -]?secret|secret|credentials?|token|signature)"
)
_SECRETS = [  # what stands before a secret is kept
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), ""),
    (re.compile(r"(://)(?:[^\s/?#]{0,400}|[^\s/@:]{0,100}:(?!\d+/)[^\s@]{0,300})(?=@)"), r"\1"),
    (re.compile(rf"(\bauthorization{_IS})(?:\"[^\"]*\"|'[^']*'|(?:[\w-]+[ ]+)?[^\s\"',]+)", re.IGNORECASE), r"\1"),
    (re.compile(r"(\bbearer\s+)(?!token|auth)[\w.~+/*=-]+", re.IGNORECASE), r"\1"),
    (re.compile(rf"((?:password|passwd|passphrase|\bpwd){_IS}){_VALUE % 1}", re.IGNORECASE), r"\1"),
    (re.compile(rf"({_LABELS}{_IS}){_VALUE % 6}", re.IGNORECASE), r"\1"),
    (
        re.compile(
            r"([?&;](?:[\w.-]*(?:key|sig|token|signature|credential|secret|password)|code|auth|pass)=)[^&\s\"'<>;]+",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (re.compile(rf"\b(?:{_KEYS})"), ""),
]


def one_line(error: BaseException) -> str:
    """Describe an error in one line: the provider's message if there is one, and the error's type."""
    chain = list(_chain(error))
    text = next(filter(None, map(_provider_message, chain)), str(error))
    root = chain[-1]  # such as "connection refused"
    if _is_of_transport(root) and str(root) not in text:
        text = f"{text.rstrip('.')}: {root}"
    text = " ".join(without_secrets(text).split())
    text = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
    return f"{text} ({type(error).__name__})" if text else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without secrets; its type if it has no message."""
    return next(iter(without_secrets(str(error)).strip().splitlines()), type(error).__name__)


def without_secrets(text: str) -> str:
    """Return the text with secrets replaced by stars: those in the environment, and anything that looks like one.

    These are the keys and tokens of services, passwords, the credentials in addresses and connection strings, and what
    is named as a secret. What stands around them stays.
    """
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.fullmatch(name) and len(value) >= _MIN_SECRET_LENGTH:
            text = text.replace(value, _HIDDEN)
    for secret, before in _SECRETS:
        text = secret.sub(before + _HIDDEN, text)
    return text


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, its cause, the cause of that, and so on, each once, but for what `raise ... from None` hides."""
    seen = list[BaseException]()
    while error is not None and not any(error is one for one in seen):  # `raise error from error` is its own cause
        seen.append(error)
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_of_transport(error: BaseException) -> bool:
    """Return whether an error comes from below the provider's client: from the system, or from httpx."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in {"httpcore", "httpx"}


def _provider_message(error: BaseException) -> str | None:
    """Return the provider's own message if its client has it: OpenAI's in `body`, Google's in `message`."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else getattr(error, "message", None)
    return message if isinstance(message, str) else None
