"""A server as it was found elsewhere, on its way into ``servers.toml``."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a server was found; what a later import compares with."""

    source: str
    """A host's id, such as ``claude-code``, else ``registry``, ``server.json``, ``card``, ``bundle``, ``link``,
    ``command line``, or ``file`` or ``paste`` where the shape does not tell the host."""
    place: str
    """The path of the file, or the address. It may hold anything: show it safely, and never a link's payload."""
    name: str
    """The name of the server there."""
    digest: str
    """The SHA-256 (hex) of its entry there; see `digest_of`. For a bundle, that of its bytes."""
    scope: str = ""
    """Which part of the place: ``project /home/ada/app``, ``profile work``; empty where there is only one."""


@dataclass(frozen=True, slots=True)
class Input:
    """A value that only the user can give. `FoundServer.table` has it as ``${input:ID}``."""

    id: str
    description: str = ""
    secret: bool = False
    required: bool = True
    default: str | None = None
    choices: tuple[str, ...] = ()
    several: bool = False
    """True if it takes several values, one a line; its word in ``args`` is then repeated for each."""
    flag: str = ""
    """The word of ``args`` right before its own, such as ``--port``: left out and repeated together with it."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A key of the entry there that was left out or translated, and why."""

    key: str
    reason: str
    """A clause without a full stop, such as ``approvals of other programs are not taken over``."""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server found elsewhere, translated to a ``[servers.NAME]`` table that was not validated yet.

    References in the table are those of mcphost's configuration, and ``${input:ID}``, which the configuration refuses:
    an input without an answer cannot slip in. ``refusal`` says why it cannot be imported; the table is then empty.
    """

    name: str
    """A legal name for ``[servers.NAME]``, made of the name there."""
    origin: Origin
    table: Mapping[str, Any]
    inputs: tuple[Input, ...] = ()
    notes: tuple[ImportNote, ...] = ()
    refusal: str = ""
    description: str = ""
    """Its description of itself; may be empty."""
    disabled_there: bool = False


_LEGAL = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.]+")


def legal_name(text: str, fallback: str = "server") -> str:
    """Make a legal name for ``[servers.NAME]`` of any text; ``fallback`` where nothing of it is left."""
    if _LEGAL.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKD", text[:1000]).encode("ascii", "ignore").decode()
    return _ILLEGAL.sub("-", plain).strip("-.")[:64].rstrip("-.") or fallback


def digest_of(entry: object) -> str:
    """The SHA-256 (hex) of an entry as parsed; the order of keys does not count."""
    text = json.dumps(entry, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
