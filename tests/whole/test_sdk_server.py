"""A server on the official Python SDK over its three transports: the same conversation each time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcphost.config import Config, ServerConfig, Values
from mcphost.host.host import Host
from mcphost.wiring import fittings
from tests.conftest import SERVERS, Until
from tests.whole.test_http_servers import Yes, free_port, until_listening

SCRIPT = SERVERS / "sdk.py"
PATHS = {"streamable-http": "/mcp", "sse": "/sse"}


@contextmanager
def sdk_server(transport: str) -> Iterator[ServerConfig]:
    """How to reach the server, while it runs."""
    if transport == "stdio":
        yield ServerConfig(command=sys.executable, args=(str(SCRIPT), "stdio"))
        return
    port = free_port()
    command = [sys.executable, str(SCRIPT), transport, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_listening(port)
            yield ServerConfig(url=f"http://127.0.0.1:{port}{PATHS[transport]}")
        finally:
            process.terminate()


@pytest.mark.parametrize("transport", ["stdio", "streamable-http", "sse"])
async def test_one_conversation_with_the_official_sdk(transport: str, until: Until, tmp_path: Path) -> None:
    with sdk_server(transport) as entry:
        async with Host(Config(servers={"sdk": entry}), fittings(Yes(), Values(os.environ))) as host:
            sdk = host.servers["sdk"]
            await until(lambda: sdk.ready, 20)
            assert sdk.session is not None
            assert sdk.session.server.instructions == "A server on the official SDK."
            call = host.call_tool("sdk", "count", {"steps": 3})
            result = await call.result()
            assert result.structured == {"steps": 3}
            assert call.validity is not None
            assert call.validity.valid
            assert call.progress is not None
            assert (call.progress.progress, call.progress.total, call.progress.message) == (3, 3, "step 3")
            assert (await host.call_tool("sdk", "fail", {}).result()).is_error
            client = sdk.client
            (resource,) = (await client.resources.list()).items
            assert resource.uri == "memo://today"
            read = await client.resources.read("memo://today")
            assert read.raw["contents"][0]["text"] == "# Today"
            (template,) = (await client.resources.templates()).items
            assert template.uri_template == "memo://{day}/notes"
            greeting = await client.prompts.get("greet", {"name": "Ada"})
            assert "Say hello to Ada." in str(greeting.messages[0].content)
