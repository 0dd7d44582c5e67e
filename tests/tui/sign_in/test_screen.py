"""The dialog for a sign-in: what each state shows, what each key does, and that nothing happens by accident."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from textual.events import Paste

from mcphost.auth.ports import ClientOrigin, SignInConsent, SignInExchange, SignInPlan
from mcphost.errors import ConfigError, McphostError, SignInFailed
from mcphost.host.sign_in.service import SignInState
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.sign_in.identities import IdentitiesScreen
from mcphost.tui.sign_in.screen import SignInScreen
from mcphost.tui.sign_in.visit import link_content
from tests.tui.sign_in.sign_ins import (
    DISCOVERY,
    PAGE,
    REDIRECT,
    TOKEN,
    Opener,
    ScriptedPort,
    at_sign_in,
    listens,
    plan,
    signing,
    standing,
)
from tests.tui.stage import NARROW, WIDE, Stage

pytestmark = pytest.mark.slow
OTHER_SHAPES = ("xn--80ak6aa92e.com", "аррӏе.com")


async def question_stage(stage: Stage) -> None:
    """Open the sign-in, and wait for its question."""
    await at_sign_in(stage)
    await stage.shows("waiting for you to agree", "don't sign in")
    await stage.until(lambda _: stage.app.approver.open)
    await listens(stage)


async def visiting(stage: Stage, *keys: str) -> None:
    """The same, then agree."""
    await question_stage(stage)
    await stage.press(*keys, "y")
    await stage.shows("waiting for the browser to come back")
    await listens(stage)


def attempt(stage: Stage) -> SignInState:
    return list(stage.host.sign_ins.all.values())[-1].state


async def test_a_server_that_wants_a_sign_in_says_which_key_begins_it() -> None:
    async with signing(ScriptedPort()) as stage:
        await stage.press("s", "down")
        await stage.shows("▲ linear S sign in")
        await stage.press("enter")
        await stage.shows("press S to sign in", "S sign in")
        await stage.press("S")
        await stage.at(SignInScreen)


SHOWN: list[tuple[SignInPlan, list[str]]] = [
    (
        plan(),
        [
            "linear · https://mcp.linear.example/mcp",
            "you sign in at https://auth.linear.example",
            "mcphost registers itself now",
            "3 of 3 requested, named by the server's refusal",
            "[x] read granted before",
            REDIRECT,
            "y sign in: register, then open auth.linear.example in the browser",
        ],
    ),
    (
        plan(issuer=f"https://{OTHER_SHAPES[0]}", client=ClientOrigin.KNOWN, client_id="client-1"),
        [
            "▲ beware аррӏе.com holds letters other than a to z, which may look like them: what is meant is",
            "https://xn--80ak6aa92e.com which reads аррӏе.com",
            "client-1, registered by mcphost before",
            "its page is at auth.linear.example: another host",
            "▸ n don't sign in",
        ],
    ),
    (
        plan(
            scopes=(),
            scopes_from="no one: the authorization server decides",
            warnings=("the server announces no sign-in",),
            problem="as.example refused\x1b[2J",
        ),
        [
            "asked again as.example refused␛[2J",
            "▲ beware the server announces no sign-in",
            "none: named by no one",
        ],
    ),
    (
        plan(scopes=(), problem="this is another account than before", client=ClientOrigin.KNOWN, obtained=True),
        [
            "asked again this is another account than before",
            "granted: read",
            "y keep this sign-in",
            "▸ n don't sign in: the account before stays",
        ],
    ),
]


@pytest.mark.hostile("O03", "O09")
@pytest.mark.parametrize(("shown", "words"), SHOWN, ids=["usual", "odd letters", "no scopes", "another account"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_the_plan_says_who_wants_what_and_where(
    size: tuple[int, int], shown: SignInPlan, words: list[str]
) -> None:
    async with signing(ScriptedPort(plans=[shown]), size=size) as stage:
        await question_stage(stage)
        seen = stage.flat
        await stage.press("space")
        for each in words:
            assert each in seen or each in stage.flat, f"{each}\n{stage.text}"


@pytest.mark.hostile("P09")
async def test_keys_meant_for_something_else_agree_to_nothing() -> None:
    port = ScriptedPort()
    async with signing(port, guard=60.0) as stage:
        await at_sign_in(stage)
        await stage.shows("don't sign in")
        await stage.press("y", "enter", "n", "escape", "p", "x")
        stage.app.post_message(Paste("y\n"))
        await stage.pilot.pause()
        assert attempt(stage) is SignInState.AGREEING
        assert not port.choices


async def test_space_removes_a_scope_from_the_request() -> None:
    port = ScriptedPort()
    async with signing(port) as stage:
        await question_stage(stage)
        await stage.press("e", "down", "space")
        await stage.shows("2 of 3 requested", "[ ] write")
        await stage.press("enter")
        assert attempt(stage) is SignInState.AGREEING
        await stage.press("enter")
        await stage.shows("waiting for the browser")
        await stage.until(lambda _: stage.host.sign_ins.all[1].choice == SignInConsent(("read", "admin")))


async def test_a_needed_client_id_is_asked_for_and_its_secret_masked() -> None:
    port = ScriptedPort(plans=[plan(client=ClientOrigin.ASKED)])
    async with signing(port) as stage:
        await question_stage(stage)
        await stage.press("enter", "enter")
        await stage.press("y")
        await stage.shows("✖ enter a client id")
        await stage.write("me")
        await stage.press("enter")
        await stage.write("hush-hush")
        assert "hush" not in stage.text
        await stage.press("enter", "y")
        await stage.until(lambda _: stage.host.sign_ins.all[1].choice)
        assert stage.host.sign_ins.all[1].choice == SignInConsent(("read", "write", "admin"), "me", "hush-hush")
        assert "hush" not in stage.text


@pytest.mark.parametrize(
    ("keys", "state", "open_questions"),
    [
        (["n"], SignInState.DECLINED, 0),
        (["escape"], SignInState.AGREEING, 1),
        (["down", "down", "enter"], SignInState.DECLINED, 0),
        (["p"], SignInState.AGREEING, 1),
    ],
)
async def test_refusing_is_easy_and_leaving_it_for_later_too(
    keys: list[str], state: SignInState, open_questions: int
) -> None:
    async with signing(ScriptedPort()) as stage:
        await question_stage(stage)
        await stage.press(*keys)
        await stage.gone()
        await stage.until(lambda _: attempt(stage) is state)
        assert len(stage.app.approver.open) == open_questions
        if open_questions:
            await stage.press("f2")
            await stage.at(InboxScreen)
            await stage.shows("▲ linear", "sign in at auth")
            await stage.press("enter")
            await listens(stage)
            await stage.shows("don't sign in")
            await stage.press("n")
            await stage.until(lambda _: attempt(stage) is SignInState.DECLINED)


async def test_opening_a_sign_in_asks_its_parked_question_again() -> None:
    async with signing(ScriptedPort()) as stage:
        await question_stage(stage)
        await stage.press("p")
        await stage.gone()
        await stage.shows("linear: sign in · f2", "signing")
        await stage.press("s", "S")
        await listens(stage)
        await stage.press("y")
        await stage.shows("waiting for the browser")


@pytest.mark.hostile("P08", "T12")
async def test_a_long_plan_must_be_read_to_its_end() -> None:
    long = plan(resource="https://mcp.linear.example/" + "a" * 1500, scopes=tuple(f"scope:{n}" for n in range(200)))
    async with signing(ScriptedPort(plans=[long])) as stage:
        await question_stage(stage)
        await stage.shows("scroll to the end", "don't sign in", "200 of 200 requested")
        await stage.press("y", "enter")
        assert attempt(stage) is SignInState.AGREEING
        await stage.press(*["space"] * 8)
        await stage.until(lambda _: "scroll to the end" not in stage.text)
        await stage.press("y")
        await stage.until(lambda _: attempt(stage) is SignInState.VISITING)


async def test_nothing_is_agreed_to_while_the_steps_hide_the_plan() -> None:
    async with signing(ScriptedPort()) as stage:
        await question_stage(stage)
        await stage.press("l")
        await stage.shows("Who protects this server?", "404, went on", "You agree", "420 ms")
        assert "token for" not in stage.text
        await stage.press("y")
        assert attempt(stage) is SignInState.AGREEING
        await stage.press("escape")
        await stage.shows("token for")
        await stage.press("y")
        await stage.until(lambda _: attempt(stage) is SignInState.VISITING)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_the_visit_shows_the_ways_from_another_machine(size: tuple[int, int]) -> None:
    async with signing(ScriptedPort(), Opener("there is no desktop here"), size=size) as stage:
        await visiting(stage)
        await stage.shows(
            "not opened", "there is no desktop here; open the page yourself", "ssh -L 40123:127.0.0.1:40123"
        )
        await stage.shows("4 min 5")
        lines = [line.strip("│ ").split("│")[0].strip() for line in stage.text.splitlines()]
        start = next(index for index, line in enumerate(lines) if line.startswith("https://auth.linear.example/auth"))
        assert PAGE in "".join(lines[start : start + 8])
        links = [
            each.style.link for strip in stage.app.screen._compositor.render_strips() for each in strip if each.style
        ]
        assert {each for each in links if each} == {PAGE}
        await stage.shows("paste here", "You sign in, in the browser", "your turn")


async def test_keys_copy_the_link_and_the_ssh_line_and_open_again() -> None:
    opener = Opener()
    async with signing(ScriptedPort(), opener, size=WIDE) as stage:
        await visiting(stage)
        await stage.press("c")
        assert stage.app.clipboard == PAGE
        await stage.press("s")
        assert stage.app.clipboard == "ssh -L 40123:127.0.0.1:40123 YOUR-HOST"
        await stage.press("o")
        await stage.until(lambda _: opener.opened == [PAGE, PAGE])


@pytest.mark.hostile("C10")
async def test_a_pasted_address_is_masked_and_a_wrong_one_refused() -> None:
    port = ScriptedPort(wrong="elsewhere")
    async with signing(port) as stage:
        await visiting(stage)
        stage.app.post_message(Paste("http://127.0.0.1:1/elsewhere?code=s3cr\n  et&state=x"))
        await stage.shows("http://127.0.0.1:1/elsewhere (48 characters, hidden)")
        assert "s3cr" not in stage.text
        await stage.press("enter")
        await stage.shows("✖ that is not the address this sign-in ends at")
        await stage.press("v")
        stage.app.post_message(Paste("  http://127.0.0.1:40123/callback?code=s3cret\n"))
        await stage.shows("hidden")
        await stage.press("enter")
        await stage.shows("● signed in")
        assert port.pasted == [
            "http://127.0.0.1:1/elsewhere?code=s3cret&state=x",
            "http://127.0.0.1:40123/callback?code=s3cret",
        ]
        assert "s3cr" not in stage.text


async def test_leaving_stops_no_sign_in_and_x_does() -> None:
    async with signing(ScriptedPort()) as stage:
        await visiting(stage)
        await stage.press("escape")
        await stage.gone()
        assert attempt(stage) is SignInState.VISITING
        await stage.shows("▲ signing in to linear", "linear signing")
        await stage.press("enter")
        await stage.shows("waiting for the browser to come back: S")
        await stage.press("S")
        await listens(stage)
        await stage.press("x")
        await stage.shows("◌ cancelled", "nothing of it was kept", "r try again")
        await stage.press("escape")
        await stage.gone()
        await stage.shows("last try", "press S to sign in")


ENDS = [
    (standing(), ["granted read write", "not granted admin: asked for, and not given", "kept in the keychain"]),
    (
        standing(kept_in="in memory until mcphost ends: the keychain cannot be used", scopes=("read", "root")),
        ["▲ kept only in memory until mcphost ends: the keychain cannot be used", "more root: given, though not asked"],
    ),
    (standing(renewable=False, expires_at=0.0), ["expires expired: sign in again"]),
]


@pytest.mark.hostile("O15", "C08")
@pytest.mark.parametrize(("end", "words"), ENDS, ids=["usual", "memory", "over"])
async def test_at_its_end_it_says_what_was_granted_and_where_that_is_kept(end: object, words: list[str]) -> None:
    async with signing(ScriptedPort(link=None, end=end)) as stage:  # type: ignore[arg-type]
        await question_stage(stage)
        await stage.press("y")
        await stage.shows("● signed in")
        for each in words:
            assert each in stage.flat, stage.text
        await listens(stage)
        await stage.press("escape")
        await stage.gone()
        await stage.press("enter")
        await stage.until(lambda _: "issuer        auth.linear.example" in stage.app.main.card.text)


async def test_d_lists_the_identities_from_the_end_and_from_the_card() -> None:
    async with signing(ScriptedPort(link=None, end=standing(identity="corp")), enterprise=True) as stage:
        await question_stage(stage)
        await stage.press("D")
        assert isinstance(stage.app.screen, SignInScreen)
        await stage.press("y")
        await stage.shows("corp · D lists its servers")
        await listens(stage)
        await stage.press("D")
        await stage.at(IdentitiesScreen)
        await stage.press("escape")
        await stage.gone()
        await stage.press("c", "D")
        await stage.at(IdentitiesScreen)


REFUSED = replace(TOKEN, status=400, response_body='{\n  "error": "invalid_client"\n}')
SILENT = SignInExchange(
    "Who protects this server?", "GET", "https://mcp.linear.example/x", problem="refused\x1b[2J", seconds=1
)
ODD = replace(DISCOVERY[1], response_body="<html>")
DOWN = replace(DISCOVERY[2], status=503)

FAILURES: list[tuple[ScriptedPort, list[str]]] = [
    (
        ScriptedPort(exchange=REFUSED, end=SignInFailed("no such client (invalid_client)", code="invalid_client")),
        ["where step 4: enter shows it", "Check client_id and client_secret", "✖ 4 Exchange the code", "400"],
    ),
    (
        ScriptedPort(steps=[SILENT], plans=[], link=None, exchange=None, end=SignInFailed("cannot be asked")),
        ["whose fault no one's, or that of mcp.linear.example", "Check the network", "✖ 1 Who protects", "no answer"],
    ),
    (
        ScriptedPort(steps=[ODD], plans=[], link=None, exchange=None, end=SignInFailed("no JSON")),
        ["the MCP server's, at mcp.linear.example", "Its answer is invalid", "✖ 1 Who protects"],
    ),
    (
        ScriptedPort(steps=[*DISCOVERY[:2], DOWN], plans=[], link=None, exchange=None, end=SignInFailed("HTTP 503")),
        ["the authorization server's, at auth.linear.example", "try again later", "◌ 1 Who", "✖ 3 Where does"],
    ),
    (
        ScriptedPort(exchange=None, end=SignInFailed("denied", code="access_denied")),
        ["in the browser, or on the way back", "declined on the page", "✖ 4 You sign in", "failed here"],
    ),
    (
        ScriptedPort(exchange=None, end=SignInFailed("the browser did not come back within 5 minutes")),
        ["in the browser, or on the way back", "stay on the page", "✖ 4 You sign in", "failed here"],
    ),
    (
        ScriptedPort(steps=[], plans=[], link=None, exchange=None, end=ConfigError("url: no")),
        ["your configuration's", "Correct what it names", "while finding out where to sign in"],
    ),
]


@pytest.mark.parametrize(
    ("port", "words"), FAILURES, ids=lambda value: "" if isinstance(value, list) else str(value.end)
)
async def test_a_failure_says_where_it_was_whose_fault_it_is_and_what_to_do(
    port: ScriptedPort, words: list[str]
) -> None:
    async with signing(port) as stage:
        await at_sign_in(stage)
        await through(stage, port)
        assert isinstance(port.end, McphostError)
        for each in (*words, str(port.end), "nothing of it was kept", "r try again"):
            assert each in stage.flat, f"{each}\n{stage.text}"
        await stage.press("r")
        await stage.until(lambda _: len(stage.host.sign_ins.all) == 2)
        await listens(stage)


async def through(stage: Stage, port: ScriptedPort) -> None:
    """Agree and paste as asked, until the end."""
    if port.plans:
        await stage.shows("don't sign in")
        await listens(stage)
        await stage.press("y")
    if port.link is not None:
        await stage.shows("waiting for the browser")
        await listens(stage)
        await stage.press("v")
        await stage.write("x")
        await stage.press("enter")
    await stage.shows("✖ failed")
    await listens(stage)


@pytest.mark.hostile("T09", "C10")
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_a_step_is_opened_with_all_that_was_sent_and_answered(size: tuple[int, int]) -> None:
    said = replace(
        DISCOVERY[1], response_body='{\n  "issuer": "\x1b[2J\u202e[b]"\n}', response_headers={"X-Ab": "\x9b"}
    )
    gate = asyncio.Event()
    async with signing(ScriptedPort(steps=[DISCOVERY[0], said, DISCOVERY[2]], gates={3: gate}), size=size) as stage:
        await at_sign_in(stage)
        await stage.shows("◐  3 Where does auth.linear", "under way")
        await stage.press("up")
        inline = "answered HTTP 200" in stage.text
        assert inline is (size == WIDE)
        await stage.press("enter")
        await stage.at(ReaderScreen)
        await stage.shows("Accept: application/json", "answered HTTP 200 · after 31 ms", "X-Ab: ⟨U+009B⟩")
        await stage.shows("https://mcp.linear.example/.well-known/oauth-protected-resource/mcp", '"␛[2J⟨U+202E⟩[b]"')
        gate.set()
        await stage.press("escape")
        await stage.at(SignInScreen)
        await stage.shows("don't sign in")


async def test_s_signs_out_and_f_forgets_a_server_after_asking() -> None:
    port = ScriptedPort(now=standing())
    async with signing(port) as stage:
        await stage.press("s", "down", "enter")
        await stage.until(lambda _: "yes, but the server still refuses" in stage.app.main.card.text)
        await stage.press("F")
        await stage.shows("Forget everything about “linear”?", "its tokens")
        await stage.press("n")
        await stage.gone()
        assert not port.signed_out
        await stage.press("F")
        await stage.until(lambda app: isinstance(app.screen, AskScreen) and app.screen.shown_for() >= 0)
        await stage.press("y")
        await stage.shows("Forgotten about “linear”: signed out")
        assert port.signed_out == ["linear"]
        assert not stage.app.main.card.check_action("identities", ())
        names = {command.title for command in stage.app.get_system_commands(stage.app.screen)}
        assert {"Sign in to “linear”", "Forget everything about “linear”"} <= names


async def test_what_ends_unseen_is_told_in_a_note() -> None:
    port = ScriptedPort()
    async with signing(port) as stage:
        await visiting(stage)
        await stage.press("escape")
        await stage.gone()
        stage.host.sign_ins.all[1].paste("x")
        await stage.shows("Signed in to linear.")


async def test_a_call_that_waits_for_a_sign_in_says_so() -> None:
    async with signing(ScriptedPort()) as stage:
        call = stage.call("anything")
        await stage.shows("don't sign in")
        await listens(stage)
        await stage.press("p")
        await stage.gone()
        await stage.press("h")
        await stage.shows("▲", "anything", "sign-in")
        await stage.press("enter")
        await stage.shows("▲ waiting for a sign-in", "nothing was sent yet")
        call.cancel()
        await stage.ended(call)


async def test_every_key_of_the_screen_is_in_its_help() -> None:
    async with signing(ScriptedPort()) as stage:
        await question_stage(stage)
        await stage.press("question_mark")
        await stage.shows("Sign in to a server.", "Agree: then the browser opens")
        await stage.press("escape")
        await listens(stage)
        assert attempt(stage) is SignInState.AGREEING


@pytest.mark.hostile("T04")
@pytest.mark.parametrize(
    ("url", "is_link"),
    [
        ("https://a.example/?x=1", True),
        ("https://a.example/\x1b\\", False),
        ("https://a.example/\x07", False),
        ("javascript:x", False),
        ("https://bücher.example", False),
        ("https://a b", False),
    ],
)
def test_a_url_is_a_link_only_if_it_cannot_end_its_sequence(url: str, is_link: bool) -> None:
    assert bool(link_content(url).spans) is is_link
