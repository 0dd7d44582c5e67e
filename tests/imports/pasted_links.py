"""Links with which web pages offer a server."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, urlencode

ENTRY = {"command": "npx", "args": ["-y", "@ada/tides@1.2.0"], "env": {"COAST": "north"}}


def encoded(value: Any, *, urlsafe: bool = False, padded: bool = True) -> str:
    data = json.dumps(value).encode()
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    return text if padded else text.rstrip("=")


CURSOR = "cursor://anysphere.cursor-deeplink/mcp/install"


LINKS = {
    "vscode": f"vscode:mcp/install?{quote(json.dumps({'name': 'tides', **ENTRY}))}",
    "vscode with slashes": f"vscode://mcp/install?{quote(json.dumps({'name': 'tides', **ENTRY}))}",
    "insiders": f"vscode-insiders:mcp/install?{quote(json.dumps({'name': 'tides', 'type': 'stdio', **ENTRY}))}",
    "vscode's page": "https://insiders.vscode.dev/redirect/mcp/install?"
    + urlencode({"name": "tides", "config": json.dumps(ENTRY), "quality": "insiders"}),
    "cursor": f"{CURSOR}?name=tides&config={quote(encoded(ENTRY))}",
    "cursor's page": f"https://cursor.com/en/install-mcp?name=tides&config={quote(encoded(ENTRY))}",
    "cursor's plain page": f"https://cursor.com/install-mcp?name=tides&config={encoded(ENTRY, urlsafe=True)}",
    "cursor with one line": f"{CURSOR}?name=tides&config="
    + quote(encoded({**{key: ENTRY[key] for key in ("env",)}, "command": "npx -y @ada/tides@1.2.0"})),
    "cursor without padding": f"{CURSOR}?name=tides&config={encoded(ENTRY, padded=False)}",
    "cursor with json": f"{CURSOR}?" + urlencode({"name": "tides", "config": json.dumps(ENTRY)}),
    "named in the config": f"{CURSOR}?config={encoded({'tides': ENTRY})}",
    "as a whole file": f"{CURSOR}?config={encoded({'mcpServers': {'tides': ENTRY}})}",
}
