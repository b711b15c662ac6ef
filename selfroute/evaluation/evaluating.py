"""`evaluate`: compares the strategies on the user's own chain or query engine."""

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
from selfroute.evaluation.records import STRATEGIES, Strategy
from selfroute.evaluation.results import Evaluation


def evaluate(  # noqa: PLR0913 - what there is to choose
    pipeline: Any,
    questions: str | Path | Iterable[Question | Mapping[str, Any]],
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    drop_closed_book: bool = False,
    explain_declines: bool = False,
    folder: str | Path | None = None,
    name: str | None = None,
    concurrency: int = 4,
    max_cost: Decimal | float | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Evaluation:
    """Ask a pipeline questions with known answers, by each strategy, and score the answers.

    `rag` is the pipeline's first step alone, where a decline is the final answer; `long_context` reads the documents at
    once; `self_route` is the pipeline as it is. Strategies share replies, so that all three together take one draft
    and one reading of the documents per question.

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
        pipeline: A `SelfRouteChain`, or what its `with_config`, `bind` or `with_retry` returns; a
            `SelfRouteQueryEngine`, or another `RetrieverQueryEngine` with a `SelfRouteSynthesizer`. It is not changed.
        questions: `Question`s, dicts with the keys of the JSONL, or the path of such a file (see `load_questions`).
            Documents that they name are not read: the pipeline has its own.
        strategies: The strategies to compare.
        drop_closed_book: Whether to ask each question without any text, too, so that those that the model knows by
            heart can be left out (Li et al., 2024, Table 5).
        explain_declines: Whether to ask the model, for each draft that it declined, why (Table 8).
        folder: A folder to keep replies in as they come, so that an interrupted run can go on; None to keep none.
        name: A name for the pipeline in `folder`: kept replies are used again under the same name, whatever its models
            are. By default they are used again for models of the same class and settings. Functions need a name.
        concurrency: How many questions are asked at a time.
        max_cost: The most that the replies, with those kept in `folder`, may cost in US dollars; None for no limit.
        on_progress: Called with the number of tasks that have just been done.

    Raises:
        ConfigurationError: The pipeline is neither, a strategy is unknown, there is a `folder` but a model that cannot
            be described and no `name`, or there is a `max_cost` but no known price (in the extra `prices`).
        InputError: A question is not as described.
    """
    strategies = list(dict.fromkeys(strategies))
    unknown = [one for one in strategies if one not in STRATEGIES]
    if unknown or not strategies:
        msg = f"strategies takes {', '.join(STRATEGIES)}; not {', '.join(unknown) or 'an empty list'}"
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
        record = measure(
            _pipeline_of(pipeline, replies, name),
            asked,
            strategies=strategies,
            closed_book=drop_closed_book,
            explain_declines=explain_declines,
            concurrency=concurrency,
            settings={"pipeline": type(pipeline).__name__},
            on_progress=on_progress,
        )
    return Evaluation.of(record)


def _pipeline_of(given: Any, replies: Replies, name: str | None) -> Pipeline:
    # A framework that is not imported cannot have made it.
    if "langchain_selfroute" in sys.modules:
        from selfroute.evaluation.asking.with_langchain import ChainPipeline, is_chain  # noqa: PLC0415

        if is_chain(given):
            return ChainPipeline(given, replies, name=name)
    if "llamaindex_selfroute" in sys.modules:
        from llama_index.core.query_engine import RetrieverQueryEngine  # noqa: PLC0415

        from llamaindex_selfroute import SelfRouteSynthesizer  # noqa: PLC0415
        from selfroute.evaluation.asking.with_llamaindex import EnginePipeline  # noqa: PLC0415

        synthesizer = getattr(given, "_response_synthesizer", None)
        if isinstance(given, RetrieverQueryEngine) and isinstance(synthesizer, SelfRouteSynthesizer):
            return EnginePipeline(given, replies, name=name)
    msg = (
        f"evaluate takes a SelfRouteChain or a SelfRouteQueryEngine, not a {type(given).__name__}; a chain may be "
        "within with_config, bind or with_retry"
    )
    raise ConfigurationError(msg)
