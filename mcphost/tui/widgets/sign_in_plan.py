"""What a sign-in will do, in lines: who wants what, where, and what of it deserves a second look.

Knows plans and what to say of each part. Everything a plan holds came from outside, but its sentences.
"""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from mcphost.auth.base import ClientOrigin, SignInPlan
from mcphost.protocol.display import show, show_line
from mcphost.protocol.hosts import HostName, host_in, warnings_of
from mcphost.tui.widgets.facts import Fact, fact

LONG = 2000
"""Characters of one address that are shown; longer ones are refused before they get here, or cut with a count."""


def plan_facts(server: str, plan: SignInPlan) -> Iterator[Fact]:
    """All a person should know before they agree; what warns comes first. ``server`` is its configured name."""
    if plan.problem:
        yield fact("asked again", show(plan.problem, limit=600), "$text-warning")
    for warning in warnings(plan):
        yield fact("▲ beware", show(warning, limit=600), "bold $text-warning")
    yield Fact("server", Content.assemble((show_line(server, 60), "bold"), " · ", show(plan.url, limit=LONG)))
    yield fact("token for", show(plan.resource, limit=LONG))
    yield from _places(plan)
    yield from _client(plan)
    yield fact("comes back to", show(plan.redirect_uri, limit=300))


def warnings(plan: SignInPlan) -> list[str]:
    """What a careful person should know: of the flow, and of the letters of its hosts."""
    return [*plan.warnings, *warnings_of(plan.urls)]


def _places(plan: SignInPlan) -> Iterator[Fact]:
    issuer = host_in(plan.issuer)
    address = show(plan.issuer, limit=LONG)
    before, found, after = address.partition(issuer.wire)
    name = Content.assemble(before, (found, "bold"), after)
    yield Fact("you sign in at", Content.assemble(name, _reading(issuer)))
    registers = plan.registration_endpoint if plan.client is ClientOrigin.REGISTER else ""
    others = (
        ("its page is at", plan.authorization_endpoint),
        ("token from", plan.token_endpoint),
        ("registers at", registers),
    )
    for label, url in others:
        host = host_in(url)
        if url and host.wire != issuer.wire:
            yield fact(label, f"{host.both}: another host", "$text-warning")


def _reading(host: HostName) -> str:
    return "" if host.wire == host.read else f"\nwhich reads {host.read}"


def _client(plan: SignInPlan) -> Iterator[Fact]:
    words = plan.client.value
    if plan.client_id:
        words = f"{show_line(plan.client_id, 200)}, {words}"
    elif plan.client is ClientOrigin.ASKED:
        words = "a client id, to be entered below: this place registers nobody by itself"
    yield fact("mcphost is", words)


def asked_for(plan: SignInPlan) -> str:
    """A few words for a list: where, and how much."""
    many = len(plan.scopes)
    scopes = f", {many} scope{'' if many == 1 else 's'}" if many else ""
    return f"sign in at {host_in(plan.issuer).wire}{scopes}"
