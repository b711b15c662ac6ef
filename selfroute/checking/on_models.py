"""Judge the models of a question that was tried: their windows, their prices and their prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import TypeVar

from selfroute.calls.plan import LEAST_SECTIONS
from selfroute.calls.settings import MAX_DOCUMENTS
from selfroute.checking.findings import Remark
from selfroute.checking.trial import TriedQuestion
from selfroute.checking.words import message_of, plural
from selfroute.effects import Route
from selfroute.errors import ConfigurationError
from selfroute.prompts import ASK_FOR_THEM, JUDGED_AS_TEXT, check_asks_for_numbers

Document = TypeVar("Document")
_PROMPTS: Mapping[Route, str] = {"rag": "rag_prompt", "long_context": "long_context_prompt"}
_DEAR = 2 * LEAST_SECTIONS  # sections are read if they are half of the documents at most
_CHEAPER = (
    "set sections='auto' to read the best parts of these documents first, and max_documents=0 to read no whole "
    "document after them"
)
_REPLIES = {
    "text": ", and ask for {refusal!r} if there is no answer",
    "graded": ", and ask for {refusal!r} if there is no answer; the first one also asks for two numbers",
    "structured": "; the model fills in whether it can answer",
}


class OnModels(TriedQuestion[Document]):
    """Looks at the models and their prompts."""

    def look_at_window(self) -> Remark:
        """Return whether the passages and the documents fit the windows."""
        drafted = self.reading.drafted
        if self.drafts and not (len(self.fitting) == len(drafted) and all(map(is_, self.fitting, drafted))):
            found = f"the {plural(len(drafted), 'passage')} do not fit: {len(self.fitting)} would be read"
            return False, found, "retrieve fewer passages, or pass a model with a larger window"
        if self.plan.max_documents == 0:
            return True, "the passages fit, and no whole document is read (max_documents=0)", ""
        return self._look_at_room()

    def _look_at_room(self) -> Remark:
        budget, tokens, what = (
            self.fits.budget(self.fits.count("long_context")),
            self.tokens_of(self.behind),
            self._what,
        )
        if budget is None:
            sent = f", so all {plural(tokens, 'token')} of {what} would be sent" if tokens else ""
            advice = "set max_context_tokens to the model's window, minus some room for the prompt and the answer"
            return None, f"the model does not report its window{sent}", advice
        if not self.read:
            return None, f"there is room for {plural(budget, 'token')} of documents, but no document was read", ""
        if tokens <= budget:
            fit = "fits" if len(self.behind) == 1 else "fit"
            return True, f"{what} {fit}: {plural(tokens, 'token')}, and there is room for {budget:,}", ""
        kept, whose = self.tokens_of(self.to_read), "its" if len(self.behind) == 1 else "their"
        found = f"of {plural(tokens, 'token')} of {what} {kept:,} would be read, from around {whose} passages"
        if self.plan.max_context_tokens is not None:
            return True, found, "max_context_tokens limits it: raise it if the model takes more"
        return False, found, "pass a long_context_llm with a larger window"

    @property
    def _what(self) -> str:
        return "the document" if len(self.behind) == 1 else f"the {len(self.behind)} documents"

    def look_at_prices(self) -> Remark:
        """Return the cost of each step of a question, and the options that lower it."""
        try:
            self.plan.check_prices(self.call.costs.priced, shared=self.host.one_model)
        except ConfigurationError as error:
            return False, message_of(error), ""
        parts, unknown, drafted, whole = list[str](), dict[str, None](), 0, self.tokens_of(self.behind)
        for what, step, context in self._to_pay():
            if isinstance(context, str):
                parts.append(f"{what} skipped, since {context}")
                continue
            with suppress(Exception):  # a prompt that cannot be filled in, which is found with the prompts
                tokens, part, reason = self._price(step, context)
                drafted = tokens if step == "rag" else drafted
                times = f", {tokens / drafted:.1f} times the draft" if drafted and step != "rag" else ""
                share = f", {tokens / whole:.0%} of {self._what}" if step != "long_context" and tokens < whole else ""
                parts.append(f"{what} about {part}{times}{share}")
                unknown |= dict.fromkeys(filter(None, [reason]))
        if not parts:
            return None, "not tried, because there was no prompt to send", ""
        if unknown:
            return None, f"{'; '.join(parts)}; the cost is not known: {'; '.join(unknown)}", self._cheaper
        return True, "; ".join(parts), self._cheaper

    def _to_pay(self) -> Iterator[tuple[str, Route, Sequence[Document] | str]]:
        """Yield the context of each step, or why it is skipped, and its label."""
        if self.drafts and self.fitting:
            yield "a draft takes", "rag", self.fitting
        for number, (sections, skipped) in enumerate(self.sections()):
            name = "sections" if number == 0 else "more sections"
            yield (f"{name} are", "sections", skipped) if skipped else (f"{name} take", "sections", sections)
        if not self.to_read or self.plan.max_documents == 0:
            return
        if self.call.sending.adds_nothing(self.to_read):
            nothing = "all of it was read before, so a question that gets here ends"
            yield f"reading {self._what} is", "long_context", nothing
        else:
            yield f"reading {self._what} takes", "long_context", self.to_read

    @property
    def _cheaper(self) -> str:
        """The options by which several documents of a store would cost less; empty if there is nothing to do."""
        most = self.plan.max_documents
        if self.stored is None or len(self.behind) == 1 or most == 0 or self.tokens_of(self.to_read) <= _DEAR:
            return ""
        if not self.plan.sections:
            return _CHEAPER
        fewer = most is None and len(self.behind) > MAX_DOCUMENTS
        return f"max_documents={MAX_DOCUMENTS} reads only the best ones" if fewer else ""

    def _price(self, step: Route, context: Sequence[Document]) -> tuple[int, str, str | None]:
        """Return the tokens of a step, what they cost, and why that is not known."""
        fitting, costs = self.fits, self.call.costs
        model, tokens = costs.priced(step), fitting.count(step)(self.call.sending.prompt(step, context).text)
        _, cost = costs.of_step(step, tokens=tokens)
        amount = "" if cost.dollars is None else f", ${1_000 * cost.dollars:,.2f} for 1,000 with {model.name}"
        return tokens, f"{plural(tokens, 'token')}{amount}", cost.unknown

    def look_at_prompts(self) -> Remark:
        """Return whether the prompts show the question and ask for what is judged."""
        unread = []
        for step, name in _PROMPTS.items():
            if step == "rag" and not self.drafts:
                continue
            try:
                prompt = self.host.prompt(step, ())
                wording = prompt.text if prompt.is_known else None
            except Exception as error:  # noqa: BLE001 - templates may raise anything
                return (
                    False,
                    f"{name} cannot be filled in: {message_of(error)}",
                    "pass check() the inputs that the prompt needs",
                )
            if wording is None:
                unread.append(name)
            elif wrong := self._wrong_in(step, wording):
                return False, f"{name} {wrong[0]}", wrong[1]
        if unread:
            return None, f"not tried: {' and '.join(unread)} cannot be read before a question is asked", ""
        if self.plan.degraded:
            return None, JUDGED_AS_TEXT, ASK_FOR_THEM
        return (
            True,
            "the prompts show the question"
            + _REPLIES[self.plan.answerability or "graded"].format(refusal=self.call.refusal),
            "",
        )

    def _wrong_in(self, step: Route, wording: str) -> tuple[str, str] | None:
        """Return the fault of a prompt, and what to do; None for a prompt that is right."""
        if self.host.question not in wording:
            return "does not show the question", "give it the variable of the question ({input} in LangChain)"
        asked = wording.replace(self.host.question, "").casefold()
        if not self.plan.structured and self.call.refusal.casefold() not in asked:
            advice = "add: Write {refusal} if the text does not hold the answer. See selfroute.prompts.RAG"
            return f"does not ask for {self.call.refusal!r}, so the model may not decline", advice
        if step == "rag" and self.plan.answerability == "graded":
            check_asks_for_numbers(_PROMPTS[step], asked)
        return None
