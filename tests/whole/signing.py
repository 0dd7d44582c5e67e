"""The real parts of a sign-in: an authorization server, a protected server, and a machine with its keychain.

The authorization server is oidc-provider, the protected one uses the official SDK, the keychain is GNOME's, or a
file where that is not installed, and mcphost runs as a program. Every secret that goes through the authorization
server is known here, to be looked for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.auth.keyring_session import installed as keyring_installed
from tests.auth.keyring_session import session
from tests.conftest import SERVERS
from tests.executables import write_executable
from tests.npm import node_runs, programs
from tests.terminal import Terminal
from tests.warm_start import Fork, may_fork, relayed
from tests.whole.keychain_file import KeychainFile
from tests.whole.peers import free_port, listening, sdk_runs, until_listening

ROOT = SERVERS.parents[1]

LIFE = 3600
"""Seconds that a token is valid."""

SHORT_LIFE = 1
"""Seconds; such a token is renewed before its first use, whatever time has passed."""

SECRET = "canary-client-01234567"
DOCUMENT = "https://mcphost.example/client.json"
BACK = 4711
"""The port that the client of the document comes back to."""

SECRET_NAMES = ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token")


@dataclass
class Exchange:
    """One exchange with the authorization server, as that saw it."""

    path: str
    method: str
    query: dict[str, str]
    sent: dict[str, Any]
    basic: str
    status: int
    location: str
    answer: dict[str, Any]
    proof: str = ""

    def secrets(self) -> Iterator[str]:
        """Yield the parts of it that must stay secret."""
        yield from (self.answer[name] for name in SECRET_NAMES if name in self.answer)
        yield from (self.sent[name] for name in (*SECRET_NAMES, "code", "code_verifier") if name in self.sent)
        yield from parse_qs(urlsplit(self.location).query).get("code", ())
        if self.basic.startswith("Basic "):
            yield self.basic.removeprefix("Basic ")
        if self.proof:
            yield self.proof


class Authorization:
    """The authorization server; it can be ended, and started as if it had never been.

    Tokens end when a test says so: their own time never comes.
    """

    def __init__(self, folder: Path, resource: str) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.document, self._journal = folder / "client.json", folder / "journal"
        self.ended, self._life = folder / "ended", folder / "life"
        self.ended.touch()
        self._life.write_text(str(LIFE))
        settings = {
            "modules": str(programs()),
            "port": self.port,
            "resource": resource,
            "life": str(self._life),
            "clients": clients(),
            "document": str(self.document),
            "journal": str(self._journal),
        }
        self._command = node_runs(SERVERS / "authorization.mjs", json.dumps(settings))
        self.start()

    def start(self) -> None:
        # It warns that it is not meant for production.
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        until_listening(self.port, self._process)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    @contextmanager
    def short_lived(self) -> Iterator[None]:
        """Issue tokens that mcphost renews before it uses them."""
        self._life.write_text(str(SHORT_LIFE))
        try:
            yield
        finally:
            self._life.write_text(str(LIFE))

    def end_tokens(self) -> None:
        """The protected server refuses every access token issued so far, as it does one whose time is over."""
        tokens = [each.answer["access_token"] for each in self.exchanges() if "access_token" in each.answer]
        self.ended.write_text("\n".join(tokens))

    def exchanges(self) -> list[Exchange]:
        """All exchanges in order."""
        lines = self._journal.read_text().splitlines() if self._journal.exists() else []
        return [Exchange(**json.loads(line)) for line in lines]

    @contextmanager
    def recording(self) -> Iterator[Callable[[str], list[Exchange]]]:
        """Record the exchanges at a path from now on."""
        before = len(self.exchanges())
        yield lambda path: [each for each in self.exchanges()[before:] if each.path == path]

    def takes(self, renewal: Exchange) -> int:
        """The status with which it answers who comes once more with the tokens that were the answer."""
        form = {**renewal.sent, "refresh_token": renewal.answer["refresh_token"]}
        return httpx.post(f"{self.issuer}/token", data=form, trust_env=False).status_code

    def secrets(self) -> set[str]:
        """Every secret that ever went through it."""
        return {SECRET, *(secret for each in self.exchanges() for secret in each.secrets())}


def clients() -> list[dict[str, Any]]:
    """Those that are known without registering."""
    browser = {"redirect_uris": ["http://127.0.0.1/callback"], "grant_types": ["authorization_code", "refresh_token"]}
    machine = {"redirect_uris": [], "response_types": [], "grant_types": ["client_credentials"]}
    given = {"client_secret": SECRET, "application_type": "native"}
    return [
        {"client_id": "basic", "token_endpoint_auth_method": "client_secret_basic", **given, **browser},
        {"client_id": "post", "token_endpoint_auth_method": "client_secret_post", **given, **browser},
        {"client_id": "machine", "token_endpoint_auth_method": "client_secret_basic", **given, **machine},
    ]


@dataclass
class SignInServers:
    """The servers there are."""

    authorization: Authorization
    url: str
    """Of the protected server."""


@contextmanager
def sign_in_servers() -> Iterator[SignInServers]:
    """Both servers, until the block ends."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    with TemporaryDirectory() as folder:  # apart from what is searched
        authorization = Authorization(Path(folder), url)
        try:
            notes = sdk_runs(SERVERS / "notes.py", str(port), authorization.issuer, str(authorization.ended))
            with listening(notes, port):
                yield SignInServers(authorization, url)
        finally:
            authorization.end()


@dataclass
class Done:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        return json.loads(self.out)


@dataclass
class UserMachine:
    """A person's machine: a desktop with a browser, a keychain, files, and mcphost with one server, ``notes``."""

    folder: Path
    env: dict[str, str]
    unlock: Callable[[], None]
    """Opens the keychain."""
    keychain: str = "SecretService"
    """Its name, as mcphost shows it."""
    program: str = "mcphost"
    """The module that is run as mcphost."""
    seen: list[bytes] = field(default_factory=list)
    """All that mcphost printed."""

    def configure(self, url: str, more: str = "") -> None:
        (self.folder / "config.toml").write_text(f'[servers.notes]\nurl = "{url}"\n{more}\n')

    def run(self, *words: str) -> Done:
        """Run a command of mcphost to its end, without a terminal."""
        return self.ended(self.begin(*words))

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", self.program, *words]
        kind = Fork if may_fork(command, self.env) else subprocess.Popen
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        return kind(command, env=self.env, cwd=self.folder, stdin=nothing, stdout=pipe, stderr=pipe)

    def ended(self, running: subprocess.Popen[bytes]) -> Done:
        out, err = running.communicate(timeout=60)
        self.seen += [out, err]
        return Done(running.returncode, out.decode(), err.decode())

    @contextmanager
    def sit(self, *words: str, **more: Any) -> Iterator[Terminal]:
        """mcphost on a terminal, with a person at the keyboard."""
        command = [sys.executable, "-m", self.program, *words]
        with Terminal(command, env=self.env, cwd=self.folder, **more) as terminal:
            try:
                yield terminal
            finally:
                self.seen.append(bytes(terminal.raw))

    def browser(self, *words: str, program: str = "browsing") -> None:
        """From now on pages open in this browser of `tests.whole`, which is also given these words."""
        opener = self.folder / "bin/xdg-open"
        opener.parent.mkdir(exist_ok=True)
        command = relayed(sys.executable, ("aiohttp", "httpx"), "-m", f"tests.whole.{program}", *words)
        write_executable(opener, ["env", f"PYTHONPATH={ROOT}", *command])

    def files(self) -> list[Path]:
        """All files of this machine."""
        return [path for path in self.folder.rglob("*") if path.is_file()]

    def leaks(self, secrets: Iterable[str]) -> list[str]:
        """Return the places of secrets, or of a third of one, in mcphost's output and in the files of this machine."""
        places = [("what was printed", each) for each in self.seen]
        places += [(str(path), path.read_bytes()) for path in self.files()]
        parts = {part for secret in secrets for part in thirds(secret)}
        return [f"{part.decode()} in {place}" for place, data in places for part in parts if part in data]


def thirds(secret: str) -> list[bytes]:
    """Its three parts, as files may hold them: what is cut off or wrapped is no better hidden. All of a short one."""
    size = len(secret) // 3
    plain = secret.encode()
    return [plain[start : start + size] for start in (0, size, 2 * size)] if size >= 12 else [plain]


@contextmanager
def user_machine(folder: Path, url: str, vault: Path, *, unlocked: bool = True) -> Iterator[UserMachine]:
    """A machine whose files are in ``folder``, its keychain too; one in a file, not encrypted, in ``vault``."""
    with ExitStack() as after:
        if keyring_installed():
            keyring = after.enter_context(session(folder / "home", unlocked=unlocked))
            made = UserMachine(folder, dict(keyring.env), keyring.unlock)
        else:
            file = KeychainFile(vault / "keychain.json")
            file.lock(not unlocked)
            made = UserMachine(folder, dict(file.env), lambda: file.lock(False), "Shelf", KeychainFile.PROGRAM)
        made.env |= {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "DISPLAY": ":9",
            "MCPHOST_CONFIG": str(folder / "config.toml"),
            "MCPHOST_KEYCHAIN": "",
            "NOTES_SECRET": SECRET,
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        made.configure(url)
        made.browser()
        yield made
