"""Makes the models that `selfroute evaluate` asks: those that answer, and the judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from selfroute.command import models
from selfroute.command.evaluation_options import Evaluate
from selfroute.command.terminal import stage
from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.judge import ModelJudge
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.with_langchain import judge_with
from selfroute.usage.prices import PricedModel


def load_answering(options: Evaluate, progress: Console) -> models.Models:
    """Make the models that answer, with the temperature that the options say.

    Raises:
        ConfigurationError: They cannot be made.
        MissingPackageError: The provider's package is not installed.
    """
    answering = models.load_models(
        options.model, long_context_model=options.long_context_model, base_url=options.base_url
    )
    if answering is None:
        with stage(progress, "Loading the extractive reader"):
            return models.Models.extractive(models.load_embeddings())
    if options.temperature is None:
        return answering
    chosen = (answering.llm, answering.long_context_llm)
    llm, second = (one and one.bind(temperature=options.temperature) for one in chosen)
    return replace(answering, llm=llm, long_context_llm=second)


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """The model that judges, its name for people, and the model that it is priced as, if not as itself."""

    llm: Any
    name: str
    priced_as: PricedModel | None

    def asked_through(self, replies: Replies) -> ModelJudge:
        """Return the judge, whose replies are kept.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known.
        """
        return judge_with(self.llm, replies, named=self.name, priced_as=self.priced_as)


def load_judge(options: Evaluate, answering: models.Models, *, usually: PricedModel) -> JudgeModel | None:
    """Make the judge: the model that `--judge` names, or without a name the one for whole documents.

    Args:
        options: The options.
        answering: The models that answer.
        usually: What the one for whole documents is priced as, unless the options say that.

    Raises:
        ConfigurationError: It cannot be made, is no language model, or an option is given that needs `--judge`.
        MissingPackageError: The provider's package is not installed.
    """
    judge, given = options.judge, options.judge_priced_as
    needing = {
        "--judge-base-url": None if judge else options.judge_base_url,
        "--judge-priced-as": given if judge is None else None,
        "--grades": options.grades if judge is None else None,
    }
    for option, value in needing.items():
        if value is not None:
            msg = f"{option} needs --judge too, for example --judge openai:gpt-4o"
            raise ConfigurationError(msg)
    if judge is None:
        return None
    priced_as = PricedModel.parse("--judge-priced-as", given) if given else None
    if judge:
        same_provider = judge.partition(":")[0] == (options.model or "").partition(":")[0]
        base_url = options.judge_base_url or (options.base_url if same_provider else None)
        return JudgeModel(models.load_model(judge, base_url=base_url), judge, priced_as)
    if not answering.is_language_model:
        msg = f"{answering.name} cannot judge: name a model, for example --judge openai:gpt-4o"
        raise ConfigurationError(msg)
    name = options.long_context_model or options.model or answering.name
    return JudgeModel(answering.long_context_llm or answering.llm, name, priced_as or usually)
