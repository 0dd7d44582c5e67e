"""Skills as servers list them: read strictly, each fault a finding with a name.

A skill with a finding that refuses it is listed and shown, but none of its files is read or given to a model.

Specification: ext-skills skills (the Skill type, resources, limits, skill URIs).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.json_values import as_dict, as_text, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Wire, kind_of
from mcphost.protocol.skill_uris import SKILL_FILE, SkillUri, looks_like, read_skill_uri

FILES: Final = 512
"""Files of one skill; hosts must take as many."""

SKILL_BYTES: Final = 16 << 20
"""Bytes of all files of one skill; hosts must take as many."""

MOST_BYTES: Final = (1 << 53) - 1
"""The largest size that all readers of JSON take for the same number."""

FRONTMATTER_CHARACTERS: Final = 64 << 10
FRONTMATTER_DEPTH: Final = 64

DYNAMIC: Final = "dynamic"
"""In place of the files of a skill whose server vouches for none."""

_INERT: Final = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""The fields of a frontmatter that ask for nothing."""

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARACTERS: Final = 64
_DESCRIPTION_CHARACTERS: Final = 1024
_COMPATIBILITY_CHARACTERS: Final = 500
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_QUOTED: Final = 120
"""Characters of a server's text in a finding."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill as its entry lists it."""

    uri: str
    digest: str
    """``sha256:`` and 64 digits."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class SkillFinding:
    """A fault of an entry. ``words`` is a sentence, not safe to show."""

    code: str
    words: str
    refuses: bool = True
    """True if the skill must not be loaded."""


class Skill(Wire):
    """A skill as listed. ``files`` and ``findings`` are read from the entry when they are first needed."""

    uri: str = Field(min_length=1)
    """The URI of its SKILL.md, as the server spells it."""
    frontmatter: Any = None
    resources: Any = None

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"frontmatter", "resources"})

    @property
    def name(self) -> str:
        """The name for people, unique nowhere; the wire uses ``uri``. Not safe to show."""
        return as_text(as_dict(self.frontmatter).get("name"))

    @property
    def label(self) -> str:
        """The name, else the URI; not safe to show."""
        return self.name or self.uri

    @property
    def description(self) -> str:
        return as_text(as_dict(self.frontmatter).get("description"))

    @property
    def ignored(self) -> tuple[str, ...]:
        """The fields of its frontmatter that ask for something, which no skill gets; not safe to show."""
        return tuple(field for field in as_dict(self.frontmatter) if field not in _INERT)

    @property
    def dynamic(self) -> bool:
        """True if the server vouches for no file: the skill is never approved for good."""
        return bool(self.resources == DYNAMIC)

    @property
    def key(self) -> str:
        """The URI in its normal form, equal for all spellings; as it came where it has none."""
        return self.uri if self.address is None else self.address.text

    @cached_property
    def address(self) -> SkillUri | None:
        """The URI as it is compared; None where it is not valid."""
        try:
            return read_skill_uri(self.uri)
        except InvalidResult:
            return None

    @property
    def path(self) -> str:
        """The path of its folder, which distinguishes skills of one name; not safe to show."""
        return self.uri if self.address is None else "/".join(self.address.folders)

    @cached_property
    def files(self) -> tuple[SkillFile, ...]:
        """The files of the entry that can be read, SKILL.md among them; none of a dynamic skill."""
        return tuple(file for item in self._listed[:FILES] if isinstance(file := _read_file(item), SkillFile))

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    @property
    def nested(self) -> tuple[SkillFile, ...]:
        """The SKILL.md files within its folder, each of a skill of its own."""
        others = (file for file in self.files if file.uri.endswith(f"/{SKILL_FILE}"))
        return tuple(file for file in others if self.path_of(file.uri) != SKILL_FILE)

    @cached_property
    def findings(self) -> tuple[SkillFinding, ...]:
        """The faults of the entry, those of its own members first."""
        return (*self._faults_of_uri(), *self._faults_of_frontmatter(), *self._faults_of_files())

    @property
    def refusal(self) -> str:
        """Why it must not be loaded, as a sentence that is not safe to show; empty for a sound one."""
        return next((each.words for each in self.findings if each.refuses), "")

    def file(self, uri: str) -> SkillFile | None:
        """The file of this URI, however it is spelled; None if the entry does not list it."""
        try:
            return self._by_address.get(read_skill_uri(uri))
        except InvalidResult:
            return None

    def file_at(self, path: str) -> SkillFile | None:
        """The file of this path in the folder, as `path_of` writes it, also where it could be taken for a URI."""
        return next((each for each in self.files if self.path_of(each.uri) == path), None)

    def path_of(self, uri: str) -> str:
        """The path of a file within the skill's folder; the URI itself where it is outside."""
        try:
            found = None if self.address is None else read_skill_uri(uri).path_in(self.address)
        except InvalidResult:
            return uri
        return found or uri

    @property
    def manifest(self) -> Mapping[str, str]:
        """The digests by URI in its normal form: what an approval is bound to."""
        return {address.text: file.digest for address, file in self._by_address.items()}

    @cached_property
    def _by_address(self) -> Mapping[SkillUri, SkillFile]:
        return {address: file for file in self.files if isinstance(address := _address_of(file.uri), SkillUri)}

    @property
    def _listed(self) -> list[Any]:
        return self.resources if type(self.resources) is list else []

    def _faults_of_uri(self) -> Iterator[SkillFinding]:
        fault = _address_of(self.uri)
        if isinstance(fault, str):
            yield SkillFinding("malformed-uri", f"Its URI {_quoted(self.uri)} {fault}.")
        elif not fault.is_skill_file:
            yield SkillFinding("malformed-uri", f"Its URI {_quoted(self.uri)} does not end with /{SKILL_FILE}.")

    def _faults_of_frontmatter(self) -> Iterator[SkillFinding]:
        given = self.frontmatter
        if type(given) is not dict:
            said = "no frontmatter" if given is None else f"{kind_of(given)} as frontmatter"
            yield SkillFinding("missing-frontmatter", f"The entry has {said}.")
            return
        yield from self._faults_of_name(given)
        yield from _faults_of_fields(given)
        if _longer(given, FRONTMATTER_CHARACTERS):
            most = f"{FRONTMATTER_CHARACTERS:,}"
            yield SkillFinding("long-frontmatter", f"Its frontmatter has more than {most} characters.")
        elif _deeper(given, FRONTMATTER_DEPTH):
            yield SkillFinding("deep-frontmatter", f"Its frontmatter is nested deeper than {FRONTMATTER_DEPTH} levels.")
        elif len(canonical(given)) > FRONTMATTER_CHARACTERS:
            most = f"{FRONTMATTER_CHARACTERS:,}"
            yield SkillFinding("long-frontmatter", f"Its frontmatter has more than {most} characters.")

    def _faults_of_name(self, frontmatter: Mapping[str, Any]) -> Iterator[SkillFinding]:
        name = frontmatter.get("name")
        if not isinstance(name, str) or not name:
            yield SkillFinding("missing-name", "Its frontmatter has no name.")
            return
        if len(name) > _NAME_CHARACTERS or not _NAME.fullmatch(name):
            rule = f"a name has at most {_NAME_CHARACTERS} of a-z, 0-9 and single hyphens between them"
            yield SkillFinding("malformed-name", f"Its name {_quoted(name)} is not valid: {rule}.")
        folder = self.address.folders[-1:] if self.address else ()
        if folder and folder[0] != name:
            words = f"Its name {_quoted(name)} is not that of its folder, {_quoted(folder[0])}."
            yield SkillFinding("name-path-mismatch", words)

    def _faults_of_files(self) -> Iterator[SkillFinding]:
        given = self.resources
        if self.dynamic:
            words = "Its server vouches for no file, so that a change cannot be noticed."
            yield SkillFinding("dynamic-resources", words, refuses=False)
            return
        if type(given) is not list:
            said = f"{_quoted(given)}" if isinstance(given, str) else kind_of(given)
            held = f"{said} in place of its files" if "resources" in self.received else "no list of files"
            yield SkillFinding("missing-resources", f"The entry has {held}.")
            return
        if len(given) > FILES:
            yield SkillFinding("too-many-files", f"It has {len(given):,} files; at most {FILES} are taken.")
            return
        yield from _faults_of_items(given)
        yield from self._faults_of_manifest()

    def _faults_of_manifest(self) -> Iterator[SkillFinding]:
        if self.size > SKILL_BYTES:
            words = f"Its files have {self.size:,} bytes in all; at most {SKILL_BYTES:,} are taken."
            yield SkillFinding("too-large", words)
        root, addresses = self.address, list[SkillUri]()
        for file in self.files:
            address = _address_of(file.uri)
            if isinstance(address, str):
                yield SkillFinding("malformed-file-uri", f"The URI {_quoted(file.uri)} of a file {address}.")
            elif root is not None and address.path_in(root) is None:
                yield SkillFinding("file-outside-folder", f"The file {_quoted(file.uri)} is not in the skill's folder.")
            else:
                addresses.append(address)
        for address, times in Counter(addresses).items():
            if times > 1:
                yield SkillFinding("duplicate-file", f"The file {_quoted(address.text)} is listed {times} times.")
        alike = Counter(looks_like(each.text) for each in set(addresses))
        for text, times in alike.items():
            if times > 1:
                words = f"{times} files are called {_quoted(text)}, and differ in case or similar characters alone."
                yield SkillFinding("look-alike-files", words)
        if root is not None and root not in addresses:
            yield SkillFinding("missing-self", f"The entry does not list its own {SKILL_FILE}.")


def normal_uri(uri: str) -> str:
    """A URI of a skill in its normal form; as it is where it is not valid."""
    try:
        return read_skill_uri(uri).text
    except InvalidResult:
        return uri


def _faults_of_items(items: list[Any]) -> Iterator[SkillFinding]:
    for item in items:
        fault = _read_file(item)
        if isinstance(fault, SkillFinding):
            yield fault


def _read_file(item: object) -> SkillFile | SkillFinding:
    uri = item.get("uri") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(uri, str) or not uri:
        return SkillFinding("malformed-file", f"A file of the entry is {_shown(item)}, without a URI.")
    digest, size = item.get("digest"), item.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        rule = "it must be sha256: and 64 small hexadecimal digits"
        return SkillFinding("malformed-digest", f"The digest of {_quoted(uri)} is {_shown(digest)}; {rule}.")
    if type(size) is not int or not 0 <= size <= MOST_BYTES:
        rule = f"it must be a number of bytes, at most {MOST_BYTES:,}"
        return SkillFinding("malformed-size", f"The size of {_quoted(uri)} is {_shown(size)}; {rule}.")
    return SkillFile(uri, digest, size)


def _faults_of_fields(given: Mapping[str, Any]) -> Iterator[SkillFinding]:
    description = given.get("description")
    if not isinstance(description, str) or not description.strip():
        yield SkillFinding("missing-description", "Its frontmatter has no description.")
    elif len(description) > _DESCRIPTION_CHARACTERS:
        words = f"Its description has {len(description):,} characters; {_DESCRIPTION_CHARACTERS:,} are the most."
        yield SkillFinding("long-description", words, refuses=False)
    for field, fits in _FIELDS.items():
        if field in given and not fits(given[field]):
            yield SkillFinding(f"malformed-{field}", f"Its {field} is not as the format has it.", refuses=False)


def _texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


_FIELDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "license": lambda value: isinstance(value, str),
    "compatibility": lambda value: isinstance(value, str) and len(value) <= _COMPATIBILITY_CHARACTERS,
    "metadata": _texts,
    "allowed-tools": lambda value: isinstance(value, str),
}
"""The further fields of the format; none of them grants anything."""


def _address_of(uri: str) -> SkillUri | str:
    """The URI as it is compared, or why it is not valid, as a clause."""
    try:
        return read_skill_uri(uri)
    except InvalidResult as error:
        return str(error)


def _deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value)
    return False


def _longer(value: object, most: int) -> bool:
    """True if a value certainly has more characters; it stops counting there, whatever the whole is long."""
    left, waiting = most, [iter([value])]
    while waiting:
        for each in waiting[-1]:
            left -= len(each) if isinstance(each, str) else 1
            if left < 0:
                return True
            if isinstance(each, dict):
                waiting += [iter(each), iter(each.values())]
                break
            if isinstance(each, list):
                waiting.append(iter(each))
                break
        else:
            waiting.pop()
    return False


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return str(value)[:_QUOTED] if isinstance(value, int | float) and not isinstance(value, bool) else kind_of(value)


def counted_files(count: int) -> str:
    """Such as ``1 file`` and ``12 files``."""
    return "1 file" if count == 1 else f"{count:,} files"
