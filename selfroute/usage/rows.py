"""Read what questions used from plain JSON: so the figures of many processes add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from selfroute.effects import Route
from selfroute.errors import InputError
from selfroute.usage.counts import FREE, NOTHING, STEPS, UNPRICED, Cost, Entry, StepUsage, Usage
from selfroute.usage.values import WRONG, Check, amount, count, fields, flag, named, number, one_of, optional, text

_NO_USAGE = "usage must be as a chain or an engine returns it, also after json.dumps and json.loads"
_STEP: Mapping[str, Check] = {
    "input_tokens": count,
    "output_tokens": count,
    "cached_tokens": count,
    "estimated": flag,
    "cache_write_tokens": count,
    "cost": lambda value: _cost(*value),
    "cache_write_1h_tokens": count,
    "repeated": flag,
}
_DECISION = {"declined": optional(flag), "signal": optional(text), "ruling": optional(named)}


def usage_of(row: Mapping[str, Any]) -> Usage:
    """Return the usage that `Usage.as_dict` wrote, as far as a ledger adds it up.

    What the steps cost is known as a sum only: the first one has all of it.

    Raises:
        InputError: It is no usage.
    """
    try:
        about = named(row.get("ledger") or {})
        ran = [step for step in STEPS if row.get(step)]
        estimated = about.get("estimated", ran if row.get("estimated") else [])
        unknown = optional(text)(row.get("cost_unknown"))
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
            long_context_only=optional(count)(row.get("long_context_only")),
            cost_long_context_only=only,
            cost_cold=cold,
            cost_warm=warm,
        )
    except WRONG as error:
        raise InputError(_NO_USAGE) from error


def models_of(row: Mapping[str, Any]) -> dict[str, StepUsage]:
    """Return what the calls of each model took, as `Usage.as_dict` wrote it; none if an earlier version wrote it.

    Raises:
        InputError: It is no usage.
    """
    try:
        told = named((row.get("ledger") or {}).get("models") or {})
        return {
            name: StepUsage(count(read), 0, count(cached), cache_write_tokens=count(written))
            for name, (read, cached, written) in told.items()
        }
    except WRONG as error:
        raise InputError(_NO_USAGE) from error


def added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two questions used together, each as `Usage.as_dict` wrote it, in the same form.

    Raises:
        InputError: One is no usage.
    """
    models = models_of(before)
    for name, counts in models_of(after).items():
        models[name] = models.get(name, NOTHING) + counts
    return (usage_of(before) + usage_of(after)).as_dict(models)


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
    used = row.get("usage") or {}
    if not (error or used):
        msg = f"a ledger reads rows with the key 'usage', or 'error'; the keys of this one are {sorted(map(str, row))}"
        raise InputError(msg)
    usage, models = usage_of(used), models_of(used)
    seconds, first = _seconds(row, "seconds"), _seconds(row, "seconds_to_first_text")
    if error:
        name = str(error).partition(":")[0].strip()
        return Entry("failed", usage, seconds, error=name, models=models)
    try:
        decision, route = named(row.get("decision") or {}), row.get("route")
        declined, signal, ruling = (check(decision.get(key)) for key, check in _DECISION.items())
        answerable = optional(flag)(row.get("answerable"))
    except WRONG as error:
        msg = "decision and usage must be as a chain or an engine returns them, and answerable true or false"
        raise InputError(msg) from error
    return Entry(
        "answered",
        usage,
        seconds,
        first,
        route=route if route in STEPS else None,
        declined=declined,
        doubted=signal == "doubt" and route != "rag",
        stopped=(ruling or {}).get("go") is False,
        answerable=answerable,
        models=models,
    )


def steps_row(usage: Usage) -> dict[str, Any]:
    """Return the usage of each step that ran as plain JSON, with all that is known of it."""
    return {
        step: {**asdict(counts), "cost": [counts.cost.as_text(), counts.cost.unknown]}
        for step, counts in usage.steps.items()
    }


def steps_of(row: Mapping[str, Any], *, ran: Sequence[Route]) -> Usage:
    """Return the usage that `steps_row` wrote.

    Args:
        row: What it wrote.
        ran: The steps that may have run.

    Raises:
        ValueError: It is something else, or one of the errors in `WRONG`.
    """
    steps: dict[str, Any] = {one_of(ran)(step): StepUsage(**fields(told, _STEP)) for step, told in named(row).items()}
    return Usage(**steps)


def _counts(told: Mapping[str, int], *, estimated: bool) -> StepUsage:
    read, written, cached = (count(told[f"{kind}_tokens"]) for kind in ("input", "output", "cached"))
    return StepUsage(read, written, cached, estimated)


def _seconds(row: Mapping[str, Any], key: str) -> float | None:
    try:
        seconds: float | None = optional(number)(row.get(key))
    except WRONG as error:
        msg = f"{key} must be a number of seconds beside usage, not {str(row[key])[:40]!r}"
        raise InputError(msg) from error
    return seconds


def _costs(whole: str | None, known: str | None, unknown: str | None, *, number: int) -> list[Cost]:
    """Return the costs of some steps, of which only the sum is known, or a part of it and why the rest is not."""
    if whole is not None:
        return [_cost(whole, None), *[FREE] * (number - 1)][:number]
    reason = Cost(None, unknown or "the row does not say what its steps cost")
    return [_cost(known, None), *[reason] * (number - 1)] if known else [reason] * number


def _cost(dollars: str | None, unknown: str | None) -> Cost:
    if dollars is not None:
        return Cost(amount(dollars))
    return Cost(None, text(unknown)) if unknown else UNPRICED
