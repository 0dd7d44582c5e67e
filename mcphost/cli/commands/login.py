"""``mcphost login`` and ``logout``: an OAuth sign-in at the terminal, or without a person and with ``--yes``."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcphost.auth.ports import (
    BOUND,
    NO_BROWSER,
    ClientOrigin,
    SignInConsent,
    SignInExchange,
    SignInPlan,
    obtains_alone,
)
from mcphost.cli.approver import NO_CUT, confirmed, typed_line
from mcphost.cli.failures import BrokenServers, failure
from mcphost.cli.output import Outcome, is_terminal, json_text, remark
from mcphost.cli.preparation import run_audited, select_for_sign_in, select_identities
from mcphost.cli.terminal import hidden_line, secret_problem
from mcphost.cli.terminal_modes import is_in_foreground, without_echo
from mcphost.composition import Selection
from mcphost.config import Config
from mcphost.errors import ConfigError, UsageError
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import Answer, Question, SignInQuestion
from mcphost.host.desktop import no_browser, open_page
from mcphost.host.events import SignInChanged
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line
from mcphost.protocol.host_names import host_in, in_both, warnings_of

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInStatus
    from mcphost.host.connections.connection import Connection
    from mcphost.host.host import Host


def run_login(options: Namespace) -> int:
    at_provider = options.server is None and options.identity is not None
    chosen, name = (select_identities(options), options.identity) if at_provider else select_for_sign_in(options)
    if not at_provider and obtains_alone(chosen.config.servers[name].oauth):
        chosen = _not_started(chosen, name)
    requested = LoginRequested(name, tuple(options.scope), options.verbose, options.json)
    approver, open_url = LoginApprover(yes=options.yes), no_browser if options.no_browser else open_page

    async def work(host: Host) -> Outcome:
        return await (login_identity(host, requested) if at_provider else login(host, requested, chosen.broken))

    return run_audited(options, chosen, approver, work, open_url=open_url)


def run_logout(options: Namespace) -> int:
    if options.server is not None or options.identity is None:
        return sign_out(options, *select_for_sign_in(options))
    chosen, name = select_identities(options), str(options.identity)
    unknown = () if name in chosen.config.identity else (f"your configuration has no [identity.{name}]",)

    async def work(host: Host) -> Outcome:
        said = show_line(await host.identities.sign_out(name), 1000)
        return Outcome(f"identity {name}: {said}\n", remarks=unknown)

    return run_audited(options, chosen, None, work)


def sign_out(options: Namespace, chosen: Selection, name: str) -> int:
    """Revoke and delete the tokens of a server, print what happened, and return the exit code. Raises SignInFailed."""
    return run_audited(options, _not_started(chosen, name), None, lambda host: logout(host, name))


def _not_started(chosen: Selection, name: str) -> Selection:
    """The selection of this server alone, for a sign-in that needs no connection."""
    entry = chosen.config.servers[name].model_copy(update={"start": "manual"})
    return replace(chosen, config=chosen.config.model_copy(update={"servers": {name: entry}}))


def status_text(standing: SignInStatus, said: str = "") -> str:
    """The sign-in status in one line, without a problem that was ``said`` already."""
    if not standing.signed_in:
        why = f": {standing.problem}" if standing.problem else ""
        return show_line(f"not signed in{why}", 1000)
    until = "" if standing.expires_at is None else f" until {datetime.fromtimestamp(standing.expires_at):%d %b %H:%M}"
    renewed = ", renewed by itself" if standing.renewable and not standing.problem else ""
    failed = f"; it could not be renewed: {standing.problem}" if standing.problem not in said else ""
    scopes = f" for {' '.join(standing.scopes)}" if standing.scopes else ""
    missing = [scope for scope in standing.asked if scope not in standing.scopes]
    without = f" (without {' '.join(missing)}, which was asked for)" if missing and standing.scopes else ""
    binding = f"; {standing.binding}" if standing.binding else ""
    kept = f"; tokens {standing.kept_in}" if standing.kept_in else ""
    by = f" by identity {standing.identity}" if standing.identity else ""
    words = f"signed in at {host_in(standing.issuer).both}{by}{scopes}{without}{until}{renewed}{failed}{binding}{kept}"
    return show_line(words, 1000)


def status_object(standing: SignInStatus) -> dict[str, Any]:
    """The sign-in status for ``--json``."""
    return {
        "signedIn": standing.signed_in,
        "issuer": standing.issuer or None,
        "resource": standing.resource or None,
        "clientId": standing.client_id or None,
        "scopes": list(standing.scopes),
        "expiresAt": standing.expires_at,
        "renewable": standing.renewable,
        "boundToKey": standing.binding == BOUND,
        "keptIn": standing.kept_in or None,
        "problem": standing.problem or None,
        "identity": standing.identity or None,
    }


NOBODY = "there is no terminal to ask on; add --yes once you know all the places that the lines above name"
NO_CLIENT = "it takes only registered clients; register mcphost there and set oauth.client_id for this server"


@dataclass(frozen=True, slots=True)
class LoginRequested:
    """The sign-in to make. ``scopes`` are added to those that are configured or granted."""

    server: str
    scopes: tuple[str, ...] = ()
    verbose: bool = False
    as_json: bool = False


class LoginApprover:
    """Shows the plan and reads y or N; with ``--yes`` the plan is only shown."""

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes

    async def ask(self, question: Question) -> Answer:
        """The choice, with the client that a person enters where one is request."""
        if not isinstance(question, SignInQuestion):
            return Answer(allow=False, reason="nothing is called here", by="policy")
        print(*_plan_lines(question.server, question.plan), sep="\n", file=sys.stderr, flush=True)
        plan, interactive = question.plan, is_terminal(sys.stdin) and is_terminal(sys.stderr)
        if plan.client is ClientOrigin.ASKED and (self._yes or not interactive):
            return Answer(allow=False, reason=NO_CLIENT, by="policy")
        if self._yes:
            return Answer(allow=True, by="--yes", reason="--yes", content=SignInConsent(plan.scopes))
        if not interactive:
            return Answer(allow=False, reason=NOBODY, by="policy")
        if not await confirmed(
            f"{'Keep this sign-in' if plan.obtained else f'Sign in to {question.server} like this'}? [y/N] "
        ):
            return Answer(allow=False)
        return Answer(allow=True, content=await _choice(plan))


async def _choice(plan: SignInPlan) -> SignInConsent:
    if plan.client is not ClientOrigin.ASKED:
        return SignInConsent(plan.scopes)
    client_id = await typed_line("Client id: ")
    secret = await typed_line("Client secret (empty: none): ", hidden=True)
    if problem := secret_problem(secret):
        raise UsageError(f"the client secret: {problem}; sign in again, and give it again")
    return SignInConsent(plan.scopes, client_id, secret)


async def login(host: Host, request: LoginRequested, broken: BrokenServers) -> Outcome:
    """Sign in. Raises SignInFailed, Declined, and ServerNotReady where the server does not respond."""
    if request.scopes:
        await host.apply(await _with_scopes(host, request))
    connection = host.servers[request.server]
    if not obtains_alone(connection.config.oauth):  # else connecting would ask for a token, before the user does
        await host.servers.ready([request.server])
        if not connection.ready and connection.state is not ServerState.NEEDS_SIGN_IN:
            raise failure(host, request.server, broken)
    standing = await _followed(host, host.sign_ins.begin(request.server), request)
    await host.servers.ready([request.server])
    return replace(_outcome(standing, request, request.server), remarks=tuple(_remarks(host, request.server)))


async def login_identity(host: Host, request: LoginRequested) -> Outcome:
    """Sign in at an identity provider. Raises SignInFailed, Declined, UsageError for scopes, UnknownName."""
    if request.scopes:
        raise UsageError("--scope is for servers; the scopes of an identity are in the configuration")
    standing = await _followed(host, host.identities.begin(request.server), request)
    return _outcome(standing, request, f"identity {request.server}")


def _outcome(standing: SignInStatus, request: LoginRequested, name: str) -> Outcome:
    return Outcome(json_text(status_object(standing)) if request.as_json else f"{name}: {status_text(standing)}\n")


async def _followed(host: Host, sign_in: SignIn, request: LoginRequested) -> SignInStatus:
    """Print the progress of a sign-in, and pass on what is pasted, until its end."""
    teller = _ProgressPrinter(sign_in, request.verbose)
    stop = host.bus.observe(teller.heard, SignInChanged)
    pasting = asyncio.create_task(_paste(sign_in, teller), name="read what is pasted")
    try:
        return await sign_in.result()
    finally:
        stop()
        pasting.cancel()
        await asyncio.gather(pasting, return_exceptions=True)
        teller.close()


async def logout(host: Host, server: str) -> Outcome:
    """Delete the tokens. Raises SignInFailed."""
    return Outcome(f"{server}: {show_line(await host.sign_ins.sign_out(server), 1000)}\n")


async def _with_scopes(host: Host, request: LoginRequested) -> Config:
    """The configuration with the requested scopes added to those of before. Raises ConfigError."""
    if odd := [scope for scope in request.scopes if not scope.isascii() or set(scope) & set(' "\\') or not scope]:
        raise ConfigError(f"--scope {odd[0]!a}: a scope is one word without quotes and backslashes")
    asked = (await host.sign_ins.status(request.server)).asked
    entry = host.config.servers[request.server]
    more = [scope.replace("${", "$${") for scope in (*asked, *request.scopes)]
    scopes = dict.fromkeys(more if asked else [*entry.oauth.scopes, *more])
    oauth = entry.oauth.model_copy(update={"scopes": tuple(scopes)})
    servers = {**host.config.servers, request.server: entry.model_copy(update={"oauth": oauth})}
    return host.config.model_copy(update={"servers": servers})


def _remarks(host: Host, server: str) -> Iterator[str]:
    connection = host.servers[server]
    advice = connection.advice.removeprefix("Nothing was done. ")
    if not connection.ready:
        yield f"{server}: signed in, but {_unready(connection)}{f'. {advice}' if advice else ''}"


def _unready(connection: Connection) -> str:
    """Why a server is not ready after a sign-in, as a clause."""
    if connection.state is ServerState.NEEDS_SIGN_IN:
        return connection.reason
    return f"the server is {connection.state.value}{f': {connection.reason}' if connection.reason else ''}"


class _ProgressPrinter:
    """Prints the progress of a sign-in to stderr."""

    def __init__(self, sign_in: SignIn, verbose: bool) -> None:
        self._sign_in, self._verbose = sign_in, verbose
        self._told: set[int] = set()
        self._link = ""
        self.visiting = asyncio.Event()
        """Set while a redirect URL can be pasted."""
        self._silence = ExitStack()
        """Keeps the echo off, once the link has been shown: what is pasted holds the authorization code."""

    def heard(self, event: SignInChanged) -> None:
        """Handle an event of the host."""
        if event.sign_in != self._sign_in.number:
            return
        if self._verbose:
            self._tell_steps()
        if self._sign_in.state is not SignInState.VISITING or self._sign_in.link is None:
            self.visiting.clear()
        elif self._sign_in.paste_problem or self._sign_in.link.url != self._link:
            self._tell_link()
            self.visiting.set()

    def close(self) -> None:
        """Turn the terminal's echo on again."""
        self._silence.close()

    def _tell_steps(self) -> None:
        for number, step in enumerate(self._sign_in.steps, 1):
            if number not in self._told and (step.status is not None or step.problem):
                self._told.add(number)
                remark(_step_words(number, step))

    def _tell_link(self) -> None:
        link = self._sign_in.link
        assert link is not None
        if self._sign_in.paste_problem:
            remark(self._sign_in.paste_problem)
        if link.url == self._link:
            return
        self._link = link.url
        if _may_paste():  # whoever sees the link may paste at once, so the echo is off before
            self._silence.close()
            self._silence.enter_context(without_echo(sys.stdin.fileno()))
        plan, server = self._sign_in.plan, self._sign_in.server
        known = plan is not None and plan.client is ClientOrigin.KNOWN
        lines = _link_lines(link.url, link.redirect_uri, link.expires, os.environ, server if known else "")
        print(*lines, sep="\n", file=sys.stderr, flush=True)


async def _paste(sign_in: SignIn, teller: _ProgressPrinter) -> None:
    """Pass on each redirect URL that is pasted; without echo, since it holds the authorization code."""
    if not _may_paste():
        return
    while True:
        await teller.visiting.wait()
        line = await hidden_line(sys.stdin.fileno(), filled=True)
        print(file=sys.stderr)
        if not line:
            return  # end of file
        if address := line.decode("utf-8", "replace").strip():
            teller.visiting.clear()
            sign_in.paste(address)


def _may_paste() -> bool:
    return is_terminal(sys.stdin) and is_in_foreground(sys.stdin.fileno())


def _link_lines(
    url: str, redirect_uri: str, expires: float, environment: Mapping[str, str], known_at: str = ""
) -> Iterator[str]:
    """Explain how to use the link; ``known_at``: the server at whose authorization server mcphost registered before."""
    yield "Open this page in a browser, and agree there:"
    yield ""
    yield show_line(url, NO_CUT)
    yield ""
    back = urlsplit(redirect_uri)
    remote = environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")
    if remote and back.port:
        yield "The browser is on another machine? Before you open the page, let it come back from there:"
        yield f"  ssh -L {back.port}:127.0.0.1:{back.port} {socket.gethostname()}"
    if _may_paste():
        yield f"Where it cannot come back, copy the address it ends at ({back.scheme}://{back.netloc}/…) and paste it."
        yield "What you paste is not shown; end it with enter."
    if known_at:
        forget = f"mcphost logout {shlex.quote(known_at)}"
        yield f"If the page does not know mcphost: stop here, run {forget}, and sign in again."
    yield f"It is waited for {duration_text(expires)}."


def _step_words(number: int, step: SignInExchange) -> str:
    what = step.problem or ("done" if step.local else f"HTTP {step.status}")
    took = "" if step.seconds is None else f" in {duration_text(step.seconds)}"
    return f"step {number}: {step.title}: {step.method} {show_line(step.url, 300)}: {what}{took}"


def _plan_lines(server: str, plan: SignInPlan) -> Iterator[str]:
    asks = f"{' '.join(plan.scopes) or 'no scope'}, named by {plan.scopes_from}"
    client = plan.client.value + (f" ({plan.client_id})" if plan.client_id else "")
    of_server = [("server", f"{server}  {in_both(plan.url)}"), ("token for", in_both(plan.resource))]
    facts = [
        *(of_server if plan.resource else []),
        *_parties(plan),
        ("token from", in_both(plan.token_endpoint)),
        *([("registers at", in_both(plan.registration_endpoint))] if plan.client is ClientOrigin.REGISTER else []),
        *([] if plan.obtained else [("asks for", asks)]),
        *([("you have" if plan.obtained else "you had", " ".join(plan.granted))] if plan.granted else []),
        ("known there", client),
        *([("comes back to", plan.redirect_uri)] if plan.redirect_uri else []),
        *([("the token is", BOUND)] if plan.bound else []),
    ]
    for name, value in facts:
        yield f"  {name:<14}{show_line(value, NO_CUT)}"
    for warning in (*plan.warnings, *warnings_of(plan.urls), *filter(None, [plan.problem])):
        yield f"  WARNING       {show_line(warning, NO_CUT)}"


def _parties(plan: SignInPlan) -> Iterator[tuple[str, str]]:
    """The places where the person signs in."""
    if not plan.identity:
        yield "signs in at", host_in(plan.issuer).both
        yield "page", in_both(plan.authorization_endpoint)
        return
    yield "identity", f"{plan.identity} at {host_in(plan.identity_issuer).both}"
    yield "account", f"{plan.account}; {NO_BROWSER}" if plan.account else "to be chosen in the browser"
    if plan.authorization_endpoint:
        yield "page", in_both(plan.authorization_endpoint)
    if plan.issuer != plan.identity_issuer:
        yield "granted by", host_in(plan.issuer).both
