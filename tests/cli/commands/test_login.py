"""Signing in and out from the command line: a guarded server, a browser on the desktop, and a keychain."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from keyring.errors import PasswordDeleteError

from mcphost.auth.ports import ClientOrigin, SignInPlan, SignInStatus
from mcphost.cli.commands.login import _link_lines, _plan_lines, status_text
from tests.auth.people import Echo, Guarded, Web
from tests.cli.conftest import Mcphost, echo
from tests.executables import write_executable
from tests.terminal import mcphost as terminal


class Ring:
    """A keychain of the system, as the keyring library gives it."""

    name = "ring"

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.items.get((service, name))

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.items[service, name] = secret

    def delete_password(self, service: str, name: str) -> None:
        if self.items.pop((service, name), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    """The keychain of this test."""
    made = Ring()
    monkeypatch.delenv("MCPHOST_KEYCHAIN")
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", lambda: made)
    return made


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desktop whose browser goes to the page, agrees and comes back; where it writes down what it was given."""
    folder, seen = tmp_path / "bin", tmp_path / "browser.txt"
    folder.mkdir()
    program = (
        f"import sys, urllib.request\nopen({str(seen)!r}, 'w').write('\\n'.join(sys.argv[1:]))\n"
        "urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=5).read()\n"
    )
    write_executable(folder / "xdg-open", [sys.executable, "-c", program])
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return seen


@contextmanager
def guarded(**more: Any) -> Iterator[tuple[Guarded, Web]]:
    """A guarded server, configured as `web`."""
    guard = Guarded(inner=Echo(stateless=True), **more)
    with Web(guard) as web:
        Path("config.toml").write_text(f'[servers.web]\nurl = "{web.url}"\n[policy]\ndefault = "allow"\n')
        os.environ["MCPHOST_CONFIG"] = str(Path("config.toml").absolute())
        try:
            yield guard, web
        finally:
            os.environ.pop("MCPHOST_CONFIG", None)


@pytest.mark.requirement("AUTH-15", "AUTH25-09")
def test_signing_in_lasts_beyond_the_run_and_ends_by_signing_out(mcphost: Mcphost, ring: Ring, browser: Path) -> None:
    with guarded(more={"metadata": {"scopes_supported": ["x"]}}) as (guard, web):
        refused = mcphost("call", "web", "echo", "text=x")
        assert refused.code == 3
        assert "Sign in with: mcphost login web" in refused.err
        waiting = mcphost("check", "web", "--json")
        assert (waiting.code, json.loads(waiting.out)["state"]) == (3, "needs sign-in")

        done = mcphost("login", "web", "--yes", "-v")
        assert done.code == 0, done.err
        assert done.out.startswith(f"web: signed in at 127.0.0.1:{web.port}")
        assert "in the keychain (ring)" in done.out
        for words in ("  token for ", "  comes back to http://127.0.0.1:", "step 1: ", "HTTP 200 in", "/authorize?"):
            assert words in done.err
        assert browser.read_text() in done.err
        (item,) = ring.items
        assert item == ("mcphost-oauth", "web")

        assert mcphost("call", "web", "echo", "text=x").out == "x\n"
        checked = mcphost("check", "web")
        assert f"signed in at 127.0.0.1:{web.port}" in checked.out
        sign_in = json.loads(mcphost("check", "web", "--json").out)["signIn"]
        assert (sign_in["signedIn"], sign_in["keptIn"], sign_in["renewable"]) == (True, "in the keychain (ring)", True)
        told = done.out + done.err + checked.out + json.dumps(sign_in)
        assert not [secret for secret in {*guard.valid, *guard.current} if secret in told]

        left = mcphost("logout", "web")
        assert (left.code, left.out.startswith("web: signed out")) == (0, True)
        assert (ring.items, guard.valid) == ({}, set())
        assert mcphost("check", "web").code == 3


def test_a_removed_server_is_signed_out_first(mcphost: Mcphost, ring: Ring, browser: Path, isolated: Path) -> None:
    with guarded() as (guard, _):
        added = isolated / "config" / "mcphost" / "servers.toml"
        added.parent.mkdir(parents=True, exist_ok=True)
        added.write_text(Path("config.toml").read_text().partition("[policy]")[0])
        del os.environ["MCPHOST_CONFIG"]
        assert mcphost("login", "web", "--yes").code == 0
        removed = mcphost("remove", "web")
        assert removed.code == 0, removed.err
        assert removed.out.startswith("web: signed out; the tokens were revoked\nweb is no longer in ")
        assert (ring.items, guard.valid) == ({}, set())


def test_a_server_that_the_users_own_file_has_as_well_stays_signed_in(
    mcphost: Mcphost, ring: Ring, browser: Path, isolated: Path
) -> None:
    with guarded():
        own = isolated / "config" / "mcphost" / "config.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(Path("config.toml").read_text())
        own.with_name("servers.toml").write_text('[servers.web]\nurl = "http://127.0.0.1:9/mcp"\n')
        del os.environ["MCPHOST_CONFIG"]
        assert mcphost("login", "web", "--yes").code == 0
        assert "still in your own configuration" in mcphost("remove", "web").out
        assert list(ring.items) == [("mcphost-oauth", "web")]


def test_tokens_of_a_url_are_kept_under_its_address(mcphost: Mcphost, ring: Ring, browser: Path) -> None:
    with guarded() as (_, web):
        assert f"Sign in with: mcphost login {web.url}" in mcphost("check", web.url).err + mcphost("check", web.url).out
        assert json.loads(mcphost("login", web.url, "--yes", "--json").out)["signedIn"] is True
        assert list(ring.items) == [("mcphost-oauth", web.url)]
        assert mcphost("call", web.url, "echo", "text=y", "--yes").out == "y\n"
        assert mcphost("call", "web", "echo", "text=y", "--yes").code == 3  # which is another entry


def test_scopes_are_asked_for_besides_those_there_are(mcphost: Mcphost, ring: Ring, browser: Path) -> None:
    with guarded() as (_, web):
        assert mcphost("login", "web", "--yes", "--scope", "a:${x}").code == 0
        more = mcphost("login", "web", "--yes", "--scope", "b")
        assert "If the page does not know mcphost: stop here, run mcphost logout web, and sign in again." in more.err
        assert "asks for      a:${x} b, named by your configuration" in more.err
        asked = [visit.path for visit in web.visits if visit.path.startswith("/authorize")]
        assert [path.partition("scope=")[2].partition("&")[0] for path in asked] == [
            "a%3A%24%7Bx%7D",
            "a%3A%24%7Bx%7D+b",
        ]
        assert mcphost("login", "web", "--yes", "--scope", 'a"b').code == 2


WHY = ', error_description="audience is api://other, expected this server"'
CIRCLES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "a 401 of a call names a scope": ({"needs": "files:read", "lazy": True}, [" --scope files:read"], ""),
    "a 401 names a scope besides": ({"needs": "write"}, ["", " --scope write"], ""),
    "a 403 names a scope": ({"needs": "write", "refusal": 403}, ["", " --scope write"], ""),
    "a scope with odd letters": ({"needs": "a~b*", "lazy": True}, [" --scope 'a~b*'"], ""),
    "a 401 whatever the token": ({"never": True, "says": WHY}, ["", ""], "audience is api://other"),
    "a 401 whatever the scope": (
        {"never": True, "needs": "w", "lazy": True, "says": WHY}, [" --scope w"], "You signed in for w, and the server"
    ),
    "a 403 whatever the scope": (
        {"never": True, "needs": "w", "refusal": 403, "says": WHY}, ["", " --scope w"], "audience is api://other"
    ),
    "a 403 without a scope": ({"never": True, "refusal": 403, "says": WHY}, [""], "audience is api://other"),
}  # fmt: skip


@pytest.mark.parametrize(("guard", "commands", "end"), CIRCLES.values(), ids=CIRCLES)
def test_each_sign_in_that_is_advised_leads_on(
    mcphost: Mcphost, ring: Ring, browser: Path, guard: dict[str, Any], commands: list[str], end: str
) -> None:
    """To a call that works, or to other advice with the server's reason."""
    followed: list[str] = []
    with guarded(**guard):
        while (done := mcphost("call", "web", "echo", "text=x")).code == 3:
            advised = re.search(r"(?m)^.* with: mcphost login web(.*)$", done.err)
            if advised is None:
                break
            assert advised[1] not in followed
            followed.append(advised[1])
            signed_in = mcphost("login", "web", "--yes", *shlex.split(advised[1]))
            assert signed_in.code == 0
    assert followed == list(dict.fromkeys(commands)), done.err
    assert (done.code, done.out) == ((3, "") if end else (0, "x\n"))
    assert end in done.err
    assert ("ask whoever runs it, or use another account: mcphost logout web, then mcphost login web" in done.err) is (
        bool(end)
    )


@pytest.mark.parametrize(
    ("place", "more"),
    [
        ("metadata", {"issuer": "{base}/"}),
        ("metadata", {"code_challenge_methods_supported": None}),
        ("resource", {"resource": "https://backend.internal/mcp"}),
        ("resource", {"resource": "urn:app:backend"}),
        ("register", {"redirect_uris": "http://localhost:"}),
    ],
)
def test_the_key_that_a_refusal_names_lets_the_sign_in_pass(
    mcphost: Mcphost, ring: Ring, browser: Path, place: str, more: dict[str, Any]
) -> None:
    with guarded() as (guard, web):
        base = web.url.removesuffix("/mcp")
        guard.more[place] = {key: value and value.format(base=base) for key, value in more.items()}
        refused = mcphost("login", "web", "--yes")
        key = re.search(r'set (oauth\.\w+ = (?:true|"[^"]+"))', refused.err)
        assert key is not None, refused.err
        file = Path("config.toml")
        file.write_text(file.read_text().replace("[policy]", f"{key[1]}\n[policy]"))
        assert mcphost("login", "web", "--yes").code == 0
        assert mcphost("call", "web", "echo", "text=x").out == "x\n"


@pytest.mark.parametrize("status", [401, 403])
def test_a_list_that_needs_another_sign_in_says_which(mcphost: Mcphost, ring: Ring, browser: Path, status: int) -> None:
    with guarded(needs="list", refusal=status, closed=("tools/list",), says=WHY):
        assert mcphost("login", "web", "--yes").code == 0
        refused = mcphost("list", "tools", "web")
        assert refused.code == 3
        assert "audience is api://other" in refused.err
        assert "Sign in for more with: mcphost login web --scope list" in refused.err
        assert mcphost("login", "web", "--yes", "--scope", "list").code == 0
        assert "echo" in mcphost("list", "tools", "web").out


def diagnosis(mcphost: Mcphost) -> dict[str, Any]:
    """Return doctor's finding about the server."""
    findings = map(json.loads, mcphost("doctor", "web", "--json").out.splitlines())
    (finding,) = [finding for finding in findings if finding["topic"] == "server web"]
    return dict(finding)


def test_a_sign_in_that_the_server_refuses_is_said_with_its_reason(mcphost: Mcphost, ring: Ring, browser: Path) -> None:
    with guarded(says=WHY) as (guard, _):
        signing_in = guard.grant

        def forgets(*words: Any, **more: Any) -> None:
            signing_in(*words, **more)
            guard.valid.clear()

        guard.grant = forgets  # type: ignore[method-assign]
        done = mcphost("login", "web", "--yes")
        assert "needs sign-in" not in done.err
        says = "the server refuses this sign-in (HTTP 401): audience is api://other, expected this server"
        assert f"web: signed in, but {says}. You are signed in, and the server still refuses: ask" in done.err
        assert says in mcphost("check", "web").out
        assert says in mcphost("call", "web", "echo", "text=x").err
        finding = diagnosis(mcphost)
        assert (says in finding["text"], finding["fix"]) == (True, None)


def test_doctor_names_the_scope_of_the_sign_in_that_is_missing(mcphost: Mcphost, ring: Ring, browser: Path) -> None:
    with guarded(says=', scope="read"'):
        finding = diagnosis(mcphost)
        assert finding["fix"] == "mcphost login web --scope read"


SPOILED = {
    "token-form": "is not JSON (application/x-www-form-urlencoded)",
    "token-cut": "is not JSON (application/json)",
    "token-text": "is not JSON (text/plain)",
    "token-error": "refused a token (HTTP 400): access_token=••• is spent",
    "token-nested": "refused a token (HTTP 401): quota used up",
    "token-no-http": "it did not answer in HTTP",
    "html": "is not JSON (text/html)",
    "unauthorized-client": "(unauthorized_client): Invalid client_id",
    "invalid-grant": "(invalid_grant): no",
}


def canaries(folder: Path, *said: str) -> list[str]:
    """Return the outputs and the files of mcphost that hold a canary."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [str(path) for path in files if b"CANARY" in path.read_bytes()]
    return [*(text for text in said if "CANARY" in text), *found]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(("spoiled", "says"), SPOILED.items())
def test_the_reason_of_a_failed_renewal_holds_no_token(
    mcphost: Mcphost, ring: Ring, browser: Path, tmp_path: Path, isolated: Path, spoiled: str, says: str
) -> None:
    with guarded(lifetime=0) as (guard, _):
        assert mcphost("login", "web", "--yes").code == 0
        guard.spoiled["token"] = spoiled
        guard.valid.clear()
        checked = mcphost("check", "web", "--json")
        again = mcphost("login", "web", "--yes", "-v")
        del guard.spoiled["token"]
        mcphost("login", "web", "--yes")
        guard.spoiled["token"] = spoiled
        guard.valid.clear()
        called = mcphost("call", "web", "echo", "text=x", "--traffic", str(tmp_path / "traffic.jsonl"))
        checked_in_words = mcphost("check", "web") if spoiled in STILL_KEPT else called
    assert says in json.loads(checked.out)["signIn"]["problem"]
    assert "the sign-in could not be renewed: " in called.err
    assert says in called.err
    assert "Sign in again with: mcphost login web\n" in called.err
    assert says in again.err
    assert says in checked_in_words.out + checked_in_words.err
    assert "renewed by itself" not in checked_in_words.out
    said = [text for done in (checked, again, called, checked_in_words) for text in (done.out, done.err)]
    assert canaries(tmp_path, *said) + canaries(isolated) == []


STILL_KEPT = ("token-form", "html", "token-nested")
"""Answers that do not end a sign-in."""


@pytest.mark.hostile("C10")
@pytest.mark.parametrize(
    ("place", "spoiled"),
    [("register", "token-cut"), ("register", "token-error"), ("token", "token-form"), ("token", "token-no-http")],
)
def test_a_sign_in_that_fails_prints_no_secret_of_its_answers(
    mcphost: Mcphost, ring: Ring, browser: Path, tmp_path: Path, isolated: Path, place: str, spoiled: str
) -> None:
    with guarded(spoiled={place: spoiled}):
        done = [mcphost("login", "web", "--yes", *more) for more in ((), ("--json",), ("-v",))]
    assert [each.code for each in done] == [3 if spoiled != "token-error" else 4] * 3
    assert canaries(tmp_path, *(text for each in done for text in (each.out, each.err))) + canaries(isolated) == []


@pytest.mark.parametrize(
    ("words", "config", "code", "said"),
    [
        (("login", "web"), "", 4, "there is no terminal to ask on; add --yes once you know all the places"),
        (("login", "nobody"), "", 2, "no server is called"),
        (("login", echo()), "", 2, "is a program"),
        (("logout", "web"), "oauth.enabled = false", 2, "oauth.enabled is false"),
        (("login", "web"), 'http_headers.Authorization = "x"', 2, "an Authorization header of its own"),
        (("logout", "web"), "", 0, "no one was signed in"),
        (("login",), "", 2, "name a SERVER, or --identity NAME"),
        (("login", "web", "--identity", "corp"), "", 2, "name a SERVER, or --identity NAME"),
        (("login", "--identity", "corp"), "", 2, "there is no [identity.corp] in your configuration"),
        (
            ("logout", "--identity", "gone"),
            "",
            0,
            "identity gone: no one was signed in\nmcphost: your configuration has no",
        ),
    ],
)
def test_what_cannot_be_says_why(mcphost: Mcphost, words: tuple[str, ...], config: str, code: int, said: str) -> None:
    with guarded():
        file = Path("config.toml")
        file.write_text(file.read_text().replace("[policy]", f"{config}\n[policy]"))
        done = mcphost(*words)
    assert (done.code, said in done.out + done.err) == (code, True), done.err


def test_without_a_keychain_the_command_says_that_tokens_end_with_it(mcphost: Mcphost, browser: Path) -> None:
    with guarded():
        done = mcphost("login", "web", "--yes")
    assert (done.code, "tokens in memory until mcphost ends" in done.out) == (0, True)


@pytest.mark.slow
def test_at_a_terminal_the_plan_is_agreed_to_and_the_address_pasted() -> None:
    """By hand, over ssh: the browser is elsewhere, so the address that it ends at is pasted: longer than any line that
    a terminal takes, and not shown, since it holds the code."""
    with (
        guarded() as (_, web),
        terminal("login", "web", columns=400, rows=60, env={"SSH_TTY": "/dev/pts/7", "MCPHOST_KEYCHAIN": "off"}) as tty,
    ):
        tty.wait_for("Sign in to web like this? [y/N]")
        tty.press("y", "enter")
        text = tty.wait_for("and paste it.", "  ssh -L ")
        (link,) = [line for line in text.splitlines() if line.startswith(f"http://127.0.0.1:{web.port}/authorize?")]
        tty.press("enter")  # an impatient one
        tty.press("http://127.0.0.1:1/else?code=x", "enter")
        tty.wait_for("that is not the address")
        location = httpx.get(link, trust_env=False).headers["location"]
        (code,) = parse_qs(urlsplit(location).query)["code"]
        tty.press("not the one", "ctrl+u", f"{location}&state_of_mind={'x' * 9_000}é\x7f\x7f", "enter")
        tty.wait_for("web: signed in at")
        assert tty.wait_exit() == 0
        assert code.encode() not in tty.raw
        assert b"code=" not in tty.raw


def test_a_wrong_state_is_reported_to_the_browser_at_once() -> None:
    command = ("login", "web", "--yes", "--no-browser")
    with guarded() as (_, web), terminal(*command, columns=400, rows=60, env={"MCPHOST_KEYCHAIN": "off"}) as tty:
        text = tty.wait_for("It is waited for")
        (link,) = [line for line in text.splitlines() if line.startswith(f"http://127.0.0.1:{web.port}/authorize?")]
        location = httpx.URL(httpx.get(link, trust_env=False).headers["location"])
        for _ in range(3):
            assert httpx.get(location.copy_set_param("state", "other"), trust_env=False).status_code == 400
            assert httpx.get(location.copy_remove_param("state"), trust_env=False).status_code == 400
        screen = tty.wait_for(
            "mcphost: a browser came back from another sign-in (its state is not ours) and was turned away",
            "mcphost: a browser came back without the state of this sign-in and was turned away",
        )
        assert screen.count("was turned away") == 2
        assert httpx.get(location, trust_env=False).status_code == 200
        tty.wait_for("web: signed in at")
        assert tty.wait_exit() == 0


def test_a_plan_begins_each_address_with_the_host_that_is_looked_up() -> None:
    fake, real = "https://\u0430pple.com", "https://xn--pple-43d.com"
    plan = SignInPlan(
        *("web", f"{fake}/mcp", f"{fake}/mcp", fake, f"{fake}/authorize", f"{fake}/token", f"{fake}/register"),
        scopes=(),
        scopes_from="nobody",
        granted=(),
        client=ClientOrigin.REGISTER,
        client_id="",
        redirect_uri="http://127.0.0.1:9/callback",
    )
    lines = list(_plan_lines("web", plan))
    for number, path in enumerate(("/mcp", "/mcp", None, "/authorize", "/token", "/register")):
        told = "xn--pple-43d.com (" if path is None else f"{real}{path}  ("
        assert f"{told}reads \u0430pple.com)" in lines[number]
    assert sum("mixes Cyrillic and Latin letters" in line for line in lines) == 1
    assert "signed in at xn--pple-43d.com (reads" in status_text(SignInStatus(True, fake))


def test_a_status_says_that_a_renewal_failed() -> None:
    status = SignInStatus(True, "https://as.example", scopes=("a",), renewable=True)
    assert status_text(status) == "signed in at as.example for a, renewed by itself"
    failed = replace(status, problem="quota used up")
    assert status_text(failed) == "signed in at as.example for a; it could not be renewed: quota used up"
    assert status_text(failed, "no: quota used up") == "signed in at as.example for a"
    assert status_text(SignInStatus(False, problem="quota used up")) == "not signed in: quota used up"


def test_the_document_to_publish_names_its_own_address(mcphost: Mcphost) -> None:
    done = mcphost("config", "client-metadata", "https://example.com/mcphost.json", "--port", "4711")
    document = json.loads(done.out)
    assert document["client_id"] == "https://example.com/mcphost.json"
    assert document["redirect_uris"] == ["http://127.0.0.1:4711/callback"]
    assert "oauth.client_metadata_url" in done.err
    assert "oauth.redirect_host" in done.err
    assert mcphost("config", "client-metadata").code == 2
    assert mcphost("config", "client-metadata", "http://example.com/x").code == 2


@pytest.mark.hostile("T01")
def test_foreign_text_in_a_plan_and_a_link_is_made_safe() -> None:
    """Names from an authorization server reach the terminal as marks."""
    evil = "\x1b[2J\u202eevil"
    plan = SignInPlan(
        *("web", "https://h/mcp", evil, "https://as.example", evil, evil, evil),
        scopes=(evil,),
        scopes_from="nobody",
        granted=(evil,),
        client=ClientOrigin.REGISTER,
        client_id=evil,
        redirect_uri="http://127.0.0.1:9/callback",
        warnings=("careful",),
    )
    shown = "\n".join([*_plan_lines("web", plan), *_link_lines(evil, "http://127.0.0.1:9/c", 300, {})])
    shown += status_text(SignInStatus(True, "https://as.example", scopes=(evil,), asked=("a", evil), kept_in=evil))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "WARNING       careful" in shown
    assert "(without a, which was asked for)" in shown
