"""A host whose models are asked nothing twice: their replies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from selfroute.calls.caching import ProviderCache
from selfroute.calls.host import Host, Prompt
from selfroute.calls.model_calls import replied
from selfroute.calls.plan import Plan
from selfroute.effects import ReadDocuments, Route
from selfroute.languages.tokens import count_tokens
from selfroute.usage.account import Tally
from selfroute.usage.counts import StepUsage
from selfroute.usage.prices import PricedModel, cost_of
from selfroute_workbench.evaluation.looks import Key
from selfroute_workbench.evaluation.replies import Replies
from selfroute_workbench.evaluation.reply import Reply


class Used(NamedTuple):
    """A reply that was used."""

    step: Route
    reply: Reply
    usage: StepUsage
    rung: int


class KeptTally(Tally):
    """The tally of a kept reply."""

    __slots__ = ("_stated",)

    def __init__(self, *, whole: bool) -> None:
        super().__init__(whole=whole)
        self._stated = PricedModel()

    def take(self, reply: Reply) -> None:
        """Count a reply, as if it had just come."""
        self.whole, self.ended, self.counts = True, reply.ending, reply.usage()
        self.text.append(reply.text)
        self._stated = PricedModel(reply.model, reply.provider, reply.url)

    def model(self, configured: PricedModel) -> PricedModel:
        """Return the model that answered."""
        return configured.replied(self._stated)


class KeptHost:
    """A host of a framework whose models' replies are kept; whatever else it does is the framework's."""

    streaming = False
    tally = KeptTally

    def __init__(self, host: Host[Any], kept: Replies, *, question: Key, name: str | None = None) -> None:
        """Wrap a host."""
        self._host, self._kept, self._question, self._name = host, kept, question, name
        self.replies: list[Used] = []
        self.cut, self._rung = False, 0

    def __getattr__(self, name: str) -> Any:
        """Return what the framework's host has."""
        return getattr(self._host, name)

    def with_text(self, document: Any, text: str, /, **label: Any) -> Any:
        """Return a copy of a document with less text, and note that it was shortened."""
        self.cut = self.cut or bool(label.get("trimmed"))
        return self._host.with_text(document, text, **label)

    def reading(self, effect: ReadDocuments) -> AbstractContextManager[list[Any]]:
        """Read documents, and note for which reading of sections."""
        self._rung = effect.rung
        return self._host.reading(effect)

    def ask(self, step: Route, prompt: Prompt, tally: KeptTally, cache: ProviderCache | None) -> str:
        """Return the kept reply to a prompt, or ask for one and keep it."""
        plan: Plan = self._host.plan  # type: ignore[attr-defined] # the hosts of both frameworks have one
        priced_as = plan.declared_model(step, shared=self._host.one_model)
        model = self._host.name_of(step)

        def ask() -> Reply:
            heard = self._host.tally(whole=True)
            pieces: list[str] = []
            try:
                pieces.extend(replied(self._host, step, prompt, heard, cache))
            except Exception as error:
                if not heard.ends_with(error):
                    raise
            return Reply.of("".join(pieces), heard, prompt=lambda: prompt.text, model=model, priced_as=priced_as)

        form = plan.form_of(step)
        identity: Mapping[str, Any] = {
            "model": self._kept.identity(model, self._name, step=step),
            "step": step,
            "report": form and [len(form.scores), plan.refusal],
            "prompt": prompt.text if prompt.is_known else [self._host.question, prompt.context],
        }
        tokens = count_tokens(prompt.text if prompt.is_known else prompt.context)
        reply = self._kept.get(
            identity,
            ask,
            step=step,
            price=lambda output: cost_of(priced_as or model, StepUsage(tokens, output)),
            question=self._question,
        )
        self.replies.append(Used(step, reply, reply.usage(priced_as), self._rung if step == "sections" else 0))
        tally.take(reply)
        return reply.text
