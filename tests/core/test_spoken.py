"""What a reply says to the user, without the prompt that was given back, reasoning, and the marks of templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes import examples
from scenarios import cut
from selfroute.answerability import Gate, declines, declines_anywhere
from selfroute.answerability.spoken import Spoken, said_in

ANSWER = "Ms Okafor chaired it, <b>not</b> Mr Lin."
LEAKS = [
    *(
        "<think>Hm.</think>\n\n{}",
        "<thinking>Hm.</thinking>{}",
        "<reasoning>Hm.</reasoning>\n{}",
        "[THINK]Hm.[/THINK]{}",
    ),
    *("<seed:think>Hm.</seed:think>{}", "\u25c1think\u25b7Hm.\u25c1/think\u25b7{}", "<think></think>{}", "</think>{}"),
    *("<|begin_of_thought|>Hm.<|end_of_thought|>{}", "<|channel>thought\nHm.<channel|>{}", "Hm.\n</think>\n\n{}"),
    *("<|channel|>final<|message|>{}", "analysisIt is long.assistantfinal{}", "It is long.assistantfinal{}"),
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "<|channel|>commentary<|message|>Hm.<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>{}",
    "I look it up.<|end|><|start|>assistant<|channel|>final<|message|>{}",
    *("<|im_start|>assistant\n{}<|im_end|>", "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>"),
    *("<start_of_turn>model\n{}<end_of_turn>", "assistant\n\n{}", "model\n{}", "<|assistant|>\n{}<|user|>"),
    *("<s>[INST] {}", "### Response:\n{}", "### Assistant: {}", "<bos>{}<eos>", "{}</s><s>", "{}[/INST]", "{}\n</s>"),
    *(
        "{}<\uff5cend\u2581of\u2581sentence\uff5c>",
        "Thought: it is long.\nFinal Answer: {}",
        "**Thought:** Hm.\n**Final Answer:** {}",
    ),
]
ANSWERS = [  # in which the marks are part of what is said
    *(
        "The template ends each turn with <|im_end|> and a line break.",
        "The tag </think> closes the block.",
        "It is </s>",
    ),
    *("Use `</s>`", "a < b and c > d", "Model\nT-34", "assistant", "analysisTools is a module.", "Thought: a noun."),
    *(
        "[1] Ms Okafor",
        "<b>Ms Okafor</b>",
        "<answer>42</answer>",
        "Read:\n```\n<think>\n{r}\n</think>\n```\nand so on.",
    ),
    *(
        'Use `text.split("</think>")[-1]` to strip it.',
        "It is <s>old</s>",
        "The parts: assistant.\nAssistant final reviewer: Bo.",
    ),
    *('<claim>\n<reason code="7">\nWater.\n</reason>\n<sum>40</sum>\n</claim>', "if a<b"),
    *("  Ms Okafor ", "\n\nMs Okafor", "<|im_start|> begins a turn in ChatML, and <|im_end|> ends it, see [1]."[12:]),
]
SENT = ["You answer briefly.", "Read this:\n\nThe <b>minutes</b>.\n\nWho chaired it?"]
ECHOES = [
    "{0}\n{1}\n{2}",
    "System: {0}\nHuman: {1}\nAI: {2}",
    "system\n{0}\nuser\n{1}\nassistant\n{2}",
    "<|im_start|>system\n{0}<|im_end|>\n<|im_start|>user\n{1}<|im_end|>\n<|im_start|>assistant\n{2}<|im_end|>",
]


def said(pieces: tuple[str, ...], sent: list[str] | None = None) -> str:
    """What is said, as a gate that holds everything back takes it."""
    spoken, text = Spoken(None if sent is None else lambda: sent), ""
    for piece in (*pieces, None):
        more = spoken.end() if piece is None else spoken.feed(piece)
        text = more if spoken.anew else text + more
        spoken.anew = False
    return text


@pytest.mark.parametrize("leak", LEAKS)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
@examples(20)
def test_said_leaves_out_what_servers_leak(leak: str, cuts: list[int]) -> None:
    for answer in (ANSWER, "unanswerable", "80 42\nParis"):
        reply = leak.format(answer)
        for pieces in ((reply,), tuple(reply), cut(reply, cuts)):
            assert said(pieces).strip() == answer
        assert bool(declines(reply)) == bool(declines_anywhere(reply)) == (answer == "unanswerable")
        if leak[0] not in "HI":  # the end of reasoning that stands alone is known while nothing is shown
            gate = Gate()
            assert ("".join(map(gate.feed, reply)) + gate.end()).strip() in ("", answer)


@pytest.mark.parametrize("answer", ANSWERS)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
@examples(20)
def test_said_keeps_marks_within_an_answer(answer: str, cuts: list[int]) -> None:
    for pieces in ((answer,), tuple(answer), cut(answer, cuts)):
        assert said(pieces) == answer


@pytest.mark.parametrize("echo", ECHOES)
@given(cuts=st.lists(st.integers(0, 160), max_size=6))
@examples(20)
def test_said_leaves_out_the_prompt_that_was_given_back(echo: str, cuts: list[int]) -> None:
    for answer in (ANSWER, "unanswerable"):
        reply = echo.format(*SENT, answer)
        for pieces in ((reply,), tuple(reply), cut(reply, cuts)):
            assert said(pieces, SENT) == answer
    for other in ("You answer brief", "You answer briefly. Read that", "System failure.", "Human error.", "U"):
        for pieces in ((other,), tuple(other)):
            assert said(pieces, SENT) == other


@given(
    reply=st.lists(
        st.sampled_from(
            [*"<|>[]\n ", "think", "</", "im_end", "assistant", "final", "channel", "A b.", "analysis", "S"]
        ),
        max_size=12,
    ).map("".join),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
@examples(200)
def test_said_is_the_same_whatever_the_pieces(reply: str, cuts: list[int]) -> None:
    assert said(cut(reply, cuts)) == said(tuple(reply)) == said_in(reply)


def test_nothing_is_held_back_that_cannot_be_a_mark() -> None:
    spoken = Spoken()
    assert [spoken.feed(piece) for piece in ("Ms ", "Okafor", " < 3", " [see", " it]")] == [
        "Ms ",
        "Okafor",
        " < 3",
        " [see",
        " it]",
    ]


def test_reasoning_without_a_reply_says_nothing() -> None:
    for reply in ("<think>It was", "<think>Hm.</think>", "<|channel|>analysis<|message|>Hm.", "[THINK]Hm."):
        assert said_in(reply) == ""
        assert declines(reply).signal == "empty"
