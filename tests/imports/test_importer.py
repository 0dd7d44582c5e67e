"""Found servers on their way into the configuration: compared, stored without their secrets, and removed."""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcphost.config.servers_file import read_servers, update_servers
from mcphost.errors import ConfigError
from mcphost.imports.found import FoundServer, Input
from mcphost.imports.importer import (
    FieldChange,
    ImportAnswer,
    ImportCandidate,
    Importer,
    ImportStatus,
    PlannedEntry,
    SecretPlace,
)
from mcphost.imports.remembered import ImportRecords
from tests.imports.conftest import HeldKeychain, MemoryKeychain, OpenImporter, found

GITHUB: dict[str, Any] = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "s3cret-1", "MODE": "ro"}}


def only(importer: Importer, *servers: FoundServer) -> ImportCandidate:
    (candidate,) = importer.compare(servers).candidates
    return candidate


def content_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def stored(importer: Importer, *servers: FoundServer, **answer: Any) -> list[PlannedEntry]:
    candidates = importer.compare(servers).candidates
    return [await importer.store(candidate, ImportAnswer(**answer)) for candidate in candidates]


async def test_secrets_go_to_the_keychain_and_the_entry_refers_to_them(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    (planned,) = await stored(importer(), found("github", GITHUB))
    assert keychain.items == {"github.TOKEN": "s3cret-1"}
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "${keyring:github.TOKEN}", "MODE": "ro"}}
    assert read_servers(tmp_path / "servers.toml") == {"github": entry}
    assert (planned.variables, planned.in_arguments, planned.secret_keys) == ((), (), ("env.TOKEN",))
    assert b"s3cret-1" not in content_of(tmp_path)


async def test_a_secret_can_be_left_to_the_environment_or_called_none(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    table = {"command": "x", "args": ["--api-key=k1"], "env": {"TOKEN": "t1", "A_KEY": "public"}}
    places = {"env.TOKEN": SecretPlace.ENVIRONMENT, "args[0]": SecretPlace.ENVIRONMENT, "env.A_KEY": SecretPlace.ENTRY}
    (planned,) = await stored(importer(), found("a.b", table), secrets=places)
    entry = {"command": "x", "args": ["--api-key=${A_B_API_KEY}"], "env": {"TOKEN": "${TOKEN}", "A_KEY": "public"}}
    assert read_servers(tmp_path / "servers.toml") == {"a.b": entry}
    assert (planned.variables, planned.in_arguments) == (("A_B_API_KEY", "TOKEN"), ("args[0]",))
    assert keychain.items == {}


async def test_two_secrets_get_two_variables_and_one_secret_gets_one(importer: OpenImporter) -> None:
    table = {
        "command": "x",
        "args": ["--token", "one", "--token", "two"],
        "env": {"A_TOKEN": "one", "B": "ghp_" + "a1" * 12},
    }
    (planned,) = await stored(importer(), found("a", table), secrets=SecretPlace.ENVIRONMENT)
    assert planned.table["args"] == ["--token", "${A_TOKEN}", "--token", "${A_TOKEN_2}"]
    assert planned.table["env"] == {"A_TOKEN": "${A_TOKEN}", "B": "${B}"}


async def test_a_password_in_an_address_becomes_a_header(tmp_path: Path, importer: OpenImporter) -> None:
    (planned,) = await stored(importer(), found("web", {"url": "https://ada:p%40w@h.example:8/mcp?x=1"}))
    assert planned.items == {"web.Authorization": "YWRhOnBAdw=="}
    entry = {
        "url": "https://h.example:8/mcp?x=1",
        "http_headers": {"Authorization": "Basic ${keyring:web.Authorization}"},
    }
    assert read_servers(tmp_path / "servers.toml") == {"web": entry}


async def test_answers_to_inputs_are_stored_by_what_they_are(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    table = {"command": "x", "args": ["${input:mode}"], "env": {"T": "Bearer ${input:key}"}}
    inputs = (Input("key", secret=True), Input("mode", default="ro"))
    server = found("a", table, inputs=inputs)
    with pytest.raises(ConfigError, match=r"servers\.a: key needs a value"):
        await stored(importer(), server)
    await stored(importer(), server, inputs={"key": "s3cret-2", "mode": "a${b"})
    assert read_servers(tmp_path / "servers.toml")["a"]["args"] == ["a$${b"]
    assert read_servers(tmp_path / "servers.toml")["a"]["env"] == {"T": "Bearer ${keyring:a.key}"}
    assert keychain.items == {"a.key": "s3cret-2"}


def test_a_plan_for_print_leaves_inputs_open(importer: OpenImporter) -> None:
    server = found(
        "a",
        {"command": "${input:mode}", "env": {"T": "${input:key}"}},
        inputs=(Input("key", secret=True), Input("mode")),
    )
    planned = importer().plan(only(importer(), server), ImportAnswer(open_inputs=True))
    assert planned.table == {"command": "${A_MODE}", "env": {"T": "${keyring:a.key}"}}
    assert planned.variables == ("A_MODE",)


async def test_what_nobody_looked_at_does_not_start_by_itself(importer: OpenImporter) -> None:
    (planned,) = await stored(importer(), found("a", {"command": "x"}, disabled_there=True), looked_at=False)
    assert planned.table == {"command": "x", "enabled": False, "start": "manual"}


async def test_a_changed_server_says_what_changed(importer: OpenImporter) -> None:
    await stored(importer(), found("github", GITHUB))
    assert only(importer(), found("github", GITHUB)).status is ImportStatus.SAME
    changed = {**GITHUB, "args": ["-y", "server@2"], "env": {"TOKEN": "s3cret-1", "REGION": "eu"}}
    candidate = only(importer(), found("github", changed))
    assert (candidate.name, candidate.status) == ("github", ImportStatus.CHANGED)
    assert set(candidate.changes) == {
        FieldChange("args[1]", "server", "server@2"),
        FieldChange("env.MODE", "ro", None),
        FieldChange("env.REGION", None, "eu"),
    }


async def test_another_value_of_a_secret_is_a_change_that_shows_nothing(
    importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    await stored(importer(), found("github", GITHUB))
    server = found("github", {**GITHUB, "env": {"TOKEN": "s3cret-3", "MODE": "ro"}})
    candidate = only(importer(), server)
    assert (candidate.status, candidate.changes) == (ImportStatus.CHANGED, ())
    await importer().store(candidate, ImportAnswer())
    assert keychain.items == {"github.TOKEN": "s3cret-3"}
    assert only(importer(), server).status is ImportStatus.SAME


async def test_what_the_user_added_to_an_entry_stays_when_it_changes(tmp_path: Path, importer: OpenImporter) -> None:
    await stored(importer(), found("github", GITHUB), looked_at=False)

    def edited(servers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {"github": {**servers["github"], "roots": ["~/src"], "args": ["mine"]}}

    update_servers(tmp_path / "servers.toml", edited)
    await stored(importer(), found("github", {**GITHUB, "args": ["-y", "server@2"]}))
    entry = read_servers(tmp_path / "servers.toml")["github"]
    assert (entry["roots"], entry["args"]) == (["~/src"], ["-y", "server@2"])
    assert "start" not in entry


async def test_a_change_that_fails_leaves_the_secret_as_it_was(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    await stored(importer(), found("github", GITHUB))
    opened = importer()
    candidate = only(opened, found("github", {**GITHUB, "env": {"TOKEN": "s3cret-2", "MODE": "ro"}}))
    (tmp_path / "servers.toml").write_text("[servers")
    with pytest.raises(ConfigError, match="not valid TOML"):
        await opened.store(candidate, ImportAnswer())
    assert keychain.items == {"github.TOKEN": "s3cret-1"}
    assert ImportRecords(tmp_path / "state", pytest.fail).servers()["github"].table["env"]["MODE"] == "ro"


@pytest.mark.parametrize("call", range(4), ids=["its-name-is-looked-up", "looked-up", "written", "read-back"])
async def test_cancelling_during_the_keychain_leaves_nothing(tmp_path: Path, importer: OpenImporter, call: int) -> None:
    keychain = HeldKeychain()
    opened = importer(secrets=keychain)
    storing = asyncio.create_task(opened.store(only(opened, found("github", GITHUB)), ImportAnswer()))
    for _ in range(call):
        (await keychain.calls.get()).set()
    held = await keychain.calls.get()
    keychain.held = False
    storing.cancel()
    await asyncio.wait([storing], timeout=0.05)  # whoever does not wait for the keychain is through by then
    held.set()
    with pytest.raises(asyncio.CancelledError):
        await storing
    await keychain.ended()
    assert (read_servers(tmp_path / "servers.toml"), keychain.items) == ({}, {})


async def test_cancelling_during_the_write_leaves_a_whole_entry(tmp_path: Path, importer: OpenImporter) -> None:
    class CancellingKeychain(MemoryKeychain):
        async def read(self, name: str) -> str | None:
            if self.items:  # what was written is read back: the entry comes next, and then the cancel
                asyncio.get_running_loop().call_soon(storing.cancel)
            return await super().read(name)

    keychain = CancellingKeychain()
    opened = importer(secrets=keychain)
    storing = asyncio.create_task(opened.store(only(opened, found("github", GITHUB)), ImportAnswer()))
    with pytest.raises(asyncio.CancelledError):
        await storing
    assert (list(read_servers(tmp_path / "servers.toml")), keychain.items) == (["github"], {"github.TOKEN": "s3cret-1"})


async def test_what_is_no_longer_there_is_named_once_its_file_was_read(importer: OpenImporter) -> None:
    await stored(importer(), found("github", GITHUB), found("b", {"command": "b"}, place="/other"))
    assert importer().compare([]).gone == ()
    assert [server.name for server in importer().compare([], ["/f"]).gone] == ["github"]
    assert importer().compare([found("github", GITHUB)], ["/f"]).gone == ()


@pytest.mark.parametrize("scope", ["", "project"])
async def test_a_file_that_several_programs_read_is_one_place(importer: OpenImporter, scope: str) -> None:
    taken = found("github", GITHUB)
    await stored(importer(), replace(taken, origin=replace(taken.origin, scope=scope)))
    there = found("github", {**GITHUB, "cwd": "as another program reads it"}, source="cursor")
    there = replace(there, origin=replace(there.origin, digest=taken.origin.digest))
    compared = importer().compare([there], ["/f"])
    assert (compared.candidates[0].status, compared.gone) == (ImportStatus.SAME, ())
    changed = replace(there, origin=replace(there.origin, digest="1" * 64))
    assert only(importer(), changed).status is ImportStatus.CHANGED
    assert [server.name for server in importer().compare([], ["/f"]).gone] == ["github"]


@pytest.mark.parametrize("name", ["GitHub", "git-hub", "g1thub", "git_hub", "glthub"])
def test_a_confusable_name_has_a_sign_of_danger(importer: OpenImporter, name: str) -> None:
    own = '[servers.github]\ncommand = "x"\n'
    candidate = only(importer(own), found(name, {"command": "npx", "args": ["other"]}))
    assert "easily taken for that of another server: github" in candidate.preview({}).dangers[-1].text
    assert not candidate.renamed("other").preview({}).dangers


@pytest.mark.parametrize("name", ["github", "gitlab", "github2", "github-mcp"])
def test_other_names_have_no_sign_of_danger(importer: OpenImporter, name: str) -> None:
    own = '[servers.github]\ncommand = "x"\n'
    assert not only(importer(own), found(name, {"command": "npx", "args": ["other"]})).preview({}).dangers


async def test_an_entry_that_the_user_took_out_of_the_file_is_new_again(tmp_path: Path, importer: OpenImporter) -> None:
    await stored(importer(), found("github", GITHUB))
    update_servers(tmp_path / "servers.toml", lambda servers: {})
    assert only(importer(), found("github", GITHUB)).status is ImportStatus.NEW


async def test_the_same_server_of_several_programs_is_taken_in_once(importer: OpenImporter) -> None:
    here, there = found("github", GITHUB), found("gh", GITHUB, source="cursor", place="/c")
    candidate = only(importer(), here, there)
    assert [origin.source for origin in candidate.others] == ["cursor"]
    await importer().store(candidate, ImportAnswer())
    again = only(importer(), there)
    assert (again.name, again.status) == ("github", ImportStatus.SAME)
    third = only(importer(), found("x", GITHUB, source="gemini", place="/g"))
    assert (third.name, third.status) == ("github", ImportStatus.SAME)


def test_another_account_of_the_same_program_is_another_server(importer: OpenImporter) -> None:
    other = found("github", {**GITHUB, "env": {"TOKEN": "s3cret-9", "MODE": "ro"}}, source="cursor")
    first, second = importer().compare([found("github", GITHUB), other]).candidates
    assert (first.name, second.name) == ("github", "github-2")
    own = '[servers.mine]\ncommand = "npx"\nargs = ["-y", "server"]\n'
    assert only(importer(own), found("github", GITHUB)).like == "mine"


@pytest.mark.parametrize("own", ['[servers.github]\ncommand = "x"\n', "[servers.github]\ncommand = 1\n"])
async def test_a_name_that_is_taken_gets_a_suffix(importer: OpenImporter, own: str) -> None:
    candidate = only(importer(own), found("github", GITHUB))
    assert (candidate.name, candidate.status) == ("github-2", ImportStatus.NEW)
    with pytest.raises(ConfigError, match="there is a server of this name already"):
        await importer(own).store(candidate.renamed("github"), ImportAnswer())


async def test_a_name_taken_meanwhile_leaves_the_keychain_as_before(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    first = importer()
    candidate = only(first, found("github", GITHUB))
    update_servers(tmp_path / "servers.toml", lambda servers: {"github": {"command": "other"}})
    with pytest.raises(ConfigError, match="already"):
        await first.store(candidate, ImportAnswer())
    assert keychain.items == {}
    assert read_servers(tmp_path / "servers.toml") == {"github": {"command": "other"}}


async def test_an_item_of_the_users_is_not_written_over(importer: OpenImporter, keychain: MemoryKeychain) -> None:
    keychain.items["github.TOKEN"] = "the user's own"
    (planned,) = await stored(importer(), found("github", GITHUB))
    assert keychain.items == {"github.TOKEN": "the user's own", "github.TOKEN-2": "s3cret-1"}
    assert planned.table["env"]["TOKEN"] == "${keyring:github.TOKEN-2}"


@pytest.mark.parametrize("fault", ["refuses", "forgets"])
async def test_nothing_is_written_where_the_keychain_does_not_keep_a_secret(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain, fault: str
) -> None:
    setattr(keychain, fault, True)
    with pytest.raises(ConfigError, match="keychain"):
        await stored(importer(), found("github", GITHUB))
    assert not (tmp_path / "servers.toml").exists()
    assert ImportRecords(tmp_path / "state", pytest.fail).servers() == {}


async def test_without_a_keychain_only_the_environment_is_left(tmp_path: Path, importer: OpenImporter) -> None:
    opened = importer(secrets=None)
    assert "no keychain is used here" in str(await opened.keychain_problem())
    with pytest.raises(ConfigError, match="no keychain is used here"):
        await stored(opened, found("github", GITHUB))
    await stored(opened, found("github", GITHUB), secrets=SecretPlace.ENVIRONMENT)
    assert read_servers(tmp_path / "servers.toml")["github"]["env"]["TOKEN"] == "${TOKEN}"


@pytest.mark.parametrize(
    "more",
    [
        {"trust_hints": True},
        {"roots": ["/"]},
        {"sampling": {"policy": "allow"}},
        {"tools": {"x": {"approval": "allow"}}},
        {"start": "eager"},
        {"limits": {"log_bytes": 1}},
        {"oauth": {"without_pkce_metadata": True}},
        {"oauth": {"issuer_slash": "ignore"}},
        {"oauth": {"grant": "workload"}},
        {"oauth": {"assertion": {"command": ["steal"]}}},
        {"oauth": {"resource": "https://other.example"}},
    ],
)
async def test_what_only_the_user_may_grant_never_comes_in(
    tmp_path: Path, importer: OpenImporter, more: dict[str, Any]
) -> None:
    table = {"url": "https://h.example", **more} if "oauth" in more else {"command": "x", **more}
    with pytest.raises(ConfigError, match="is not taken from elsewhere"):
        await stored(importer(), found("a", table))
    assert not (tmp_path / "servers.toml").exists()


async def test_an_invalid_entry_is_refused_without_its_values(importer: OpenImporter) -> None:
    with pytest.raises(ConfigError, match=r"servers\.a\.env\.A: must be a string") as caught:
        await stored(importer(), found("a", {"command": "x", "env": {"A": ["s3cret-1"]}}))
    assert "s3cret-1" not in str(caught.value)


async def test_a_removed_server_leaves_its_items_until_they_are_forgotten(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    await stored(importer(), found("github", GITHUB), found("b", {"command": "b"}))
    assert await importer().remove("github") == ("github.TOKEN",)
    assert list(read_servers(tmp_path / "servers.toml")) == ["b"]
    assert keychain.items == {"github.TOKEN": "s3cret-1"}
    await importer().forget_items(["github.TOKEN"])
    assert keychain.items == {}
    assert ImportRecords(tmp_path / "state", pytest.fail).items() == ()
    with pytest.raises(ConfigError, match="is not in"):
        await importer().remove("github")


async def test_the_origin_is_remembered_whatever_characters_it_has(tmp_path: Path, importer: OpenImporter) -> None:
    place = "/home/ada/\x1b[31m\n\"'⟨é"
    await stored(importer(), found("a", {"command": "x"}, place=place))
    (server,) = ImportRecords(tmp_path / "state", pytest.fail).servers().values()
    assert server.origins[0].place == place
    assert tomllib.loads((tmp_path / "state" / "imports.toml").read_text())["server"][0]["name"] == "a"


async def test_a_path_that_is_no_text_is_found_again(importer: OpenImporter) -> None:
    server = found("b", {"command": "y"}, place="/home/\udcff")
    await stored(importer(), server)
    assert only(importer(), server).status is ImportStatus.SAME


async def test_characters_that_no_file_can_hold_are_refused(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    with pytest.raises(ConfigError, match="no file can hold"):
        await stored(importer(), found("b", {"command": "y", "env": {"TOKEN": "s3cret-1", "A": "\ud800"}}))
    assert keychain.items == {}
    assert not (tmp_path / "servers.toml").exists()


async def test_where_the_origin_cannot_be_remembered_nothing_is_added(
    tmp_path: Path, importer: OpenImporter, keychain: MemoryKeychain
) -> None:
    (tmp_path / "state" / "imports.toml").symlink_to(tmp_path / "elsewhere")
    candidate = ImportCandidate(found("github", GITHUB), "github", ImportStatus.NEW)
    with pytest.raises(ConfigError, match="imports"):
        await importer().store(candidate, ImportAnswer())
    assert keychain.items == {}
    assert not (tmp_path / "servers.toml").exists()


def test_a_server_that_cannot_be_taken_in_is_handed_back(importer: OpenImporter) -> None:
    comparison = importer().compare([found("a", {}, refusal="it speaks WebSocket")])
    assert [server.refusal for server in comparison.refused] == ["it speaks WebSocket"]
    assert comparison.candidates == ()
