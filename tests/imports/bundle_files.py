"""Bundles as bytes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

MANIFEST: dict[str, Any] = {
    "manifest_version": "0.3",
    "name": "tide-tables",
    "version": "1.2.0",
    "description": "Tides of all harbours",
    "author": {"name": "Ada"},
    "server": {
        "type": "node",
        "entry_point": "server/index.js",
        "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js"]},
    },
}


def archive(*files: tuple[str | zipfile.ZipInfo, bytes], about: Any = MANIFEST) -> bytes:
    """The bytes of a bundle with these files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as opened:
        if about is not None:
            opened.writestr("manifest.json", about if isinstance(about, bytes) else json.dumps(about))
        for name, content in files:
            opened.writestr(name, content)
    return written.getvalue()
