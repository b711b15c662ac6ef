"""Reads results in the file formats of the providers' batch interfaces.

Nothing of a reply is understood here: a result holds the body that the provider's own client is answered with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from selfroute.errors import InputError
from selfroute_workbench.command.batch_files import Json
from selfroute_workbench.kept import parse

_ATTEMPT = "-"
_INVALID_TYPES = {"invalid_request_error", "request_too_large"}  # Anthropic's
_STATUSES = range(100, 600)
_INVALID_ARGUMENT = 3  # among the codes of google.rpc


@dataclass(frozen=True, slots=True)
class Result:
    """What a provider gave back for a request.

    Attributes:
        id: The id that the request was written with.
        status: The HTTP status that the client would have received.
        body: The body that it would have received.
    """

    id: str
    status: int
    body: Json

    @property
    def digest(self) -> str:
        """The digest of its request."""
        return digest_of(self.id)

    @property
    def attempt(self) -> int:
        """How often the request had been asked, with this time.

        Raises:
            ValueError: Its id has no number.
        """
        return int(self.id.partition(_ATTEMPT)[2])

    @property
    def replied(self) -> bool:
        """Whether there is a reply of the model."""
        return self.status == HTTPStatus.OK


def id_of(digest: str, attempt: int) -> str:
    """Return the id of a request that is asked for the given time, from 1."""
    return f"{digest}{_ATTEMPT}{attempt}"


def digest_of(name: str) -> str:
    """Return the digest in the id of a request."""
    return name.partition(_ATTEMPT)[0]


@dataclass(frozen=True, slots=True)
class Results:
    """What a file holds: results, the numbers of lines that cannot be read, and whether the last one is cut off."""

    results: Sequence[Result]
    unreadable: Sequence[int]
    cut_off: bool


def read_results(path: Path) -> Results:
    """Read a file of results, in any order.

    Raises:
        InputError: It cannot be read, or holds no results.
    """
    results, unreadable, number, line = list[Result](), list[int](), 0, b""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                found = _read(line)
                results += [found] if found else []
                unreadable += [number] if line.strip() and not found else []
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    if not results:
        msg = f"{path} holds no results: give the file that the provider made of a batch, one JSON object a line"
        raise InputError(msg)
    cut_off = bool(unreadable) and unreadable[-1] == number and not line.endswith(b"\n")
    return Results(results, unreadable[:-1] if cut_off else unreadable, cut_off)


def _read(line: bytes) -> Result | None:
    """Read a line; None if that is impossible."""
    try:
        row = parse(line, "")
        result = _of_gemini(row) if "key" in row else _of_anthropic(row) if "result" in row else _of_openai(row)
        asdict(result)  # as it is kept: what is nested too deeply cannot be
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return result if result.status in _STATUSES else None


def _of_openai(row: Json) -> Result:
    response, error = row.get("response"), row.get("error")
    if error or not response:  # such as batch_expired
        failed = error or {}
        return _failed(row["custom_id"], {"error": {"message": failed["message"], "code": failed.get("code")}})
    return Result(str(row["custom_id"]), int(response["status_code"]), dict(response["body"]))


def _of_anthropic(row: Json) -> Result:
    result, name = row["result"], row["custom_id"]
    kind = result["type"]
    if kind == "succeeded":
        return Result(str(name), HTTPStatus.OK, dict(result["message"]))
    if kind != "errored":  # canceled or expired
        why = f"the request {'expired' if kind == 'expired' else f'was {kind}'} before it was processed"
        return _failed(name, {"type": "error", "error": {"type": kind, "message": why}})
    error = result["error"].get("error", result["error"])
    return _failed(name, {"type": "error", "error": error}, invalid=error["type"] in _INVALID_TYPES)


def _of_gemini(row: Json) -> Result:
    if response := row.get("response"):
        return Result(str(row["key"]), HTTPStatus.OK, dict(response))
    error = row.get("error") or row["status"]
    code = error.get("code")
    invalid = code in {_INVALID_ARGUMENT, HTTPStatus.BAD_REQUEST} or error.get("status") == "INVALID_ARGUMENT"
    status = "INVALID_ARGUMENT" if invalid else "INTERNAL"
    body = {"error": {"code": _status(invalid=invalid), "message": error["message"], "status": status}}
    return _failed(row["key"], body, invalid=invalid)


def _failed(name: Any, body: Json, *, invalid: bool = False) -> Result:
    return Result(str(name), _status(invalid=invalid), body)


def _status(*, invalid: bool) -> int:
    return int(HTTPStatus.BAD_REQUEST if invalid else HTTPStatus.INTERNAL_SERVER_ERROR)
