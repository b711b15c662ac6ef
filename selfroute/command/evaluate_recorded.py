"""Evaluates the demo's questions by the replies that were recorded for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from langchain_core.vectorstores import InMemoryVectorStore
from rich.console import Console

from langchain_selfroute import SelfRouteChain
from selfroute.command import models
from selfroute.command.evaluation_options import Evaluate
from selfroute.command.terminal import stage
from selfroute.command.texts import Text, split
from selfroute.demo import corpus, recorded
from selfroute.demo.with_langchain import RecordedModel
from selfroute.errors import ConfigurationError
from selfroute.evaluation import datasets
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.runner import measure
from selfroute.evaluation.asking.with_langchain import ChainPipeline
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Strategy
from selfroute.evaluation.results import Evaluation

STRATEGIES: tuple[Strategy, ...] = ("rag", "long_context", "self_route", "graded")
"""The strategies whose replies were recorded."""

_NEED_MODEL = (
    "k", "sweep", "retriever", "order", "window", "drop_closed_book", "explain_declines", "compare_based_only_on",
    "judge", "priced_as", "temperature", "base_url", "long_context_model",
)  # fmt: skip
"""The options that need other replies than those of the recording."""


def uses_recording(options: Evaluate) -> bool:
    """Return whether the replies that were recorded for the demo's questions are evaluated."""
    return list(options.data) == [datasets.DEMO] and options.model is None and not options.reader


def evaluate_recording(
    options: Evaluate, questions: list[Question], *, strategies: Sequence[Strategy], err: Console
) -> tuple[Evaluation, Replies] | None:
    """Ask the recording the questions of the demo by each strategy, through the real chain, and grade the answers.

    Returns:
        The evaluation and its replies; None if only an estimate is asked for.

    Raises:
        ConfigurationError: Replies are asked for that were not recorded.
    """
    given = [name for name in _NEED_MODEL if getattr(options, name) != getattr(Evaluate, name)]
    others = [f"--{name.replace('_', '-')}" for name in given]
    others += [f"--strategies {one}" for one in strategies if one not in STRATEGIES]
    if others:
        msg = (
            f"{others[0]} needs replies that were not recorded for the data set {corpus.NAME}: name a model with "
            "--model, or pass --reader"
        )
        raise ConfigurationError(msg)
    if options.dry_run:
        err.print("The recorded replies cost nothing.")
        return None
    with stage(err, "Loading the embedding model"):
        embeddings = models.load_embeddings()
    with Replies(options.out) as replies:
        with stage(err, "Indexing the passages"):
            passages = [one for name, text in corpus.load_documents().items() for one in split(Text(name, text))]
            store, priced_as = InMemoryVectorStore.from_documents(passages, embeddings), recorded.PRICED_AS
            chain = SelfRouteChain.from_vectorstore(store, RecordedModel(), k=recorded.K, priced_as=priced_as)
            pipeline = ChainPipeline(chain, replies)
        ask = partial(measure, pipeline, questions, strategies=strategies, ks=[None], judge=pipeline.judge())
        settings = {
            "data": [corpus.NAME],
            "model": recorded.LABEL,
            "language_model": True,
            "retriever": "all-MiniLM-L6-v2",
            "limit": options.limit,
            **pipeline.settings(strategies),
        }
        with stage(err, "Asking", len(questions) * (len(strategies) + 1)) as advance:
            return Evaluation.of(ask(settings=settings, on_progress=advance)), replies
