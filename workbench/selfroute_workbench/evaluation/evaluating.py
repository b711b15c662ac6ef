"""`evaluate`: asks the user's own chain or query engine as it is, and compares it with other ways to answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from selfroute.errors import ConfigurationError
from selfroute.usage.prices import PricedModel
from selfroute_workbench.evaluation import runs
from selfroute_workbench.evaluation.judge import ModelJudge
from selfroute_workbench.evaluation.looking import Pipeline
from selfroute_workbench.evaluation.looks import TRIED, Strategy
from selfroute_workbench.evaluation.questions import Question, load_questions, question_of
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.results import Evaluation

AnyPipeline = TypeVar("AnyPipeline", bound=Pipeline)


def evaluate(  # noqa: PLR0913 - what there is to choose
    pipeline: Any,
    questions: str | Path | Iterable[Question | Mapping[str, Any]],
    *,
    judge: Any = None,
    judge_priced_as: str | None = None,
    folder: str | Path | None = None,
    name: str | None = None,
    concurrency: int = 4,
    max_cost: Decimal | float | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Evaluation:
    """Ask a pipeline questions with known answers, as it is, and compare it with other ways to answer.

    `yours` is what was passed, exactly as it runs. Beside it: `rag`, its draft alone, in plain text, with a decline as
    the final answer; `rag_20`, the same with 20 passages, where the retriever can find so many; `paper`, the paper's
    rule (`selfroute.PAPER`); and `long_context`, all documents behind the passages at once. A reply that several share
    is paid once.

    With 50 questions or more, other bounds are tried, too: more is read at each doubt that some bound could have, so
    that bounds are compared without asking again (`Evaluation.replay`, `Evaluation.options`).

    Example:
        ```python
        from langchain_core.documents import Document
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.runnables import RunnableLambda
        from langchain_selfroute import SelfRouteChain
        from selfroute_workbench.evaluation import evaluate

        minutes = Document("Ms Okafor chaired the meeting. ...")
        llm = FakeListChatModel(responses=["Ms Okafor"])
        chain = SelfRouteChain(retriever=RunnableLambda(lambda _: [minutes]), llm=llm, documents=[minutes])
        result = evaluate(chain, [{"question": "Who chaired the meeting?", "answers": ["Okafor", "Ms Okafor"]}])
        assert all(one.score == 1.0 for one in result.results)
        ```

    Args:
        pipeline: A `SelfRouteChain`, or what its `with_config`, `bind` or `with_retry` returns; a
            `SelfRouteQueryEngine`, or another `RetrieverQueryEngine` with a `SelfRouteSynthesizer`. It is not changed.
        questions: `Question`s, dicts with the keys of the JSONL, or the path of such a file (see `load_questions`).
            Documents that they name are not read: the pipeline has its own.
        judge: A model that says whether each answer says what the references say (`Look.judged`): a LangChain chat
            model or a LlamaIndex LLM, with any pipeline. True means the pipeline's model for whole documents, None
            means no judge: answers are scored by the questions' own metrics. One call for each question.
        judge_priced_as: The model whose price counts for the judge, as `provider:name`, if the judge's own name is in
            no price list.
        folder: A folder to keep replies in, so that you can continue an interrupted run; None to keep none. A reply is
            used again for the same prompt to a model of the same name; use another folder if you change anything else,
            such as the temperature.
        name: A name for the pipeline in `folder`, in place of its models' names. Models that report no name need one.
        concurrency: How many questions are asked at a time.
        max_cost: The most that the replies, with those kept in `folder`, may cost in US dollars; None for no limit.
        on_progress: Called with 1 for each question that is done.

    Raises:
        ConfigurationError: The pipeline is neither a chain nor an engine. There is a `folder`, but a model reports no
            name and there is no `name`. There is a `max_cost`, but no known price (extra `prices`). The judge is not a
            model, or `judge_priced_as` is given without one.
        InputError: A question is not as described.
    """
    asked = _questions(questions)
    if judge_priced_as is not None and (judge is None or judge is False):
        msg = "judge_priced_as needs a judge: pass judge=True, or a model"
        raise ConfigurationError(msg)
    cap = None if max_cost is None else Decimal(str(max_cost))
    with Replies(Path(folder) if folder else None, max_cost=cap) as kept:
        evaluated = _pipeline_of(pipeline, kept, name)
        return ask_all(
            lambda _: evaluated,
            asked,
            judge_of=partial(_judge_of, judge, name=name, priced_as=judge_priced_as),
            about={"pipeline": type(pipeline).__name__},
            concurrency=concurrency,
            on_progress=on_progress,
        )


def ask_all(  # noqa: PLR0913 - what there is to choose
    pipeline_of: Callable[[Question], AnyPipeline],
    questions: Sequence[Question],
    *,
    judge_of: Callable[[AnyPipeline], ModelJudge | None] | None,
    about: Mapping[str, Any],
    concurrency: int,
    on_progress: Callable[[int], object],
) -> Evaluation:
    """Ask questions, each by its pipeline and as each strategy would; `about` is for the report."""
    # Before anything is paid: numpy and scipy take seconds, and the end needs them.
    from selfroute_workbench.evaluation.statistics import FEWEST_QUESTIONS  # noqa: PLC0415

    runs.check_keys(questions)
    first = pipeline_of(questions[0])
    first.check()
    judge = judge_of(first) if judge_of else None
    strategies = first.strategies
    asked: list[Strategy] = [*strategies]
    asked += [TRIED] if first.takes_bounds and len(questions) >= FEWEST_QUESTIONS else []
    found = runs.ask_looks(pipeline_of, questions, asked, judge=judge, concurrency=concurrency, on_progress=on_progress)
    settings = {"strategies": strategies, "options": {row: first.told(row) for row in asked}, **about}
    if (model := first.models()["rag"]).name:
        settings.setdefault("model", model.title)
    if judge:
        settings["judge"] = judge.settings
    return Evaluation(questions, found.looks, found.failures, settings, found.stopped)


def _questions(given: str | Path | Iterable[Question | Mapping[str, Any]]) -> list[Question]:
    if isinstance(given, str | Path):
        return load_questions(given)
    return [one if isinstance(one, Question) else question_of(one, str(number)) for number, one in enumerate(given, 1)]


def _judge_of(given: Any, pipeline: Pipeline, *, name: str | None, priced_as: str | None) -> ModelJudge | None:
    if given is None or given is False:
        return None
    priced = PricedModel.parse("judge_priced_as", priced_as) if priced_as else None
    if given is True:
        return pipeline.judge(priced)
    for framework in _frameworks():
        if framework.is_model(given):
            return ModelJudge(framework.asker_with(given, pipeline.kept, name=name, priced_as=priced))
    msg = f"judge takes True, a model of LangChain or an LLM of LlamaIndex, not a {type(given).__name__}"
    raise ConfigurationError(msg)


def _pipeline_of(given: Any, kept: Replies, name: str | None) -> Pipeline:
    for framework in _frameworks():
        if pipeline := framework.pipeline_of(given, kept, name=name):
            return cast("Pipeline", pipeline)
    msg = (
        f"evaluate takes a SelfRouteChain or a SelfRouteQueryEngine, not a {type(given).__name__}; a chain may be "
        "within with_config, bind or with_retry"
    )
    raise ConfigurationError(msg)


def _frameworks() -> Iterator[Any]:
    """Yield the module of each framework that is imported: no other one can have made what is given."""
    for framework, module in (("langchain_core", "with_langchain"), ("llama_index.core", "with_llamaindex")):
        if framework in sys.modules:
            yield import_module(f"selfroute_workbench.evaluation.{module}")
