"""The prompts of the paper's data sets (Table 9) and of its other experiments.

Templates of `str.format` with `{context}` (the passages or the document), `{input}` (the question), `{refusal}` (the
word by which the model declines; "unanswerable" in the paper) and, for multiple choice, `{choices}`. The paper prints
each prompt as one paragraph; the line breaks are those of LongBench's and InfiniteBench's prompts, which it modified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from selfroute.answerability.structured import json_in
from selfroute_workbench.evaluation.questions import Question

_DECLINE = 'If the question cannot be answered based on the information in the article, write "{refusal}".'

_NARRATIVEQA = f"""\
You are given a story, which can be either a novel or a movie script, and a question. Answer the question as concisely \
as you can, using a single phrase if possible. Do not provide any explanation. {_DECLINE}

Story: {{context}}

Now, answer the question based on the story as concisely as you can, using a single phrase if possible. Do not provide \
any explanation. {_DECLINE}

Question: {{input}}

Answer:"""

_QASPER_HOW = f"""\
as concisely as you can, using a single phrase or sentence if possible. {_DECLINE} If the question is a yes/no \
question, answer "yes", "no", or "{{refusal}}". Do not provide any explanation."""

_QASPER = f"""\
You are given a scientific article and a question. Answer the question {_QASPER_HOW}

Article: {{context}}

Answer the question based on the above article {_QASPER_HOW}

Question: {{input}}

Answer:"""

_MULTIFIELDQA = f"""\
Read the following text and answer briefly.

{{context}}

Now, answer the following question based on the above text, only give me the answer and do not output any other words. \
{_DECLINE}

Question: {{input}}
Answer:"""

_MULTIHOP = f"""\
Answer the question based on the given passages. Only give me the answer and do not output any other words. {_DECLINE}

The following are given passages.
{{context}}

Answer the question based on the given passages. Only give me the answer and do not output any other words. {_DECLINE}

Question: {{input}}
Answer:"""

_QMSUM = f"""\
You are given a meeting transcript and a query containing a question or instruction. Answer the query in one or more \
sentences. {_DECLINE}

Transcript:
{{context}}

Now, answer the query based on the above meeting transcript in one or more sentences. {_DECLINE}

Query: {{input}}
Answer:"""

_EN_QA = f"""\
Read the book and answer the question. Be very concise in your answer. {_DECLINE}

{{context}}

Question: {{input}}

Only give me the answer and do not output any other words. {_DECLINE}

Answer:"""

_EN_MC = f"""\
Read the book and answer the question. {_DECLINE}

{{context}}

Question: {{input}}
{{choices}}

Only output the letter of the correct answer and do not output any other words. {_DECLINE}

The letter of the correct answer is"""

_PASSKEY = f"""\
There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. I will quiz you about \
the important information there.

{{context}}

{_DECLINE}

Question: {{input}}
Answer:"""

PROMPTS: Mapping[str, str] = {
    "narrativeqa": _NARRATIVEQA,
    "qasper": _QASPER,
    "multifieldqa": _MULTIFIELDQA,
    "hotpotqa": _MULTIHOP,
    "2wikimultihopqa": _MULTIHOP,
    "musique": _MULTIHOP,
    "qmsum": _QMSUM,
    "en.qa": _EN_QA,
    "en.mc": _EN_MC,
    "passkey": _PASSKEY,
}
"""By name: Table 9, and `passkey`, which the paper does not print: InfiniteBench's prompt with the paper's sentence on
declining. PassKey's variants use it, too."""

CLOSED_BOOK = """\
Answer the question as concisely as you can, using a single phrase if possible. Do not provide any explanation. If you \
do not know the answer, write "{refusal}".

Question: {input}
Answer:"""
"""Asks without any context (section 5.5, Table 5); the paper prints no prompt. Choices go into `{input}`."""

REASONS = """\
You are given some text chunks from an article, and a question. The text chunks are retrieved by an external \
retriever. Now:

(1) Tell whether the question can be answered based only on the provided text chunks.

(2) If the question can be answered, answer the question based on the texts as concisely as you can, using a single \
phrase if possible.

(3) If the question cannot be answered, choose the reason from the following:

A. The question needs multistep reasoning, thus it is hard to retrieve all the relevant chunks. For example, "What \
nationality is the performer of song You Can?" contains two steps: find the performer, then find the nationality of \
the performer. Other examples include "Where does the director of film Wine Of Morning work at?", "What is another \
notable work made by the author of Miss Sara Sampson?"

B. The question is a general query, thus it is hard to retrieve relevant chunks. For example, "What did the group \
think about Dave leaving?" is general because the group may include multiple persons, and they can have different \
thinkings.

C. The question is long and complex, which is hard for the retriever to encode it to retrieve relevant chunks. For \
example, "What did Julie Morgan elaborate on the online survey when talking about the evaluations on the legitimacy \
of the children's rights, protection and demands?", "The Huskies football team were invited to the Alamo Bowl where \
they were defeated by a team coached by Art Briles and who played their home games at what stadium?"

D. The question is not explicit and requires comprehensive understanding of the whole story and cannot be solved \
using retrieval-augmented generation. For example, "What caused the shadow behind Koerber's ship?" needs a \
comprehensive understanding of the whole story. Another example like "How many words are there in the article" also \
requires the complete article.

E. Others.

Keep the above reasons in mind, and choose the most possible reason if you think the question cannot be answered \
based on the text. Output the results in JSON format.

Text: The Gorse Lane ferry was built at Pelham's yard in 1931. It carried forty passengers and two carts.
Question: Where was the Gorse Lane ferry built?
Answer: {{"answerable": true, "answer": "Pelham's yard", "reason": ""}}

Text: "The Tin Orchard" was first sung by Odile Marrack at the Candle Street Hall.
Question: In which town did the first singer of "The Tin Orchard" grow up?
Answer: {{"answerable": false, "answer": "", "reason": "A"}}

Text: Benno: I would rather keep the old kiln. Sal: We can talk about it after the holidays.
Question: How did the workshop feel about the move?
Answer: {{"answerable": false, "answer": "", "reason": "B"}}

Text: The survey of the lower meadows was printed in spring. Councillor Ames thanked the volunteers.
Question: What did Councillor Ames say on how the survey of the lower meadows weighed the complaints of the tenants \
against the cost of the new drains when the committee compared it with the survey of the year before?
Answer: {{"answerable": false, "answer": "", "reason": "C"}}

Text: Halvard put the letter back under the lamp. Nobody at the table spoke, and the rain went on.
Question: Why did Halvard never come back to the lighthouse?
Answer: {{"answerable": false, "answer": "", "reason": "D"}}

Text: The museum opens at ten. Groups are asked to book a week ahead.
Question: What is the entrance fee of the museum?
Answer: {{"answerable": false, "answer": "", "reason": "E"}}

Text: {context}
Question: {input}
Answer:"""
"""Asks why the passages are not enough (section 5.2, Figure 4): Table 8. The paper prints neither its in-context
examples nor the keys of its JSON; these six were written for this package, and every name in them is invented."""


LETTERS = {"A": "multi-step", "B": "general", "C": "long and complex", "D": "implicit", "E": "other"}
ANSWERED = "answerable"
UNREADABLE = "?"
_LETTER = re.compile(r"\b([A-E])(?=[.:)\s]|$)")

SEQUEL = """\
From the context: {context}, answer the questions briefly with no explanation.{letters}

{input}
{choices}"""
"""The prompt of the sequel (Li et al., 2025, section 4), which does not say where the question stands. It does not ask
for declines, so that Self-Route answers nearly all questions from passages."""

_LETTERS = (
    " Answer the question with the letters of the correct options (e.g. A, BC, C, ACD, etc.) without including text."
)
_BOUND = re.compile(
    " based on the (?:story|above (?:article|text|meeting transcript)|given passages|information in the article)"
)


def without_based_on(template: str) -> str:
    """Take "based on the article" and the like out of a prompt: the paper's Table 4, "without".

    Its Table 1 is Table 4's "with", so Table 9 as printed is "with". The paper speaks of "based only on the provided
    passage" (sections 3.2 and 5.5), which stands in no prompt that it prints.
    """
    return _BOUND.sub("", template)


def prompt_of(question: Question, *, of_sequel: bool = False) -> str:
    """Return the prompt of a question's data set, or the sequel's; for other data, that of the most alike."""
    if of_sequel:
        return SEQUEL.replace("{letters}", _LETTERS if question.choices else "")
    by_metric = {"choice": "en.mc", "rouge_l": "qmsum"}.get(question.metric, "multifieldqa")
    name = "passkey" if question.dataset.startswith("passkey") else question.dataset
    return PROMPTS[name if name in PROMPTS else by_metric]


def letter_in(reply: str) -> str:
    """Read which reason a model chose by `REASONS`, in JSON or plain: A to E, `ANSWERED`, or `UNREADABLE`."""
    report = json_in(reply)
    if not isinstance(report, dict):
        found = _LETTER.findall(reply)
        return found[0] if len(set(found)) == 1 else UNREADABLE
    letter = str(report.get("reason") or "").strip()[:1].upper()
    if letter in LETTERS:
        return letter
    return ANSWERED if report.get("answerable") is True else UNREADABLE
