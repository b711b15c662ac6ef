"""Where the questions of an evaluation come from, and the prompts that they are asked by."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper import datasets, prompts
from paper.datasets import DATASETS, load, resolve
from paper.prompts import PROMPTS
from selfroute.errors import ConfigurationError, InputError
from selfroute_workbench.evaluation.metrics import LETTERS, METRICS
from selfroute_workbench.evaluation.questions import (
    Question,
    choice_lines,
    load_questions,
    option_and_letter,
    question_of,
)

NOISE = "The gulls were loud. The tide was low.\n"
TEXT = "A text of more than one short line, which says who chaired the meeting. Größe: {braces}."
BARE = {"question": "Who chaired?", "answers": ["Ms Okafor"]}
SAID = st.text(min_size=1).filter(str.strip)
OPTIONS = st.lists(SAID, min_size=2, max_size=4)

PASSKEYS = ("passkey", datasets.SPECIAL_TOKEN, datasets.LARGER)

partial = pytest.mark.filterwarnings("ignore:.* is not all of")


def write(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def longbench(id_: str = "a1", **values: Any) -> dict[str, Any]:
    """A record as LongBench's files have them."""
    record = {"input": "Who chaired?", "context": "Ms Okafor chaired.", "answers": ["Ms Okafor"], "length": 3}
    return {**record, "dataset": "any", "language": "en", "all_classes": None, "_id": id_, **values}


def infinitebench(id_: int = 0, **values: Any) -> dict[str, Any]:
    """A record as InfiniteBench's files have them."""
    return {"id": id_, "context": "A book.", "input": "Who?", "answer": ["Ada"], "options": [], **values}


def hiding(key: str, *, before: int = 3, after: int = 4) -> str:
    return NOISE * before + f"The pass key is {key}. Remember it. {key} is the pass key.\n" + NOISE * after


def a_passkey(key: str = "04711", id_: str = "0", *, document: str | None = None) -> Question:
    return Question("passkey", id_, "What is the pass key?", (key,), "passkey", (), document or hiding(key))


# The JSONL


def test_load_questions_least(tmp_path: Path) -> None:
    assert load_questions(write(tmp_path / "minutes.jsonl", BARE)) == [
        Question("minutes", "1", "Who chaired?", ("Ms Okafor",), metric="f1")
    ]


def test_load_questions_lenient(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\n{"question": "Wer?", "answers": "J\xc3\xb6rg"}\r\n  \n')
    assert [(one.id, one.answers) for one in load_questions(path)] == [("2", ("Jörg",))]


def test_load_questions_share_texts(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(TEXT, "utf-8")
    of_file = [{**BARE, "document_file": "texts/a.txt"}] * 2
    written_out = {**BARE, "document": TEXT}
    texts = [one.document for one in load_questions(write(tmp_path / "x.jsonl", *of_file, written_out))]
    assert texts == [TEXT] * 3
    assert len(set(map(id, texts))) == 1


@pytest.mark.parametrize("answers", ["Mr Lin", "B", ["Mr Lin"], ["B"], ["Mr Lin", "B"], ["B", "Mr Lin"]])
def test_question_of_choices(answers: str | list[str]) -> None:
    question = question_of({"question": "Who?", "answers": answers, "choices": ["Ms Okafor", "Mr Lin"]}, "1")
    assert (question.answers, question.metric) == (("Mr Lin", "B"), "choice")


@given(OPTIONS, st.data())
def test_option_and_letter(options: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(options) - 1))
    pair = options[number], LETTERS[number]
    assert option_and_letter(pair, options) == pair


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"answers": ["x"]}', "question: Field required"),
        ('{"question": " ", "answers": ["x"]}', "question: Value error, it is empty"),
        ('{"question": "Q"}', "answers: Field required"),
        ('{"question": "Q", "answers": [[1]]}', "answers.0: Input should be a valid string"),
        ('{"question": "Q", "answers": ["x"], "metric": "f2"}', "'f2' is not known; write one of f1, choice"),
        (
            '{"question": "Q", "answers": ["x"], "document": "minutes.txt"}',
            "write document_file for the path of a file",
        ),
        ('{"question": "Q", "answers": ["x"], "document": "It rained."}', "a file's name or one short line"),
        ('{"question": "Q", "answers": ["x"], "choices": "ab"}', "one of the choices or its letter (A)"),
        ('{"question": "Q", "answers": ["x"], "metric": "choice"}', "one of the choices or its letter"),
        ('{"question": "Q", "answers": ["x"], "choices": ["a", "b", "c", "d", "e"]}', "choices: Tuple should"),
        ('{"question": "Q", "answers": ["C"], "choices": ["a", "b"]}', "one of the choices or its letter (A, B)"),
        ('{"question": "Q", "answers": ["a", "B"], "choices": ["a", "b"]}', "one of the choices or its letter"),
        ('{"question": "Q", "answers": ["x"], "document": ""}', "document: Value error, it is empty"),
        ('{"question": "Q", "answers": ["x"], "document": "t", "document_file": "t"}', "are both given"),
        (
            '{"question": "Q", "answers": ["x"], "document_file": "no.txt"}',
            "document_file 'no.txt': there is no such file",
        ),
        ('{"question": "Q", "answers": ["x"], "document_file": "bad.txt"}', "'bad.txt': this is not UTF-8 text"),
        ('{"question": "Q", "answers": ["x"], "document_file": "empty.txt"}', "'empty.txt': the file is empty"),
        ('{"question": "Q", "answers": ["x"], "id": "1"}', "the id '1' was used before"),
    ],
)
def test_load_questions_wrong_lines(tmp_path: Path, line: str, wrong: str) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    (tmp_path / "empty.txt").touch()
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(BARE)}\n\n{line}\n", "utf-8")
    with pytest.raises(InputError) as raised:
        load_questions(path)
    assert str(raised.value).startswith(f"{path}:3")
    assert wrong in str(raised.value)


def test_load_questions_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.jsonl cannot be read: No such file"):
        load_questions(tmp_path / "no.jsonl")
    with pytest.raises(InputError, match=r"x\.jsonl holds no question"):
        load_questions(write(tmp_path / "x.jsonl"))
    (tmp_path / "x.jsonl").write_bytes(b'{"question": "\xff"}')
    with pytest.raises(InputError, match=r"x\.jsonl:1 is not UTF-8"):
        load_questions(tmp_path / "x.jsonl")


def test_question_of() -> None:
    assert question_of(BARE, "7") == Question("questions", "7", "Who chaired?", ("Ms Okafor",))
    with pytest.raises(InputError, match="question 7: answers: Field required"):
        question_of({"question": "Who?"}, "7")


@pytest.mark.parametrize(
    "given", ["Who chaired?", None, ("Who chaired?", ["Ms Okafor"])], ids=lambda one: type(one).__name__
)
def test_question_of_no_dict(given: Any) -> None:
    with pytest.raises(
        InputError, match=rf"^question 7 is a {type(given).__name__}: write {{'question': ..., 'answers'"
    ):
        question_of(given, "7")


# The prompts


def test_datasets_complete() -> None:
    assert {dataset.metric for dataset in DATASETS.values()} <= set(METRICS)
    assert {name.partition("-")[0] for name in DATASETS} == set(PROMPTS)
    assert {name for name, dataset in DATASETS.items() if not dataset.source} == {*PASSKEYS}
    assert {name: name for name in DATASETS} == {name: dataset.name for name, dataset in DATASETS.items()}


def test_prompt_closed_book() -> None:
    filled = prompts.CLOSED_BOOK.format(input="Who {chaired}?", refusal="unanswerable")
    assert "Question: Who {chaired}?\nAnswer:" in filled
    assert choice_lines(["Ada", "Bo", "{C}"]) == "A. Ada\nB. Bo\nC. {C}"


# PassKey's variants


def test_passkey_special_token() -> None:
    asked = datasets.special_token(a_passkey())
    assert asked.question == "What is the special token hidden inside the texts?"
    assert replace(asked, question="", dataset="") == replace(a_passkey(), question="", dataset="")


@given(st.text("0123456789", min_size=1, max_size=8), st.text(), st.integers(0, 9), st.integers(0, 9))
def test_passkey_larger(key: str, id_: str, before: int, after: int) -> None:
    document = hiding(key, before=before, after=after)
    asked = datasets.larger(a_passkey(key, id_, document=document))
    assert asked == datasets.larger(a_passkey(key, id_, document=document))
    keys = re.findall(r"The pass key is (\d+)\. Remember it\. (\d+) is the pass key\.(?:\n|$)", asked.document or "")
    assert [one for one, again in keys if one != again] == []
    first, second = (int(one) for one, _ in keys)
    assert asked.answers == ("First" if first > second else "Second",)
    assert first != second
    assert {len(one) for one, _ in keys} == {len(key)}
    assert (asked.id, asked.metric) == (id_, "first_or_second")
    lines = [line for line in (asked.document or "").split("\n") if line != "" and line in document]
    assert lines == [line for line in document.split("\n") if line]  # all of it is still there, in order


def test_passkey_larger_without_key() -> None:
    with pytest.raises(InputError, match="passkey 0: the document has no"):
        datasets.larger(a_passkey(document=NOISE))


# The paper's data sets


@partial
@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.benchmark == "LongBench"])
@pytest.mark.parametrize("place", [".", "data"])
def test_load_longbench(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / place / DATASETS[name].file, longbench("a1"), longbench("b2", answers=["x", "y"]))
    metric = "rouge_l" if name == "qmsum" else "f1"
    answers, text, source = ("Ms Okafor",), "Ms Okafor chaired.", DATASETS[name].source
    first = Question(name, "a1", "Who chaired?", answers, metric, (), text, source=source)
    assert load(name, folder=tmp_path) == [first, replace(first, id="b2", answers=("x", "y"))]


@partial
def test_load_passkey(tmp_path: Path) -> None:
    record = infinitebench(context=hiding("04711"), input="What is the pass key?", answer="04711")
    write(tmp_path / "passkey.jsonl", record)
    plain = a_passkey()
    assert load("passkey", folder=tmp_path) == [plain]
    assert load("passkey-special-token", folder=tmp_path) == [datasets.special_token(plain)]
    assert load("passkey-larger", folder=tmp_path) == [datasets.larger(plain)]


def test_load_warns_of_a_part(tmp_path: Path) -> None:
    write(tmp_path / "qasper.jsonl", longbench())
    with pytest.warns(UserWarning, match="is not all of qasper: it has 1 questions where the paper's has 200"):
        load("qasper", folder=tmp_path)
    write(tmp_path / "qasper.jsonl", *(longbench(str(number)) for number in range(200)))
    assert len(load("qasper", folder=tmp_path)) == 200


def test_load_missing_files(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"no musique\.jsonl or data\.zip for musique; put https://.*/data\.zip"
    ):
        load("musique", folder=tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"no passkey\.jsonl for passkey-larger; put https://.*/passkey\.jsonl"
    ):
        load("passkey-larger", folder=tmp_path)


@partial
def test_resolve(tmp_path: Path) -> None:
    write(tmp_path / "qasper.jsonl", longbench())
    assert resolve("qasper", tmp_path) == load("qasper", folder=tmp_path)
    path = write(tmp_path / "own.jsonl", BARE)
    assert resolve(str(path), tmp_path) == load_questions(path)
    with pytest.raises(
        ConfigurationError, match=r"'other' is neither a data set nor a file; .* demo, narrativeqa, qasper"
    ):
        resolve("other")
    with pytest.raises(ConfigurationError, match="there is no data set 'other'; the names are narrativeqa"):
        load("other")
