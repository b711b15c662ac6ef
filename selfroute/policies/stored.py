"""Keep a calibration as JSON, and read it back strictly: unknown or malformed files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from selfroute.errors import ConfigurationError, InputError
from selfroute.kept import parse
from selfroute.policies.calibration import STRATEGIES, Calibration, Counts, Figures, Gain
from selfroute.private import write

VERSION = 2
_NO_CALIBRATION = "this is not a calibration, {}: make one with `selfroute calibrate FOLDER`"
_LARGEST = 1e15  # also keeps out infinity, and what is not a number

Json = Mapping[str, Any]
Check = Callable[[Any], bool]


def to_json(calibration: Calibration) -> str:
    """Return a calibration as JSON text."""
    return json.dumps({"version": VERSION, **asdict(calibration)}, indent=2, allow_nan=False) + "\n"


def from_json(text: str) -> Calibration:
    """Return the calibration that a JSON text holds.

    Raises:
        ConfigurationError: It is not one of this version, or not well-formed; the message says where.
    """
    try:
        found = parse(text, "the calibration")
    except InputError as error:
        _refuse("it is not JSON", error)
    if not isinstance(found, dict) or "version" not in found:
        _refuse("it has no version")
    version = found.pop("version")
    if type(version) is not int or version != VERSION:
        msg = f"this calibration has version {version!r}, and this release reads version {VERSION}: calibrate again"
        raise ConfigurationError(msg)
    values = _checked(found, _CALIBRATION, "it")
    values["counts"] = Counts(**_checked(values["counts"], _COUNTS, "counts"))
    values["figures"] = Figures(**_checked(values["figures"], _FIGURES, "figures"))
    values["gains"] = {
        name: Gain(**_checked(gain, _GAIN, f"gains.{name}")) for name, gain in _gains(values["gains"]).items()
    }
    values["notes"] = tuple(values["notes"])
    if isinstance(values["sections"], list):
        values["sections"] = tuple(values["sections"])
    if {values["doubt_below"] is not None, values["stop_below"] is not None} != {values["escalate"] == "graded"}:
        _refuse("it must have both bounds if it escalates by grades, and otherwise neither")
    if values["escalate"] == "never" and values["sections"] is not None:
        _refuse("a rule that never escalates reads no sections")
    return Calibration(**values)


def save(calibration: Calibration, path: str | Path) -> None:
    """Write a calibration to a file.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    try:
        write(Path(path), to_json(calibration))
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror}): name a file in a folder that exists"
        raise ConfigurationError(msg) from error


def load(path: str | Path) -> Calibration:
    """Read a calibration from a file.

    Raises:
        ConfigurationError: The file cannot be read, or is not a calibration of this version.
    """
    try:
        return from_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror}): make it with `selfroute calibrate FOLDER --out {path}`"
        raise ConfigurationError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path}: {_NO_CALIBRATION.format('it is not JSON')}"
        raise ConfigurationError(msg) from error
    except ConfigurationError as error:
        msg = f"{path}: {error}"
        raise ConfigurationError(msg) from error


def _refuse(why: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigurationError(_NO_CALIBRATION.format(why)) from cause


def _checked(found: Any, checks: Mapping[str, Check], where: str) -> dict[str, Any]:
    """Return an object with exactly these keys, each with a valid value."""
    if not isinstance(found, dict):
        _refuse(f"{where} is not an object")
    if wrong := sorted(set(found) ^ set(checks)):
        _refuse(f"{where} has missing or unknown keys: {', '.join(map(repr, wrong))}")
    for name, check in checks.items():
        if not check(found[name]):
            _refuse(f"{where} has an invalid value of {name!r}, {found[name]!r:.60}")
    return dict(found)


def _gains(found: Json) -> Json:
    if unknown := sorted(set(found) - set(STRATEGIES)):
        _refuse(f"gains has unknown keys: {', '.join(map(repr, unknown))}")
    return found


def _number(low: float = -_LARGEST, high: float = _LARGEST, *, above: bool = False) -> Check:
    return lambda value: type(value) in (int, float) and low <= value <= high and not (above and value == low)


def _whole(low: int, high: float = _LARGEST) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _sections(value: Any) -> bool:
    """Return whether a value is a number of tokens, or ascending ones, as the option of that name takes them."""
    each = value if isinstance(value, list) else [value]
    return bool(each) and all(map(_whole(1), each)) and each == sorted(set(each))


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


_COUNTS: Mapping[str, Check] = {
    "questions": _whole(1),
    "documents": _whole(1),
    "declined": _whole(0),
    "unanswerable": _whole(0),
}
_FIGURES: Mapping[str, Check] = {
    "quality": _number(),
    "low": _optional(_number()),
    "high": _optional(_number()),
    "token_share": _number(0),
    "dollars": _optional(_number(0)),
}
_GAIN: Mapping[str, Check] = {
    "gain": _number(),
    "low": _optional(_number()),
    "high": _optional(_number()),
    "token_share": _number(),
    "dollars": _optional(_number()),
}
_CALIBRATION: Mapping[str, Check] = {
    "escalate": lambda value: value in ("never", "declined", "graded"),
    "doubt_below": _optional(_whole(0, 100)),
    "stop_below": _optional(_whole(0, 100)),
    "sections": _optional(_sections),
    "token_share": _optional(_number(0, 1, above=True)),
    "price_of_wrong": _number(0),
    "counts": _object,
    "figures": _object,
    "gains": _object,
    "notes": _texts,
    "model": _optional(_text),
    "prompts": _optional(_text),
}
