"""Look at what a trial found about the models: their windows, their prices and their prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import TypeVar

from selfroute.checking.findings import Found
from selfroute.checking.trial import Trial
from selfroute.checking.words import plural, told
from selfroute.errors import ConfigurationError
from selfroute.flow import Route
from selfroute.prompts import check_asks_for_numbers
from selfroute.usage import prices
from selfroute.usage.counts import StepUsage
from selfroute.usage.ledger_text import dollars

Document = TypeVar("Document")
_PROMPTS: Mapping[Route, str] = {"rag": "rag_prompt", "long_context": "long_context_prompt"}
_STEPS: Mapping[Route, str] = {"rag": "a draft", "long_context": "reading the document"}
_REPLIES = {
    "text": ", and ask for {refusal!r} if there is no answer",
    "graded": ", and ask for {refusal!r} if there is no answer; the first one also asks for two numbers",
    "structured": "; the model fills in whether it can answer",
}


class OnModels(Trial[Document]):
    """Looks at the models and their prompts."""

    def look_at_window(self) -> Found:
        """Return whether the passages and the document fit the windows."""
        if self.drafts and not (len(self.fitting) == len(self.found) and all(map(is_, self.fitting, self.found))):
            found = f"the {plural(len(self.found), 'passage')} do not fit: {len(self.fitting)} would be read"
            return False, found, "retrieve fewer passages, or pass a model with a larger window"
        budget, tokens = self._budget(self._count("long_context")), self.tokens_of(self.read)
        if budget is None:
            sent = f", so all {plural(tokens, 'token')} of the document would be sent" if tokens else ""
            advice = "set max_context_tokens to the model's window, minus some room for the prompt and the answer"
            return None, f"the model does not report its window{sent}", advice
        if not self.read:
            return None, f"there is room for {plural(budget, 'token')} of documents, but no document was read", ""
        if tokens <= budget:
            return True, f"the document fits: {plural(tokens, 'token')}, and there is room for {budget:,}", ""
        kept = self.tokens_of(self.to_read)
        found = f"of {plural(tokens, 'token')} of the document {kept:,} would be read, from around its passages"
        if self.settings.max_context_tokens is not None:
            return True, found, "max_context_tokens limits it: raise it if the model takes more"
        return False, found, "pass a long_context_llm with a larger window"

    def look_at_prices(self) -> Found:
        """Return what a question costs by either route."""
        try:
            self.settings.check_prices(self._priced, shared=self._one_model)
        except ConfigurationError as error:
            return False, told(error), ""
        parts, unknown = list[str](), dict[str, None]()
        steps: Mapping[Route, Sequence[Document]] = {
            "rag": self.fitting if self.drafts else (),
            "long_context": self.to_read,
        }
        for step, context in steps.items():
            if context:
                with suppress(Exception):  # a prompt that cannot be filled in, which is found with the prompts
                    part, reason = self._price(step, context)
                    parts.append(f"{_STEPS[step]} takes about {part}")
                    unknown |= dict.fromkeys(filter(None, [reason]))
        if not parts:
            return None, "not tried, because there was no prompt to send", ""
        if unknown:
            return None, f"{'; '.join(parts)}; the cost is not known: {'; '.join(unknown)}", ""
        return True, "; ".join(parts), ""

    def _price(self, step: Route, context: Sequence[Document]) -> tuple[str, str | None]:
        """Return what a step takes, and why its cost is not known."""
        model, tokens = self._priced(step), self._count(step)(self._text_with(step, context))
        cost = prices.cost_of(model, StepUsage(tokens, self._reply_of(step)))
        amount = cost.as_text()
        return plural(tokens, "token") + (f", {dollars(amount)} with {model.name}" if amount else ""), cost.unknown

    def look_at_prompts(self) -> Found:
        """Return whether the prompts show the question and ask for what is judged."""
        unread = []
        for step, name in _PROMPTS.items():
            if step == "rag" and not self.drafts:
                continue
            try:
                wording = self._wording(step)
            except Exception as error:  # noqa: BLE001 - templates raise whatever they like
                return (
                    False,
                    f"{name} cannot be filled in: {told(error)}",
                    "pass check() the inputs that the prompt needs",
                )
            if wording is None:
                unread.append(name)
            elif wrong := self._wrong_in(step, wording):
                return False, f"{name} {wrong[0]}", wrong[1]
        if unread:
            return None, f"not tried: {' and '.join(unread)} cannot be read before a question is asked", ""
        return (
            True,
            "the prompts show the question" + _REPLIES[self.settings.answerability].format(refusal=self.refusal),
            "",
        )

    def _wrong_in(self, step: Route, wording: str) -> tuple[str, str] | None:
        """Return what is wrong with a prompt, and what to do; None if nothing is."""
        if self.question not in wording:
            return "does not show the question", "give it the variable of the question ({input} in LangChain)"
        asked = wording.replace(self.question, "").casefold()
        if not self.settings.structured and self.refusal.casefold() not in asked:
            advice = "add: Write {refusal} if the text does not hold the answer. See selfroute.prompts.RAG"
            return f"does not ask for {self.refusal!r}, so the model may not decline", advice
        if step == "rag" and self.settings.answerability == "graded":
            check_asks_for_numbers(_PROMPTS[step], asked)
        return None
