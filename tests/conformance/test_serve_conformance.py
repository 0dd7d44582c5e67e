"""The published conformance suite against `mcphost serve --http` in front of a server that passes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import tomli_w

from tests.conformance.skills import SKILL_CHECKS, judged
from tests.conformance.suite import PREVIEW, RELEASED, Suite
from tests.whole.keychain_file import ROOT, KeychainFile
from tests.whole.peers import free_port

SERVERS = Path(__file__).parents[1] / "servers"
SERVER = SERVERS / "conformance.py"
SECONDS = 240.0


@contextmanager
def program(*words: str, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A Python program that its end of input or SIGTERM ends."""
    command, pipe = [sys.executable, *words], subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        try:
            yield running
        finally:
            running.terminate()
            running.communicate(timeout=30)


def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


@contextmanager
def served(folder: Path, protocol: str, *script: str) -> Iterator[str]:
    """The URL of a relay to mcphost, which serves the server of a script in this era."""
    port = free_port()
    env = {
        **{name: value for name, value in os.environ.items() if name != "MCPHOST_KEYCHAIN"},
        **{name: str(folder / name) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")},
        **KeychainFile(folder / "keys.json").env,
    }
    config = folder / "c.toml"
    host = ["-m", "tests.whole.keychain_file", "--config", str(config), "serve"]
    address = f"127.0.0.1:{port}"
    with program(*script, env=env) as server:
        entry = {"url": line_of(server.stdout), "protocol": protocol}
        config.write_text(
            tomli_w.dumps(
                {"servers": {"e": entry}, "policy": {"default": "allow"}, "profiles": {"p": {"roots": "agent"}}}
            )
        )
        made = subprocess.run(
            [sys.executable, *host, "--http", address, "--print", "cursor"], env=env, capture_output=True, text=True
        )
        token = made.stderr.split()[-1]
        with program(*host, "--http", address, env=env) as listening:
            assert address in line_of(listening.stderr)
            relay = ["-m", "tests.conformance.relay", f"http://{address}/mcp/@p"]
            with program(*relay, env={**env, "TOKEN": token, "PYTHONPATH": str(ROOT)}) as relaying:
                yield line_of(relaying.stdout)


@pytest.mark.parametrize(
    ("protocol", "suite", "chosen", "least"),
    [
        ("legacy", RELEASED, ("--suite", "all"), 32),
        ("modern", PREVIEW, ("--requirements", "2026-07-28"), 49),
    ],
    ids=["legacy", "modern"],
)
def test_every_scenario_passes_through_serve(
    tmp_path: Path, protocol: str, suite: Suite, chosen: tuple[str, str], least: int
) -> None:
    with served(tmp_path, protocol, str(SERVER)) as url:
        done = suite.run("server", "--url", url, *chosen, seconds=SECONDS)
    summary, _, _ = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored")
    # Not scored: a tool that must run as a task also answers clients that know none, after it has ended.
    failed = [line for line in summary.splitlines() if line.startswith("✗") and "tasks-required-task-error" not in line]
    assert not failed, done.stdout
    assert summary.count("✓") >= least - 1


def test_the_scenarios_of_skills_pass_through_serve(tmp_path: Path) -> None:
    with served(tmp_path, "modern", str(SERVERS / "skills.py"), "--http", "--unique") as url:
        assert judged(url) == SKILL_CHECKS
