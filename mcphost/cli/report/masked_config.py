"""The configuration as names: its keys, with every value masked that is not one of mcphost's own words or a number."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcphost.cli.doctor.programs import LAUNCHERS
from mcphost.config import Reference
from mcphost.config.files import read_regular, text_of
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.config.problems import shown_path
from mcphost.config.references import MalformedReferenceError, parse
from mcphost.config.schema import config_schema
from mcphost.errors import ConfigError
from mcphost.json_values import KeyPath, as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.redaction import MASK, MIN_SECRET, looks_secret

SHOWN_COMMANDS: Final = frozenset({*LAUNCHERS, "bun", "bunx", "deno", "npm", "pipx", "pnpm", "python", "python3", "uv"})
"""Programs whose names say nothing of their user."""

_PATH: Final = re.compile(r"(?:~|\.{0,2})/")

_PLAIN_WORD: Final = re.compile(r"[A-Za-z]+")

_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class MaskedFile:
    """One file: ``lines`` as ``key = value``, and the ``values`` that must not be anywhere else either."""

    path: Path
    lines: tuple[str, ...]
    values: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Paths that must not appear there either, except within longer words, where they are other paths."""


def masked_files(paths: Iterable[Path]) -> list[MaskedFile]:
    """The names in configuration files. Of a file that is no TOML, only that."""
    schema = config_schema()
    return [_masked_file(path, schema) for path in paths]


def _masked_file(path: Path, schema: Mapping[str, Any]) -> MaskedFile:
    try:
        data = tomllib.loads(text_of(read_regular(path, MAX_FILE_BYTES)))
    except (ConfigError, OSError, ValueError, RecursionError):
        return MaskedFile(path, ("(cannot be read as TOML; nothing of it is shown)",))
    leaves = list(_leaves(data, schema, schema["$defs"], ()))
    lines = [f"{shown_path(keys)} = {_shown(keys, value, known)}" for keys, value, known in leaves]
    texts = [each for keys, value, known in leaves for each in _secret_texts(keys, value, known)]
    values = tuple(text for text, is_path in texts if not is_path)
    return MaskedFile(path, tuple(lines), values, tuple(text for text, is_path in texts if is_path))


def _leaves(
    value: Any, known: Mapping[str, Any], tables: Mapping[str, Any], keys: KeyPath
) -> Iterator[tuple[KeyPath, Any, Mapping[str, Any]]]:
    """Each value with its keys, and what the JSON Schema says of it; empty where the key is unknown."""
    if isinstance(value, dict):
        for name, each in value.items():
            further = known.get("additionalProperties")
            schema = known.get("properties", {}).get(name) or as_dict(further)
            yield from _leaves(each, _resolved(schema, tables), tables, (*keys, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, _resolved(known.get("items", {}), tables), tables, (*keys, index))
    else:
        yield keys, value, known


def _resolved(schema: Mapping[str, Any], tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table that a schema refers to, or may; else the schema."""
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            found: Mapping[str, Any] = tables[each["$ref"].rpartition("/")[2]]
            return found
    return schema


def _shown(keys: KeyPath, value: Any, known: Mapping[str, Any]) -> str:
    if isinstance(value, bool) or (isinstance(value, int | float) and known.get("type") in ("integer", "number")):
        return str(value).lower()
    if isinstance(value, str) and _is_ours(keys, value, known):
        return f'"{value}"'
    return f'"{_masked(value)}"' if isinstance(value, str) else MASK


def _is_ours(keys: KeyPath, value: str, known: Mapping[str, Any]) -> bool:
    return value in known.get("enum", (known.get("const"),)) or (keys[-1] == "command" and value in SHOWN_COMMANDS)


def _masked(text: str) -> str:
    """A text with its references, which are names, and nothing else of it."""
    try:
        pieces = parse(text)
    except MalformedReferenceError:
        return MASK
    return "".join(_reference(piece) if isinstance(piece, Reference) else MASK for piece in pieces)


def _reference(reference: Reference) -> str:
    if reference.kind == "file":
        return f"${{file:{MASK}}}"
    if reference.kind == "keyring":
        return f"${{keyring:{reference.name}}}"
    return f"${{{reference.name}{'' if reference.default is None else f':-{MASK}'}}}"


def _secret_texts(keys: KeyPath, value: Any, known: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The parts of a value that must not appear in a report, each with True if it is a path.

    These are the text beside references and its words; a path is not split at blanks.
    """
    if not isinstance(value, str) or _is_ours(keys, value, known):
        return
    is_secret = any(looks_secret(str(key)) for key in keys)
    for part in _REFERENCE.split(value):
        for text in dict.fromkeys((part, *(word for each in part.split("=") for word in _words(each)))):
            is_path = not is_secret and _PATH.match(text) is not None
            text = text.rstrip("/") if is_path else text
            if len(text) >= MIN_SECRET and (is_secret or not _PLAIN_WORD.fullmatch(text)):
                yield text, is_path


def _words(text: str) -> Sequence[str]:
    return [text] if _PATH.match(text) else text.split()
