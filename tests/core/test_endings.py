"""How replies end: what the providers' words mean, where they stand, and what a reply that was cut off tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from scenarios import cut
from selfroute.answerability import Gate, declines
from selfroute.answerability.ending import DONE, Ending, reason_in, reason_of, refusal_in, was_refused
from selfroute.answerability.graded import GradedGate
from selfroute.answerability.last import LastGate
from selfroute.answerability.spoken import said_in

WORDS = {
    "complete": "stop end_turn stop_sequence completed COMPLETE eos_token STOP done FinishReason.STOP xyzzy",
    "cut": "length max_tokens max_output_tokens MAX_TOKENS model_length model_context_window_exceeded ERROR_LIMIT",
    "tool call": "tool_calls tool_use function_call MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL pause_turn",
    "refused": "content_filter content_filtered SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII refusal "
    "guardrail_intervened IMAGE_SAFETY LANGUAGE MODEL_ARMOR ERROR_TOXIC",
    "broken off": "OTHER error abort insufficient_system_resource MALFORMED_RESPONSE FINISH_REASON_UNSPECIFIED",
}


@pytest.mark.parametrize("kind", WORDS)
def test_ending_by_word(kind: str) -> None:
    assert {word: Ending(word).kind for word in WORDS[kind].split()} == dict.fromkeys(WORDS[kind].split(), kind)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (DONE, "complete"),
        (Ending("stop", refusal="I cannot help."), "refused"),
        (Ending("STOP", calls_tool=True), "tool call"),
        (Ending(calls_tool=True), "tool call"),
        (Ending("length", calls_tool=True), "cut"),
        (Ending("tool_calls", calls_tool=True, reported=True), "complete"),
        (Ending(silent=True), "broken off"),
    ],
)
def test_ending_by_more_than_words(ending: Ending, kind: str) -> None:
    assert ending.kind == kind


def openai(**choice: Any) -> Any:
    return SimpleNamespace(choices=[SimpleNamespace(finish_reason=None, **choice)])


class Reason(str):
    """As an enumeration of a provider's client."""

    __slots__ = ()
    value = "MAX_TOKENS"


REPORTS: dict[str, tuple[Any, str | None, str]] = {
    "nothing": (None, None, ""),
    "no report": ({}, None, ""),
    "OpenAI's chunk before the end": (openai(delta=SimpleNamespace(refusal=None)), None, ""),
    "OpenAI's chunk with the counts": (SimpleNamespace(choices=[], usage=3), None, ""),
    "OpenAI's refusal": (openai(message=SimpleNamespace(refusal="No.")), None, "No."),
    "OpenAI's refusal in a stream": (openai(delta=SimpleNamespace(refusal="No.")), None, "No."),
    "OpenAI's whole reply": ({"choices": [{"finish_reason": "length", "message": {}}]}, "length", ""),
    "OpenAI's two replies": ({"choices": [{"finish_reason": "length"}, {"finish_reason": "stop"}]}, "length", ""),
    "responses": ({"status": "completed", "incomplete_details": None}, "completed", ""),
    "responses, cut": (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        "max_output_tokens",
        "",
    ),
    "responses, the last event": (SimpleNamespace(response=SimpleNamespace(status="completed")), "completed", ""),
    "responses, a refusal": (SimpleNamespace(refusal="No.", delta=None), None, "No."),
    "Anthropic": ({"stop_reason": "max_tokens", "content": []}, "max_tokens", ""),
    "Anthropic, a stream": ({"type": "message_delta", "delta": SimpleNamespace(stop_reason="refusal")}, "refusal", ""),
    "Anthropic, why": ({"stop_reason": "refusal", "stop_details": {"explanation": "No."}}, "refusal", "No."),
    "Ollama": ({"done": True, "done_reason": "length", "message": {}}, "length", ""),
    "Bedrock": ({"stopReason": "guardrail_intervened"}, "guardrail_intervened", ""),
    "Bedrock, as it was": (
        {"amazon-bedrock-guardrailAction": "INTERVENED", "stop_reason": "end_turn"},
        "guardrail_intervened",
        "",
    ),
    "Gemini": ({"finish_reason": Reason("FinishReason.MAX_TOKENS")}, "MAX_TOKENS", ""),
    "Gemini, a blocked prompt": (
        {"prompt_feedback": {"block_reason": "SAFETY", "block_reason_message": "No."}},
        "SAFETY",
        "No.",
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_reason_in_and_refusal_in(name: str) -> None:
    report, reason, refusal = REPORTS[name]
    assert (reason_in(report), refusal_in(report)) == (reason, refusal)


def test_errors_of_other_code_are_no_ending() -> None:
    class ProviderError(Exception):
        status_code, code = 400, "content_filter"

    class UserError(Exception):
        code = "content_filter"

    azure = ValueError("Azure has not provided the response due to a content filter being triggered")
    assert [reason_of(error) for error in (azure, ProviderError())] == ["content_filter"] * 2
    assert [was_refused(error) for error in (azure, ProviderError())] == [False, True]
    for error in (ValueError("content filter table is missing"), UserError(), RuntimeError("content_filter")):
        assert reason_of(error) is None


def final_gate(refusal: str = "unanswerable") -> LastGate:
    """Return the gate for a reply to whole documents."""
    return LastGate(Gate(refusal, phrases=False), refusal)


def judged(gate: Gate | LastGate, pieces: Any, kind: Any) -> tuple[str, Any]:
    shown = "".join([gate.feed(piece) for piece in pieces]) + gate.end(kind)
    return shown, None if gate.verdict is None else gate.verdict.signal


LATER = "On 4 May it was 12 at"
CUT: dict[str, tuple[str, str, tuple[str, str | None], tuple[str, str | None]]] = {
    # text and how it ends; what is shown of it, and its signal, as a draft and as the last reply
    "nothing": ("", "cut", ("", None), ("", None)),
    "nothing, by itself": ("", "complete", ("", "empty"), ("", "empty")),
    "in the refusal": ("una", "cut", ("", "sentinel"), ("", "sentinel")),
    "in the refusal, by itself": ("Una", "complete", ("Una", "answered"), ("Una", "answered")),
    "after a word of its own": ("unanswerable. The re", "cut", ("", "sentinel"), ("The re", "sentinel")),
    "where a decline may begin": ("The passages", "cut", ("", "phrase"), ("The passages", "answered")),
    "filtered there": ("The passages", "refused", ("", None), ("The passages", "answered")),
    "where a label may begin": ("In May", "cut", ("", "phrase"), ("In May", "answered")),
    "in thoughts": ("<think>The passages", "cut", ("", None), ("", None)),
    "later": (LATER, "cut", (LATER, "answered"), (LATER, "answered")),
}


@pytest.mark.parametrize("name", CUT)
def test_gates_of_what_was_cut_off(name: str) -> None:
    text, kind, draft, final = CUT[name]
    for pieces in ([text], list(text), [text[:2], "", text[2:]]):
        assert judged(Gate(), pieces, kind) == draft
        assert judged(final_gate(), pieces, kind) == final


TEXTS = st.lists(
    st.sampled_from(
        [
            *("unanswerable", "Unanswerable.", "una", "The report", "covers 2024", ".", ":", "**", '"', "I"),
            *("</s>", "<b>", "<", "<|im", "_end|>", "unanswerable<b>", "a <b>word</b>", "< 6"),
        ]
    ),
    max_size=6,
).map(" ".join)


@examples(200)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), max_size=8), kind=st.sampled_from(["complete", "cut", "refused"]))
def test_last_gates_whatever_the_pieces(text: str, cuts: list[int], kind: str) -> None:
    """One that may be the last is judged as a draft and shown as the last."""
    shown, of_the_last = judged(final_gate(), [text], kind)
    assert judged(final_gate(), cut(text, cuts), kind) == (shown, of_the_last)
    assert shown in text
    if not declines(text) and kind == "complete":
        assert (shown, of_the_last) == (said_in(text), "answered")
    _, signal = judged(Gate(), [text], kind)
    assert judged(LastGate(Gate()), cut(text, cuts), kind) == ("" if signal is None else shown, signal)


def test_last_gate_shows_the_own_words_of_a_graded_reply() -> None:
    for reply in ("20\nunanswerable. It covers 2024.", "Unanswerable. It covers 2024."):
        for pieces in ([reply], list(reply)):
            gate = LastGate(GradedGate(doubt_below=50, numbers=1))
            assert judged(gate, pieces, "complete") == ("It covers 2024.", "sentinel")


@pytest.mark.parametrize("gate", [final_gate, lambda: LastGate(GradedGate(doubt_below=50, numbers=1))])
@pytest.mark.parametrize("thought", ["unans", "Unanswerable."])
def test_last_gate_forgets_what_was_reasoning(gate: Callable[[], LastGate], thought: str) -> None:
    reply = f"{thought}\n</think>\n\nMs Okafor chaired it."
    for pieces in ([reply], list(reply)):
        assert judged(gate(), pieces, "complete") == ("Ms Okafor chaired it.", "answered")


@pytest.mark.parametrize(
    ("before", "unit"),
    [("", "unanswerable "), ("unanswerable.", "<b>"), ("unanswerable.", "**"), ("unanswerable. una", "\u200b")],
)
def test_final_gate_takes_linear_time(before: str, unit: str) -> None:
    for cut_up in (lambda text: [text], lambda text: [text[at : at + 4] for at in range(0, len(text), 4)]):
        judged(final_gate(), [before + unit], "complete")
        short, long = (
            min(seconds_of(cut_up(before + unit * (size // len(unit)))) for _ in range(3)) for size in (10_000, 100_000)
        )
        assert long < 50 * short  # ten times, and squared it would be a hundred


def seconds_of(pieces: list[str]) -> float:
    """The time of this thread that a last reply takes."""
    begun = time.thread_time()
    judged(final_gate(), pieces, "complete")
    return time.thread_time() - begun


@pytest.mark.parametrize(
    ("reply", "shown", "refusal"),
    [
        ("unanswerable</s>", "", "unanswerable"),
        ("<b>unanswerable</b> The <b>report</b> covers 2024.", "The <b>report</b> covers 2024.", "unanswerable"),
        ("unanswerable. <|im_end|><b>The report", "The report", "unanswerable"),
        ("unanswerable. < 6 of them", "6 of them", "unanswerable"),
        ("unanswerable unanswerable. Unanswerable! The report <covers", "The report <covers", "unanswerable"),
        ("N. N. It covers 2024.", "It covers 2024.", "N"),
    ],
)
def test_final_gate_shows_no_tags_after_the_refusal(reply: str, shown: str, refusal: str) -> None:
    for pieces in ([reply], list(reply), [reply[:20], reply[20:]]):
        assert judged(final_gate(refusal), pieces, "complete") == (shown, "sentinel")
