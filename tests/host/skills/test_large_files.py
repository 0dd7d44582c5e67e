"""Large files of skills over real transports, and answers without an end."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.protocol.limits import MESSAGE_BYTES
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.host.conftest import SCRIPTS, RecordingHost, settings
from tests.host.connections.web_host import hosted
from tests.host.skills.rig import TIDES, refused, spoiled
from tests.transports.http.http_connection import Web

pytestmark = pytest.mark.slow

SKILL_BYTES = 16 << 20


class Program(RecordingHost):
    """A host of the script skills_hostile.py, from which messages of so many bytes are taken."""

    def __init__(self, *args: object, most: int = MESSAGE_BYTES, protocol: str = "modern") -> None:
        async def opened(config: Config, name: str) -> Transport:
            entry = config.servers[name]
            limits = TransportLimits(message_bytes=most, exit_grace=config.limits_for(name).exit_grace_sec)
            return StdioTransport(Command(sys.executable, entry.args, {}), limits, os.environ)

        given: Mapping[str, Any] = {
            "command": "python",
            "args": ["-S", "-E", str(SCRIPTS / "skills_hostile.py"), *map(str, args)],
            "protocol": protocol,
        }
        super().__init__(settings(a=given), open_transport=opened)

    async def __aenter__(self) -> Program:
        await super().__aenter__()
        await self.servers.ready()
        return self


@pytest.mark.requirement("SKILL-07")
async def test_a_file_of_16_mib_is_read_from_a_program() -> None:
    async with Program("large", "--bytes", SKILL_BYTES, protocol="legacy") as running:
        file = await running.skills.read("a", "large", "large.txt")
        assert (len(file.content) + file.skill.files[0].size, file.text is not None) == (SKILL_BYTES, True)


@pytest.mark.requirement("SKILL-07")
async def test_a_file_of_16_mib_is_read_over_http() -> None:
    server = spoiled("large", size=SKILL_BYTES)
    big = next(uri for uri in server.shelf.served if uri.endswith("large.txt"))
    for files in (server.shelf.served, server.shelf.described):
        files[big.replace(".txt", ".bin")] = files.pop(big)  # as base64
    with Web(server.visit) as web:
        async with hosted(web, protocol="modern") as running:
            file = await running.skills.read("a", "large", "large.bin")
            assert len(file.content) + file.skill.files[0].size == SKILL_BYTES


@pytest.mark.hostile("SK02", "SK08")
async def test_an_answer_without_an_end_is_cut_off_by_the_limit() -> None:
    async with Program("endless-body", most=1_000_000) as running:
        refusal = await refused(running.skills.read("a", "tides"))
        assert refusal.finding == "too-large-message"
        assert 'The file "SKILL.md" was not read' in str(refusal)
        assert running.servers["a"].ready


@pytest.mark.hostile("SK08")
async def test_a_far_larger_file_than_listed_is_not_taken() -> None:
    async with Program("huge-body", "--bytes", 2_000_000, most=1_000_000) as running:
        refusal = await refused(running.skills.read("a", TIDES))
        assert refusal.finding == "too-large-message"
        assert "over the limit of 1.0 MB" in str(refusal)
        assert str(refusal).endswith("its entry says 10 bytes.")
        assert running.servers["a"].ready


async def test_a_text_that_is_escaped_beyond_the_limit_names_the_limit() -> None:
    async with Program("large", "--bytes", 500_000, most=400_000) as running:
        refusal = await refused(running.skills.read("a", "large", "large.txt"))
        assert refusal.finding == "too-large-message"
        assert str(refusal).endswith("raise message_bytes in [limits].")
