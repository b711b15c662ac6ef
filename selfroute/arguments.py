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
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    name = "function" if inspect.isroutine(value) else type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_K = "how many passages the draft reads is k= of SelfRouteChain.from_vectorstore, similarity_top_k= of from_index"
_PROMPT = "the prompts are rag_prompt= and long_context_prompt=; instructions= precedes the default ones"
_FILTER = "a filter is filter= of SelfRouteChain.from_vectorstore, filters= of SelfRouteQueryEngine.from_index"
_RETRIEVER = (
    "pass the constructor a retriever that has it, as in retriever=index.as_retriever(...) or "
    "vectorstore.as_retriever(...)"
)
_CHAT = (
    "a chat is engine.as_chat_engine(memory=..., condense_prompt=...); in LangChain pass chat_history with the input, "
    "and reword the question before the retriever, as docs/composing.md shows"
)
_ADVICE: list[tuple[str, ...]] = [
    (_K, "k top_k similarity_top_k"),
    (_FILTER, "filter filters where metadata_filter"),
    (f"{_K}; {_FILTER}", "search_kwargs"),
    (
        _PROMPT,
        "prompt combine_docs_chain combine_documents_chain chain_type_kwargs combine_docs_chain_kwargs",
        "llm_chain_kwargs text_qa_template refine_template summary_template simple_template chat_content_qa_template",
        "chat_content_refine_template chat_summary_template context_prompt context_refine_prompt context_template",
        "context_refine_template system_prompt query_wrapper_prompt prefix_messages",
    ),
    (
        _RETRIEVER,
        "vector_store_query_mode alpha sparse_top_k hybrid_top_k mmr_threshold mmr_prefetch_factor mmr_prefetch_k",
        "node_ids doc_ids embed_model object_map search_type score_threshold",
    ),
    (
        "pass it to the constructor, as in SelfRouteQueryEngine(retriever, ...)",
        "response_synthesizer retriever node_postprocessors",
    ),
    ("pass node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=...)]", "similarity_cutoff"),
    (
        _CHAT,
        "memory memory_cls chat_history chat_mode condense_prompt condense_question_prompt condense_question_llm",
        "skip_condense question_generator rephrase_question return_generated_question get_chat_history",
    ),
    (
        "pass memory=ChatMemoryBuffer.from_defaults(token_limit=...) to engine.as_chat_engine()",
        "token_limit",
    ),
    ("call stream() or astream(), and of a chat engine stream_chat() or astream_chat()", "streaming"),
    (
        'answerability="structured" has the model fill in a report of ours, whose answer is the text; parse that',
        "output_cls program_factory output_parser",
    ),
    (
        "document_prompt= formats each passage; the variables of the prompts are {context} and {context_str}",
        "document_separator document_variable_name",
    ),
    ("the keys are input and answer: leave it out", "input_key output_key"),
    (
        "each step is one call: leave it out",
        "response_mode chain_type prompt_helper chat_prompt_helper structured_answer_filtering",
    ),
    ("only texts are read: leave it out", "multimodal"),
    ("logs and traces show each step: leave it out", "verbose"),
    ("call aquery() or ainvoke(): leave it out", "use_async"),
    ("every result has them: leave it out", "return_source_documents include_sources"),
    ("the models are llm= and long_context_llm=", "service_context model"),
    (
        "pass callback_manager= to SelfRouteQueryEngine, or use chain.with_config(...)",
        "callback_manager callbacks tags metadata",
    ),
    ("use not_found=, the text that is shown where nothing was found", "response_if_no_docs_found"),
    ("use max_context_tokens=", "max_tokens_limit"),
]
"""What stands for options here, and the names that these have in LangChain or LlamaIndex."""
_COUNTERPARTS = {name: advice for advice, *names in _ADVICE for name in " ".join(names).split()}


def refuse_unknown(name: str, *, known: Iterable[str]) -> NoReturn:
    """Raise an `UnknownOptionError` with the option that stands for it, or the nearest one."""
    nearest = get_close_matches(name, known, n=1)
    msg = f"there is no option {name!r}" + (f": did you mean {nearest[0]!r}?" if nearest else "")
    if counterpart := _COUNTERPARTS.get(name):
        msg = f"there is no option {name!r} here: {counterpart}"
    raise UnknownOptionError(msg)
