"""Signing in for real: a certified authorization server, a server on the official SDK, a keychain, whole programs.

After each of these tests everything that mcphost printed and every file on the machine is searched for every secret
that went through the authorization server.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mcphost.auth.jwt_claims import claims_of
from tests.auth.proofs import ProofCheck
from tests.terminal import Terminal
from tests.transports.http.http_connection import Echo, Talk, Web
from tests.whole.app import GUARD, find
from tests.whole.app import agree as allow
from tests.whole.browsing import visit
from tests.whole.signing import (
    BACK,
    DOCUMENT,
    Authorization,
    Done,
    SignInServers,
    UserMachine,
    sign_in_servers,
    user_machine,
)

pytestmark = pytest.mark.timeout(400)  # a first run installs


READ = ("call", "notes", "read_note", "--yes")
WAITING = "waiting for you to agree"
WRITE = ("call", "notes", "write_note", "text=tea", "--yes")


@pytest.fixture(scope="module")
def services() -> Iterator[SignInServers]:
    """The servers of all these tests."""
    with sign_in_servers() as found:
        yield found


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder for all files of a machine."""
    folder = tmp_path / "machine"
    folder.mkdir()
    return folder


@pytest.fixture
def vault() -> Iterator[Path]:
    """A folder for a keychain in a file, away from what is searched for secrets."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def here(services: SignInServers, machine: Path, vault: Path) -> Iterator[UserMachine]:
    """A machine without a sign-in; in the end neither its files nor its output contain a secret."""
    with user_machine(machine, services.url, vault) as found:
        yield found
    assert found.leaks(services.authorization.secrets()) == []


def signed_in(here: UserMachine, *more: str) -> Done:
    done = here.run("login", "notes", "--yes", *more)
    assert done.code == 0, done.err
    return done


@pytest.mark.hostile("C10")
@pytest.mark.requirement(
    "AUTH-02",
    "AUTH-05",
    "AUTH-08",
    "AUTH-11",
    "AUTH-12",
    "AUTH-18",
    "AUTH-20",
    "AUTH-30",
    "AUTH-47",
    "DPOP-07",
    "SEC-09",
)
def test_one_sign_in_serves_every_program_until_its_sign_out(services: SignInServers, here: UserMachine) -> None:
    """Seen, used, widened, renewed and revoked, each by a program of its own that asks no question."""
    assert "needs sign-in" in here.run("check").out
    with services.authorization.recording() as seen_at:
        done = signed_in(here, "-v", "--traffic", "login.jsonl")
    assert done.out.startswith(f"notes: signed in at 127.0.0.1:{services.authorization.port} for mcp:read until")
    assert f"tokens in the keychain ({here.keychain})" in done.out
    (registered,), (asked, *_), (token, *_) = seen_at("/reg"), seen_at("/auth"), seen_at("/token")
    assert registered.sent["redirect_uris"] == [asked.query["redirect_uri"]] == [token.sent["redirect_uri"]]
    assert (registered.sent["application_type"], asked.query["code_challenge_method"]) == ("native", "S256")
    assert asked.query["resource"] == token.sent["resource"] == services.url
    assert (token.proof, token.answer["token_type"]) == ("", "Bearer")  # only the authorization server knows DPoP

    standing = here.run("check", "--json").object["signIn"]
    assert (standing["signedIn"], standing["scopes"], standing["renewable"]) == (True, ["mcp:read"], True)
    notes = {"alice: buy milk\n", "alice: bread\n", "alice: tea\n"}  # a test before this one may have written another
    assert here.run(*READ, "--traffic", "call.jsonl").out in notes

    refused = here.run(*WRITE)
    assert (refused.code, "mcphost login notes --scope mcp:write" in refused.err) == (3, True)
    signed_in(here, "--scope", "mcp:write")
    assert here.run(*WRITE).out == "wrote tea\n"

    services.authorization.end_tokens()
    with services.authorization.recording() as seen_at:
        assert here.run(*READ).out == "alice: tea\n"
        assert here.run("logout", "notes").out == "notes: signed out; the tokens were revoked\n"
    (renewal,), (revocation,) = seen_at("/token"), seen_at("/token/revocation")
    assert renewal.sent["resource"] == services.url
    assert revocation.sent["token"] == renewal.answer["refresh_token"]
    assert services.authorization.takes(renewal) == 400
    assert (here.run(*READ).code, here.run("check", "--json").object["signIn"]["signedIn"]) == (3, False)
    own = {"login.keyring"} if here.keychain == "SecretService" else set()
    assert {path.name for path in here.files()} >= {"login.jsonl", "call.jsonl", "audit.jsonl"} | own


@pytest.mark.hostile("O17")
@pytest.mark.requirement("AUTH-23")
def test_programs_that_share_a_keychain_renew_each_token_once(services: SignInServers, here: UserMachine) -> None:
    """At this authorization server a refresh token that comes twice would end them all.

    The first token is renewed because of its age, and the second because it was refused.
    """
    with services.authorization.short_lived():
        signed_in(here)
    with services.authorization.recording() as seen_at:
        for _ in range(2):
            calls = [here.ended(each) for each in [here.begin(*READ) for _ in range(3)]]
            assert [call.code for call in calls] == [0, 0, 0], calls
            services.authorization.end_tokens()
    tokens = [each.sent["refresh_token"] for each in seen_at("/token")]
    assert len(tokens) == len(set(tokens)) == 2
    assert {each.status for each in seen_at("/token")} == {200}


@pytest.mark.hostile("C08", "C10")
@pytest.mark.requirement("AUTH-18")
def test_tokens_survive_a_restart_of_the_keychain(services: SignInServers, machine: Path, vault: Path) -> None:
    with user_machine(machine, services.url, vault) as before, services.authorization.short_lived():
        signed_in(before)
    with user_machine(machine, services.url, vault, unlocked=False) as after:
        locked = after.run("check")
        assert (locked.code, "locked" in locked.out) == (3, True), locked
        assert "in memory until mcphost ends: it is locked" in signed_in(after).out
        after.unlock()
        assert after.run(*READ).out.startswith("alice: ")
    secrets = services.authorization.secrets()
    assert [*before.leaks(secrets), *after.leaks(secrets)] == []


@pytest.mark.requirement("AUTH-09", "AUTH-33", "AUTH-34", "AUTH-35", "AUTH-36", "AUTH-52")
@pytest.mark.parametrize(
    ("entry", "signs_in", "who"),
    [
        ('client_id = "basic"\nclient_secret = "${NOTES_SECRET}"', "from your configuration (basic)", "alice"),
        ('client_id = "post"\nclient_secret = "${NOTES_SECRET}"', "from your configuration (post)", "alice"),
        (f'client_metadata_url = "{DOCUMENT}"\nredirect_port = {BACK}', "by its metadata document", "alice"),
        ('grant = "client_credentials"\nclient_id = "machine"\nclient_secret = "${NOTES_SECRET}"', "", "machine"),
    ],
    ids=["basic", "post", "document", "machine"],
)
def test_a_client_that_is_known_already_registers_nowhere(
    services: SignInServers, here: UserMachine, entry: str, signs_in: str, who: str
) -> None:
    here.configure(services.url, f"[servers.notes.oauth]\n{entry}\n")
    services.authorization.document.write_text(here.run("config", "client-metadata", DOCUMENT, "--port", str(BACK)).out)
    with services.authorization.recording() as seen_at:
        assert not signs_in or signs_in in signed_in(here).err
        assert here.run(*READ).out.startswith(f"{who}: ")
    assert (seen_at("/reg"), bool(seen_at("/token"))) == ([], True)


@pytest.mark.hostile("C10")
@pytest.mark.requirement("DPOP-01", "DPOP-02", "DPOP-03", "DPOP-04", "DPOP-06")
def test_a_sign_in_bound_to_a_key_lasts_over_runs_and_renewals(machine: Path, vault: Path) -> None:
    """The authorization server is real, and the server a double: no package there knows DPoP."""
    issuer, check, proofs = list[str](), ProofCheck(), list[str]()

    def takes_bound_tokens(talk: Talk) -> None:
        scheme, _, token = talk.headers.get("authorization", "").partition(" ")
        if "well-known" in talk.path:
            talk.json({"resource": talk.web.url, "authorization_servers": issuer, "scopes_supported": ["mcp:read"]})
        elif not token:
            talk.whole(401, www_authenticate='DPoP algs="ES256 RS256"')
        else:
            proofs.append(talk.headers["dpop"])
            key = check.verify(proofs[-1], talk.command, talk.web.url, time.time(), token=token)
            assert (scheme, claims_of(token)["cnf"]) == ("DPoP", {"jkt": key})
            Echo(stateless=True)(talk)

    with Web(takes_bound_tokens) as web:
        authorization = Authorization(vault, web.url)
        issuer.append(authorization.issuer)
        try:
            with user_machine(machine, web.url, vault) as here, authorization.short_lived():
                done = signed_in(here, "--traffic", "login.jsonl", "-v")
                assert "bound to a key of this machine" in done.out
                assert "bound to a key of this machine" in done.err
                call = here.run("call", "notes", "echo", "text=tea", "--yes", "--traffic", "call.jsonl")
                assert (call.code, call.out) == (0, "tea\n"), call
            tokens = [each for each in authorization.exchanges() if each.path == "/token"]
            assert [each.status for each in tokens if "code" in each.sent] == [400, 200]
            renewals = [each.status for each in tokens if "refresh_token" in each.sent]
            assert (400 in renewals, renewals[-1]) == (True, 200)  # the nonce is not kept over runs
            keys = {check.key_of(proof) for proof in (*proofs, *(each.proof for each in tokens))}
            assert len(keys) == 1
            assert here.leaks({*authorization.secrets(), *proofs}) == []
        finally:
            authorization.end()


def test_a_refusal_in_the_browser_is_reported_and_stores_nothing(services: SignInServers, here: UserMachine) -> None:
    here.browser("--refuse")
    done = here.run("login", "notes", "--yes")
    assert (done.code, "access was denied" in done.err) == (3, True), done
    assert here.run("check", "--json").object["signIn"]["signedIn"] is False


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_real_browser_goes_there_and_back(services: SignInServers, here: UserMachine, tmp_path: Path) -> None:
    """Which keeps to what the pages say of where their forms may lead."""
    page = tmp_path / "page"
    here.browser(str(page), program="chromium")
    assert signed_in(here).out.startswith("notes: signed in at")
    end = time.monotonic() + 10
    while not page.exists():
        assert time.monotonic() < end, "the browser did not get an answer"
        time.sleep(0.05)
    assert page.read_text().startswith("You are back from the sign-in.")


def test_an_unknown_resource_is_reported(services: SignInServers, here: UserMachine) -> None:
    def claims(talk: Talk) -> None:
        if "well-known" in talk.path:
            talk.json({"resource": talk.web.url, "authorization_servers": [services.authorization.issuer]})
        else:
            talk.whole(401)

    with Web(claims) as web:
        here.configure(web.url)
        done = here.run("login", "notes", "--yes")
    assert (done.code, "(invalid_target)" in done.err) == (3, True), done


def test_an_address_is_pasted_if_the_browser_cannot_return(services: SignInServers, here: UserMachine) -> None:
    with here.sit("login", "notes", "--no-browser", columns=1000) as terminal:
        terminal.wait_for("Sign in to notes like this? [y/N]")
        terminal.press("y", "enter")
        shown = terminal.wait_for("and paste it.").splitlines()
        (link,) = [line for line in shown if line.startswith(services.authorization.issuer)]
        terminal.press(visit(link, stays_at=services.authorization.issuer), "enter")
        terminal.wait_for("notes: signed in at")
        assert terminal.wait_exit() == 0
    here.seen.clear()  # a terminal shows what is typed
    assert here.run(*READ).out.startswith("alice: ")


@pytest.mark.hostile("C10", "O17")
@pytest.mark.requirement("AUTH-22", "AUTH-37", "AUTH-39", "SEC-09")
def test_calls_on_screen_continue_after_each_sign_in(services: SignInServers, here: UserMachine) -> None:
    """Silently when the token ended, for more rights, and again at a server that forgot who signed in."""
    with here.sit("--traffic", "screen.jsonl", columns=110, rows=34) as terminal:
        terminal.wait_for("needs sign-in")
        terminal.press("s", "down", "S")
        agree(terminal)
        terminal.wait_for("1 ready")
        services.authorization.end_tokens()
        with services.authorization.recording() as seen_at:
            call(terminal, "read_note")
            allow(terminal, "alice: ")
        assert (seen_at("/auth"), [each.status for each in seen_at("/token")]) == ([], [200])

        call(terminal, "write_note", "bread")
        allow(terminal, WAITING)
        terminal.wait_for("mcp:read", "mcp:write")
        agree(terminal)
        terminal.wait_for("for want of rights")
        allow(terminal, "wrote bread")

        services.authorization.end()
        services.authorization.start()
        services.authorization.end_tokens()
        with services.authorization.recording() as seen_at:
            call(terminal, "read_note")
            allow(terminal, WAITING)
            agree(terminal)
            terminal.wait_for("for want of a sign-in")
            allow(terminal, "alice: bread")
        assert len(seen_at("/reg")) == 1
        for page in ("f3", "f4"):
            terminal.press(page)
            terminal.wait_for({"f3": "Logs", "f4": "Traffic"}[page])
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


def agree(terminal: Terminal) -> None:
    """Agree to a sign-in, let the desktop's browser do the rest, and leave it behind."""
    terminal.wait_for(WAITING)
    terminal.rest(GUARD)
    terminal.press_until(["y"], "● signed in", again=[WAITING])
    terminal.rest(GUARD)  # the dialog has changed, and ignores keys once more
    terminal.press_until(["escape"], "╭─ Tools", but="● signed in", again=["● signed in"])


def call(terminal: Terminal, tool: str, *filling: str) -> None:
    """Call a tool, up to the question whether to."""
    find(terminal, tool)
    terminal.press("enter")
    terminal.wait_for(f"notes › {tool}", "ctrl+r run")
    terminal.press(*filling)
    terminal.press_until(["ctrl+r"], f"Run {tool} on notes?")
