"""Takes found servers into ``servers.toml``: compares them with those of before, and stores what the user chose.

Nothing is written before `Importer.store`, and no secret but to the keychain.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from mcphost.cancellation import to_the_end
from mcphost.config import LoadedConfig, ServerConfig
from mcphost.config.references import VARIABLE
from mcphost.config.servers import users_oauth_keys
from mcphost.config.servers_file import read_servers, remove_server, update_servers, validated_server
from mcphost.errors import ConfigError
from mcphost.imports.dangers import DangerSign
from mcphost.imports.found import FoundServer, Input, Origin, digest_of
from mcphost.imports.inputs import fill_in, literal
from mcphost.imports.preview import Preview, preview_of, shown
from mcphost.imports.remembered import ImportedServer, ImportRecords, as_utf8
from mcphost.imports.secrets import FoundSecret, find_secrets, masked, with_references, with_texts
from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass

IMPORTED_KEYS: Final = frozenset({
    "args", "bearer_token_env_var", "command", "cwd", "disabled_tools", "enabled", "enabled_tools", "env",
    "env_http_headers", "env_vars", "http_headers", "oauth", "startup_timeout_sec", "tool_timeout_sec", "transport",
    "url",
})  # fmt: skip
"""Keys that may come from elsewhere. Approvals, trust, sampling, limits and folders are the user's alone to grant."""

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{[^}]*\}")
_NO_VARIABLE: Final = re.compile(r"[^A-Za-z0-9_]+")
_VARIABLE: Final = re.compile(VARIABLE)
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")


MOST_SECRETS: Final = 100
"""Secrets of one entry; each becomes an item of the keychain."""

NO_KEYCHAIN: Final = "no keychain is used here (MCPHOST_KEYCHAIN=off)"


class SecretStore(Protocol):
    """The keychain. Each method raises ConfigError where it cannot be used, with a sentence that says why."""

    async def read(self, name: str) -> str | None:
        """The item's secret; None where there is no such item."""

    async def write(self, name: str, secret: str) -> None: ...

    async def delete(self, name: str) -> None: ...


class SecretPlace(Enum):
    """Where a secret of an entry goes."""

    KEYCHAIN = "keyring"
    ENVIRONMENT = "env"
    """Nowhere: the entry refers to a variable that the user sets before mcphost starts."""
    ENTRY = "entry"
    """The value stays in the entry, because the user says that it is not a secret."""


class ImportStatus(Enum):
    """The state of a found server compared with what mcphost has."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A key that differs from what was taken in before; values may be shown, and are None where the key is absent."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ImportCandidate:
    """A found server that may be taken in, under ``name``."""

    found: FoundServer
    name: str
    """The name of its entry: free, or that of the entry it was taken into before."""
    status: ImportStatus
    changes: tuple[FieldChange, ...] = ()
    """The differences if it is `ImportStatus.CHANGED`; empty if only the value of a secret differs."""
    others: tuple[Origin, ...] = ()
    """Where else the same server was found."""
    like: str = ""
    """A configured server that runs the same program or address with other settings; empty: none."""
    double: str = ""
    """Another server whose name is easily taken for this one; empty: none."""
    edits: Mapping[KeyPath, str] = field(default_factory=dict, repr=False)
    """Texts that the user wrote in place of those found."""

    @cached_property
    def table(self) -> dict[str, Any]:
        """The entry as it would be taken in, with a password in its address moved to a header."""
        table = _without_user_info(self.found.table)
        return with_texts(table, self.edits) if self.edits else table

    @property
    def content(self) -> str:
        """The digest of the entry as found, which the next import compares with."""
        return digest_of(_without_user_info(self.found.table))

    @cached_property
    def secrets(self) -> tuple[FoundSecret, ...]:
        return find_secrets(self.table)

    @property
    def shown(self) -> dict[str, Any]:
        """The entry with masks in place of secrets."""
        return masked(self.table, self.secrets)

    def preview(self, env: Mapping[str, str]) -> Preview:
        """The preview for the user; references are looked up in ``env``, mcphost's own environment."""
        preview = preview_of(replace(self.found, name=self.name, table=self.table), env)
        if not self.double:
            return preview
        sign = DangerSign("Its name is easily taken for that of another server", shown(self.double))
        return replace(preview, dangers=(*preview.dangers, sign))

    def renamed(self, name: str) -> ImportCandidate:
        """The same as a new entry of another name, which `Importer.store` refuses where it is not free."""
        if name == self.name:
            return self
        return replace(self, name=name, status=ImportStatus.NEW, changes=(), double="")

    def edited(self, texts: Mapping[KeyPath, str]) -> ImportCandidate:
        """The same with these texts in place of those that are there."""
        return replace(self, edits={**self.edits, **texts})


@dataclass(frozen=True, slots=True)
class ImportAnswer:
    """The user's decision about a candidate."""

    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of its inputs by `Input.id`; optional ones may be absent."""
    secrets: SecretPlace | Mapping[str, SecretPlace] = SecretPlace.KEYCHAIN
    """Where its secrets go: all of them, or each by `FoundSecret.key` or ``input:ID``, and else to the keychain."""
    looked_at: bool = True
    """True if the user saw what it runs; otherwise it does not start by itself."""
    open_inputs: bool = False
    """True if an input without a value becomes a reference, for an entry that is printed."""

    def place_of(self, key: str) -> SecretPlace:
        """Where the secret of this key goes."""
        return self.secrets if isinstance(self.secrets, SecretPlace) else self.secrets.get(key, SecretPlace.KEYCHAIN)

    def takes(self, wanted: Input) -> bool:
        """True if the value of this input is kept. That of a secret for which the user sets a variable is not."""
        return not (wanted.secret and self.place_of(f"input:{wanted.id}") is SecretPlace.ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """The changes that `Importer.store` makes for a candidate and an answer."""

    name: str
    table: Mapping[str, Any]
    """The entry for ``servers.toml``; valid."""
    items: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets for the keychain, by the names of their items."""
    variables: tuple[str, ...] = ()
    """Environment variables that the user must set."""
    in_arguments: tuple[str, ...] = ()
    """Keys of arguments that hold a secret, which everybody sees in the list of processes."""
    secret_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportComparison:
    """The found servers, and those that were imported before and do not exist there any more."""

    candidates: tuple[ImportCandidate, ...] = ()
    refused: tuple[FoundServer, ...] = ()
    """Servers that cannot be taken in, each with its `FoundServer.refusal`."""
    gone: tuple[ImportedServer, ...] = ()


class Importer:
    """Compares, stores and removes servers of ``servers.toml``.

    ``loaded`` is the user's configuration; ``keychain`` None where none may be used.
    """

    def __init__(
        self, servers_file: Path, loaded: LoadedConfig, records: ImportRecords, keychain: SecretStore | None
    ) -> None:
        self._file, self._records, self._keychain = servers_file, records, keychain
        self._taken = {*loaded.config.servers, *loaded.disabled}
        self._servers: Mapping[str, ServerConfig] = loaded.config.servers

    @property
    def path(self) -> Path:
        return self._file

    def compare(self, found: Iterable[FoundServer], places: Iterable[str] = ()) -> ImportComparison:
        """Compare found servers with what was taken in before. Blocks on the disk; raises ConfigError.

        ``places`` are the files and addresses that were read in full, as in `Origin.place`: servers that were taken
        from there and are no longer there are `ImportComparison.gone`.
        """
        known, there = self._records.servers(), read_servers(self._file)
        known = {name: server for name, server in known.items() if name in there}
        servers = list(found)
        taken, candidates = {*self._taken, *there}, list[ImportCandidate]()
        for group in _grouped(server for server in servers if not server.refusal):
            candidate = self._candidate(group, known, taken)
            taken.add(candidate.name)
            candidates.append(candidate)
        refused = tuple(server for server in servers if server.refusal)
        return ImportComparison(tuple(candidates), refused, tuple(_gone(known, servers, set(places))))

    def plan(self, candidate: ImportCandidate, answer: ImportAnswer) -> PlannedEntry:
        """Return what `store` would write. Raises ConfigError if the entry is invalid, or an input has no value."""
        return _Plan(candidate, answer).made()

    async def keychain_problem(self) -> str | None:
        """Why no secret can go to the keychain; None if it works."""
        if self._keychain is None:
            return NO_KEYCHAIN
        try:
            await self._keychain.read("mcphost")
        except ConfigError as error:
            return str(error)
        return None

    async def store(self, candidate: ImportCandidate, answer: ImportAnswer) -> PlannedEntry:
        """Take a server in: its secrets to the keychain, where they are read back, then its entry to ``servers.toml``.

        Raises ConfigError; nothing is then written, or the secrets are taken out of the keychain again.
        """
        planned = await self._with_own_items(candidate, answer)
        before: dict[str, str | None] = {}
        try:
            for name, secret in planned.items.items():
                await self._put(name, secret, before)
            await to_the_end(asyncio.to_thread(self._write, candidate, planned))
        except BaseException as error:
            if not (isinstance(error, asyncio.CancelledError) and self._is_stored(planned)):
                await to_the_end(self._put_back(before))
            raise
        self._taken.add(planned.name)
        return planned

    async def remove(self, name: str) -> tuple[str, ...]:
        """Take a server out of ``servers.toml``, and return the names of its keychain items, which stay.

        Raises ConfigError where it is not in that file.
        """
        return await asyncio.to_thread(self._removed, name)

    async def forget_items(self, names: Iterable[str]) -> None:
        """Delete items from the keychain. Raises ConfigError."""
        for name in names:
            if self._keychain is None:
                raise ConfigError(NO_KEYCHAIN)
            await self._keychain.delete(name)
            await asyncio.to_thread(self._records.drop_item, name)

    def _candidate(
        self, group: Sequence[FoundServer], known: Mapping[str, ImportedServer], taken: set[str]
    ) -> ImportCandidate:
        first, *more = group
        origins = tuple(server.origin for server in more)
        for server in group:
            before = next((each for each in known.values() if _is_from(each, server.origin)), None)
            if before is None:
                continue
            table = _without_user_info(server.table)
            rest = tuple(each.origin for each in group if each is not server)
            if before.content == digest_of(table) or _is_read_by_another(before, server.origin):
                return ImportCandidate(server, before.name, ImportStatus.SAME, (), rest)
            changes = tuple(_changes(before, table))
            return ImportCandidate(server, before.name, ImportStatus.CHANGED, changes, rest)
        content = digest_of(_without_user_info(first.table))
        if same := next((each for each in known.values() if each.content == content), None):
            return ImportCandidate(first, same.name, ImportStatus.SAME, (), origins)
        what = _what_runs(first.table)
        like = next((name for name, server in self._servers.items() if _what_runs(_dumped(server)) == what), "")
        name = free_name(first.name, taken)
        others = sorted(taken - {first.name, name})
        double = next((each for each in others if _looks_of(each) == _looks_of(first.name)), "")
        return ImportCandidate(first, name, ImportStatus.NEW, (), origins, like, double)

    async def _with_own_items(self, candidate: ImportCandidate, answer: ImportAnswer) -> PlannedEntry:
        """The plan, with names of keychain items that do not yet stand for something else of the user's."""
        planned = self.plan(candidate, answer)
        if not planned.items:
            return planned
        known = await asyncio.to_thread(self._records.servers)
        own = known[candidate.name].items if candidate.name in known else ()
        names = {name: await self._own_name(name, secret, own) for name, secret in planned.items.items()}
        return _Plan(candidate, answer, names).made()

    async def _own_name(self, name: str, secret: str, own: Collection[str]) -> str:
        """``name``, or with a suffix where the keychain has another secret under it that this server did not bring."""
        if self._keychain is None:
            raise ConfigError(NO_KEYCHAIN)
        number, free = 1, name
        while free not in own and (there := await self._keychain.read(free)) is not None and there != secret:
            number += 1
            free = f"{name}-{number}"
        return free

    async def _put(self, name: str, secret: str, before: dict[str, str | None]) -> None:
        """Write an item, whose secret of ``before`` is noted first, and read it back. Raises ConfigError."""
        assert self._keychain is not None
        there = await self._keychain.read(name)
        if there == secret:
            return
        before[name] = there
        # Whoever is cancelled must not delete the item before the keychain, which nothing stops, has written it.
        await to_the_end(self._keychain.write(name, secret))
        if await self._keychain.read(name) != secret:
            raise ConfigError(f"the keychain does not give back what it was given as {name}; nothing was added")

    async def _put_back(self, before: Mapping[str, str | None]) -> None:
        for name, secret in before.items():
            try:
                if self._keychain is None:
                    return
                await (self._keychain.delete(name) if secret is None else self._keychain.write(name, secret))
            except ConfigError:  # what made the first writing fail, most likely
                continue

    def _is_stored(self, planned: PlannedEntry) -> bool:
        return read_servers(self._file).get(planned.name, {}).items() >= planned.table.items()

    def _write(self, candidate: ImportCandidate, planned: PlannedEntry) -> None:
        before = self._records.servers().get(planned.name)
        again = before is not None and candidate.status is not ImportStatus.NEW
        if planned.name in self._taken and not again:
            raise ConfigError(f"servers.{planned.name}: there is a server of this name already; give it another")

        def added(servers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
            if planned.name in servers and not again:
                raise ConfigError(f"servers.{planned.name}: there is a server of this name already; give it another")
            return {**servers, planned.name: {**_own_keys(servers.get(planned.name, {})), **planned.table}}

        origins = tuple(dict.fromkeys([candidate.found.origin, *candidate.others, *(before.origins if before else ())]))
        kept = tuple(dict.fromkeys([*planned.items, *(before.items if before and again else ())]))
        self._records.remember(
            ImportedServer(planned.name, _latest(origins), planned.table, candidate.content, planned.secret_keys, kept)
        )
        try:
            update_servers(self._file, added)
        except BaseException:
            self._records.restore(planned.name, before, without=kept)
            raise

    def _removed(self, name: str) -> tuple[str, ...]:
        if not remove_server(self._file, name):
            raise ConfigError(f"servers.{name} is not in {self._file}; entries of your own files are yours to delete")
        known = self._records.servers()
        self._records.forget(name)
        others = {item for server in known.values() if server.name != name for item in server.items}
        return tuple(item for item in known[name].items if item not in others) if name in known else ()


def _own_keys(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the user wrote into an entry that is replaced, except whether it starts by itself."""
    return {key: value for key, value in entry.items() if key not in IMPORTED_KEYS and value != "manual"}


def free_name(name: str, taken: Collection[str]) -> str:
    """``name``, or with the first suffix ``-2``, ``-3`` … that is not taken."""
    numbered = (f"{name[:59]}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(other for other in numbered if other not in taken)


class _Plan:
    """Makes the entry of one candidate: answers in place of inputs, references in place of secrets."""

    def __init__(
        self, candidate: ImportCandidate, answer: ImportAnswer, renamed: Mapping[str, str] | None = None
    ) -> None:
        self._candidate, self._answer, self._renamed = candidate, answer, renamed or {}
        self._items: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        """The values that were found, by the names of the variables that stand for them."""

    def made(self) -> PlannedEntry:
        candidate, answer = self._candidate, self._answer
        if len(candidate.secrets) > MOST_SECRETS:
            raise ConfigError(f"servers.{candidate.name}: it has more than {MOST_SECRETS} secrets, as no server has")
        lifted = [secret for secret in candidate.secrets if answer.place_of(secret.key) is not SecretPlace.ENTRY]
        table = with_references(candidate.table, lifted, self._reference)
        table = self._filled(table)
        self._refuse_grants(table)
        if candidate.found.disabled_there:
            table["enabled"] = False
        if not answer.looked_at:
            table["start"] = "manual"
        validated_server(candidate.name, table)
        given = [f"${{keyring:{name}}}" for name in self._items] + [f"${{{name}}}" for name in self._variables]
        arguments = tuple(
            f"args[{index}]" for index, text in enumerate(table.get("args", ())) if any(one in text for one in given)
        )
        keys = tuple(dict.fromkeys(secret.key for secret in lifted))
        return PlannedEntry(candidate.name, table, self._items, tuple(self._variables), arguments, keys)

    def _reference(self, secret: FoundSecret) -> str:
        if self._answer.place_of(secret.key) is not SecretPlace.ENVIRONMENT:
            return self._item(secret.item, secret.value)
        name = secret.variable or ""
        name = name if _VARIABLE.fullmatch(name) else f"{self._candidate.name}_{secret.item}".upper()
        return self._variable(name, secret.value)

    def _item(self, item: str, value: str | None) -> str:
        name = f"{self._candidate.name}.{item}"
        name = self._renamed.get(name, name)
        if value is not None:
            self._items[name] = value
        return f"${{keyring:{name}}}"

    def _variable(self, name: str, value: str = "") -> str:
        """A reference to a variable of this name, with a suffix where it stands for something else already."""
        name = _NO_VARIABLE.sub("_", name).lstrip("0123456789")
        numbered = (f"{name}_{number}" for number in range(2, len(self._variables) + 3))
        free = next(each for each in (name, *numbered) if self._variables.get(each, value) == value)
        self._variables[free] = value
        return f"${{{free}}}"

    def _filled(self, table: dict[str, Any]) -> dict[str, Any]:
        """Replace ``${input:ID}`` by the answers; optional texts without one are left out."""
        inputs = self._candidate.found.inputs
        given = {each.id: self._answer_to(each) for each in inputs}
        try:
            return fill_in(table, inputs, {key: text for key, text in given.items() if text is not None})
        except ConfigError as error:
            raise ConfigError(f"servers.{self._candidate.name}: {error.message}") from None

    def _answer_to(self, wanted: Input) -> str | None:
        """Return what replaces an input; None for nothing. Raises ConfigError."""
        item, variable = _UNFIT.sub("_", wanted.id), f"{self._candidate.name}_{wanted.id}".upper()
        if not self._answer.takes(wanted):
            return self._variable(variable)
        value = self._answer.inputs.get(wanted.id) or wanted.default
        if not value:
            if self._answer.open_inputs:
                return self._item(item, None) if wanted.secret else self._variable(variable)
            return None
        return self._item(item, value) if wanted.secret else literal(value)

    def _refuse_grants(self, table: Mapping[str, Any]) -> None:
        oauth = table.get("oauth")
        inner = [f"oauth.{key}" for key in users_oauth_keys(oauth)] if isinstance(oauth, Mapping) else []
        for key in (*(key for key in table if key not in IMPORTED_KEYS), *inner):
            raise ConfigError(f"servers.{self._candidate.name}.{key!a} is not taken from elsewhere; set it yourself")


def _grouped(servers: Iterable[FoundServer]) -> Iterator[Sequence[FoundServer]]:
    """The same server found in several places is one; with other variables, headers or settings it is another."""
    groups: dict[str, list[FoundServer]] = {}
    for server in servers:
        content = digest_of([_without_user_info(server.table), [each.id for each in server.inputs]])
        groups.setdefault(content, []).append(server)
    yield from groups.values()


def _is_from(known: ImportedServer, origin: Origin) -> bool:
    return any(_same_place(each, origin) for each in known.origins)


def _is_read_by_another(known: ImportedServer, origin: Origin) -> bool:
    """True for the very entry that another program's reader, with other variables perhaps, gave before."""
    same = (each for each in known.origins if _same_place(each, origin))
    return any(each.source != origin.source and each.digest == origin.digest for each in same)


def _same_place(one: Origin, other: Origin) -> bool:
    parts = ["place", "name"]
    if one.source == other.source or not os.path.isabs(one.place):  # several programs read the same file
        parts += ["source", "scope"]
    return all(as_utf8(getattr(one, part)) == as_utf8(getattr(other, part)) for part in parts)


def _looks_of(name: str) -> str:
    """A name without the differences that are easily missed."""
    return name.casefold().translate(_ALIKE).replace("rn", "m").replace("vv", "w")


_ALIKE: Final = str.maketrans("01i5", "olls", "-_.")


def _latest(origins: Sequence[Origin]) -> tuple[Origin, ...]:
    """Each place once, as it was seen last."""
    kept: list[Origin] = []
    for origin in origins:
        if not any(_same_place(each, origin) for each in kept):
            kept.append(origin)
    return tuple(kept)


def _gone(
    known: Mapping[str, ImportedServer], found: Sequence[FoundServer], places: Collection[str]
) -> Iterator[ImportedServer]:
    for server in known.values():
        if server.origins[0].place in places and not any(_is_from(server, each.origin) for each in found):
            yield server


def _changes(before: ImportedServer, table: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Compare what was written with what is found; a secret is equal to its reference."""
    shown = masked(table)
    old, new = dict(_flat(before.table)), dict(_flat(shown))
    for key in dict.fromkeys([*old, *new]):
        if key in before.secrets and key in new and key in old:
            continue
        if (key in ("enabled", "start") and key not in new) or "${input:" in new.get(key, ""):
            continue
        if old.get(key) != new.get(key):
            yield FieldChange(key, old.get(key), new.get(key))


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _flat(each, f"{key}[{index}]")
    else:
        yield key, str(value)


def _dumped(server: ServerConfig) -> dict[str, Any]:
    return {"command": server.command, "args": list(server.args), "cwd": server.cwd, "url": server.url}


def _what_runs(table: Mapping[str, Any]) -> object:
    """Its program or address, with all references and secrets alike."""
    shown = masked({key: table[key] for key in ("command", "args", "cwd", "url") if table.get(key)})
    return digest_of(_without_references(shown))


def _without_references(value: Any) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub("•••", value)
    if isinstance(value, Mapping):
        return {key: _without_references(each) for key, each in value.items()}
    return [_without_references(each) for each in value] if isinstance(value, list) else value


def _without_user_info(table: Mapping[str, Any]) -> dict[str, Any]:
    """An address with a user name or password takes no references, so they go into the header that they mean."""
    url = table.get("url")
    made = dict(table)
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:  # validation reports it
        parts = None
    if parts is None or "@" not in parts.netloc:
        return made
    user, _, host = parts.netloc.rpartition("@")
    headers = table.get("http_headers")
    given = dict(headers) if isinstance(headers, Mapping) else {}
    made["url"] = parts._replace(netloc=host).geturl()
    if not any(str(name).lower() == "authorization" for name in given) and "${" not in user:
        name, _, password = user.partition(":")
        basic = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        made["http_headers"] = {**given, "Authorization": f"Basic {basic}"}
    return made
