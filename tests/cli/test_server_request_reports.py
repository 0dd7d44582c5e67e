"""Language models that servers ask for, without a screen: by rules, at a terminal, and over a real connection."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.models import ConfiguredModels
from mcphost.config import Config, Values
from mcphost.errors import ModelKeyRefused, ModelRefused
from mcphost.providers.base import ModelCapabilities
from tests.cli.conftest import ECHO, Mcphost
from tests.providers.endpoints import ASKED, HELLO, VENDORS, gather, refuses, streams
from tests.terminal import Terminal
from tests.transports.http.http_connection import Web

pytestmark = pytest.mark.slow

ASKS = [sys.executable, "-S", "-E", str(ECHO.with_name("asks.py"))]
KEY = "sk-canary-0123456789"


@pytest.fixture
def endpoint() -> Iterator[Web]:
    """An endpoint that speaks like OpenAI's; it says hello."""
    with Web(streams(*VENDORS["openai"].stream(HELLO))) as web:
        yield web


def config(tmp_path: Path, endpoint: Web | None, more: str = "") -> str:
    """A configuration with the server that asks, and a model at this endpoint."""
    command, *args = ASKS
    text = f"[servers.a]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n{more}\n"
    if endpoint is not None:
        base = f"http://127.0.0.1:{endpoint.port}/v1"
        text += f'[models.local]\nprovider = "openai"\nmodel = "m"\nbase_url = "{base}"\napi_key = "${{MODEL_KEY}}"\n'
    (tmp_path / "config.toml").write_text(text)
    return str(tmp_path / "config.toml")


def create(text: str = "Say hello", **more: Any) -> dict[str, Any]:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50, **more}
    return {"method": "sampling/createMessage", "params": params}


def words(*requests: dict[str, Any]) -> list[str]:
    return ["call", "a", "ask", "--yes", f"requests:={json.dumps(requests)}"]


TEXT = "Hello \u00e9\U0001f600"
REJECTED = {"error": {"code": -1, "message": "User rejected sampling request"}}
FAILED = {"error": {"code": -32603, "message": "the language model gave no answer"}}


@pytest.mark.parametrize(
    ("flags", "rules", "texts", "said"),
    [
        ([], "", None, "add --accept sampling:a or --answers FILE to allow it"),
        (["--decline", "sampling"], "", None, ""),
        (["--accept", "sampling"], "", TEXT, "asking local for a (the only model there is)"),
        (["--accept", "sampling:a"], "", TEXT, ""),
        (["--accept", "sampling:other"], "", None, "--accept sampling:a"),
        ([], "[servers.a.sampling]\npolicy = 'allow'", TEXT, "asking local for a"),
        (["--answers"], '[{"kind": "sampling", "text": "By hand"}]', "By hand", ""),
        (["--answers"], '[{"kind": "sampling", "model": "local"}]', TEXT, "asking local for a"),
    ],
)
def test_a_model_answers_by_a_rule_and_else_a_no_says_which_it_takes(
    mcphost: Mcphost,
    endpoint: Web,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    rules: str,
    texts: str | None,
    said: str,
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    (tmp_path / "answers.json").write_text(rules)
    named = ["answers.json"] if flags == ["--answers"] else []
    path = config(tmp_path, endpoint, rules if rules.startswith("[s") else "")
    told = mcphost("--config", path, *words(create()), *flags, *named)
    (reply,) = json.loads(told.out)
    if texts is None:
        assert reply == REJECTED
        assert endpoint.visits == []
    else:
        assert reply["result"]["content"]["text"] == texts
        assert reply["result"]["model"] == ("human" if texts == "By hand" else "gpt-real-1")
    assert said in told.err
    assert KEY not in told.out + told.err
    for visit in endpoint.visits:
        assert json.loads(visit.body)["max_tokens"] == 50
        assert visit.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("no key", "no model answered a: models.local.api_key: ${MODEL_KEY} is not set"),
        ("refused", "the key was not accepted; look at api_key (HTTP 401"),
        ("no model", "no model is called 'nobody'; there are: local"),
    ],
)
def test_a_models_failure_is_reported_but_not_to_the_server(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, said: str
) -> None:
    if case != "no key":
        monkeypatch.setenv("MODEL_KEY", KEY)
    flags = ["--accept", "sampling"]
    if case == "no model":
        (tmp_path / "a.json").write_text('[{"kind": "sampling", "model": "nobody"}]')
        flags = ["--answers", str(tmp_path / "a.json")]
    error = VENDORS["openai"].error("invalid_api_key", f"bad key {KEY}")
    with Web(refuses(401, error)) as endpoint:
        told = mcphost("--config", config(tmp_path, endpoint), *words(create()), *flags)
    assert json.loads(told.out) == [FAILED]
    assert said in told.err
    assert KEY not in told.err


def test_without_models_a_file_may_answer_and_nobody_else(mcphost: Mcphost, tmp_path: Path) -> None:
    path = config(tmp_path, None)
    told = mcphost("--config", path, *words(create()), "--accept", "sampling")
    assert json.loads(told.out)[0]["error"]["code"] == -32601
    assert "--accept sampling: no language model is configured" in told.err
    (tmp_path / "a.json").write_text('[{"kind": "sampling", "text": "42"}]')
    told = mcphost("--config", path, *words(create()), "--answers", str(tmp_path / "a.json"))
    assert json.loads(told.out)[0]["result"]["content"]["text"] == "42"


@pytest.mark.slow
def test_a_sampling_request_and_its_answer_need_approval(endpoint: Web, tmp_path: Path) -> None:
    path = config(tmp_path, endpoint)
    request = create("A\x1b[2Jquestion\nof two lines", systemPrompt="Be kind", includeContext="allServers")
    program = [sys.executable, "-m", "mcphost", "--config", path, *words(request)]
    with Terminal(program, columns=100, rows=40, env={"MODEL_KEY": KEY}) as terminal:
        terminal.wait_for("Ask the model?")
        for part in (
            "╭─ system prompt",
            "│ Be kind",
            "A␛[2Jquestion",
            "of two lines",
            "none is added",
            "local: the only model",
        ):
            assert part in terminal.text
        terminal.press("y", "enter")
        terminal.wait_for("Send this?")
        assert "gpt-real-1 answers, for a:" in terminal.text
        terminal.press("y", "enter")
        assert terminal.wait_exit() == 0
        assert '"stopReason": "endTurn"' in terminal.text


def test_texts_of_a_sampling_request_stay_behind_the_margin(tmp_path: Path) -> None:
    fake = "fake " * 40
    with Web(streams(*VENDORS["openai"].stream((("text", fake), ("stop", "end"))))) as endpoint:
        path = config(tmp_path, endpoint)
        tool = {"name": fake[:120], "description": fake, "inputSchema": {"type": "object"}}
        request = create(f"{fake}\n{fake}", systemPrompt=fake, tools=[tool])
        program = [sys.executable, "-m", "mcphost", "--config", path, *words(request)]
        with Terminal(program, columns=60, rows=100, env={"MODEL_KEY": KEY}) as terminal:
            terminal.wait_for("Ask the model?")
            terminal.press("y", "enter")
            asked = terminal.wait_for("Send this?").splitlines()
            terminal.press("n", "enter")
            terminal.wait_exit()
    assert sum("fake" in line for line in asked) > 20
    assert [line for line in asked if "fake" in line and not line.startswith("  │ ")] == []


async def test_a_provider_is_made_once_for_an_entry_and_anew_for_another() -> None:
    port = ConfiguredModels(Values({"MODEL_KEY": KEY}))
    entry = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${MODEL_KEY}"}
    settings = Config.model_validate({"models": {"local": entry, "me": {"provider": "manual"}}})
    first, same = await asyncio.gather(port.provider(settings, "local"), port.provider(settings, "local"))
    assert first is same
    other = settings.models["local"].model_copy(update={"model": "n", "takes": ()})
    changed = settings.model_copy(update={"models": {"local": other}})
    assert await port.provider(changed, "local") is not first
    assert (port.able(settings.models["local"]).tools, port.able(other)) == (True, ModelCapabilities())
    with pytest.raises(ModelRefused):
        await port.provider(settings, "me")
    small = {"models": {"local": other.model_copy(update={"context_tokens": 1, "takes": ("tools",)})}}
    with pytest.raises(ModelRefused, match="raise context_tokens"):
        await gather(await port.provider(settings.model_copy(update=small), "local"), ASKED)
    with pytest.raises(ModelRefused, match="model gone: it is no longer configured; choose another"):
        await port.provider(settings, "gone")
    await port.aclose()


async def test_a_key_that_was_refused_is_looked_up_anew(endpoint: Web) -> None:
    keys = {"MODEL_KEY": "sk-old"}
    port = ConfiguredModels(Values(keys))
    entry = {"provider": "openai", "model": "m", "base_url": endpoint.url, "api_key": "${MODEL_KEY}"}
    settings = Config.model_validate({"models": {"local": entry}})
    endpoint.answer = refuses(401)
    with pytest.raises(ModelKeyRefused):
        await gather(await port.provider(settings, "local"), ASKED)
    keys["MODEL_KEY"], endpoint.answer = KEY, streams(*VENDORS["openai"].stream(HELLO))
    provider = await port.provider(settings, "local")
    assert (await gather(provider, ASKED)).result.stop_reason == "endTurn"
    assert await port.provider(settings, "local") is provider
    assert endpoint.visits[-1].headers["authorization"] == f"Bearer {KEY}"
    await port.aclose()
