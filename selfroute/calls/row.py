"""Write the row of a first step, and read it back: it may have been changed meanwhile, so each value is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from selfroute.answerability import Signal
from selfroute.answerability.ending import Ending
from selfroute.calls.first_step import KEY, Draft, KeptStep, plain
from selfroute.effects import Start
from selfroute.errors import InputError
from selfroute.usage.rows import models_of, steps_of, usage_of
from selfroute.usage.tokens import PromptSize
from selfroute.usage.values import (
    WRONG,
    Check,
    anything,
    count,
    fields,
    flag,
    items,
    named,
    number,
    one_of,
    optional,
    text,
    texts,
    whole,
)

if TYPE_CHECKING:
    from selfroute.calls.call import Call
    from selfroute.effects import Answer

Document = TypeVar("Document")
_ENDING = {"reason": optional(text), "refusal": text, "calls_tool": flag, "reported": flag, "silent": flag}
_DRAFT: Mapping[str, Check] = {
    "text": text,
    "said": optional(text),
    "ending": lambda value: Ending(**fields(value, _ENDING)),
    "model": optional(text),
    "provider": optional(text),
    "quotes": texts,
}
_PROMPT = {"characters": count, "context": count}
_RULING = {"go": flag, "by": text, "reason": text}
_DECISION: Mapping[str, Check] = {
    "declined": flag,
    "signal": one_of(get_args(Signal)),
    "evidence": text,
    "ruling": optional(lambda value: fields(value, _RULING)),
}
_NUMBERS = {name: optional(partial(count, most=100)) for name in ("prospect", "confidence")}
_DONE: Mapping[str, Check] = {
    "answer": text,
    "route": one_of(("rag",)),
    "answerable": flag,
    "finish_reason": optional(text),
    "decision": lambda value: fields(value, {**_DECISION, **_NUMBERS} if "prospect" in value else _DECISION),
}

_OF_SOME: Mapping[str, Check] = {
    "verified": flag,
    "page": lambda value: text(value) if isinstance(value, str) else whole(value),
}


def row_of(call: Call[Any], answer: Answer) -> dict[str, Any]:
    """Return the row of a question whose first step is over: plain JSON."""
    host, passages, tally = call.host, call.reading.passages, call.costs.tally
    done, names = not answer.is_open, [plain(host.source_of(passage)) for passage in passages]
    kept = KeptStep(
        call.start,
        call.settings.answerability,
        passages,
        answer.passages,
        answer.context,
        call.costs.size,
        Draft.of(tally) if tally else None,
        call.account.usage,
        call.account.models,
        call.account.seconds,
    )
    row = {
        **host.inputs_as_json(),
        "done": done,
        "sources": [name for at, name in enumerate(names) if name is not None and name not in names[:at]],
        "route": answer.route if done else None,
        "answer": answer.text,
        "answerable": answer.answerable if done else None,
        "finish_reason": answer.finish_reason if done else None,
        "decision": answer.decision.as_dict(),
        **kept.as_row(host.document_as_json),
        **(answer.cited_as_dict(quoted=call.settings.structured) if done else {}),
    }
    return cast("dict[str, Any]", plain(row))


@contextmanager
def row_errors() -> Iterator[None]:
    """Raise an `InputError` for what is wrong in a row that is read within this context.

    Raises:
        InputError: It is not as `first_step` wrote it.
    """
    try:
        yield
    except WRONG as error:
        msg = "second_step takes the rows that first_step returned, also after json.dumps and json.loads; not this"
        raise InputError(msg) from error


def read_row(
    row: Mapping[str, Any], document_of: Callable[[Any], Document], *, name: Check = anything
) -> KeptStep[Document]:
    """Return the first step that a row keeps.

    Args:
        row: The row.
        document_of: Returns the passage that an adapter wrote; raises one of the errors in `WRONG` if it is not one.
        name: Checks the name of a document.

    Raises:
        InputError: It is not a row of `first_step`.
    """
    with row_errors():
        return _read(named(row), document_of, name)


def _read(row: Mapping[str, Any], document_of: Callable[[Any], Document], name: Check) -> KeptStep[Document]:
    kept = named(row[KEY])
    retrieved = [document_of(one) for one in items(row["retrieved"])]

    def found(some: Any) -> list[Document]:
        return [document_of(one) if isinstance(one, Mapping) else retrieved[count(one)] for one in items(some)]

    text(row["input"])
    context = found(kept["context"])
    usage, models = steps_of(kept["steps"], ran=("rag",)), models_of(row["usage"])
    whole = usage_of(row["usage"])
    draft = optional(lambda value: Draft(**fields(value, _DRAFT)))(kept["draft"])
    return KeptStep(
        start=one_of(get_args(Start))(kept["start"]),
        answerability=text(kept["answerability"]),
        retrieved=retrieved,
        passages=found(kept["passages"]),
        context=context,
        prompt=PromptSize(**fields(kept["prompt"], _PROMPT)),
        draft=draft,
        usage=usage,
        models=models,
        seconds=number(kept["seconds"]),
        result={
            **_result(row, context, name),
            "usage": replace(whole, rag=usage.rag, sections=None, long_context=None).as_dict(models),
        }
        if flag(row["done"])
        else None,
    )


def _result(row: Mapping[str, Any], context: Sequence[Any], name: Check) -> dict[str, Any]:
    """Return the result in a row that is done, without its usage."""
    citation: Mapping[str, Check] = {
        "document": lambda value: count(value, len(context) - 1),
        "source": name,
        "start": count,
        "end": count,
        "text": text,
        "score": number,
    }

    def cited(value: Any) -> dict[str, Any]:
        extra = {name: check for name, check in _OF_SOME.items() if name in value}
        return fields(value, {**citation, **extra})

    more: Mapping[str, Check] = {
        "citations": lambda value: [cited(one) for one in items(value)],
        "unverified_quotes": count,
    }
    return {name: check(row[name]) for name, check in [*_DONE.items(), *more.items()] if name in row or name in _DONE}
