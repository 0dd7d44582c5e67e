"""Servers of other projects that are recorded and replayed, and two clients that say one script to them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from mcphost.errors import McphostError
from mcphost.redaction import mask_credentials
from tests.conftest import MACHINE
from tests.npm import installed, newer_node, node_runs
from tests.pypi import environment
from tests.whole.peers import NPM_SERVERS, everything, example, fastmcp, filesystem, meeting, sdk_runs

VARIABLE = "MCPHOST_TEST_RECORDINGS"
WANTED = MACHINE.get(VARIABLE, "")

NODE_SERVERS = (
    "@bytebase/dbhub@1.4.0",
    "@cyanheads/git-mcp-server@2.15.3",
    "@modelcontextprotocol/server-debug@2.0.3",
    "@modelcontextprotocol/server-map@2.0.3",
    "@modelcontextprotocol/server-pdf@2.0.4",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/server-system-monitor@2.0.3",
    "@playwright/mcp@0.0.83",
    "chrome-devtools-mcp@1.11.0",
    "supergateway@4.0.0",
)
FETCH = ("mcp-server-fetch==2026.10.24",)
SQLITE = ("mcp-server-sqlite==2025.4.25", "mcp<2")
CHROMIUM = "/usr/bin/chromium"
PAGE = "data:text/html,<title>Harbour</title><h1>Harbour</h1><button>Dock</button>"

MCPHOST = (sys.executable, "-m", "mcphost")
Json = Any
Answers = Mapping[str, Json]
"""The result or the error for each request of a script, without what only one era has."""
ERA_ONLY = frozenset({"_meta", "resultType", "ttlMs", "cacheScope", "execution"})
UNKNOWN_TO_SDK = frozenset({"category", "conditions"})
"""Members of a server's annotations that the models of the SDK drop."""


class Recorded(NamedTuple):
    """A server, and calls that it gets; what changes in it with each run is not compared with the live server."""

    command: Callable[[Path], Sequence[str]]
    calls: Sequence[tuple[str, Mapping[str, Any]]]
    changes: bool = False
    """An answer depends on the time, the machine or the calls before."""


def _node(program: str, *words: str, **variables: str) -> list[str]:
    folder = installed("recorded-servers", NODE_SERVERS)
    return [
        "env",
        *(f"{name}={value}" for name, value in variables.items()),
        str(newer_node()),
        str(folder / program),
        *words,
    ]


def _script(name: str) -> Path:
    return Path(sys.executable).parent / name


def _git(folder: Path) -> Path:
    """A repository of one commit, which has the same name each time."""
    if not (folder / ".git").exists():
        fixed = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
            subprocess.run(["git", *who, *words], cwd=folder, check=True, env={**os.environ, **fixed})
    return folder


SERVERS: Mapping[str, Recorded] = {
    "everything": Recorded(
        lambda _: everything("stdio", 0),
        [
            ("echo", {"message": "hello"}),
            ("get-sum", {"a": 1, "b": 2}),
            ("get-structured-content", {"location": "New York"}),
            ("get-tiny-image", {}),
            ("get-resource-links", {"count": 3}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
        ],
    ),
    "filesystem": Recorded(
        filesystem,
        [
            ("list_allowed_directories", {}),
            ("read_text_file", {"path": "{folder}/hello.txt"}),
            ("list_directory", {"path": "{folder}"}),
            ("read_text_file", {"path": "{folder}/missing.txt"}),
        ],
    ),
    "memory": Recorded(
        lambda folder: ["env", f"MEMORY_FILE_PATH={folder}/memory.json", *node_runs(NPM_SERVERS.format("memory"))],
        [
            ("create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}),
            ("read_graph", {}),
            ("delete_entities", {"entityNames": ["Ada"]}),
            ("read_graph", {}),
        ],
    ),
    "sequential-thinking": Recorded(
        lambda _: _node("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
        [
            (
                "sequentialthinking",
                {"thought": f"Step {n}.", "nextThoughtNeeded": n < 2, "thoughtNumber": n, "totalThoughts": 2},
            )
            for n in (1, 2)
        ],
    ),
    "time": Recorded(
        lambda _: sdk_runs(_script("mcp-server-time"), "--local-timezone", "UTC"),
        [
            ("get_current_time", {"timezone": "UTC"}),
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ("get_current_time", {"timezone": "Nowhere"}),
        ],
        changes=True,
    ),
    "fetch": Recorded(
        lambda _: [str(environment("recorded-python", FETCH) / "mcp-server-fetch"), "--ignore-robots-txt"],
        [("fetch", {"url": "http://127.0.0.1:9/"})],
    ),
    "git": Recorded(
        lambda folder: sdk_runs(_script("mcp-server-git"), "--repository", str(_git(folder))),
        [
            ("git_status", {"repo_path": "{folder}"}),
            ("git_log", {"repo_path": "{folder}", "max_count": 1}),
            ("git_show", {"repo_path": "{folder}", "revision": "HEAD"}),
        ],
    ),
    "fastmcp": Recorded(
        lambda _: fastmcp("stdio", 0),
        [("weather", {"city": "Rome"}), ("count", {"steps": 2}), ("show", {}), ("fail", {}), ("say", {"text": "hi"})],
    ),
    "sdk-2": Recorded(lambda _: example("2.3.0", "simple-pagination", "stdio", 0), [("tool_1", {}), ("tool_25", {})]),
    "sdk-1": Recorded(lambda _: example("1.30.0", "simple-pagination", "stdio", 0), [("tool_1", {}), ("tool_25", {})]),
    "sdk-1-resource": Recorded(lambda _: example("1.30.0", "simple-resource", "stdio", 0), []),
    "sdk-2-prompt": Recorded(lambda _: example("2.3.0", "simple-prompt", "stdio", 0), []),
    "dbhub": Recorded(
        lambda _: _node("@bytebase/dbhub/dist/index.js", "--transport", "stdio", "--demo"),
        [("execute_sql", {"sql": "select count(*) as n from employee"}), ("execute_sql", {"sql": "select nothing"})],
    ),
    "sqlite": Recorded(
        lambda folder: [
            str(environment("recorded-sqlite", SQLITE) / "mcp-server-sqlite"),
            "--db-path",
            f"{folder}/a.db",
        ],
        [
            ("create_table", {"query": "create table if not exists t (n int)"}),
            ("read_query", {"query": "select 1 as one"}),
            ("list_tables", {}),
            ("read_query", {"query": "drop table t"}),
        ],
    ),
    "map": Recorded(lambda _: _node(".bin/mcp-map-server", "--stdio"), [("show-map", {"label": "Rome"})], changes=True),
    "pdf": Recorded(lambda _: _node(".bin/mcp-pdf-server", "--stdio"), [("list_pdfs", {})]),
    "debug": Recorded(
        lambda _: _node(".bin/mcp-server-debug", "--stdio"),
        [
            ("debug-tool", {"contentType": "mixed", "includeStructuredContent": True, "includeMeta": True}),
            ("debug-tool", {"contentType": "audio"}),
            ("debug-tool", {"simulateError": True}),
        ],
        changes=True,
    ),
    "system-monitor": Recorded(
        lambda _: _node(".bin/mcp-system-monitor-server", "--stdio"), [("get-system-info", {})], changes=True
    ),
    "git-mcp-server": Recorded(
        lambda _: _node(".bin/git-mcp-server", MCP_TRANSPORT_TYPE="stdio", MCP_LOG_LEVEL="error"),
        [("git_status", {"path": "{folder}"}), ("git_log", {"path": "{folder}", "maxCount": 1})],
    ),
    "playwright": Recorded(
        lambda folder: _node(
            ".bin/playwright-mcp",
            "--headless",
            "--no-sandbox",
            "--executable-path",
            CHROMIUM,
            "--isolated",
            f"--output-dir={folder}",
        ),
        [("browser_navigate", {"url": PAGE}), ("browser_snapshot", {}), ("browser_close", {})],
        changes=True,
    ),
    "chrome-devtools": Recorded(
        lambda _: _node(
            ".bin/chrome-devtools-mcp",
            "--headless",
            "--isolated",
            f"--executablePath={CHROMIUM}",
            "--chromeArg=--no-sandbox",
            "--no-usage-statistics",
        ),
        [("new_page", {"url": PAGE}), ("list_pages", {})],
        changes=True,
    ),
}


def calls(recorded: Recorded, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a server, about this folder."""
    return [
        (tool, {name: each.format(folder=folder) if isinstance(each, str) else each for name, each in given.items()})
        for tool, given in recorded.calls
    ]


def plain(value: Json) -> Json:
    """Without what only one era has, and without credentials, which a recording masks."""
    if isinstance(value, str):
        return mask_credentials(value)
    if isinstance(value, dict):
        return {
            name: plain(each)
            for name, each in value.items()
            if name not in ERA_ONLY | UNKNOWN_TO_SDK and (name, each) != ("isError", False)
        }
    return [plain(each) for each in value] if isinstance(value, list) else value


def _parameters(command: Sequence[str]) -> StdioServerParameters:
    program, *words = command
    return StdioServerParameters(command=program, args=words, env=dict(os.environ))


async def say_by_sdk(  # noqa: C901
    command: Sequence[str], script: Sequence[tuple[str, dict[str, Any]]], mode: str
) -> Answers:
    """All lists, the calls, the first resource and the first prompt without arguments, by the official client."""
    got: dict[str, Json] = {}

    async with Client(_parameters(command), mode=mode, cache=None) as client:

        async def ask(name: str, made: Any) -> Json:
            try:
                answer = (await made).model_dump(mode="json", by_alias=True, exclude_none=True)
            except MCPError as error:
                answer = {"error": {"code": error.error.code, "message": error.error.message}}
            got[name] = plain(answer)
            return got[name]

        async def walk(name: str, page: Callable[..., Any]) -> list[Json]:
            items: list[Json] = []
            cursor = None
            while True:
                try:
                    answer = (await page(cursor=cursor)).model_dump(mode="json", by_alias=True, exclude_none=True)
                except MCPError:  # it has no such list
                    return []
                items += answer[name]
                cursor = answer.get("nextCursor")
                if cursor is None:
                    got[name] = plain(items)
                    return items

        offers = client.server_capabilities
        if offers.tools:
            await walk("tools", client.list_tools)
        prompts = await walk("prompts", client.list_prompts) if offers.prompts else []
        resources = await walk("resources", client.list_resources) if offers.resources else []
        if offers.resources:
            await walk("resourceTemplates", client.list_resource_templates)
        for number, (tool, arguments) in enumerate(script):
            await ask(f"{number} {tool}", client.call_tool(tool, arguments))
        for resource in resources[:1]:
            await ask("resource", client.read_resource(resource["uri"]))
        for prompt in [each for each in prompts if not any(one.get("required") for one in each.get("arguments", []))][
            :1
        ]:
            await ask("prompt", client.get_prompt(prompt["name"]))
    return got


async def say_by_mcphost(command: Sequence[str], script: Sequence[tuple[str, dict[str, Any]]], era: str) -> Answers:
    """The same, by a host; the answers are taken from what it received."""
    program, *words = command
    entry = {"command": program, "args": words, "startup_timeout_sec": 60, "protocol": era}
    entry["limits"] = {"exit_grace_sec": 10.0}  # for the end of a recording
    got: dict[str, Json] = {}
    async with meeting(entry) as host:

        def frames() -> list[Json]:
            return list(_messages(bytes(each.data) for each in host.traffic.since(0)))

        for number, (tool, arguments) in enumerate(script):
            with suppress(McphostError):
                await host.tool_calls.call("e", tool, arguments).result()
            answer = _last(frames(), "tools/call")
            got[f"{number} {tool}"] = answer
        resources = host.catalog.resources("e")
        if resources:
            with suppress(McphostError):
                await host.resources.read("e", resources[0].resource.uri)
            if (answer := _last(frames(), "resources/read")) is not None:  # a long message is cut there
                got["resource"] = answer
        lists = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
        for name, method in {**lists, "resourceTemplates": "resources/templates/list"}.items():
            pages = _answers(frames(), method)
            if pages and not any("error" in page for page in pages):
                got[name] = _walk(pages, name)
    return got


def _messages(texts: Iterable[bytes]) -> Iterator[Json]:
    """Those that are kept whole; stderr is left out, too."""
    for text in texts:
        with suppress(ValueError):
            if isinstance(message := json.loads(text), dict):
                yield message


def _answers(messages: Sequence[Json], method: str) -> list[Json]:
    asked = [message["id"] for message in messages if message.get("method") == method and "id" in message]
    answers = {message["id"]: message for message in messages if "method" not in message and "id" in message}
    got = [answers[number] for number in asked if number in answers]
    return [plain(each["result"]) if "result" in each else {"error": _error(each["error"])} for each in got]


def _walk(pages: Sequence[Json], name: str) -> Json:
    """The items of the last walk; a list is read again when it changes."""
    items: list[Json] = []
    for number, page in enumerate(pages):
        if not number or "nextCursor" not in pages[number - 1]:
            items = []
        items += page.get(name, [])
    return items


def _last(messages: Sequence[Json], method: str) -> Json:
    found = _answers(messages, method)
    return found[-1] if found else None


def _error(error: Json) -> Json:
    return {"code": error["code"], "message": error["message"]}


async def run(*words: str, seconds: float = 120) -> tuple[int, str, str]:
    """Run mcphost to its end: exit code, output and errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *MCPHOST, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
