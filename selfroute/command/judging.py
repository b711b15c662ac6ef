"""Makes the judge that `selfroute evaluate --judge` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from selfroute.command.models import Models, load_model
from selfroute.errors import ConfigurationError
from selfroute.evaluation.asking.judge import ModelJudge
from selfroute.evaluation.asking.replies import Replies
from selfroute.evaluation.asking.with_langchain import judge_with
from selfroute.usage.counts import Cost, StepUsage
from selfroute.usage.prices import PricedModel


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """The model that judges.

    Attributes:
        llm: The model.
        name: Its name for people.
        priced_as: The model that it is priced as, if not as itself.
    """

    llm: Any
    name: str
    priced_as: PricedModel | None

    def price(self, counts: StepUsage) -> Cost:
        """Return the cost of a call."""
        return self.asked_through(Replies()).price(counts)

    def asked_through(self, replies: Replies) -> ModelJudge:
        """Return the judge, whose replies are kept.

        Raises:
            ConfigurationError: There is a cap on the cost, and no price of the model is known.
        """
        return judge_with(self.llm, replies, named=self.name, priced_as=self.priced_as)


def load_judge(name: str, *, base_url: str | None, priced_as: str | None) -> JudgeModel:
    """Make a judge of a model that the user names.

    Args:
        name: `provider:model`.
        base_url: A server to ask in place of the provider's own.
        priced_as: What it is priced as, as `provider:model`; None for itself.

    Raises:
        ConfigurationError: It cannot be made.
        MissingPackageError: The provider's package is not installed.
    """
    llm = load_model(name, base_url=base_url)
    return JudgeModel(llm, name, _priced_as(priced_as))


def judge_of(models: Models, *, name: str | None, priced_as: str | None, usually: PricedModel) -> JudgeModel:
    """Return the model for whole documents as a judge.

    Args:
        models: The models that answer.
        name: Its name.
        priced_as: What it is priced as, as `provider:model`.
        usually: What it is priced as if that is None.

    Raises:
        ConfigurationError: It is not a language model.
    """
    if not models.is_language_model:
        msg = f"{models.name} cannot judge: name a model, for example --judge openai:gpt-4o"
        raise ConfigurationError(msg)
    return JudgeModel(models.long_context_llm or models.llm, name or models.name, _priced_as(priced_as) or usually)


def _priced_as(name: str | None) -> PricedModel | None:
    return PricedModel.parse("--judge-priced-as", name) if name else None
