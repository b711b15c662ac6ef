"""Read what questions used from plain JSON, so that the figures of many processes add up."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from selfroute.errors import InputError
from selfroute.usage.counts import FREE, NOTHING, STEPS, UNPRICED, Cost, StepUsage, Usage
from selfroute.usage.entry import Entry

_MOST = 10**15  # what is more is neither tokens nor dollars nor seconds, and might not fit a float
_PLACES = 60  # of an amount; written out, 1E-999999 has a million


def _amount(value: Any) -> Any:
    """Return the dollars that a decimal string says, within bounds."""
    if value is None:
        return None
    try:
        dollars = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        dollars = Decimal("NaN")
    places = dollars.as_tuple().exponent
    if not isinstance(places, int) or places < -_PLACES or not 0 <= dollars <= _MOST:
        msg = "must be dollars in a decimal string"
        raise ValueError(msg)
    return dollars


_Count = Annotated[int, Field(strict=True, ge=0, le=_MOST)]  # strict: True is no number
_Flag = Annotated[bool, Field(strict=True)]
_Seconds = Annotated[float, Field(strict=True, ge=0, le=_MOST, allow_inf_nan=False)]
_Amount = Annotated[Decimal | None, BeforeValidator(_amount)]


class _Step(BaseModel):
    input_tokens: _Count
    output_tokens: _Count
    cached_tokens: _Count


class _More(BaseModel):
    """What `Usage.as_dict` says under `ledger`."""

    models: dict[str, tuple[_Count, _Count, _Count]] = {}
    cold: _Amount = None
    warm: _Amount = None
    cost: _Amount = None
    estimated: list[str] | None = None


class _Usage(BaseModel):
    """What `Usage.as_dict` returns."""

    rag: _Step | None = None
    sections: _Step | None = None
    long_context: _Step | None = None
    estimated: _Flag = False
    long_context_only: _Count | None = None
    cost: _Amount = None
    cost_long_context_only: _Amount = None
    cost_unknown: str | None = None
    ledger: _More = _More()

    def usage(self) -> Usage:
        """Return the usage as a ledger adds it up. The first step has the cost of all: only their sum is known."""
        ran = {step: counts for step in STEPS if (counts := getattr(self, step)) is not None}
        estimated = self.ledger.estimated
        guessed = estimated if estimated is not None else list(ran) if self.estimated else []
        steps: dict[str, Any] = {
            step: StepUsage(counts.input_tokens, counts.output_tokens, counts.cached_tokens, step in guessed, cost=cost)
            for (step, counts), cost in zip(ran.items(), self._costs(len(ran)), strict=True)
        }
        only, cold, warm = map(self._cost, (self.cost_long_context_only, self.ledger.cold, self.ledger.warm))
        return Usage(
            **steps,
            long_context_only=self.long_context_only,
            cost_long_context_only=only,
            cost_cold=cold,
            cost_warm=warm,
        )

    def models(self) -> dict[str, StepUsage]:
        """Return what the calls of each model took."""
        return {
            name: StepUsage(read, 0, cached, cache_write_tokens=wrote)
            for name, (read, cached, wrote) in self.ledger.models.items()
        }

    def _costs(self, number: int) -> list[Cost]:
        if self.cost is not None:
            return [Cost(self.cost), *[FREE] * (number - 1)][:number]
        reason, known = Cost(None, self.cost_unknown or "the row does not say what its steps cost"), self.ledger.cost
        return [reason] * number if known is None else [Cost(known), *[reason] * (number - 1)]

    def _cost(self, dollars: Decimal | None) -> Cost:
        if dollars is not None:
            return Cost(dollars)
        return Cost(None, self.cost_unknown) if self.cost_unknown else UNPRICED


class _Ruling(BaseModel):
    go: _Flag | None = None


class _Decision(BaseModel):
    declined: _Flag | None = None
    signal: str | None = None
    ruling: _Ruling | None = None


class _Row(BaseModel):
    usage: _Usage | None = None
    error: Any = None
    route: Any = None
    decision: _Decision | None = None
    answerable: _Flag | None = None
    seconds: _Seconds | None = None
    seconds_to_first_text: _Seconds | None = None


def _read(row: Any) -> _Row:
    try:
        return _Row.model_validate(dict(row) if isinstance(row, Mapping) else row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the row"
        msg = (
            "usage and decision must be as a chain or an engine returns them, also after json.dumps and json.loads, "
            f"and seconds a number beside them; {where}: {first['msg']}"
        )
        raise InputError(msg) from error


def added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two questions used together, each as `Usage.as_dict` returned it, in the same form.

    Raises:
        InputError: One is no usage.
    """
    one, other = (_read({"usage": usage}).usage or _Usage() for usage in (before, after))
    models = one.models()
    for name, counts in other.models().items():
        models[name] = models.get(name, NOTHING) + counts
    return (one.usage() + other.usage()).as_dict(models)


def entry_of(row: Any) -> Entry:
    """Return the record of a question from a row about it.

    Args:
        row: What a chain returns, or the metadata of an engine's response, as JSON or not. A row with an `error`
            failed, whose type is what stands before its first colon. `seconds` and `seconds_to_first_text` are taken
            if they are there.

    Raises:
        InputError: It is no such row.
    """
    read = _read(row)
    if not (read.error or (read.usage and read.usage.model_fields_set)):
        msg = f"a ledger reads rows with the key 'usage', or 'error'; the keys of this one are {sorted(map(str, row))}"
        raise InputError(msg)
    used = read.usage or _Usage()
    usage, models = used.usage(), used.models()
    if read.error:
        name = str(read.error).partition(":")[0].strip()
        return Entry("failed", usage, read.seconds, error=name, models=models)
    decision, route = read.decision or _Decision(), read.route if read.route in STEPS else None
    return Entry(
        "answered",
        usage,
        read.seconds,
        read.seconds_to_first_text,
        route=route,
        declined=decision.declined,
        doubted=decision.signal == "doubt" and route != "rag",
        stopped=decision.ruling is not None and decision.ruling.go is False,
        answerable=read.answerable,
        models=models,
    )
