"""What pages are made of: styles and scripts that stand in the page itself, and a policy that allows nothing else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files


def base_style() -> str:
    """Return the style that all pages of the package share."""
    return part("base.css")


def part(name: str) -> str:
    """Return a file of this package: a style, a script or a page."""
    return (files("selfroute.usage.live") / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """Return the source expression that allows an inline script or style in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
