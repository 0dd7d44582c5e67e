"""Saved calls: reads and changes ``calls.toml``, and keeps secrets out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcphost.config import Config, Reference, references
from mcphost.config.calls import CallsFile, LoadedCalls, SavedCall, saved_arguments
from mcphost.config.references import MalformedReferenceError, parse
from mcphost.errors import ConfigError
from mcphost.host.tool_calls.call import ArgumentReferences
from mcphost.protocol.forms.secrets import looks_secret
from mcphost.redaction import MASK, Mask, token_spans

_NO_FILE: Final = "this run keeps no saved calls"


class SavedCallService:
    """``open_file`` returns the file that belongs to a configuration."""

    def __init__(
        self, open_file: Callable[[Config], CallsFile] | None, config: Callable[[], Config], mask: Mask
    ) -> None:
        self._open_file, self._config, self._mask = open_file, config, mask
        self._loaded = LoadedCalls()
        self._version: object = None

    @property
    def path(self) -> Path | None:
        """The file, there or not; None if this run has none."""
        return None if self._file is None else self._file.path

    def file_at(self, path: Path, *, own: bool) -> CallsFile:
        """Another file of saved calls. Raises ConfigError."""
        if self._file is None:
            raise ConfigError(_NO_FILE)
        return self._file.at(path, own=own)

    @property
    def _file(self) -> CallsFile | None:
        return None if self._open_file is None else self._open_file(self._config())

    @property
    def known(self) -> LoadedCalls:
        """The saved calls as they were loaded last."""
        return self._loaded

    async def load(self) -> LoadedCalls:
        """The saved calls; the file is read where it changed. Raises ConfigError."""
        file = self._file
        if file is not None and (version := (file.path, file.version())) != self._version:
            self._loaded = await asyncio.to_thread(file.read)
            self._version = version
        return self._loaded

    async def save(self, call: SavedCall, *, replace: bool = False) -> None:
        """Write a call down; with ``replace`` in place of the one of its name. Raises ConfigError."""
        if self._file is None:
            raise ConfigError(_NO_FILE)
        await asyncio.to_thread(self._file.save, call, replace=replace)

    async def remove(self, name: str) -> None:
        """Take a call out of the file. Raises ConfigError."""
        if self._file is not None:
            await asyncio.to_thread(self._file.remove, name)

    def references(self, call: SavedCall) -> ArgumentReferences | None:
        """The references in the arguments of a call; None if it has none."""
        return None if self._file is None else references_of(call, self._file, self._config)

    def storable(
        self, arguments: Mapping[str, Any], schema: Any, references: ArgumentReferences | None = None
    ) -> StorableArguments:
        """Return arguments without secrets, as the file may have them; ``references`` came with them and stay."""
        from mcphost.protocol.forms.form import read_form  # late: few runs save a call

        names = frozenset(field.name for field in read_form(schema).leaves() if field.secret_looking)
        return _Storing(self._mask, names, set() if references is None else set(references.places)).store(arguments)


def references_of(call: SavedCall, file: CallsFile, config: Callable[[], Config]) -> ArgumentReferences | None:
    """The references in the arguments of a call of this file; None if it has none."""
    if not (referring := call.referring):
        return None
    texts = dict.fromkeys(each.text for _, text in sorted(referring) for each in references(text))

    async def resolve(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await asyncio.to_thread(file.resolve, config(), call, arguments)

    return ArgumentReferences(tuple(texts), referring, resolve)


def resource_uri(call: SavedCall, arguments: Mapping[str, str]) -> str:
    """The URI of a saved resource, or the one that its template becomes with ``arguments``. Raises InvalidResult."""
    from mcphost.protocol.uri_templates import UriTemplate  # late: few calls have a template

    return UriTemplate.read(call.target).expand_texts(arguments) if arguments else call.target


class StorableArguments(NamedTuple):
    arguments: dict[str, Any]
    """As the file has them."""
    left_out: tuple[str, ...]
    """Where secrets were: the names of arguments, and the keys in them."""


class _Secret:
    """Takes the place of a secret."""


class _Storing:
    """Leaves out what is masked, what looks like a token, and the fields of ``names`` and of names that look secret."""

    def __init__(self, mask: Mask, names: frozenset[str], places: set[tuple[str, str]]) -> None:
        self._mask, self._names, self._places = mask, names, places
        self._argument = ""
        self._left_out: list[str] = []

    def store(self, arguments: Mapping[str, Any]) -> StorableArguments:
        kept: dict[str, Any] = {}
        for self._argument, value in arguments.items():
            found = self._member(self._argument, value, self._argument)
            if found is not _Secret:
                kept[self._argument] = found
        return StorableArguments(saved_arguments(kept, frozenset(self._places)), tuple(self._left_out))

    def _member(self, key: str, value: Any, where: str) -> Any:
        secret = key in self._names or looks_secret(key)
        found = _Secret if self._mask(key) != key else self._without(value, where, secret=secret)
        if found is _Secret:
            self._left_out.append(where)
        return found

    def _without(self, value: Any, where: str, *, secret: bool) -> Any:
        """A value without its secrets; `_Secret` in place of one, and of a list that holds one."""
        if isinstance(value, Mapping):
            members = {key: self._member(key, each, f"{where}.{key}") for key, each in value.items()}
            return {key: each for key, each in members.items() if each is not _Secret}
        if isinstance(value, list):
            items = [self._without(each, where, secret=secret) for each in value]
            return _Secret if _Secret in items else items
        if value in (None, "", True, False) or (self._argument, value) in self._places:
            return value
        if secret and isinstance(value, str) and _is_reference(value):
            self._places.add((self._argument, value))
            return value
        text = str(value)  # a call of an earlier run comes with its secrets masked
        hidden = MASK in text or self._mask(text) != text or any(token_spans(text))
        return _Secret if secret or hidden else value


def _is_reference(text: str) -> bool:
    """True if this is one reference and nothing else."""
    with suppress(MalformedReferenceError):
        return [type(piece) for piece in parse(text)] == [Reference]
    return False
