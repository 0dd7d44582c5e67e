"""A scripted sign-in behind a real host: its steps, its questions, and its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcphost.auth.ports import (
    AuthorizationLink,
    ClientOrigin,
    SignInConsent,
    SignInExchange,
    SignInPlan,
    SignInStatus,
    SignInUser,
)
from mcphost.composition import dependencies, values_for
from mcphost.config import Config
from mcphost.errors import McphostError
from mcphost.host.connections.state import ServerState
from mcphost.host.host import Host
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.sign_in.screen import SignInScreen
from mcphost.tui.start_info import StartInfo
from tests.transports.http.http_connection import Talk, Web
from tests.tui.stage import Stage

SERVER, ISSUER = "https://mcp.linear.example/mcp", "https://auth.linear.example"
REDIRECT = "http://127.0.0.1:40123/callback"
METADATA = '{\n  "issuer": "https://auth.linear.example",\n  "scopes_supported": [\n    "read",\n    "write"\n  ]\n}'
PAGE = (
    f"{ISSUER}/authorize?response_type=code&client_id=client-1&redirect_uri=http%3A%2F%2F127.0.0.1%3A40123%2Fcallback"
    "&code_challenge=Gx9JpWnq3vR1yYz0aJkq1Qm7Qk8W2s5cXb4dEfGhIjK&code_challenge_method=S256&state=n0nce-of-this-attempt"
    "&resource=https%3A%2F%2Fmcp.linear.example%2Fmcp&scope=read+write+admin"
)
DISCOVERY = [
    SignInExchange("Who protects this server?", "GET", f"{SERVER}/.well-known/none", status=404, seconds=0.04),
    SignInExchange(
        "Who protects this server?",
        "GET",
        "https://mcp.linear.example/.well-known/oauth-protected-resource/mcp",
        {"Accept": "application/json"},
        status=200,
        response_headers={"content-type": "application/json"},
        response_body=METADATA,
        seconds=0.031,
    ),
    SignInExchange(
        "Where does auth.linear.example sign in?",
        "GET",
        f"{ISSUER}/.well-known/oauth-authorization-server",
        status=200,
        response_body=METADATA,
        seconds=0.42,
    ),
]
TOKEN = SignInExchange(
    "Exchange the code for a token",
    "POST",
    f"{ISSUER}/token",
    {"Content-Type": "application/x-www-form-urlencoded"},
    "grant_type=authorization_code&code=…(29 characters)&code_verifier=…(64 characters)",
    status=200,
    response_body='{\n  "access_token": "…(31 characters)",\n  "expires_in": 3600\n}',
    seconds=0.19,
)


def plan(**more: Any) -> SignInPlan:
    known: dict[str, Any] = {
        "server": "an item",
        "url": SERVER,
        "resource": SERVER,
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "scopes": ("read", "write", "admin"),
        "scopes_from": "the server's refusal",
        "granted": ("read",),
        "client": ClientOrigin.REGISTER,
        "client_id": "",
        "redirect_uri": REDIRECT,
    }
    return SignInPlan(**known | more)


def standing(**more: Any) -> SignInStatus:
    known: dict[str, Any] = {
        "issuer": ISSUER,
        "resource": SERVER,
        "client_id": "client-1",
        "scopes": ("read", "write"),
        "asked": ("read", "write", "admin"),
        "renewable": True,
        "kept_in": "in the keychain (SecretService)",
    }
    return SignInStatus(True, **known | more)


@dataclass
class ScriptedPort:
    """Plays the steps, the plans one after the other, the visit and the exchange; then ``end`` is returned or raised. A
    step waits for the `asyncio.Event` of ``gates`` with its number.
    """

    plans: list[SignInPlan] = field(default_factory=lambda: [plan()])
    end: SignInStatus | McphostError = field(default_factory=standing)
    steps: list[SignInExchange] = field(default_factory=lambda: list(DISCOVERY))
    exchange: SignInExchange | None = TOKEN
    link: AuthorizationLink | None = field(default_factory=lambda: AuthorizationLink(PAGE, REDIRECT, 300.0))
    gates: dict[int, asyncio.Event] = field(default_factory=dict)
    wrong: str = ""
    """Pasted addresses with this in them will not do."""
    choices: list[SignInConsent] = field(default_factory=list)
    pasted: list[str] = field(default_factory=list)
    plan_line: list[str] = field(default_factory=list)
    """The server names for which the port was looked up."""
    signed_out: list[str] = field(default_factory=list)
    now: SignInStatus = field(default_factory=lambda: SignInStatus(False))

    async def sign_in(self, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        for number, step in enumerate(self.steps, 1):
            await self._step(person, number, step)
        self.choices += [await person.agree(each) for each in self.plans]
        if self.link is not None:
            await self._visit(person, self.link)
        if self.exchange is not None:
            await self._step(person, len(self.steps) + 1, self.exchange)
        if isinstance(self.end, McphostError):
            raise self.end
        self.now = self.end
        return self.end

    async def status(self) -> SignInStatus:
        return self.now

    async def sign_out(self) -> str:
        self.now = SignInStatus(False)
        self.signed_out.append(self.plan_line[-1])
        return "signed out; the tokens were revoked"

    async def _step(self, person: SignInUser, number: int, step: SignInExchange) -> None:
        person.step(number, replace(step, status=None, seconds=None, response_headers={}, response_body="", problem=""))
        if number in self.gates:
            await self.gates[number].wait()
        person.step(number, step)

    async def _visit(self, person: SignInUser, link: AuthorizationLink) -> None:
        problem = ""
        while True:
            self.pasted.append(await person.visit(link, problem))
            if not self.wrong or self.wrong not in self.pasted[-1]:
                return
            problem = "that is not the address this sign-in ends at"


@dataclass
class Closed:
    """A server that always requires a sign-in."""

    def __call__(self, talk: Talk) -> None:
        talk.whole(401, www_authenticate='Bearer scope="read write admin"')


@dataclass
class Opener:
    """Opens pages, or says why not."""

    why_not: str = ""
    opened: list[str] = field(default_factory=list)

    async def __call__(self, url: str) -> str:
        self.opened.append(url)
        return self.why_not


@asynccontextmanager
async def signing(
    port: ScriptedPort,
    opener: Opener | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    guard: float = 0.0,
    enterprise: bool = False,
) -> AsyncIterator[Stage]:
    """Run the app on a server, ``linear``, whose sign-in ``port`` plays."""
    with Web(Closed()) as web:
        oauth = {"grant": "enterprise", "identity": "corp", "client_id": "mcphost-linear"} if enterprise else {}
        identity = {"corp": {"issuer": "https://idp.example", "client_id": "mcphost"}} if enterprise else {}
        linear = {"url": web.url, "oauth": oauth}
        config = Config.model_validate({"servers": {"linear": linear}, "identity": identity})
        approver = ScreenApprover()
        folder = Path.cwd() / "state"
        folder.mkdir(exist_ok=True)

        async def find(config: Config, name: str) -> ScriptedPort:
            port.plan_line.append(name)
            return port

        parts = dependencies(approver, values_for(config, os.environ), state=folder, open_url=opener or Opener())
        async with Host(config, replace(parts, sign_in=find)) as host:
            app = McphostApp(host, approver, StartInfo(None, False, (), folder, ""))
            app.guard_seconds = guard
            async with app.run_test(size=size, notifications=True) as pilot:
                stage = Stage(app, host, pilot)
                await stage.until(lambda app: app.host.servers["linear"].state is ServerState.NEEDS_SIGN_IN)
                await stage.until(lambda app: app.main.servers.rows.items)
                yield stage


async def at_sign_in(stage: Stage) -> SignInScreen:
    """Open the sign-in from the list of servers."""
    await stage.press("s", "down", "S")
    await listens(stage)
    assert isinstance(stage.app.screen, SignInScreen)
    return stage.app.screen


async def listens(stage: Stage) -> None:
    """Wait until the screen in front takes keys."""
    await stage.until(lambda app: isinstance(app.screen, SignInScreen) and app.screen.shown_for() >= 0)
