"""The files of each host, most of them written by the host itself, are read as expected, written, and read back.

``made_fixtures.py`` makes those of programs that can be had. The others follow the documentation of their hosts:
amazon-q, codex-plugins, continue, copilot-intellij, inspector, junie, lm-studio, mcphost-go, roo, witsy, and
every fixture ``HOST@documented``, which holds what no command line writes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config import ServerConfig
from mcphost.imports.export import export_servers
from mcphost.imports.found import FoundServer
from mcphost.imports.hosts import BY_ID, HOSTS
from mcphost.imports.survey import read_host, survey
from tests.imports.made_fixtures import FIXTURES, as_toml, host_of_case, read_case

CASES = sorted(path.name for path in FIXTURES.iterdir())


def importable(found: list[FoundServer]) -> dict[str, FoundServer]:
    return {server.name: server for server in found if not server.refusal and not server.inputs}


def test_every_known_host_has_a_fixture() -> None:
    assert {host_of_case(case) for case in CASES} == {host.id for host in HOSTS}


@pytest.mark.hostile("C04")
@pytest.mark.parametrize("case", CASES)
def test_a_hosts_files_are_read_as_expected(case: str) -> None:
    assert as_toml(read_case(case), case) == (FIXTURES / case / "expected.toml").read_text("utf-8")


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_a_valid_entry_of_the_configuration(case: str) -> None:
    found = importable(read_case(case)).values()
    assert [ServerConfig.model_validate(dict(server.table)) for server in found]


@pytest.mark.parametrize("case", CASES)
def test_a_fixture_is_found_by_the_host_whose_it_is(case: str) -> None:
    project = FIXTURES / case / "project"
    listed = survey({}, FIXTURES / case / "home", "linux", project if project.is_dir() else None)
    assert {each.host.id for each in listed} == {host_of_case(case)}
    assert sum(each.servers for each in listed) == len(read_case(case))
    assert [each.problem for each in listed if each.problem] == []


@pytest.mark.parametrize("case", CASES)
def test_what_was_read_is_written_for_the_host_and_read_back(case: str, tmp_path: Path) -> None:
    host = BY_ID[host_of_case(case)]
    found = importable(read_case(case))
    servers = {name: ServerConfig.model_validate(dict(server.table)) for name, server in found.items()}
    exported = export_servers(host, servers, Path("/home/ada"))
    noted = {note.server for note in exported.notes}
    original = next(path for path in sorted((FIXTURES / case / "home").rglob("*")) if path.is_file())
    copy = tmp_path / original.relative_to(FIXTURES / case / "home")
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(exported.text, "utf-8")
    back = {server.name: dict(server.table) for server in read_host(host.id, {}, tmp_path, "linux", None)}
    for name, server in found.items():
        if name not in noted:
            assert back[name] in (dict(server.table), {**server.table, "transport": "http"})
