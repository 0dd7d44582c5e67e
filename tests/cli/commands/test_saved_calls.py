"""`mcphost run`: saved calls, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcphost.cli.commands.saved_calls import plan
from mcphost.composition import demo_config
from mcphost.config import Values
from mcphost.config.calls import CallsFile, parse_calls
from mcphost.errors import ConfigError
from tests.cli.conftest import Mcphost, entry

CALLS = """\
[[call]]
name = "hello"
server = "a"
tool = "echo"
arguments = { text = "hello ${WORD}" }

[[call]]
name = "sum"
server = "a"
tool = "add"
expect = { is_error = false }
[call.arguments]
a = 1
b = 2

[[call]]
name = "broken"
server = "a"
tool = "fail"

[[call]]
name = "greet"
server = "demo"
prompt = "log_entry"

[[call]]
name = "wrong"
server = "a"
tol = "echo"
"""


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a server, and calls beside it, in the project's folder."""
    (tmp_path / "own").mkdir()
    file = tmp_path / "own" / "config.toml"
    file.write_text(entry("a", "--record", tmp_path / "wire", more='env = { WORD = "${WORD}" }'))
    (tmp_path / "own" / "calls.toml").write_text(CALLS)
    monkeypatch.setenv("MCPHOST_CONFIG", str(file))
    monkeypatch.setenv("WORD", "swordfish")
    return tmp_path


def test_a_saved_call_runs_as_a_call_does(mcphost: Mcphost, saved: Path) -> None:
    said = mcphost("run", "hello", "--yes")
    assert (said.code, said.out) == (0, "hello swordfish\n")
    assert "tol: unknown key tol" not in said.err  # another call's mistake
    assert (
        mcphost("run", "hello", "text=bye", "--yes", "--json").out
        == mcphost("call", "a", "echo", "text=bye", "--yes", "--json").out
    )
    refused = mcphost("run", "sum", "a:=3")
    assert refused.code == 4
    assert '[servers.a.tools."add"] approval = "allow"' in refused.err


def test_several_run_until_one_fails(mcphost: Mcphost, saved: Path) -> None:
    said = mcphost("run", "sum", "a=3", "hello", "text=bye", "broken", "sum", "--yes")
    assert said.code == 1
    assert said.out.splitlines()[:2] == ["5", "bye"]
    assert said.err == "mcphost: broken failed; not run: sum\n"


@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (["helo"], 2, "no call is saved as 'helo' in ~/../own/calls.toml; did you mean hello?"),
        (["wrong"], 2, 'call[4].tol: unknown key tol; did you mean "tool"?'),
        (["greet"], 2, "no server is called 'demo'; configured: a"),
        (["hello", "sum", "--output", "x.png"], 2, "--output takes the result of one call"),
    ],
)
def test_what_cannot_run_says_why(mcphost: Mcphost, saved: Path, words: list[str], code: int, err: str) -> None:
    said = mcphost("run", *words)
    assert said.code == code
    assert err.replace("~/../own", str(saved / "own")) in said.err
    assert said.out == ""


def test_a_name_of_two_calls_runs_neither(tmp_path: Path) -> None:
    call = '[[call]]\nname = "a"\nserver = "s"\ntool = "t"\n'
    file = CallsFile(tmp_path / "calls.toml", Values({}), own=True)
    with pytest.raises(ConfigError, match=r"calls\.toml:6: .*the call in line 2 has this name, too; rename one"):
        plan(["a"], file, parse_calls(call + call, file.path))


def test_the_list_names_each_call(mcphost: Mcphost, saved: Path) -> None:
    said = mcphost("run", "--list")
    assert said.code == 0
    assert said.out.splitlines()[0].split() == ["NAME", "SERVER", "KIND", "CALLS", "ARGUMENTS"]
    assert said.out.splitlines()[1].split() == ["hello", "a", "tool", "echo", "text=hello", "${WORD}"]
    assert 'did you mean "tool"?' in said.err
    first = json.loads(mcphost("run", "--list", "--json").out.splitlines()[0])
    assert first == {"name": "hello", "server": "a", "tool": "echo", "arguments": {"text": "hello ${WORD}"}}


def test_prompts_resources_and_templates_run_too(mcphost: Mcphost, saved: Path) -> None:
    demo = demo_config().servers["demo"]
    args = json.dumps(list(demo.args))
    (saved / "demo.toml").write_text(f'[servers.demo]\ncommand = "{demo.command}"\nargs = {args}\n')
    (saved / "calls.toml").write_text(
        '[[call]]\nname = "hail"\nserver = "demo"\nprompt = "watch_report"\narguments = { watch = "dog" }\n'
        '[[call]]\nname = "book"\nserver = "demo"\nresource = "lighthouse://handbook"\n'
        '[[call]]\nname = "ship"\nserver = "demo"\nresource = "lighthouse://ships/{kind}/{name}"\n'
        'arguments = { kind = "brig", name = "swift" }\n'
    )
    said = mcphost("--config", str(saved / "demo.toml"), "run", "hail", "book", "ship", "name=no such ship")
    assert said.code == 1
    assert "Puffin Stack, dog watch." in said.out
    assert "put the kettle on" in said.out.rpartition("Puffin Stack")[2]
    assert "no%20such%20ship" in said.err


def test_a_project_s_call_gets_no_foreign_reference(
    mcphost: Mcphost, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret-token")
    (saved / "mcphost.toml").write_text(entry("p"))
    (saved / "calls.toml").write_text(
        '[[call]]\nname = "leak"\nserver = "p"\ntool = "echo"\narguments = { text = "${SECRET}" }\n'
        '[[call]]\nname = "run"\nserver = "stdio:touch x"\ntool = "echo"\n'
    )
    assert mcphost("run", "leak", "--yes").code == 2  # the project is not trusted
    assert mcphost("config", "trust", "--yes").code == 0
    said = mcphost("run", "leak", "--yes")
    assert said.code == 2
    assert "text holds ${SECRET}, which is not used" in said.err
    assert "s3cret" not in said.out + said.err
    assert "a name has 1 to 64 letters" in mcphost("run", "run", "--yes").err
