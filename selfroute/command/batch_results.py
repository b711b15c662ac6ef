"""Reads results in the file formats of the providers' batch interfaces.

Nothing of a reply is understood here: a result holds the body that the provider's own client is answered with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from selfroute.command.batch_files import Json
from selfroute.errors import InputError
from selfroute.kept import parse

_ATTEMPT = "-"
_ANTHROPIC_STATUS = {"invalid_request_error": HTTPStatus.BAD_REQUEST, "request_too_large": HTTPStatus.BAD_REQUEST}
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
                found = _read(line) if line.strip() else ()
                results += found or ()
                unreadable += [number] if found is None else []
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    if not results:
        msg = f"{path} holds no results: give the file that the provider made of a batch, one JSON object a line"
        raise InputError(msg)
    cut_off = bool(unreadable) and unreadable[-1] == number and not line.endswith(b"\n")
    return Results(results, unreadable[:-1] if cut_off else unreadable, cut_off)


def _read(line: bytes) -> tuple[Result] | None:
    try:
        result = _result(parse(line, ""))
        asdict(result)  # as it is kept: what is nested too deeply cannot be
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (result,) if result.status in _STATUSES else None


def _result(line: Json) -> Result:
    if "key" in line:
        return _of_gemini(line)
    return _of_anthropic(line) if "result" in line else _of_openai(line)


def _of_openai(line: Json) -> Result:
    response, error = line.get("response"), line.get("error")
    if error or not response:  # such as batch_expired
        failed = error or {}
        return _failed(line["custom_id"], {"error": {"message": failed["message"], "code": failed.get("code")}})
    return Result(str(line["custom_id"]), int(response["status_code"]), dict(response["body"]))


def _of_anthropic(line: Json) -> Result:
    result, name = line["result"], line["custom_id"]
    if result["type"] == "succeeded":
        return Result(str(name), HTTPStatus.OK, dict(result["message"]))
    if result["type"] != "errored":  # canceled or expired
        told = {"type": result["type"], "message": f"the request {_was(result['type'])} before it was processed"}
        return _failed(name, {"type": "error", "error": told})
    error = result["error"]
    told = error.get("error", error)
    status = _ANTHROPIC_STATUS.get(told["type"], HTTPStatus.INTERNAL_SERVER_ERROR)
    return _failed(name, {"type": "error", "error": told}, status)


def _of_gemini(line: Json) -> Result:
    if response := line.get("response"):
        return Result(str(line["key"]), HTTPStatus.OK, dict(response))
    error = line.get("error") or line["status"]
    code = error.get("code")
    invalid = code in {_INVALID_ARGUMENT, HTTPStatus.BAD_REQUEST} or error.get("status") == "INVALID_ARGUMENT"
    status = HTTPStatus.BAD_REQUEST if invalid else HTTPStatus.INTERNAL_SERVER_ERROR
    told = {"code": status, "message": error["message"], "status": "INVALID_ARGUMENT" if invalid else "INTERNAL"}
    return _failed(line["key"], {"error": told}, status)


def _was(how: str) -> str:
    return "expired" if how == "expired" else f"was {how}"


def _failed(name: Any, body: Json, status: int = HTTPStatus.INTERNAL_SERVER_ERROR) -> Result:
    return Result(str(name), int(status), body)
