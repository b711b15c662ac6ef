"""`evaluate`: measures a chain or a query engine that somebody already has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.runner import Pipeline, measure
from selfroute.evaluation.questions import Question, load_questions, question_of
from selfroute.evaluation.results import STRATEGIES, Evaluation, Strategy


def evaluate(  # noqa: PLR0913 - what there is to choose
    pipeline: Any,
    questions: str | Path | Iterable[Question | Mapping[str, Any]],
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    drop_closed_book: bool = False,
    explain_declines: bool = False,
    folder: str | Path | None = None,
    concurrency: int = 4,
    max_cost: Decimal | float | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Evaluation:
    """Ask a pipeline questions with known answers, by each strategy, and score what comes back.

    `rag` is the pipeline's first step alone, where a decline is the final answer; `long_context` reads its documents at
    once; `self_route` is the pipeline as it is. All three together ask the model for one draft and one reading of the
    documents per question: what one strategy asked for is not asked for again by another.

    Example:
        ```python
        from langchain_core.documents import Document
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.runnables import RunnableLambda
        from langchain_selfroute import SelfRouteChain
        from selfroute.evaluation import evaluate

        minutes = Document("Ms Okafor chaired the meeting. ...")
        llm = FakeListChatModel(responses=["Ms Okafor"])
        chain = SelfRouteChain(retriever=RunnableLambda(lambda _: [minutes]), llm=llm, documents=[minutes])
        result = evaluate(chain, [{"question": "Who chaired the meeting?", "answers": ["Okafor", "Ms Okafor"]}])
        assert [one.score for one in result.results] == [1.0, 1.0, 1.0]
        ```

    Args:
        pipeline: A `SelfRouteChain`, a `SelfRouteQueryEngine` or another `RetrieverQueryEngine` with a
            `SelfRouteSynthesizer`. It is not changed.
        questions: `Question`s, dicts with the keys of the JSONL, or the path of such a file (see `load_questions`).
            Documents that they name are not read: the pipeline has its own.
        strategies: The strategies to compare.
        drop_closed_book: Whether each question is asked without any text, too, so that those that the model knows by
            heart can be left out (Li et al., 2024, Table 5).
        explain_declines: Whether the model is asked, for each draft that it declined, why (Table 8).
        folder: Where replies are kept as they come, so that an interrupted run goes on where it was; None for nowhere.
        concurrency: How many questions are asked at a time.
        max_cost: The most that the replies, with those kept in `folder`, may cost in US dollars; None for no limit.
        on_progress: Is told how many tasks were done, time and again.

    Raises:
        ConfigurationError: The pipeline is neither, a strategy is unknown, or there is a `max_cost` and no price is
            known for the model (in the extra `prices`).
        InputError: A question is not as described.
    """
    strategies = list(dict.fromkeys(strategies))
    unknown = [one for one in strategies if one not in STRATEGIES]
    if unknown or not strategies:
        msg = f"strategies are {', '.join(STRATEGIES)}; not {', '.join(unknown) or 'none'}"
        raise ConfigurationError(msg)
    if isinstance(questions, str | Path):
        asked = load_questions(questions)
    else:
        asked = [
            one if isinstance(one, Question) else question_of(one, str(number))
            for number, one in enumerate(questions, 1)
        ]
    cap = None if max_cost is None else Decimal(str(max_cost))
    with Replies(Path(folder) if folder else None, max_cost=cap) as replies:
        return measure(
            _pipeline_of(pipeline, replies),
            asked,
            strategies=strategies,
            closed_book=drop_closed_book,
            explain_declines=explain_declines,
            concurrency=concurrency,
            settings={"pipeline": type(pipeline).__name__},
            on_progress=on_progress,
        )


def _pipeline_of(given: Any, replies: Replies) -> Pipeline:
    # A framework whose package is not imported can not have made it.
    if "langchain_selfroute" in sys.modules:
        from langchain_selfroute import SelfRouteChain  # noqa: PLC0415
        from selfroute.evaluation.asking.with_langchain import ChainPipeline  # noqa: PLC0415

        if isinstance(given, SelfRouteChain):
            return ChainPipeline(given, replies)
    if "llamaindex_selfroute" in sys.modules:
        from llama_index.core.query_engine import RetrieverQueryEngine  # noqa: PLC0415

        from llamaindex_selfroute import SelfRouteSynthesizer  # noqa: PLC0415
        from selfroute.evaluation.asking.with_llamaindex import EnginePipeline  # noqa: PLC0415

        synthesizer = getattr(given, "_response_synthesizer", None)
        if isinstance(given, RetrieverQueryEngine) and isinstance(synthesizer, SelfRouteSynthesizer):
            return EnginePipeline(given, replies)
    msg = f"what is evaluated is a SelfRouteChain or a SelfRouteQueryEngine, not a {type(given).__name__}"
    raise ConfigurationError(msg)
