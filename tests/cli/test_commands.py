"""Each command in this process: what it prints where, and its exit code."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mcphost.cli.parser import parse
from mcphost.config import Values, load, resolve_server
from mcphost.config.schema import config_schema
from tests.cli.conftest import Mcphost, echo, entry, hostile

COMMANDS = [
    [], ["demo"], ["check"], ["doctor"], ["report", "-"], ["list", "tools"], ["call", "a", "b"], ["chat"],
    ["read", "a", "b"], ["prompt", "a", "b"], ["complete", "a", "b", "c", "d"], ["tasks", "a"], ["login", "a"],
    ["logout", "a"], ["completion", "bash"], ["man"], ["config", "path"],
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_parser_names_a_function_for_every_command(words: list[str]) -> None:
    module, function = parse(words).run.split(".")
    assert callable(getattr(import_module(f"mcphost.cli.commands.{module}"), function))


CALLS = [  # words after `call SERVER`, exit code, stdout, words of stderr
    (["echo", "text=hello", "--yes"], 0, "hello\n", ""),
    (["echo", "--yes", "text=options may come first"], 0, "options may come first\n", ""),
    (["echo", 'text:="typed"', "--yes"], 0, "typed\n", ""),
    (["echo", "--args", '{"text": "whole"}', "--yes"], 0, "whole\n", ""),
    (["echo", "--args", '{"text": "whole"}', "text=part", "--yes"], 0, "part\n", ""),
    (["echo", "text=ends\n", "--yes"], 0, "ends\n", ""),
    (["echo", "text=\x1b[2Jraw", "--yes"], 0, "\x1b[2Jraw\n", ""),
    (["add", "a=2", "b=0.5", "--yes"], 0, "2.5\n", ""),
    (["add", "a=2", "b=3", "--yes", "--json"], 0, None, ""),
    (["fail", "text=no luck", "--yes"], 1, "no luck\n", ""),
    (["add", "a=two", "b=3", "--yes"], 2, "", "a: must be a number; a:=JSON takes any value"),
    (["add", "a=2", "--yes"], 2, "", "b: is required"),
    (["ecko", "text=x", "--yes"], 2, "", "stdio has no tool 'ecko'; did you mean echo?"),
    (["zzz", "--yes"], 2, "", "it has: echo, add"),
    (["echo", "text", "--yes"], 2, "", "text: is neither key=value nor key:=json"),
    (["echo", "text:={", "--yes"], 2, "", "text: is not JSON"),
    (["echo", "text=1", "text=2", "--yes"], 2, "", "text: is given twice"),
    (["echo", "--args", "[]", "--yes"], 2, "", "--args: is not a JSON object"),
    (["exit", "code=3", "--yes"], 3, "", "the server exited with code 3"),
    (["echo", "text=x"], 4, "", '[servers.NAME], and set [servers.NAME.tools."echo"] approval = "allow"'),
    (["sleep", "seconds=60", "--timeout", "0.1", "--yes"], 5, "", "timed out after 0.1 s"),
]


@pytest.mark.parametrize(("words", "code", "out", "err"), CALLS, ids=lambda value: str(value)[:40])
def test_a_call_prints_its_result_and_ends_with_the_code_for_it(
    mcphost: Mcphost, words: list[str], code: int, out: str | None, err: str
) -> None:
    said = mcphost("call", echo(), *words)
    assert (said.code, said.err.count("\n")) == (code, 1 if err else 0), said
    assert err in said.err
    if out is None:
        assert json.loads(said.out)["structuredContent"] == {"sum": 5}
    else:
        assert said.out == out


def test_an_unknown_argument_is_answered_with_the_known_ones(mcphost: Mcphost) -> None:
    demo = f"stdio:{shlex.join([sys.executable, '-P', '-m', 'mcphost.demo'])}"
    said = mcphost("call", demo, "feed_gulls", "fsh=2", "--yes")
    assert (said.code, said.out) == (2, "")
    assert said.err == "mcphost: feed_gulls: unknown argument fsh; did you mean fish?; feed_gulls: takes fish\n"
    said = mcphost("call", echo(), "add", "a:=1", "c:=2", "--yes")
    assert said.err == "mcphost: add: unknown argument c; b: is required; add: takes a*, b* (*: needed)\n"


@pytest.mark.hostile("S06")
@pytest.mark.parametrize(
    ("mode", "code", "err"),
    [
        ("crash-on-call", 3, "mcphost: stdio: the server exited with code 3; it said: last words 30 of 30"),
        ("both", 3, "mcphost: stdio: the server's answer is invalid: both a result and an error"),
        ("many-tools", 3, "mcphost: stdio: listing the tools failed: the server's answer is invalid: 200003 objects"),
        ("page-3-fails", 2, "it has: tool-1, tool-2; "),
    ],
)
def test_what_a_server_did_instead_of_answering_names_it(mcphost: Mcphost, mode: str, code: int, err: str) -> None:
    # A server's last words are quoted, and a list that failed is not an empty one.
    said = mcphost("call", hostile(mode), "act", "--yes")
    assert (said.code, said.out) == (code, "")
    assert err in said.err
    assert said.err.count("\n") == 1


@pytest.mark.hostile("J01")
@pytest.mark.requirement("TOOLS-15", "SEC-07")
def test_fifty_megabytes_are_no_result(mcphost: Mcphost) -> None:
    said = mcphost("call", echo(), "big", "bytes:=50000000", "--yes")
    assert (said.code, said.out) == (3, "")
    assert said.err == "mcphost: stdio: the server's answer is invalid: a message over the limit of 24 MB\n"


@pytest.mark.parametrize(
    ("server", "code", "err"),
    [
        ("stdio:no-such-program-here", 3, "stdio: no-such-program-here was not found in PATH"),
        ("stdio:sh -c 'echo the reason >&2; exit 7'", 3, "exited with code 7; it said: the reason"),
        ("stdio:sh -c 'echo me: error: no >&2; echo bye >&2; exit 2'", 3, "exited with code 2; it said: me: error: no"),
        (
            "stdio:sh -c 'echo usage: me; exit 0'",
            3,
            "on stdout it wrote something that is not a message (1 times), first: usage: me",
        ),
        ("stdio:", 2, "stdio: needs a command line"),
        ("stdio:'", 2, "cannot be split: No closing quotation"),
        ("stdio:cat ${NOT_SET_ANYWHERE}", 2, "servers.stdio.args[0]: ${NOT_SET_ANYWHERE} is not set"),
        ("http://127.0.0.1:9/mcp", 3, "http: nothing listens at 127.0.0.1:9"),
        ("http:///mcp", 2, "the address: must start with"),
        ("web", 3, "web: nothing listens at 127.0.0.1:9"),
        ("off", 2, "servers.off: is switched off; set enabled = true"),
        ("broken", 2, "servers.broken.comand: unknown key comand"),
        ("ech0", 2, "no server is called 'ech0'; did you mean echo?"),
        ("unset", 2, "own.toml:15: servers.unset.env.A.B: ${NOT_SET_ANYWHERE} is not set"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_sentence(
    mcphost: Mcphost, tmp_path: Path, server: str, code: int, err: str
) -> None:
    config = tmp_path / "own.toml"
    config.write_text(
        entry("echo") + entry("off", more="enabled = false") + '[servers.broken]\ncomand = "x"\n[servers.web]\n'
        'url = "http://127.0.0.1:9/mcp"\n[servers.unset]\ncommand = "x"\nenv."A.B" = "${NOT_SET_ANYWHERE}"\n'
    )
    said = mcphost("call", server, "echo", "text=x", "--yes", "--config", str(config))
    assert said.code == code
    assert said.out == ""
    assert err in said.err
    assert all(line.startswith("mcphost: ") for line in said.err.splitlines())


@pytest.mark.parametrize(
    ("rules", "yes", "code", "err"),
    [
        ('[servers.echo.tools.echo]\napproval = "allow"', False, 0, ""),
        ('[policy]\nallow = ["echo:*"]', False, 0, ""),
        ('[policy]\ndeny = ["*:echo"]', True, 4, "policy.deny has '*:echo'"),
        ("", False, 4, '[servers.echo.tools."echo"] approval = "allow"'),
        ("", True, 0, ""),
    ],
)
def test_policy_decides_before_yes(
    mcphost: Mcphost, tmp_path: Path, isolated: Path, rules: str, yes: bool, code: int, err: str
) -> None:
    config = tmp_path / "own.toml"
    config.write_text(f"{entry('echo')}\n{rules}\n")
    said = mcphost("--config", str(config), "call", "echo", "echo", "text=x", *(["--yes"] if yes else []))
    assert said.code == code
    assert err in said.err
    (audit,) = isolated.rglob("audit.jsonl")
    decision = json.loads(audit.read_text().splitlines()[0])
    assert (decision["tool"], decision["allowed"], decision["arguments"]) == ("echo", code == 0, {"text": "x"})
    seen = "".join(file.read_text() for file in isolated.rglob("approvals.toml"))
    assert "always" not in seen  # neither a flag nor a rule is a lasting approval


def test_check_tells_of_each_server_and_fails_when_one_does(mcphost: Mcphost) -> None:
    said = mcphost("check", echo(), "stdio:false")
    assert said.code == 3
    heading, good, bad = said.out.splitlines()
    assert good.split() == ["●", "ready", "stdio", "2025-11-25", "11", *good.split()[5:7], "echo", "1.0"]
    assert bad.startswith("✖ failed")
    assert bad.index("stdio-2") == good.index("stdio ") == heading.index("SERVER")
    assert "exited with code 1" in bad
    assert said.err == ""
    assert mcphost("check", echo()).code == 0


def test_check_as_json_is_one_object_a_line(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(entry("echo", more='start = "manual"') + '[servers.broken]\ncomand = "x"\n')
    said = mcphost("check", "--json", "--config", str(config))
    good, bad = map(json.loads, said.out.splitlines())
    assert (good["server"], good["state"], good["tools"], good["serverInfo"]["name"]) == ("echo", "ready", 11, "echo")
    assert (bad["server"], bad["state"]) == ("broken", "failed")
    assert said.code == 2  # a mistake in the configuration is for the user to fix


def test_list_tools_shows_every_tool_and_its_claims_in_columns(mcphost: Mcphost) -> None:
    said = mcphost("list", "tools", echo("--tools", 3))
    assert said.code == 0
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["stdio", f"tool-000{n}"] for n in (1, 2, 3)]
    assert "Generated tool 2." in said.out


def test_list_tools_as_json_has_the_definitions_as_they_came(mcphost: Mcphost) -> None:
    said = mcphost("list", "tools", "--json", echo("--tools", 1), "stdio:false")
    assert json.loads(said.out) == {
        "server": "stdio",
        "tools": [
            {
                "name": "tool-0001",
                "description": "Generated tool 1.",
                "inputSchema": {"type": "object", "properties": {}},
            }
        ],
    }
    assert said.code == 3
    assert "stdio-2: the server exited with code 1" in said.err


def test_binary_content_needs_the_output_option(mcphost: Mcphost, tmp_path: Path) -> None:
    demo = f"stdio:{shlex.quote(sys.executable)} -P -m mcphost.demo"
    told = mcphost("call", demo, "paint_view", "--yes")
    assert (told.code, told.err) == (
        0,
        "mcphost: content that is not text is only named here; --output FILE saves it\n",
    )
    file = tmp_path / "view.png"
    saved = mcphost("call", demo, "paint_view", "--yes", "--output", str(file))
    assert (saved.code, saved.out, saved.err.count("\n")) == (0, told.out, 1)
    assert saved.err.endswith(f" in {file}\n")
    assert file.read_bytes().startswith(b"\x89PNG")
    lost = mcphost("call", demo, "paint_view", "--yes", "--output", str(tmp_path / "no" / "folder"))
    assert (lost.code, lost.out) == (2, "")  # the tool has not run
    assert f"the folder {tmp_path / 'no'} does not exist; create it" in lost.err
    if Path("/dev/full").exists():
        lost = mcphost("call", demo, "paint_view", "--yes", "--output", "/dev/full")
        assert (lost.code, lost.out) == (2, told.out)  # the tool has run
        assert "could not be written: No space left on device" in lost.err
    nothing = mcphost("call", echo(), "echo", "text=x", "--yes", "--output", str(tmp_path / "x"))
    assert (nothing.code, nothing.out) == (0, "x\n")
    assert f"nothing is in {tmp_path / 'x'}: the result holds no file" in nothing.err


def test_a_program_that_is_not_found_does_not_pour_out_the_whole_path(
    mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(f"/folder/number/{number}" for number in range(40)))
    said = mcphost("check", "stdio:no-such-program-here")
    assert "no-such-program-here was not found in PATH (40 folders searched); install it" in said.out
    assert "/folder/number" not in said.out


MANY = ("stdio: left out the tool bad: inputSchema: ", "stdio: left out 5 more tools\n")


@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (["list", "tools", hostile("one-bad-tool --kind list-schema")], 0, MANY[:1]),
        (["list", "tools", hostile("one-bad-tool --kind list-schema --count 25")], 0, MANY),
        (["check", hostile("one-bad-tool --kind list-schema --count 25")], 0, MANY),
        (["check", hostile("big-tool --bytes 70000")], 0, ("stdio: left out the tool wide: its definition has ",)),
        (["call", "--yes", hostile("one-bad-tool --kind list-schema"), "bad"], 2, MANY[:1]),
        (["call", "--yes", hostile("big-tool --bytes 70000"), "wide"], 2, ("stdio: left out the tool wide: ",)),
    ],
)
def test_a_tool_that_is_left_out_is_named_with_its_reason(
    mcphost: Mcphost, words: list[str], code: int, err: tuple[str, ...]
) -> None:
    said = mcphost(*words)
    assert said.code == code
    assert all(each in said.err for each in err), said.err
    assert said.err.count("\n") <= 21


@pytest.mark.parametrize("words", [["list", "tools"], ["check"]])
def test_an_excluded_tool_is_not_listed(mcphost: Mcphost, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "own.toml").write_text(entry("echo", more='disabled_tools = ["add"]'))
    said = mcphost("--config", "own.toml", *words)
    assert (said.code, said.err, " add " in said.out) == (0, "", False)


def test_an_excluded_tool_is_named_when_it_is_called(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(entry("echo", more='disabled_tools = ["add"]'))
    said = mcphost("--config", str(config), "call", "echo", "add", "--yes")
    assert (said.code, said.err) == (
        2,
        "mcphost: echo: left out the tool add: left out by enabled_tools or disabled_tools\n",
    )


@pytest.mark.parametrize("words", [["check"], ["list", "tools"], ["list", "tools", "--json"]], ids=" ".join)
@pytest.mark.parametrize(
    ("mode", "code", "why"),
    [("many-tools", 3, "200003 objects"), ("initialize-silent --at tools/list", 5, "timed out after 0.5 s")],
)
def test_a_list_of_tools_that_failed_is_a_failure_and_no_empty_list(
    mcphost: Mcphost, tmp_path: Path, mode: str, code: int, why: str, words: list[str]
) -> None:
    config = tmp_path / "own.toml"
    seconds = "tool_timeout_sec = 0.5" if code == 5 else ""
    config.write_text(entry("s", *mode.split(), more=seconds).replace("echo.py", "hostile.py"))
    said = mcphost("--config", str(config), *words)
    assert said.code == code, said
    told, other = (said.out, said.err) if words == ["check"] else (said.err, said.out)
    assert "listing the tools failed: " in told
    assert why in told
    assert other == ""
    if words == ["check"]:
        state, row = said.out.splitlines()[1][:8], json.loads(mcphost("--config", str(config), "check", "--json").out)
        assert (state, row["state"], row["tools"], row["protocolVersion"]) == ("✖ failed", "failed", None, "2025-11-25")


@pytest.mark.requirement("SCHEMA-06")
def test_list_tools_as_json_keeps_every_keyword_of_a_schema(mcphost: Mcphost) -> None:
    extra = json.loads(mcphost("list", "tools", "--json", hostile("extra-members")).out)["tools"][0]["inputSchema"]
    assert extra == {"type": "object", **extra, "x-extra": {"a": [1]}, "futureMember": None}
    tools = json.loads(mcphost("list", "tools", "--json", hostile("evil-schema")).out)["tools"]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    assert schemas["in-explosion"]["$defs"]["l0"] == {"anyOf": [{"$ref": "#/$defs/l1"}] * 10}
    assert schemas["in-dialect"]["$schema"] == "http://127.0.0.1:9/dialect"


@pytest.mark.hostile("L05")
@pytest.mark.requirement("SCHEMA-04")
def test_a_tool_with_a_remote_schema_is_refused(mcphost: Mcphost) -> None:
    why = "external $ref 'file:///etc/passwd': mcphost never fetches schemas"
    listed = mcphost("list", "tools", hostile("evil-schema"))
    assert [line.split()[2] for line in listed.out.splitlines() if " in-file " in line] == ["refused"]
    assert f"in-file is refused: {why}" in listed.err
    assert listed.code == 0
    called = mcphost("call", "--yes", hostile("evil-schema"), "in-file", "value:=1")
    assert (called.code, called.out) == (4, "")
    assert f"in-file was declined by policy: {why}" in called.err


def test_a_secret_is_masked_where_a_server_says_it(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    config = tmp_path / "own.toml"
    leak = 'command = "sh"\nargs = ["-c", "echo $API_TOKEN >&2; exit 1"]'
    config.write_text(f'[servers.s]\n{leak}\nenv = {{ API_TOKEN = "${{MY_TOKEN}}" }}\n')
    said = mcphost("check", "--config", str(config))
    assert "•••" in said.out
    assert "hunter2" not in said.out + said.err


def test_a_project_file_is_used_only_as_it_was_trusted(mcphost: Mcphost, tmp_path: Path) -> None:
    project = tmp_path / "mcphost.toml"
    project.write_text(entry("echo", more='env = { WHO = "me" }'))
    refused = mcphost("list", "tools")
    assert (refused.code, refused.out) == (2, "")
    assert f"{project} names programs to run" in refused.err
    assert "you have not trusted it" in mcphost("config", "path").err
    assert "mcphost config trust" in refused.err
    assert mcphost("list", "tools", echo()).code == 0  # which needs nothing of that file

    assert mcphost("config", "trust").code == 2  # without a terminal to ask at
    trusted = mcphost("config", "trust", "--yes")
    assert trusted.code == 0
    assert f"{project} would run:" in trusted.err
    assert "echo.py" in trusted.err
    assert "with WHO=me" in trusted.err
    assert mcphost("list", "tools").code == 0

    project.write_text(entry("echo", "--tools", 1))
    assert "changed since you trusted it" in mcphost("list", "tools").err


class Asked(dict[str, str]):
    """An environment, or a keychain, in which everything is there; it keeps what it was asked for."""

    def __getitem__(self, name: str) -> str:
        self[name] = name
        return f"value-of-{name}"

    def get(self, name: str, default: object = None) -> str:
        return self[name]


GREEDY = """
[servers.web]
url = "https://example.com/${IN_URL}"
http_headers = { X-One = "a ${IN_HEADER} b", X-Two = "${keyring:in-header}" }
env_http_headers = { X-Three = "IN_ENV_HEADER" }
bearer_token_env_var = "IN_BEARER"

[servers.signs.oauth]
issuer = "https://${IN_ISSUER}"
client_id = "${IN_CLIENT_ID:-none}"
client_secret = "${IN_CLIENT_SECRET}"
scopes = ["plain", "${IN_SCOPE}"]
client_metadata_url = "https://example.com/${IN_DOCUMENT}"
[servers.signs]
url = "https://example.com/"

[servers.program]
command = "${IN_COMMAND}"
args = ["--key", "${IN_ARGS}", "${file:in-args}"]
env = { OWN = "${IN_ENV}" }
env_vars = ["IN_ENV_VARS"]
cwd = "${IN_CWD}"
"""


@pytest.mark.hostile("C05")
def test_the_question_of_trust_names_everything_that_an_entry_reads(mcphost: Mcphost, tmp_path: Path) -> None:
    """An entry gets nothing of the user's that the question did not show."""
    project = tmp_path / "mcphost.toml"
    project.write_text(GREEDY)
    (tmp_path / "in-args").write_text("of a file")
    shown = mcphost("config", "trust", "--yes").err
    environment, keychain = Asked(), Asked()
    values = Values(environment, keychain.__getitem__, tmp_path)
    config = load(project, project=True).config
    for name in config.servers:
        resolve_server(config, values, name)
    asked = [*environment, *keychain]
    assert len(asked) == 15
    assert [name for name in asked if name not in shown] == []
    assert "reading your environment variable IN_CLIENT_ID for oauth.client_id" in shown
    assert "reading your keyring entry in-header for http_headers.X-Two" in shown
    assert "reading your file in-args for args[2]" in shown
    assert "value-of" not in shown


def test_config_path_says_which_file_and_why(mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = mcphost("config", "path")
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "mcphost" / "config.toml"
    assert (nothing.code, nothing.out) == (0, f"{own}\n")
    assert "there is no such file yet" in nothing.err
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert mcphost("config", "path").out == f"{own}\n"
    assert "your own configuration" in mcphost("config", "path").err
    monkeypatch.setenv("MCPHOST_CONFIG", "other.toml")
    assert "named by MCPHOST_CONFIG" in mcphost("config", "path").err
    assert "named by --config" in mcphost("config", "path", "--config", "third.toml").err
    assert "third.toml: there is no such file" in mcphost("config", "path", "--config", "third.toml").err
    (tmp_path / "mcphost.toml").write_text("")
    assert "project's file" in mcphost("config", "path").err


@pytest.mark.parametrize(
    ("text", "code", "lines"),
    [
        ('[servers.a]\ncommand = "x"\n', 0, []),
        ('[servers.a]\ncomand = "x"\n', 2, [2]),
        ('[policy]\ndefault = "maybe"\n\n[ui]\ncolour = 1\n', 2, [2, 5]),
        ("[servers\n", 2, [1]),
    ],
)
def test_config_check_prints_each_problem_with_its_line(
    mcphost: Mcphost, tmp_path: Path, text: str, code: int, lines: list[int]
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    said = mcphost("config", "check", "--config", str(file))
    assert said.code == code
    assert sorted(int(line.split(":")[1]) for line in said.out.splitlines()) == sorted(lines)


@pytest.mark.parametrize(
    ("words", "err"),
    [
        (["call"], "mcphost: the following arguments are required: SERVER, TOOL; see mcphost call --help"),
        (["frobnicate"], "'frobnicate' is not a command; see mcphost --help"),
        (["calll", "a", "b"], "'calll' is not a command; did you mean call?; see mcphost --help"),
        (["--config", "x", "ls"], "'ls' is not a command; did you mean list tools?"),
        (["run"], "mcphost: name a saved call; mcphost run --list lists them"),
        (["run", "x=1"], "x=1 belongs behind the NAME of a call"),
        (["run", "a", "--list"], "--list takes no NAME"),
        (["version"], "did you mean --version?"),
        (["check", "--jsn"], "mcphost: unrecognized: --jsn; did you mean --json?; see mcphost check --help"),
        (["check", "--zzzzz"], "mcphost: unrecognized: --zzzzz; see mcphost check --help"),
        (["--json", "check", "a"], '"message": "--json belongs behind check, the command; see mcphost check --help"'),
        (["--output=x", "call", "a", "b"], "mcphost: --output=x belongs behind call, the command; see"),
        (["CALL", "a", "b"], "'CALL' is not a command; did you mean call?"),
        (["LS"], "did you mean list tools?"),
        (["--", "check"], "mcphost: '--' is not a command; see mcphost --help"),
        (["call", "a", "b", "text=\udcff"], r"'text=\xff' holds bytes that are not UTF-8, and only text can be sent"),
        (["call", "a", "\udcfft"], r"'\xfft' holds bytes that are not UTF-8"),
        (["read", "a", "x:\udcff"], "holds bytes that are not UTF-8"),
        (["chat", "tell \udcff"], "holds bytes that are not UTF-8"),
        (
            ["call", "a", "b", "--output", "/no/such/folder/x.png"],
            "the folder /no/such/folder does not exist; create it",
        ),
        (["read", "a", "b:c", "--output", "/"], "it is a folder; name a file in it"),
        (["call", "a", "b", "--timeout", "soon"], "is not a number of seconds"),
        (["list", "tools", "--config", "/no/such/file"], "there is no such file"),
        (["check"], "no server is configured"),
        (["tasks", "demo", "--output", "file"], "--output goes with --result"),
        ([], "the screen needs a terminal"),
        (["demo"], "the screen needs a terminal"),
    ],
)
def test_a_wrong_command_line_is_one_line_on_stderr(mcphost: Mcphost, words: list[str], err: str) -> None:
    said = mcphost(*words)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert err in said.err


def _fail(*_: object) -> int:
    token = "canary-crash-01234567"
    raise ValueError(f"cannot use {token}")


def test_a_crash_saves_its_traceback_without_values(mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.cli.commands.config.find", _fail)
    said = mcphost("config", "path")
    assert said.code == 70
    (path,) = re.findall(r"the traceback, without values, is in (\S+)$", said.err, re.MULTILINE)
    text = Path(path).read_text()
    assert "builtins.ValueError" in text
    assert "in _fail" in text
    assert "canary" not in text + said.err


def test_a_crash_is_reported_where_nothing_can_be_saved(
    mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("mcphost.cli.commands.config.find", _fail)
    said = mcphost("config", "path")
    assert (said.code, said.err.count("\n")) == (70, 1)
    assert "ValueError at mcphost/cli/" in said.err


def test_the_schema_of_the_configuration_is_printed(mcphost: Mcphost) -> None:
    said = mcphost("config", "schema")
    assert (said.code, json.loads(said.out)) == (0, config_schema())
