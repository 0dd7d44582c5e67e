"""The URIs of skills and their files: read strictly, compared in a normal form, never resolved or fetched.

Specification: ext-skills skills (skill URIs).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from mcphost.errors import InvalidResult

SKILL_FILE: Final = "SKILL.md"
"""The name of the file that makes a folder a skill."""

URI_CHARACTERS: Final = 2048

_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>/.*)", re.DOTALL)
_UNFIT: Final = re.compile(r'[\x00-\x20\x7f-\x9f\\<>"^`{|}\ud800-\udfff]')
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SEPARATORS: Final = re.compile(r"%(?:2f|5c|00)", re.IGNORECASE)
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PORTS: Final = {"http": ":80", "https": ":443"}


class SkillUri(NamedTuple):
    """A URI in its normal form: equal exactly if two URIs name the same."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.folder_text}{self.segments[-1]}"

    @property
    def folder_text(self) -> str:
        """The URI of its folder, with the slash at the end."""
        folders = "".join(f"{each}/" for each in self.segments[:-1])
        return f"{self.scheme}://{self.authority}/{folders}"

    @property
    def folders(self) -> tuple[str, ...]:
        """The path of its folder; the authority is the first step of it."""
        return (self.authority, *self.segments[:-1]) if self.authority else self.segments[:-1]

    @property
    def is_skill_file(self) -> bool:
        return self.segments[-1] == SKILL_FILE

    def path_in(self, root: SkillUri) -> str | None:
        """Its path within the folder of ``root``; None outside."""
        steps = root.segments[:-1]
        if self[:2] != root[:2] or self.segments[: len(steps)] != steps:
            return None
        return "/".join(self.segments[len(steps) :])


@lru_cache(maxsize=4096)
def read_skill_uri(uri: str) -> SkillUri:
    """Read a URI of a skill's file. Raises InvalidResult with why it is none, as a clause that begins with a verb."""
    _check_text(uri)
    found = _URI.fullmatch(uri)
    if found is None:
        raise InvalidResult("has no scheme with a path behind it")
    scheme = found["scheme"].lower()
    if scheme == "file":
        raise InvalidResult("names a file of this machine")
    authority = _normal(found["authority"] or "").lower().removesuffix(_PORTS.get(scheme, "\0"))
    if "@" in authority:
        raise InvalidResult("holds a user name or password")
    segments = tuple(_normal(each) for each in found["path"].split("/")[1:])
    if not all(segments):
        raise InvalidResult("has an empty step in its path")
    if any(each in (".", "..") for each in (authority, *segments)):
        raise InvalidResult("has a step in its path that leads elsewhere ('.' or '..')")
    return SkillUri(scheme, authority, segments)


def _check_text(uri: str) -> None:
    if len(uri) > URI_CHARACTERS:
        raise InvalidResult(f"has {len(uri)} characters; {URI_CHARACTERS} are the most")
    if _UNFIT.search(uri):
        raise InvalidResult("holds characters that no URI may hold")
    for mark, name in (("?", "a query"), ("#", "a fragment")):
        if mark in uri:
            raise InvalidResult(f"has {name}")
    if _PERCENT.search(uri):
        raise InvalidResult("has a percent sign without two hexadecimal digits")
    if _SEPARATORS.search(uri):
        raise InvalidResult("hides a separator behind a percent sign")


def same_skill_uri(one: str, other: str) -> bool:
    """True if both are URIs of a skill's file and name the same."""
    try:
        return read_skill_uri(one) == read_skill_uri(other)
    except InvalidResult:
        return False


def looks_like(path: str) -> str:
    """Equal for paths that differ in case or in compatible characters alone, which some file systems take for one."""
    if path.isascii() and "%" not in path:
        return path.lower()
    return unicodedata.normalize("NFKC", _ESCAPES.sub(_decoded, path)).casefold()


def resolve(root: SkillUri, path: str) -> SkillUri:
    """The file that a relative ``path`` names within the folder of ``root``. Raises InvalidResult.

    ``./`` at the start is dropped; a path that leads out of the folder is refused, also where it would come back.
    """
    here = path.startswith("./")  # what follows is a path even where it looks like a scheme
    path = path.removeprefix("./")
    if path.startswith("/") or (not here and re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path)):
        raise InvalidResult("is not a path within the skill's folder")
    return read_skill_uri(root.folder_text + path.replace(" ", "%20"))


def _normal(part: str) -> str:
    """Percent signs only where they must be, with capital digits."""
    if part.isascii() and "%" not in part:
        return part
    encoded = "".join(each if each.isascii() else _escaped(each.encode()) for each in part)
    return _ESCAPES.sub(lambda run: _escaped(bytes.fromhex(run[0].replace("%", ""))), encoded)


def _escaped(data: bytes) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)


def _decoded(run: re.Match[str]) -> str:
    return bytes.fromhex(run[0].replace("%", "")).decode("utf-8", "replace")
