"""The real parts of a sign-in by a company's identity provider: the provider, an authorization server, two servers.

The provider is oidc-provider, the authorization server authlib's; the MCP servers behind it are doubles.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.conftest import SERVERS
from tests.npm import node_runs, programs
from tests.pypi import environment
from tests.warm_start import relayed
from tests.whole.peers import free_port, until_listening

AUTHLIB = ("enterprise", ("authlib==1.9.10", "flask==3.1.3", "httpx==0.28.1"))
"""The environment of the authorization server."""

IDP_CLIENT = {"id": "mcphost-idp", "secret": "canary-provider-01234567"}
AS_CLIENT = {"id": "mcphost-as", "secret": "canary-server-01234567"}

_SECRETS = ("access_token", "refresh_token", "id_token", "subject_token", "assertion", "code", "code_verifier")


@dataclass
class Company:
    """A provider, and two servers ``a`` and ``b`` that trust it."""

    idp: str
    issuer: str
    """Of the authorization server."""
    folder: Path

    def seen(self, journal: str, path: str = "") -> list[dict[str, Any]]:
        """The exchanges in this journal, ``idp`` or ``as``; those at ``path`` if one is given."""
        file = self.folder / journal
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if path in ("", line["path"])]

    def secrets(self) -> set[str]:
        """Every secret that went through both."""
        found = {IDP_CLIENT["secret"], AS_CLIENT["secret"]}
        for line in (*self.seen("idp"), *self.seen("as")):
            for part in (line["sent"], line["answer"] or {}):
                found |= {part[name] for name in _SECRETS if isinstance(part.get(name), str)}
            found |= {line["basic"].partition(" ")[2]} - {""}
        return found

    def configuration(self, servers: str = "ab", more: str = "") -> str:
        """The configuration of mcphost, with secrets of clients in variables."""
        oauth = f'{{ grant = "enterprise", identity = "corp", client_id = "{AS_CLIENT["id"]}", '
        oauth += f'client_secret = "${{AS_SECRET}}"{more} }}'
        entries = [f'[servers.{name}]\nurl = "{self.issuer}/{name}/mcp"\noauth = {oauth}\n' for name in servers]
        client = f'client_id = "{IDP_CLIENT["id"]}"\nclient_secret = "${{IDP_SECRET}}"\n'
        return "".join(entries) + f'[identity.corp]\nissuer = "{self.idp}"\n{client}'


@contextmanager
def company() -> Iterator[Company]:
    with TemporaryDirectory() as folder, ExitStack() as after:
        port, own = free_port(), free_port()
        made = Company(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{own}", Path(folder))
        settings = {
            "modules": str(programs()),
            "port": port,
            "client": IDP_CLIENT,
            "known": {made.issuer: AS_CLIENT["id"]},
            "journal": f"{folder}/idp",
        }
        python = str(environment(*AUTHLIB) / "python")
        modules = ("authlib.integrations.flask_oauth2", "flask", "httpx")
        words = (str(SERVERS / "enterprise.py"), str(own), made.idp, f"{folder}/as")
        commands = {
            port: node_runs(SERVERS / "identity_provider.mjs", json.dumps(settings)),
            own: relayed(python, modules, *words),
        }
        for each, command in commands.items():
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            after.callback(process.wait)
            after.callback(process.kill)
            until_listening(each, process)
        yield made
