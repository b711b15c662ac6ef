"""The models, the prompts and the options of a chain or synthesizer, as its next question meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from selfroute.effects import Route
from selfroute.prompts import GRADED, LONG_CONTEXT, RAG, SECTIONS, check_instructions

if TYPE_CHECKING:
    from selfroute.calls.plan import Plan

Template = TypeVar("Template")


class DefaultPrompts(Generic[Template]):
    """The default prompts as a framework's templates.

    Attributes:
        first: That of the first step, for text.
        last: That of the last step.
    """

    def __init__(
        self, make: Callable[[str, str | None], Template], differs: Callable[[Template, Template], bool]
    ) -> None:
        """Make them.

        Args:
            make: Makes a template of one of `selfroute.prompts`, and of the user's instructions or None.
            differs: Returns whether a prompt is another one than this default one.
        """
        self._make, self._differs = make, differs
        self.first, self.last = make(RAG, None), make(LONG_CONTEXT, None)

    def is_default(self, first: Template) -> bool:
        """Return whether the prompt of the first step is the default one."""
        return not self._differs(first, self.first)

    def of_steps(self, plan: Plan, first: Template, last: Template) -> dict[Route, Template]:
        """Return the prompt of each step; the default ones ask for what is judged, after the user's instructions.

        Args:
            plan: What is judged, and the instructions.
            first: The prompt of the first step, as the chain or synthesizer has it.
            last: That of the last step.

        Raises:
            ConfigurationError: There are instructions and a prompt of the user's own.
        """
        text, graded = plan.instructions, plan.answerability == "graded"
        if text is not None:
            own_last = self._differs(last, self.last)
            check_instructions(rag_prompt=not self.is_default(first), long_context_prompt=own_last)
            last = self._make(LONG_CONTEXT, text)
        sections = first
        if graded and self.is_default(first):
            first, sections = self._make(GRADED, text), self._make(SECTIONS, text)
        elif text is not None and not graded:
            first = sections = self._make(RAG, text)
        return {"rag": first, "sections": sections, "long_context": last}


class Configured:
    """What a chain and a synthesizer have in common: fields that may change between two questions.

    They have `llm`, `long_context_llm`, `rag_prompt`, `long_context_prompt`, the fields of `Settings`, and a `_memory`.
    """

    _defaults: ClassVar[DefaultPrompts[Any]]
    """The framework's default prompts."""

    if TYPE_CHECKING:
        llm: Any
        long_context_llm: Any
        rag_prompt: Any
        long_context_prompt: Any
        _memory: Any

    @staticmethod
    def _check_numbers(name: str, prompt: Any) -> bool:
        """Return whether a prompt of the user's own asks for the numbers of graded answerability.

        Raises:
            ConfigurationError: It surely does not.
        """
        raise NotImplementedError

    @property
    def _models(self) -> dict[Route, Any]:
        llm = self.llm
        return {"rag": llm, "sections": llm, "long_context": self.long_context_llm or llm}

    def _plan(self) -> Plan:
        plan: Plan = self._memory.plan(vars(self), self._asks_for_numbers)
        return plan

    @property
    def _has_default_rag_prompt(self) -> bool:
        return self._defaults.is_default(self.rag_prompt)

    def _asks_for_numbers(self) -> bool:
        return self._has_default_rag_prompt or self._check_numbers("rag_prompt", self.rag_prompt)

    def _prompts(self, plan: Plan) -> dict[Route, Any]:
        return self._defaults.of_steps(plan, self.rag_prompt, self.long_context_prompt)

    def _check_prompts(self) -> Plan:
        """Return the plan, once the prompts go with it.

        Raises:
            ConfigurationError: The prompt of the first step does not ask for what is judged, or there are instructions
                and a prompt of the user's own.
        """
        plan = self._plan()
        if plan.answerability == "graded":
            self._asks_for_numbers()
        self._prompts(plan)
        return plan
