"""Break the code in one place after the other, and see whether the tests of `make test` notice.

    python benchmarks/mutations.py [--only WORD ...]

Each mutation replaces one piece of code in a copy of this checkout. There the tests that `make test` runs are run up to
the first failure, those of the broken part before the others. Printed are the test that caught each mutation and the
seconds it took. The exit code is 1 if a mutation was not caught, or if it no longer fits the code.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "site", "dist")
PYTEST = ("-m", "pytest", "-q", "-x", "--numprocesses", "auto", "--dist", "worksteal", "-m", "not matrix")


@dataclass(frozen=True)
class Mutation:
    """One way to break the code.

    Attributes:
        name: What no longer works.
        path: The file.
        old: The code, which the file contains once.
        new: The code that takes its place.
        first: The folders whose tests run first.
    """

    name: str
    path: str
    old: str
    new: str
    first: tuple[str, ...]


CORE, LANGCHAIN, LLAMAINDEX = ("core", "hosts"), ("hosts", "langchain"), ("hosts", "llamaindex")
DOCUMENTS, USAGE, STORED, CACHING = ("documents",), ("usage",), ("hosts", "stores"), ("caching",)
LC, LI = "langchain_selfroute", "llamaindex_selfroute"
MUTATIONS = (
    Mutation(
        "answers escalate",
        "selfroute/flow.py",
        "if not reply.verdict.escalates:",
        "if reply.verdict.escalates:",
        CORE,
    ),
    Mutation("a refused step is taken", "selfroute/flow.py", "if not decided.granted:", "if False:", CORE),
    Mutation("each reading is the first", "selfroute/flow.py", "rung = ladder[:at].count(step)", "rung = 0", CORE),
    Mutation(
        "a doubt that nothing follows is lost",
        "selfroute/flow.py",
        'if reply.verdict.signal == "doubt":',
        "if False:",
        CORE,
    ),
    Mutation(
        "sections may be most of the documents",
        "selfroute/calls/fitting.py",
        "reading.length(sections) * _PART <= reading.length(reading.chosen)",
        "True",
        CORE,
    ),
    Mutation(
        "readings are settled together", "selfroute/calls/escalation.py", "by_then[case.step] = before", "pass", CORE
    ),
    Mutation(
        "a given list is cut to the best documents",
        "selfroute/calls/reading.py",
        "if not self.is_stored or (most",
        "if (most",
        CORE,
    ),
    Mutation(
        "touching sections stay apart",
        "selfroute/documents/sections.py",
        "joined[-1] = last._replace(end=max(last.end, run.end))",
        "joined.append(run)",
        CORE,
    ),
    Mutation(
        "no second try with less", "selfroute/flow.py", "yield ReadDocuments(passages, too_long, step)", "()", CORE
    ),
    Mutation("any error is too long", "selfroute/calls/drivers.py", "call.is_too_long(error)", "True", CORE),
    Mutation(
        "a refusal may be too long", "selfroute/calls/drivers.py", "isinstance(error, NoReplyError)", "False", CORE
    ),
    Mutation("a left stream goes on", "selfroute/calls/drivers.py", "await pieces.aclose()\n\n\n", "pass\n\n\n", CORE),
    Mutation(
        "an empty reply answers",
        "selfroute/answerability/gate.py",
        "not reader.text:\n            return EMPTY",
        "not reader.text:\n            return ANSWERED",
        ("languages",),
    ),
    Mutation(
        "a decline is shown",
        "selfroute/answerability/gate.py",
        "if self.verdict is ANSWERED else",
        "if True else",
        ("languages",),
    ),
    Mutation("the refusal is not stripped", "selfroute/prompts.py", "return value.strip()", "return value", CORE),
    Mutation(
        "a full window takes one more",
        "selfroute/documents/window.py",
        "if size > room:",
        "if size > room + 1:",
        DOCUMENTS,
    ),
    Mutation(
        "an overlap is written twice",
        "selfroute/documents/offsets.py",
        "blank + chunk.text[max(shared, 0) :]",
        "blank + chunk.text",
        DOCUMENTS,
    ),
    Mutation(
        "half an original is used",
        "selfroute/documents/stored.py",
        "(access.limits and visible != len(self._ids(source, None)))",
        "False",
        STORED,
    ),
    Mutation(
        "chunks are not compared",
        "selfroute/documents/stored.py",
        "                if check:\n                    check.check_chunk",
        "                if False:\n                    check.check_chunk",
        STORED,
    ),
    Mutation(
        "the cache forgets whom it read for",
        "selfroute/documents/cache.py",
        "key = (source, filter_key)\n        with",
        "key = (source, None)\n        with",
        DOCUMENTS,
    ),
    Mutation(
        "cached tokens cost full price",
        "selfroute/usage/prices.py",
        '"cache_read_tokens": cached,',
        '"cache_read_tokens": 0,',
        USAGE,
    ),
    Mutation(
        "a cut reply counts nothing",
        "selfroute/usage/account.py",
        "if not (self.text or self.left):",
        "if not self.whole:",
        USAGE,
    ),
    Mutation("what documents cost is not learned", "selfroute/usage/tokens.py", "self._rates.put(", "(", USAGE),
    Mutation("nothing is priced as declared", "selfroute/calls/asking.py", "if declared:", "if False:", USAGE),
    Mutation(
        "the retriever's filter is not heard",
        f"{LC}/stored/reading.py",
        "theirs = [] if scope is None or scope.filter is None else [scope.filter]",
        "theirs = []",
        LANGCHAIN,
    ),
    Mutation(
        "the passages of a row are believed",
        "selfroute/calls/call.py",
        "if first and not self.reading.is_from_passages else None",
        "if first else None",
        CORE,
    ),
    Mutation("a row may have negative numbers", "selfroute/usage/values.py", "if not 0 <= value", "if not value", CORE),
    Mutation(
        "a part is known by its package",
        "selfroute/documents/access.py",
        "return name_of(type(part)) in names",
        'return any(name.startswith(type(part).__module__.split(".")[0]) for name in names)',
        STORED,
    ),
    Mutation(
        "a filter can be changed later", "selfroute/documents/access.py", "return copied", "return value", LANGCHAIN
    ),
    Mutation(
        "what a part dropped is forgotten",
        "selfroute/documents/stored.py",
        "if source in access.dropped and not access.declared:",
        "if False:",
        STORED,
    ),
    Mutation(
        "two numbers alone are grades",
        "selfroute/answerability/scores.py",
        "if cut and self._found",
        "if self._found",
        ("policies",),
    ),
    Mutation(
        "a refusal and a full stop answer",
        "selfroute/answerability/gate.py",
        "ended = self._refusal.ends_reply(reader.text, end)",
        "ended = False",
        ("languages",),
    ),
    Mutation(
        "a denial hides the answer after it",
        "selfroute/answerability/final.py",
        "if answering.matched or telling.matched:",
        "if answering.matched:",
        ("languages",),
    ),
    Mutation(
        "settings are of the latest copy",
        "selfroute/calls/memory.py",
        "return latest[1]",
        "return self._latest[1]",
        CORE,
    ),
    Mutation(
        "a step may exceed what is left",
        "selfroute/policies/budget.py",
        "tokens + estimate.tokens > self._tokens",
        "tokens > self._tokens",
        ("policies",),
    ),
    Mutation(
        "text is written for everybody",
        "workbench/selfroute_workbench/private.py",
        "0o600, 0o700, 0o077",
        "0o644, 0o755, 0o022",
        ("command",),
    ),
    Mutation("model runs have no tag", f"{LC}/host.py", "manager.add_tags([tag])", "pass", LANGCHAIN),
    Mutation(
        "the retriever's filters are not heard", f"{LI}/stored/filters.py", ").within(search.filters)", ")", LLAMAINDEX
    ),
    Mutation(
        "a stream has no sources", f"{LI}/responses.py", "sources[:] = [*call.context, *more]", "pass", LLAMAINDEX
    ),
    Mutation(
        "what a policy holds is never settled",
        "selfroute/policies/policy.py",
        "        policy.settle(case, spent)\n    _settle_held(case, spent)",
        "        policy.settle(case, spent)",
        ("policies",),
    ),
    Mutation(
        "accounts share a provider's cache",
        "selfroute/calls/asking.py",
        "host.account(step), prefix.digest()",
        "None, prefix.digest()",
        CACHING,
    ),
    Mutation(
        "a flight that fails never ends",
        "selfroute/calls/flights.py",
        "            if first:\n                flight.end()\n            pieces.close()",
        "            pieces.close()",
        CACHING,
    ),
    Mutation(
        "a check overlooks gaps",
        "selfroute/checking/on_documents.py",
        'if gaps := self._label_of(document).get("gaps"):',
        "if gaps := None:",
        CORE,
    ),
    Mutation(
        "an async reader leaves, the model goes on",
        f"{LC}/host.py",
        "await ahang_up(leaving, waited=waiting.done)",
        "del leaving",
        LANGCHAIN,
    ),
    Mutation(
        "a first step reads on",
        f"{LC}/two_steps.py",
        "kwargs, first_only=True)",
        "kwargs, first_only=False)",
        LANGCHAIN,
    ),
    Mutation(
        "prompts show our label",
        f"{LC}/prompting.py",
        "metadata = in_prompt(document.metadata)",
        "metadata = document.metadata",
        LANGCHAIN,
    ),
    Mutation(
        "nodes of a row are believed", f"{LI}/synthesizer.py", "words=words, finder=finder)", "words=words)", LLAMAINDEX
    ),
    Mutation(
        "a cancelled hang-up is given up",
        "selfroute/hangup.py",
        "return await asyncio.shield(task)",
        "return await task",
        CORE,
    ),
    Mutation(
        "thoughts cost nothing",
        f"{LI}/models.py",
        ' + as_count(_look(gemini, "thoughts_token_count"))',
        "",
        LLAMAINDEX,
    ),
    Mutation(
        "passages of one document hide another's keys",
        "selfroute/documents/access.py",
        "dict.fromkeys(keys, object())",
        "{}",
        STORED,
    ),
    Mutation(
        "a call reads its documents twice",
        "selfroute/calls/reading.py",
        "self.documents, self._is_read = self._host.read(self.passages), True",
        "self.documents, self._is_read = self._host.read(self.passages), False",
        CORE,
    ),
)


def caught_by(mutation: Mutation, copy: Path) -> str | None:
    """Apply a mutation to a copy of the checkout and run the tests; return the one that failed, None if none did."""
    path = copy / mutation.path
    code = path.read_text("utf-8")
    if code.count(mutation.old) != 1:
        msg = f"{mutation.path} does not contain this once: {mutation.old!r}"
        raise LookupError(msg)
    path.write_text(code.replace(mutation.old, mutation.new), "utf-8")
    try:
        folders = sorted(path.name for path in (copy / "tests").iterdir() if path.is_dir())
        others = [name for name in folders if name not in (*mutation.first, "release", "__pycache__")]
        return failure_in(copy, mutation.first) or failure_in(copy, others)
    finally:
        path.write_text(code, "utf-8")


def failure_in(copy: Path, folders: Sequence[str]) -> str | None:
    """Run the tests of some folders up to the first failure; return which test it was, None if all passed."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False"}
    ran = subprocess.run(
        [sys.executable, *PYTEST, *(f"tests/{name}" for name in folders)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    return found[1] if found else f"exit code {ran.returncode}"


def main() -> int:
    """Try the mutations and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only those whose name contains a word")
    words = parser.parse_args().only
    chosen = [one for one in MUTATIONS if not words or any(word in one.name for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        for mutation in chosen:
            began = time.perf_counter()
            try:
                test = caught_by(mutation, copy)
            except LookupError as error:
                test, missed = f"NOT TRIED: {error}", missed + 1
            else:
                missed += test is None
            seconds = time.perf_counter() - began
            print(f"{mutation.name:38} {seconds:5.0f} s  {test or 'NOT CAUGHT'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
