"""Errors in one line: what went wrong stays, and no secret is shown."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from selfroute.error_text import first_line, one_line, without_secrets

HEX = "0123456789abcdef0123456789abcdef"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {  # a text, and the secret in it
    "postgres": ("could not connect to postgresql://app:s3cret@db.internal:5432/x", "s3cret"),
    "driver": ("postgresql+psycopg://app:s3cret@db/x refused", "s3cret"),
    "no user": ("redis://:s3cret@cache:6379/0 timed out", "s3cret"),
    "no password": ("fatal: https://s3cret-t0ken@git.example.com/x.git not found", "s3cret-t0ken"),
    "an at sign": ("mongodb+srv://app:p@ss!w0rd@cluster0.mongodb.net/?retry=1", "p@ss!w0rd"),
    "a slash": ("amqp://app:pa/ss@queue:5672/", "pa/ss"),
    "mssql": ("Server=tcp:db,1433;User ID=app;Password=s3cr,et;Encrypt=yes", "s3cr,et"),
    "odbc": ("DRIVER={x};UID=app;PWD=s3cret;", "s3cret"),
    "dsn": ("host=db password=s3cret dbname=x", "s3cret"),
    "a quoted dsn": ("host=db password='s3 cret' dbname=x", "s3 cret"),
    "json": ('{"user": "app", "password": "s3 cret", "host": "db"}', "s3 cret"),
    "escaped json": (r'body "{\"password\": \"s3cret\"}" was refused', "s3cret"),
    "yaml": ("password: s3cret", "s3cret"),
    "python": ("login(user='app', password='s3 cret')", "s3 cret"),
    "storage": ("AccountName=x;AccountKey=Zm9vYmFyYmF6cXV4Zm9v==;EndpointSuffix=y", "Zm9vYmFyYmF6cXV4Zm9v"),
    "service bus": ("Endpoint=sb://x/;SharedAccessKey=Zm9vYmFyYmF6cXV4Zm9v=", "Zm9vYmFyYmF6cXV4Zm9v"),
    "sas": ("GET https://x.blob.core.windows.net/c/b?sv=2024-01-01&sp=r&sig=aB%2Fc%3D&se=2026 403", "aB%2Fc%3D"),
    "s3": (f"https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={HEX} expired", HEX),
    "s3 session": ("https://b.s3.amazonaws.com/k?X-Amz-Security-Token=IQoJb3JpZ2lu&x=1", "IQoJb3JpZ2lu"),
    "gcs": (f"https://storage.googleapis.com/b/o?X-Goog-Signature={HEX}", HEX),
    "google's query": ("https://generativelanguage.googleapis.com/v1/models?key=short&alt=json", "short"),
    "token query": ("wss://host/socket?access_token=abc123", "abc123"),
    "aws id": ("The AWS Access Key Id AKIAIOSFODNN7EXAMPLE does not exist", "AKIAIOSFODNN7EXAMPLE"),
    "aws temporary id": ("ASIAIOSFODNN7EXAMPLE has expired", "ASIAIOSFODNN7EXAMPLE"),
    "aws secret": (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    "google": ("API key not valid: AIzaSyA1234567890abcdefghijklmnopqrstu", "AIzaSyA1234567890abcdefghijklmnopqrstu"),
    "google oauth": ("ya29.a0AfH6SMBxxxxxxxx was revoked", "ya29.a0AfH6SMBxxxxxxxx"),
    "github": (
        "remote: ghp_16C7e42F292c6912E7710c838347Ae178B4a is invalid",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ),
    "github, fine": ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv", "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv"),
    "gitlab": ("glpat-abcdefghij1234567890 expired", "glpat-abcdefghij1234567890"),
    "hugging face": ("User token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH is not allowed", "hf_abcdefghijklmnopqrstuv"),
    "slack": ("xoxb-123456789012-abcdefghijkl: invalid_auth", "xoxb-123456789012-abcdefghijkl"),
    "openai": ("Incorrect API key provided: sk-proj-abcdefgh12345678. Look at the page", "sk-proj-abcdefgh12345678"),
    "starred": ("Incorrect API key provided: sk-abc***********wxyz.", "wxyz"),
    "anthropic": ("invalid x-api-key: sk-ant-api03-abcdefgh_ij", "sk-ant-api03-abcdefgh_ij"),
    "groq": ("gsk_abcdefgh12345678", "gsk_abcdefgh12345678"),
    "stripe": ("rk_live_abcdefgh12345678", "rk_live_abcdefgh12345678"),
    "opaque": ("Invalid API key: 8f14e45fceea167a", "8f14e45fceea167a"),
    "opaque, provided": ("Incorrect API key provided: 8f14e45fceea167a", "8f14e45fceea167a"),
    "azure's header": ("headers {'api-key': '8f14e45fceea167a', 'accept': 'x'}", "8f14e45fceea167a"),
    "client secret": ("grant_type=x&client_secret=8f~14e45fceea167a&scope=y", "8f~14e45fceea167a"),
    "jwt": (f"the token {JWT} has expired", JWT),
    "bearer": (f"Authorization: Bearer {HEX}", HEX),
    "bearer alone": (f"sent 'Bearer {HEX}'", HEX),
    "basic": ("{'Authorization': 'Basic YXBwOnMzY3JldA=='}", "YXBwOnMzY3JldA"),
    "a scheme of its own": ("authorization=Token 8f14e45f, host=x", "8f14e45f"),
    "pem": (
        "key -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB\nAAKCAQEA\n-----END RSA PRIVATE KEY----- is bad",
        "MIIEpAIB",
    ),
    "half a pem": ("-----BEGIN PRIVATE KEY-----\nMIIEpAIB", "MIIEpAIB"),
}


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("tell", [without_secrets, lambda text: one_line(RuntimeError(text))], ids=["text", "error"])
def test_a_secret_is_hidden_and_what_stands_around_it_stays(text: str, secret: str, tell: Callable[[str], str]) -> None:
    shown = tell(f"{text}, sorry for that")
    assert secret not in shown
    assert "***" in shown
    assert "sorry for that" in shown or secret == "MIIEpAIB"  # noqa: S105 - it may have no end
    before = text.partition(secret)[0].split()
    if before and "BEGIN" not in text:
        assert before[0][:4] in shown


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (max_tokens: 1024).",
        "max_tokens=1024 is above the limit; completion_tokens: 100000",
        "Unexpected token '<' at position 12",
        "hf_hub_download() got an unexpected keyword argument 'resume_download'",
        "missing bearer token; use Bearer authentication",
        "The api_key client option must be set, see https://platform.openai.com/account/api-keys.",
        "https://localhost:8080/users/me@example.com was not found",
        "mail someone@example.com, or see https://example.com/?page=2&q=who@example.com",
        "KeyError: 'key'; expected key=value",
        "Connection to tcp://host:5432 refused",
        "ask-me-anything is not installed; task_scheduler neither",
        "eyJ is how JSON begins in base64",
        "the password is wrong",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "name", ["MY_API_KEY", "HF_TOKEN", "AZURE_CLIENT_SECRET", "PGPASSWORD", "DB_PASSWORD", "x_pwd"]
)
def test_secrets_of_the_environment_are_hidden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "correct horse battery")
    assert without_secrets("it is correct horse battery") == "it is ***"


def test_paths_of_the_environment_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/somebody")
    monkeypatch.setenv("SHORT_KEY", "words")
    assert without_secrets("no words in /home/somebody") == "no words in /home/somebody"


def failing(how: str) -> Exception:
    """An error that was raised in one of Python's ways while another was handled."""
    failed, refused = ValueError("it failed"), ConnectionRefusedError("refused by 10.0.0.1")
    try:
        try:
            raise refused
        except OSError as cause:
            if how == "from":
                raise failed from cause
            if how == "from None":
                raise failed from None
            raise failed  # noqa: B904
    except ValueError as error:
        return error


@pytest.mark.parametrize(("how", "shown"), [("from", True), ("while handling", True), ("from None", False)])
def test_the_cause_of_an_error_is_shown_unless_it_was_hidden(how: str, *, shown: bool) -> None:
    assert one_line(failing(how)) == f"it failed{': refused by 10.0.0.1' if shown else ''} (ValueError)"


@pytest.mark.parametrize("errors", [1, 2, 3])
def test_errors_that_are_causes_of_one_another_are_shown_once(errors: int) -> None:
    ring = [ValueError(f"error {n}") for n in range(errors)]
    for error, cause in zip(ring, [*ring[1:], ring[0]], strict=True):
        error.__cause__ = cause  # as `raise error from error` does; some clients of stores have that
    assert one_line(ring[0]) == "error 0 (ValueError)"
    false_error = type("FalseError", (ValueError,), {"__len__": lambda _: 0})
    assert one_line(false_error("it failed")) == "it failed (FalseError)"


def test_the_first_line_has_no_secrets_either() -> None:
    assert first_line(ValueError("redis://:s3cret@cache\nand more")) == "redis://***@cache"
    assert first_line(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    "part", ["a", "a.", "://", "-----BEGIN ", "eyJabcdefgh.", "password", "?key", "sk-", '"', "a:b "]
)
def test_a_long_message_takes_no_long_time(part: str) -> None:
    began = time.thread_time()
    without_secrets(part * 50_000)
    assert time.thread_time() - began < 2
