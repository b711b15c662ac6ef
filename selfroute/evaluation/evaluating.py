"""`evaluate`: compares the strategies on the user's own chain or query engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.judge import ModelJudge
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.runner import Pipeline, measure
from selfroute.evaluation.grades import load_grades
from selfroute.evaluation.questions import Question, load_questions, question_of
from selfroute.evaluation.records import ALL_STRATEGIES, STRATEGIES, OtherGrade, Strategy
from selfroute.evaluation.results import Evaluation
from selfroute.usage.prices import PricedModel


def evaluate(  # noqa: PLR0913 - what there is to choose
    pipeline: Any,
    questions: str | Path | Iterable[Question | Mapping[str, Any]],
    *,
    strategies: Sequence[Strategy] = STRATEGIES,
    sweep: Mapping[str, Sequence[int]] | None = None,
    drop_closed_book: bool = False,
    explain_declines: bool = False,
    judge: Any = None,
    judge_priced_as: str | None = None,
    grades: str | Path | None = None,
    folder: str | Path | None = None,
    name: str | None = None,
    concurrency: int = 4,
    max_cost: Decimal | float | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> Evaluation:
    """Ask a pipeline questions with known answers, by each strategy, and score the answers.

    `rag` is the pipeline's first step alone: a decline is the final answer. `long_context` reads the documents at once.
    `self_route` is both: after every decline it reads the documents. Strategies share replies, so all three together
    take one draft and one reading of the documents per question.

    Three more are available. `sections` reads sections of the documents before all of them, `graded` uses two numbers
    before the draft, and `graded_sections` does both. They use the pipeline's own bounds and sections, or else the
    defaults. The pipeline's policy and its `start` are ignored, and documents are read even if its own `max_documents`
    is 0.

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
        strategies: The strategies to compare, from `ALL_STRATEGIES`. The paper's three are the default, because the
            others cost more. `graded` adds a draft per question, and `sections` sections after each decline.
            `graded_sections` adds both, with sections after each draft that may be in doubt, so you can try other
            bounds afterwards (`Evaluation.looks`).
        sweep: Numbers of passages to try, as `{"k": [1, 3, 5, 10]}`, the main one first; None for the retriever's own.
            Documents are read only once for all of them.
        drop_closed_book: Whether to also ask each question without any text, to leave out those that the model knows by
            heart (Li et al., 2024, Table 5).
        explain_declines: Whether to ask the model why it declined each draft (Table 8).
        judge: A model that says whether each answer says what the references say (`Result.judged`): a LangChain chat
            model or a LlamaIndex LLM, with any pipeline. True means the pipeline's model for whole documents, None
            means no judge: answers are scored by the questions' own metrics. One call for each question.
        judge_priced_as: The model whose price counts for the judge, as `provider:name`, if the judge's own name is in
            no price list.
        grades: A `grades.jsonl` with other people's grades to compare the judge with (see `load_grades`).
        folder: A folder to keep replies in, so that you can continue an interrupted run; None to keep none.
        name: A name for the pipeline in `folder`. With a name, kept replies are used again under that name, even if the
            models have changed. Without one, they are used again for models of the same class and settings. Functions
            need a name.
        concurrency: How many questions are asked at a time.
        max_cost: The most that the replies, with those kept in `folder`, may cost in US dollars; None for no limit.
        on_progress: Called with the number of tasks that have just been done.

    Raises:
        ConfigurationError: The pipeline is neither a chain nor an engine. A strategy is unknown, or not possible: the
            retriever takes no number of passages, or your own prompt asks for no numbers. `sweep` is not as described.
            There is a `folder`, but a model cannot be described and has no `name`. There is a `max_cost`, but no known
            price (extra `prices`). The judge is not a model, or `judge_priced_as` or `grades` is given without one.
        InputError: A question is not as described.
    """
    strategies = list(dict.fromkeys(strategies))
    unknown = [one for one in strategies if one not in ALL_STRATEGIES]
    if unknown or not strategies:
        msg = f"strategies takes {', '.join(ALL_STRATEGIES)}; not {', '.join(unknown) or 'an empty list'}"
        raise ConfigurationError(msg)
    ks = _ks_of(sweep)
    if isinstance(questions, str | Path):
        asked = load_questions(questions)
    else:
        asked = [
            one if isinstance(one, Question) else question_of(one, str(number))
            for number, one in enumerate(questions, 1)
        ]
    others = _checked_judge_options(judge, judge_priced_as, grades)
    cap = None if max_cost is None else Decimal(str(max_cost))
    with Replies(Path(folder) if folder else None, max_cost=cap) as replies:
        evaluated = _pipeline_of(pipeline, replies, name)
        evaluated.check(strategies, ks)
        judging = _judge_of(judge, evaluated, replies=replies, name=name, priced_as=judge_priced_as)
        record = measure(
            evaluated,
            asked,
            strategies=strategies,
            ks=ks,
            closed_book=drop_closed_book,
            explain_declines=explain_declines,
            judge=judging,
            concurrency=concurrency,
            settings={"pipeline": type(pipeline).__name__, **evaluated.settings(strategies)},
            on_progress=on_progress,
        )
    return Evaluation.of(replace(record, other_grades=others))


def _ks_of(sweep: Mapping[str, Sequence[int]] | None) -> list[int | None]:
    """Return the numbers of passages to try; one None for the retriever's own.

    Raises:
        ConfigurationError: They are not numbers from 1 under the name k.
    """
    if sweep is None:
        return [None]
    ks = list(dict.fromkeys(sweep.get("k", ())))
    if set(sweep) != {"k"} or not ks or not all(isinstance(k, int) and not isinstance(k, bool) and k > 0 for k in ks):
        msg = f"sweep takes numbers of passages, from 1, such as {{'k': [1, 3, 5, 10]}}; not {sweep!r}"
        raise ConfigurationError(msg)
    return [*ks]


def _checked_judge_options(judge: Any, priced_as: str | None, grades: str | Path | None) -> tuple[OtherGrade, ...]:
    """Check the judge's options before anything is paid; return the other grades."""
    if judge is None or judge is False:
        for option, value in (("judge_priced_as", priced_as), ("grades", grades)):
            if value is not None:
                msg = f"{option} needs a judge: pass judge=True, or a model"
                raise ConfigurationError(msg)
    return tuple(load_grades(grades)) if grades is not None else ()


def _judge_of(
    given: Any, pipeline: _Evaluated, *, replies: Replies, name: str | None, priced_as: str | None
) -> ModelJudge | None:
    if given is None or given is False:
        return None
    priced = PricedModel.parse("judge_priced_as", priced_as) if priced_as else None
    if given is True:
        return pipeline.judge(priced)
    # As below: a framework that is not imported cannot have made it.
    if "langchain_core" in sys.modules:
        from langchain_core.runnables import Runnable  # noqa: PLC0415

        if isinstance(given, Runnable):
            from selfroute.evaluation.asking import with_langchain  # noqa: PLC0415

            return with_langchain.judge_with(given, replies, name=name, priced_as=priced)
    if "llama_index.core" in sys.modules:
        from llama_index.core.llms import LLM  # noqa: PLC0415

        if isinstance(given, LLM):
            from selfroute.evaluation.asking import with_llamaindex  # noqa: PLC0415

            return with_llamaindex.judge_with(given, replies, name=name, priced_as=priced)
    msg = f"judge takes True, a model of LangChain or an LLM of LlamaIndex, not a {type(given).__name__}"
    raise ConfigurationError(msg)


class _Evaluated(Pipeline, Protocol):
    """A pipeline whose model for whole documents can judge, too."""

    def check(self, strategies: Sequence[Strategy], ks: Sequence[int | None]) -> None:
        """Check, before anything is paid, that it can follow the strategies."""

    def settings(self, strategies: Sequence[Strategy]) -> dict[str, Any]:
        """Return what the strategies are tried with, for the report."""

    def judge(self, priced_as: PricedModel | None = None) -> ModelJudge:
        """Return that model as a judge."""


def _pipeline_of(given: Any, replies: Replies, name: str | None) -> _Evaluated:
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
