"""People who sign in, the browser they use, and the guarded server they sign in to."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from mcphost.auth.authorizer import Authorizer
from mcphost.auth.ports import (
    AuthorizationLink,
    OAuthSettings,
    SignInConsent,
    SignInExchange,
    SignInPlan,
    SignInStatus,
)
from mcphost.auth.presenter import TokenPresenter
from mcphost.auth.storage.keychain import Keychain
from mcphost.auth.storage.tokens import Lock, TokenStore, no_lock

sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))  # the scripts there import each other by bare names

from guarded import Guarded
from http_echo import Echo
from web import Talk, Visit, Web

__all__ = ["NO_TLS", "Echo", "Guarded", "House", "Person", "Talk", "Visit", "Web", "browse", "house"]

Browse = Callable[[str], Awaitable[Any]]

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: it knows no authority, and to read them all takes longer than a sign-in."""


async def browse(url: str) -> httpx.Response:
    """A browser that goes to the page and follows its redirect; returns the last response."""
    async with httpx.AsyncClient(verify=NO_TLS, trust_env=False) as browser:
        page = await browser.get(url)
        return await browser.get(page.headers["location"])


@dataclass
class Person:
    """Agrees, and sends a browser to the page; pastes what is put into ``pasted``."""

    browse: Browse | None = browse
    choose: Callable[[SignInPlan], SignInConsent] = lambda plan: SignInConsent(plan.scopes)
    pasted: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    plans: list[SignInPlan] = field(default_factory=list)
    links: list[AuthorizationLink] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    steps: dict[int, SignInExchange] = field(default_factory=dict)
    began: bool = True
    browsing: asyncio.Task[Any] | None = None

    async def agree(self, plan: SignInPlan) -> SignInConsent:
        self.plans.append(plan)
        return self.choose(plan)

    async def visit(self, link: AuthorizationLink, problem: str) -> str:
        self.links.append(link)
        self.problems.append(problem)
        if self.browse is not None and self.browsing is None:
            self.browsing = asyncio.ensure_future(self.browse(link.url))
        return await self.pasted.get()

    def turned_away(self, problem: str) -> None:
        self.problems.append(problem)

    def step(self, number: int, exchange: SignInExchange) -> None:
        self.steps[number] = exchange


@dataclass
class House:
    """A guarded server, and mcphost's part of signing in to it."""

    guard: Guarded
    web: Web
    settings: OAuthSettings
    store: TokenStore
    authorizer: Authorizer
    learned: set[str]
    clock: list[float]

    @property
    def bearer(self) -> TokenPresenter:
        return TokenPresenter(self.authorizer.session("web", self.web.url, self.settings))

    async def sign_in(self, person: Person | None = None, challenge: str = "Bearer", status: int = 401) -> SignInStatus:
        self.authorizer.session("web", self.web.url, self.settings)
        return await self.authorizer.sign_in("web", challenge, status, person or Person())

    def client(self, **more: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(auth=self.bearer, verify=NO_TLS, trust_env=False, timeout=20, **more)

    async def ask(self, client: httpx.AsyncClient) -> int:
        """The status of one call."""
        hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        return (await client.post(self.web.url, json=hello)).status_code

    def secrets(self) -> set[str]:
        """Everything that no one may see."""
        guard = self.guard
        forms = [visit.body.decode() for visit in self.web.visits if visit.path == "/token"]
        verifiers = {part.split("=")[1] for form in forms for part in form.split("&") if "code_verifier" in part}
        return {
            *guard.valid,
            *guard.current,
            *guard.spent,
            *guard.codes,
            *verifiers,
            *filter(None, guard.clients.values()),
        }

    def visits(self, path: str) -> list[Visit]:
        return [visit for visit in self.web.visits if visit.path.partition("?")[0] == path]


@contextmanager
def house(
    guard: Guarded | None = None,
    settings: OAuthSettings | None = None,
    *,
    keychain: Keychain | None = None,
    lock: Lock = no_lock,
    web: Web | None = None,
    **more: Any,
) -> Iterator[House]:
    """A house with a stopped clock; ``web``: at a server that runs already."""
    learned: set[str] = set()
    clock = [1_000_000.0]
    store = TokenStore(keychain, learned.add, lock, lambda: clock[0])
    authorizer = Authorizer(store, lambda: clock[0], **more)
    guarded = guard or Guarded(inner=Echo(stateless=True))
    if web is not None:
        yield House(guarded, web, settings or OAuthSettings(), store, authorizer, learned, clock)
        return
    with Web(guarded) as opened:
        yield House(guarded, opened, settings or OAuthSettings(), store, authorizer, learned, clock)
