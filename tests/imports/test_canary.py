"""Secrets in any place of any host's file are in the keychain afterwards, and nowhere else that mcphost writes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ConfigError
from mcphost.imports.documents import kind_of, read_document, write_document
from mcphost.imports.importer import ImportAnswer
from mcphost.imports.survey import read_host
from tests.imports.conftest import MemoryKeychain, OpenImporter
from tests.imports.made_fixtures import FIXTURES, host_of_case

CASES = sorted(path.name for path in FIXTURES.iterdir())
GROUPS = {"env", "envs", "environment", "headers", "http_headers"}
ADDRESSES = {"url", "serverUrl", "httpUrl", "uri", "baseUrl"}


class Canaries:
    """Makes tokens that differ, in the shape of GitHub's."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def new(self) -> str:
        self.made.append(f"ghp_{hashlib.sha256(str(len(self.made)).encode()).hexdigest()[:36]}")
        return self.made[-1]

    def put_into(self, value: Any, key: str = "") -> Any:
        """The document with a token in each place that may hold a secret."""
        if isinstance(value, Mapping):
            if key in GROUPS:
                return {**{name: self.new() for name in value}, "X-Extra": f"Bearer {self.new()}"}
            return {name: self.put_into(each, name) for name, each in value.items()}
        if isinstance(value, list):
            changed = [self.put_into(each) for each in value]
            return [*changed, "--token", self.new(), f"--key={self.new()}"] if key in ("args", "command") else changed
        if isinstance(value, str) and key in ADDRESSES and value.startswith("http"):
            return f"{value}?api_key={self.new()}"
        return self.new() if key in ("clientSecret", "CLIENT_SECRET") else value


def salted_copy(case: str, folder: Path, canaries: Canaries) -> None:
    for path in (path for path in (FIXTURES / case).rglob("*") if path.is_file() and path.name != "expected.toml"):
        copy = folder / path.relative_to(FIXTURES / case)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.name == ".env":
            copy.write_text(f"API_TOKEN={canaries.new()}\n")
            continue
        document: Any = canaries.put_into(read_document(path.read_bytes(), kind_of(b"", path.name)))
        copy.write_text(write_document(document, kind_of(b"", path.name)), "utf-8")


def content_of(path: Path) -> bytes:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return b"".join(each.read_bytes() for each in files)


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.hostile("C04")
@pytest.mark.parametrize("case", CASES)
async def test_secrets_of_a_hosts_file_are_in_the_keychain_only(
    case: str, tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    canaries, there = Canaries(), tmp_path / "there"
    salted_copy(case, there, canaries)
    project = there / "project"
    found = read_host(host_of_case(case), {}, there / "home", "linux", project if project.is_dir() else None)
    opened = importer()
    for candidate in opened.compare(found).candidates:
        assert not any(canary in repr(candidate.shown) for canary in canaries.made)
        inputs = {each.id: (each.choices or ("answer",))[0] for each in candidate.found.inputs}
        with suppress(ConfigError):  # some entries of the fixtures are odd on purpose
            await opened.store(candidate, ImportAnswer(inputs))
    written = content_of(tmp_path / "state") + content_of(tmp_path / "servers.toml")
    assert not [canary for canary in canaries.made if canary.encode() in written]
    taken_in = " ".join(text for server in found for text in texts_in(server.table))
    kept = " ".join(keychain.items.values())
    assert [canary for canary in canaries.made if canary in taken_in and canary not in kept] == []
    assert canaries.made
