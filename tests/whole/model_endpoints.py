"""Model endpoints of other projects: aimock answers by a script, llmock breaks things and judges its clients."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.npm import node_runs
from tests.whole.peers import free_port, listening, peer_program

FORMATS = {"anthropic": ("anthropic", ""), "openai": ("openai", "/v1"), "ollama": ("ollama", "")}
"""The provider of each, and where the endpoint speaks like it; OpenAI's is Ollama's ``/v1`` too."""


@contextmanager
def aimock(folder: Path, fixtures: Sequence[Any], *, chunk: int = 3, port: int | None = None) -> Iterator[str]:
    """The address of an aimock that knows ``fixtures`` and nothing else, and streams ``chunk`` characters at a time.

    It is killed when the block ends.
    """
    file, port = folder / "fixtures.json", port or free_port()
    file.write_text(json.dumps({"fixtures": fixtures}))
    options = ["-p", str(port), "-f", str(file), "--strict", "--chunk-size", str(chunk), "--log-level", "silent"]
    with listening(node_runs("@copilotkit/aimock/dist/cli.js", *options), port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def llmock() -> Iterator[str]:
    """The address of an llmock."""
    port = free_port()
    with listening(peer_program("llmock", "serve", "--port", str(port), "--log-level", "error"), port):
        yield f"http://127.0.0.1:{port}"


async def script(url: str, *behaviors: dict[str, Any]) -> None:
    """Set the next actions of the llmock at ``url``."""
    async with httpx.AsyncClient(trust_env=False) as client:
        (await client.post(f"{url}/_llmock/reset")).raise_for_status()
        (await client.post(f"{url}/_llmock/scenario", json={"behaviors": behaviors})).raise_for_status()


async def findings(url: str) -> dict[str, Any]:
    """Return its findings about its clients since then."""
    async with httpx.AsyncClient(trust_env=False) as client:
        answer: dict[str, Any] = (await client.get(f"{url}/_llmock/verdict")).json()
        return answer
