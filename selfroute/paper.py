"""The setting of the paper, which is not the default."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfroute.calls.settings import Options  # which imports pydantic

PAPER: Options = {"answerability": "text", "sections": None, "max_documents": None}
"""The rule of Li et al. (2024), section 4.2, as options: a draft, then all documents behind its passages."""
