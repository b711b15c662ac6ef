"""Evaluates the demo's questions by the replies that were recorded for them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from rich.console import Console

from langchain_selfroute import SelfRouteChain
from selfroute.command import models
from selfroute.command.terminal import stage
from selfroute.command.texts import Text, split
from selfroute.demo import corpus, recorded
from selfroute.demo.with_langchain import RecordedModel
from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.runner import measure
from selfroute.evaluation.asking.with_langchain import ChainPipeline
from selfroute.evaluation.questions import Question
from selfroute.evaluation.records import Strategy
from selfroute.evaluation.results import Evaluation

STRATEGIES: tuple[Strategy, ...] = ("rag", "long_context", "self_route", "graded")
"""The strategies whose replies were recorded."""


def check_recorded(given: Iterable[str], strategies: Iterable[Strategy]) -> None:
    """Check that only those replies are asked for that were recorded.

    Args:
        given: The options that were given and would change the prompts.
        strategies: The strategies to compare.

    Raises:
        ConfigurationError: Others are.
    """
    others = [*given, *(f"--strategies {one}" for one in strategies if one not in STRATEGIES)]
    if others:
        msg = (
            f"{others[0]} needs replies that were not recorded for the data set {corpus.NAME}: name a model with "
            "--model, or pass --reader"
        )
        raise ConfigurationError(msg)


def evaluate(
    questions: list[Question], *, strategies: Iterable[Strategy], replies: Replies, err: Console, limit: int | None
) -> Evaluation:
    """Ask the recording the questions of the demo by each strategy, through the real chain, and grade the answers.

    Args:
        questions: The questions.
        strategies: The strategies to compare.
        replies: Keeps the replies.
        err: Shows the progress.
        limit: The limit that the questions were taken with, for the report.
    """
    with stage(err, "Loading the embedding model"):
        embeddings = models.load_embeddings()
    with stage(err, "Indexing the passages"):
        pipeline = ChainPipeline(_chain(embeddings), replies)
    chosen = list(strategies)
    ask = partial(measure, pipeline, questions, strategies=chosen, ks=[None], judge=pipeline.judge())
    settings = {
        "data": [corpus.NAME],
        "model": recorded.LABEL,
        "language_model": True,
        "retriever": "all-MiniLM-L6-v2",
        "limit": limit,
        **pipeline.settings(chosen),
    }
    with stage(err, "Asking", len(questions) * (len(chosen) + 1)) as advance:
        return Evaluation.of(ask(settings=settings, on_progress=advance))


def _chain(embeddings: Embeddings) -> SelfRouteChain:
    """Return a chain over the documents of the demo, in memory, that the recording answers."""
    passages = [passage for name, text in corpus.load_documents().items() for passage in split(Text(name, text))]
    store = InMemoryVectorStore.from_documents(passages, embeddings)
    return SelfRouteChain.from_vectorstore(store, RecordedModel(), k=recorded.K, priced_as=recorded.PRICED_AS)
