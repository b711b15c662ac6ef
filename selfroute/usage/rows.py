"""Read what questions used from plain JSON: so the figures of many processes add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import Any

from selfroute.errors import InputError
from selfroute.usage.counts import FREE, STEPS, UNPRICED, Cost, StepUsage, Usage
from selfroute.usage.entry import Entry

_NO_USAGE = "usage must be as a chain or an engine returns it, also after json.dumps and json.loads"
MOST = 10**15
"""What is more is neither a number of tokens nor of dollars or seconds, and might not fit a float."""
_WRONG = (AttributeError, IndexError, KeyError, TypeError, ValueError, InvalidOperation)


def usage_of(row: Mapping[str, Any]) -> Usage:
    """Return the usage that `Usage.as_dict` wrote, as far as a ledger adds it up.

    What the steps cost is known as a sum only: the first one has all of it.

    Raises:
        InputError: It is no usage.
    """
    try:
        about = row.get("ledger") or {}
        ran = [step for step in STEPS if row.get(step)]
        estimated = about.get("estimated", ran if row.get("estimated") else [])
        unknown = row.get("cost_unknown")
        costs = _costs(row.get("cost"), about.get("cost"), unknown, number=len(ran))
        priced: dict[str, Any] = {
            step: _counts(row[step], estimated=step in estimated).with_cost(cost)
            for step, cost in zip(ran, costs, strict=True)
        }
        only, cold, warm = (
            _cost(one, unknown) for one in (row.get("cost_long_context_only"), about.get("cold"), about.get("warm"))
        )
        return Usage(
            **priced,
            long_context_only=None if row.get("long_context_only") is None else _count(row["long_context_only"]),
            cost_long_context_only=only,
            cost_cold=cold,
            cost_warm=warm,
        )
    except _WRONG as error:
        raise InputError(_NO_USAGE) from error


def models_of(row: Mapping[str, Any]) -> dict[str, StepUsage]:
    """Return what the calls of each model took, as `Usage.as_dict` wrote it; none if an earlier version wrote it.

    Raises:
        InputError: It is no usage.
    """
    try:
        told: Mapping[str, list[int]] = (row.get("ledger") or {}).get("models") or {}
        return {
            name: StepUsage(_count(read), 0, _count(cached), cache_write_tokens=_count(written))
            for name, (read, cached, written) in told.items()
        }
    except _WRONG as error:
        raise InputError(_NO_USAGE) from error


def entry_of(row: Mapping[str, Any]) -> Entry | None:
    """Return the record of a question from a row about it; None if its second step is still to come.

    Args:
        row: What a chain returns, the metadata of an engine's response, or what `first_step` returns, as JSON or not.
            A row with an `error` failed, whose type is what stands before its first colon. `seconds` and
            `seconds_to_first_text` are taken if they are there.

    Raises:
        InputError: It is no such row.
    """
    if not isinstance(row, Mapping):
        msg = f"a ledger reads rows, which are dicts with the key 'usage', not {type(row).__name__}"
        raise InputError(msg)
    error = row.get("error")
    if not error and row.get("done") is False:
        return None
    used = _dict(row, "usage")
    if not (error or used):
        msg = f"a ledger reads rows with the key 'usage', or 'error'; the keys of this one are {sorted(map(str, row))}"
        raise InputError(msg)
    usage, models, seconds = usage_of(used), models_of(used), _seconds(row, "seconds")
    if error:
        name = str(error).partition(":")[0].strip()
        return Entry("failed", usage, seconds, error=name, models=models)
    route, decision = row.get("route"), _dict(row, "decision")
    ruling = _dict(decision, "ruling")
    return Entry(
        "answered",
        usage,
        seconds,
        _seconds(row, "seconds_to_first_text"),
        route=route if route in STEPS else None,
        declined=decision.get("declined"),
        doubted=decision.get("signal") == "doubt" and route != "rag",
        stopped=ruling.get("go") is False,
        answerable=row.get("answerable"),
        models=models,
    )


def _dict(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key) or {}
    if isinstance(value, Mapping):
        return value
    msg = f"decision and usage must be as a chain or an engine returns them; {key} is {str(value)[:40]!r}"
    raise InputError(msg)


def steps_row(usage: Usage) -> dict[str, Any]:
    """Return the usage of each step that ran as plain JSON, with all that is known of it."""
    return {
        step: {**asdict(counts), "cost": [counts.cost.as_text(), counts.cost.unknown]}
        for step, counts in usage.steps.items()
    }


def steps_of(row: Mapping[str, Mapping[str, Any]]) -> Usage:
    """Return the usage that `steps_row` wrote."""
    steps: dict[str, Any] = {step: StepUsage(**{**told, "cost": _cost(*told["cost"])}) for step, told in row.items()}
    return Usage(**steps)


def _counts(told: Mapping[str, int], *, estimated: bool) -> StepUsage:
    read, written, cached = (_count(told[f"{kind}_tokens"]) for kind in ("input", "output", "cached"))
    return StepUsage(read, written, cached, estimated)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST:
        msg = f"{value!r} is no count"
        raise TypeError(msg)
    return value


def _seconds(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    if value is None or (isinstance(value, int | float) and not abs(value) > MOST):
        return value
    msg = f"{key} must be a number of seconds beside usage, not {str(value)[:40]!r}"
    raise InputError(msg)


def _costs(whole: str | None, known: str | None, unknown: str | None, *, number: int) -> list[Cost]:
    """Return the costs of some steps, of which only the sum is known, or a part of it and why the rest is not."""
    if whole is not None:
        return [_cost(whole, None), *[FREE] * (number - 1)][:number]
    reason = Cost(None, unknown or "the row does not say what its steps cost")
    return [_cost(known, None), *[reason] * (number - 1)] if known else [reason] * number


def _cost(dollars: str | None, unknown: str | None) -> Cost:
    if dollars is None:
        return Cost(None, unknown) if unknown else UNPRICED
    amount = Decimal(dollars)
    if not -MOST <= amount <= MOST:  # which also raises for what is not a number
        msg = f"{dollars!r} is no amount"
        raise ValueError(msg)
    return Cost(amount)
