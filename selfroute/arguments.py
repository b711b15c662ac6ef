"""Refuse an argument of the wrong kind in one line: what it is, what is wanted, and how to get that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from selfroute.errors import ConfigurationError, UnknownOptionError


@dataclass(frozen=True, slots=True)
class Expected:
    """What an argument takes.

    Attributes:
        what: What it takes, with its article.
        how: What to pass.
        fits: Returns whether a value is of the right kind. A class never is.
    """

    what: str
    how: str
    fits: Callable[[Any], bool]

    def check(self, argument: str, value: Any) -> Any:
        """Return the value of an argument, checked; an error shows only its type, since it may be secret.

        Raises:
            ConfigurationError: It is something else.
        """
        if isinstance(value, type):
            name = value.__name__
            msg = f"{argument} must be {self.what}, not the class {name}: pass an object, {name}(...)"
        elif not self.fits(value):
            msg = f"{argument} must be {self.what}, not {_described(value)}: {self.how}"
        else:
            return value
        raise ConfigurationError(msg)


def check_takes(argument: str, value: Any, *given: str) -> None:
    """Check that a user's callable takes what it will be given. One without a readable signature is accepted.

    Args:
        argument: The name of the argument that it is.
        value: The callable.
        given: What it is given, in order.

    Raises:
        ConfigurationError: It takes more or less.
    """
    try:
        signature = inspect.signature(value, follow_wrapped=False)  # a wrapper may add what is inside
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        msg = f"{argument} is called with ({', '.join(given)}), which yours does not take: {error}"
        raise ConfigurationError(msg) from error


def _described(value: Any) -> str:
    if value is None:
        return "None"
    name = "text" if isinstance(value, str) else "function" if inspect.isroutine(value) else type(value).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


_K = "how many passages the draft reads is k= of SelfRouteChain.from_vectorstore, similarity_top_k= of from_index"
_PROMPT = "the prompts are rag_prompt= and long_context_prompt=; instructions= precedes the default ones"
_FILTER = "a filter is filter= of SelfRouteChain.from_vectorstore, filters= of SelfRouteQueryEngine.from_index"
_COUNTERPARTS = {
    **dict.fromkeys(("k", "top_k", "similarity_top_k"), _K),
    **dict.fromkeys(("filter", "filters", "where", "metadata_filter"), _FILTER),
    "search_kwargs": f"{_K}; {_FILTER}",
    **dict.fromkeys(("prompt", "combine_docs_chain", "chain_type_kwargs"), _PROMPT),
    **dict.fromkeys(("text_qa_template", "refine_template", "summary_template", "simple_template"), _PROMPT),
    **dict.fromkeys(("system_prompt", "query_wrapper_prompt"), _PROMPT),
    "output_cls": 'answerability="structured" has the model fill in a report of ours, whose answer is the text',
    **dict.fromkeys(("response_mode", "chain_type"), "each step is one call: leave it out"),
    **dict.fromkeys(("service_context", "model"), "the models are llm= and long_context_llm="),
    **dict.fromkeys(("return_source_documents", "include_sources"), "every result has them: leave it out"),
    "use_async": "call aquery() or ainvoke(): leave it out",
}
"""What people are used to pass to LangChain or LlamaIndex, and what stands for it here."""


def refuse_unknown(name: str, *, known: Iterable[str]) -> NoReturn:
    """Raise an `UnknownOptionError` with the option that stands for it, or the nearest one."""
    nearest = get_close_matches(name, known, n=1)
    msg = f"there is no option {name!r}" + (f": did you mean {nearest[0]!r}?" if nearest else "")
    if counterpart := _COUNTERPARTS.get(name):
        msg = f"there is no option {name!r} here: {counterpart}"
    raise UnknownOptionError(msg)
