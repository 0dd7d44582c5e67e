"""The list of identities: who is signed in where, and signing out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from textual.app import App
from textual.pilot import Pilot

from mcphost.auth.ports import ClientOrigin, IdentityStatus, SignInPlan
from mcphost.cli.commands.login import _plan_lines
from mcphost.tui.sign_in.identities import IdentitiesScreen, identity_facts, identity_row
from mcphost.tui.sign_in.plan import plan_facts, plan_line
from tests.tui.sign_in.sign_ins import ISSUER, plan

NOW = 1_000_000.0
CORP = IdentityStatus(
    "corp", "https://idp.example/tenant", True, "ann@corp", NOW + 600, True, ("docs", "wiki"), "", "in the keychain (X)"
)
LAB = IdentityStatus("lab", "https://lab.example")


@dataclass
class Actions:
    """Shows two identities, and records what is wanted."""

    done: list[str] = field(default_factory=list)

    async def identity_statuses(self) -> Sequence[IdentityStatus]:
        return [CORP, LAB]

    def sign_in_identity(self, name: str) -> None:
        self.done.append(f"sign in {name}")

    async def sign_out_identity(self, name: str) -> None:
        self.done.append(f"sign out {name}")


def told(status: IdentityStatus) -> dict[str, str]:
    return {each.label: str(each.value) for each in identity_facts(status, NOW)}


def test_the_facts_name_provider_account_and_servers() -> None:
    assert told(CORP) == {
        "identity": "corp",
        "provider": "idp.example",
        "issuer": "https://idp.example/tenant",
        "account": "ann@corp",
        "ID token": "valid for 10 min",
        "servers": "docs, wiki",
        "kept": "in the keychain (X)",
    }
    assert told(LAB)["account"] == "no one is signed in"
    assert told(LAB)["servers"] == "none has a token of it"


def test_a_row_says_who_is_signed_in() -> None:
    assert "ann@corp" in str(identity_row(CORP, 100, NOW))
    assert "expired; is renewed" in str(identity_row(CORP, 100, NOW + 700))
    assert "not signed in" in str(identity_row(LAB, 100, NOW))


def test_foreign_names_cannot_paint() -> None:
    evil = IdentityStatus("corp", "https://idp.example", True, "\x1b[2J[bold]ann", NOW + 600)
    assert "\x1b" not in str(identity_row(evil, 100, NOW))
    assert "\x1b" not in told(evil)["account"]
    assert "[bold]" in told(evil)["account"]


async def test_the_keys_sign_out_and_in() -> None:
    actions, app = Actions(), App[None]()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = IdentitiesScreen(actions)
        await app.push_screen(screen)
        await _listed(pilot, screen)
        await pilot.press("o", "down", "o", "s")
        await pilot.pause()
    assert actions.done == ["sign out corp", "sign in lab"]


async def _listed(pilot: Pilot[None], screen: IdentitiesScreen) -> None:
    while not screen.rows.items:
        await pilot.pause()


def by_identity(**more: str) -> SignInPlan:
    client = {"client": ClientOrigin.CONFIGURED, "client_id": "mcphost-docs", "redirect_uri": ""}
    identity = {"identity": "corp", "identity_issuer": "https://xn--idp-hoa.example", "account": "ann@corp"}
    return plan(**{**client, **identity, "authorization_endpoint": "", **more})


def test_the_plan_names_the_provider_in_both_spellings() -> None:
    found = {each.label: str(each.value) for each in plan_facts("docs", by_identity())}
    assert found["identity"].startswith("corp at https://xn--idp-hoa.example\nwhich reads ")
    assert (found["account"], found["token from"]) == ("ann@corp; no browser is needed", ISSUER)
    assert "comes back to" not in found
    assert plan_line(by_identity()).startswith("sign in at xn--idp-hoa.example")


def test_the_plan_says_where_the_browser_goes() -> None:
    page = by_identity(account="", authorization_endpoint="https://pages.example/authorize")
    found = {each.label: str(each.value) for each in plan_facts("docs", page)}
    assert found["account"] == "you sign in at pages.example, another host, in the browser"


def test_the_command_line_shows_the_same_plan() -> None:
    text = "\n".join(_plan_lines("docs", by_identity()))
    assert "  account       ann@corp; no browser is needed" in text
    assert "  identity      corp at " in text
    assert "  granted by    auth.linear.example" in text
    assert "comes back to" not in text


def test_a_plan_of_the_identity_alone_names_no_server() -> None:
    alone = by_identity(resource="", account="", authorization_endpoint="https://idp.example/authorize")
    assert not {"server", "token for", "token from"} & {each.label for each in plan_facts("identity corp", alone)}
