"""Writes the project's address into the package: its URLs, and links of the README that work on an index.

Whoever builds it says the address, as `SELFROUTE_REPOSITORY=https://github.com/OWNER/selfroute`. Without it the package
has no URLs, and its description is the README as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<before>\]\()(?!https?:|#|mailto:)(?P<path>[^)\s]+)")
_PICTURE = re.compile(r'(?P<before>\b(?:src|srcset)=")(?!https?:)(?P<path>[^"]+)')


class AddressHook(MetadataHookInterface):
    """Fills in `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata of the project in place."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = os.environ.get("SELFROUTE_REPOSITORY", "").rstrip("/")
        if address:
            at = f"v{metadata['version']}"
            metadata["urls"] = {
                "Repository": address,
                "Documentation": f"{address}/blob/{at}/docs/index.md",
                "Changelog": f"{address}/blob/{at}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
            text = _PICTURE.sub(rf"\g<before>{address}/raw/{at}/\g<path>", text)
            text = _LINK.sub(rf"\g<before>{address}/blob/{at}/\g<path>", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
