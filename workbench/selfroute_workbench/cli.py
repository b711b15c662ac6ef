"""The `selfroute` command: a demo that needs no key, questions to your own files, and evaluations.

Exit codes: 0 done; 1 an error on the way (the provider, a missing package), or what `check` found; 2 an error in the
call (a file, an option, a model's name or key); 130 interrupted. Errors are one line on stderr.
"""
# ruff: noqa: PLC0415 - heavy modules are imported when a command runs

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import cache
from inspect import Parameter, Signature
from typing import Annotated, Any

from selfroute import __version__
from selfroute.errors import ConfigurationError, InputError, SelfRouteError

try:
    import typer
    from typer.core import TyperCommand

    from selfroute_workbench.command import options as o
except ModuleNotFoundError:
    # The console script imports this module first: anything else would show its user a traceback.
    sys.exit('selfroute: the command needs the package typer: pip install "selfroute-workbench"')

_MODEL = re.compile(r"[\w-]+:(?![\\/])")
"""How `provider:name` begins; C:\\questions.jsonl is a file."""

app = typer.Typer(name="selfroute", add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        typer.echo(f"selfroute {__version__}")
        raise typer.Exit


@app.callback()
def _selfroute(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Answer from retrieved passages; read whole documents only when the model declines."""


class _JudgeAlone(TyperCommand):
    """A command whose option `--judge` may stand without a value, which typer does not know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--judge` an empty value where no `provider:name` follows."""
        following = [*args[1:], ""]
        alone = (each == "--judge" and not _MODEL.match(after) for each, after in zip(args, following, strict=True))
        given = ["--judge=" if bare else each for each, bare in zip(args, alone, strict=True)]
        parsed: list[str] = super().parse_args(ctx, given)
        return parsed


_MODELS = ("model", "long_context_model", "base_url", "priced_as")
_PASSAGES = ("k", "embeddings")
_MORE = ("paper", *o.READING)
_SERVER = ("name", "about", "http", "host", "port")


def _command(*names: str, cls: type[TyperCommand] = TyperCommand) -> Callable[[Callable[[o.Options], int]], Any]:
    """Make a command of a function; its options are the fields of `Options` with these names."""

    def register(perform: Callable[[o.Options], int]) -> Any:
        def run(**typed: Any) -> int:
            return perform(o.Options(**typed))

        options = [field for field in fields(o.Options) if field.name in names]
        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [
                Parameter(
                    each.name,
                    Parameter.KEYWORD_ONLY,
                    annotation=each.type,
                    default=Parameter.empty if each.default is MISSING else each.default,
                )
                for each in options
            ]
        )
        return app.command(perform.__name__, help=perform.__doc__, cls=cls)(run)

    return register


@_command(*_MODELS, *_PASSAGES, "paper", "sections", "limit", "reader", "as_json")
def demo(options: o.Options) -> int:
    """Answer the questions that come with selfroute from the long document that comes with it.

    Without --model, recorded replies of a language model answer, and the strategies are compared.
    Example: selfroute demo --model openai:gpt-5-mini
    """
    return _perform("demo:demo", options)


@_command("files", "question", *_MODELS, *_PASSAGES, "store", *_MORE, "as_json")
def ask(options: o.Options) -> int:
    """Answer questions from your own files.

    Without --question the last argument is the question. Example: selfroute ask report.pdf "When does it end?"
    """
    return _perform("asking:ask", options)


@_command("files", "tried", *_MODELS, *_PASSAGES, "store", *_MORE, "as_json")
def check(options: o.Options) -> int:
    """Try what `ask` would use, without asking a model; exit with 1 if something has to be changed.

    Example: selfroute check reports --model openai:gpt-5-mini
    """
    return _perform("asking:check", options)


@_command("files", "model", "long_context_model", "base_url", *_PASSAGES, "store", *_MORE, *_SERVER)
def mcp(options: o.Options) -> int:
    """Serve your own files to clients of the Model Context Protocol, such as Claude Code, Cursor or VS Code.

    Over the standard input and output, or with --http over the network. There clients send a token: that in
    SELFROUTE_MCP_TOKEN, or on this machine one that is made and printed.
    Example: selfroute mcp minutes --model openai:gpt-5-mini --about "Minutes of the harbour board, 2019 to 2026"
    """
    return _perform("mcp:serve", options, extra="[mcp]")


@_command("asked", *_MODELS, *_PASSAGES, *_MORE, "limit", "judge", "max_cost", "out", "as_json", cls=_JudgeAlone)
def evaluate(options: o.Options) -> int:
    """Compare what `selfroute ask` does with RAG, the paper's rule and the long context, on questions of your own.

    The files are one store, as `ask` has them. Without files each question is asked of its own document. Every reply
    is kept: after an interruption, run the same command again to go on. `demo` evaluates the recorded replies that
    come with selfroute, unless there is a --model.
    Example: selfroute evaluate reports questions.jsonl --model openai:gpt-5-mini --judge --max-cost 2
    """
    return _perform("evaluate:evaluate", options)


@_command("files", "model", "base_url", "priced_as", "number", "unanswerable", "window", "max_cost", "out_file")
def questions(options: o.Options) -> int:
    """Have a model write questions about your own documents, for `selfroute evaluate`.

    What it quotes as evidence is looked up in the documents, and what it knows without them is dropped. Every reply is
    kept: after an interruption, run the same command again to go on.
    Example: selfroute questions reports --model openai:gpt-5-mini --max-cost 2
    """
    return _perform("questions:questions", options)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        args: What was typed after `selfroute`; `sys.argv` if None.
    """
    try:
        return int(_parser()(args, standalone_mode=False) or 0)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's error for a wrong option depends on its version
            raise
        path = getattr(getattr(error, "ctx", None), "command_path", None) or "selfroute"
        return _say(f"{error.format_message()} ({path} --help explains)", 2)


@cache
def _parser() -> Any:
    return typer.main.get_command(app)


def _perform(name: str, options: o.Options, *, extra: str = "") -> int:
    """Run a function of `selfroute_workbench.command`; say an error in one line, and return the exit code."""
    try:
        from rich.console import Console

        with Console(stderr=True).status("Starting"):  # the imports take a few seconds
            perform = pkgutil.resolve_name(f"selfroute_workbench.command.{name}")
        return 1 if perform(options) is False else 0
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except (ConfigurationError, InputError) as error:
        return _say(str(error), 2)
    except SelfRouteError as error:
        return _say(str(error), 1)
    except ModuleNotFoundError as error:
        return _say(f'the command needs the package {error.name}: pip install "selfroute-workbench{extra}"', 1)
    except Exception as error:  # noqa: BLE001 - the providers' clients have no error in common
        from selfroute.error_text import one_line, without_secrets

        said = one_line(error)
        if (address := options.base_url) and "onnect" in type(error).__name__:
            said = f"{without_secrets(address)} does not answer: {said}"
        return _say(said, 1)


def _say(message: str, code: int) -> int:
    line = " ".join(message.split())
    typer.echo(f"selfroute: {''.join(filter(str.isprintable, line))}", err=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
