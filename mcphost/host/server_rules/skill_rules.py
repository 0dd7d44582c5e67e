"""Rules about skills: their declaration, list and entries, and folders. No file of a skill is read for them.

Specification: ext-skills skills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.errors import InvalidResult
from mcphost.host.server_rules.outcomes import Rule, answered, quoted, with_code
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, Unjudged
from mcphost.json_values import as_dict, as_text, canonical, dicts_in
from mcphost.protocol.display import show_line
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.revisions import DIRECTORY_READ
from mcphost.protocol.models.skills import Skill

SKILLS: Final = "skills/list"

FOLDER_TYPE: Final = "inode/directory"

RESERVED: Final = "io.modelcontextprotocol/"
"""The start of keys in a skill's metadata that extensions may define."""

FINDING: Final = 200
"""Characters of a finding in a clause."""

ENTRY: Final = ("uri", "frontmatter", "resources")
"""Members that the list and ``skills/get`` give alike."""

HINTS: Final = ("resultType", "ttlMs", "cacheScope")


def _declaration(seen: Sighting) -> Iterator[str]:
    extensions = as_dict(seen.capabilities.get("extensions"))
    if (settings := extensions.get(SKILLS_EXTENSION)) is None:
        raise Unjudged(f"the server does not declare {SKILLS_EXTENSION}")
    if not isinstance(settings, dict):
        yield f"it is {quoted(settings)}"
    elif not isinstance(given := settings.get(DIRECTORY_READ, False), bool):
        yield f"{DIRECTORY_READ} is {quoted(given)}"


def _with_resources(seen: Sighting) -> Iterator[str]:
    if not isinstance(given := seen.capabilities.get("resources"), dict):
        yield f"resources is {quoted(given)}"


def _listed(seen: Sighting) -> Iterator[str]:
    pages = seen.pages.get(SKILLS, [])
    if not pages:
        raise Unjudged(f"{SKILLS} was not sent")
    outcome = pages[0].outcome()
    if pages[0].result is None:
        yield f"it got {outcome}"
    results = [page.complete for page in pages if page.complete is not None]
    yield from (f"skills is {quoted(given)}" for each in results if not isinstance(given := each.get("skills"), list))


# Entries


def _entries(seen: Sighting) -> Iterator[tuple[str, Skill | None]]:
    """The label of each entry, and the entry if it has a URI."""
    for item in seen.raw_items(SKILLS):
        try:
            skill = Skill.read(item)
        except InvalidResult:
            yield quoted(as_dict(item).get("uri")), None
        else:
            yield quoted(skill.uri), skill


def _sound(*codes: str) -> Rule:
    """No entry has one of these findings (`mcphost.protocol.models.skills`)."""

    def rule(seen: Sighting) -> Iterator[str]:
        for label, skill in _entries(seen):
            for finding in () if skill is None else skill.findings:
                if finding.code in codes:
                    yield f"{label}: {show_line(finding.words.rstrip('.'), FINDING)}"

    return rule


def _with_uri(seen: Sighting) -> Iterator[str]:
    yield from (f"the uri of an entry is {label}" for label, skill in _entries(seen) if skill is None)
    yield from _sound("malformed-uri")(seen)


def _once(seen: Sighting) -> Iterator[str]:
    found = Counter(skill.key for _, skill in _entries(seen) if skill is not None)
    yield from (f"{quoted(uri)} is there {count} times" for uri, count in found.items() if count > 1)


def _unique_names(seen: Sighting) -> Iterator[str]:
    skills = {skill.key: skill.name for _, skill in _entries(seen) if skill is not None and skill.name}
    for name, count in Counter(skills.values()).items():
        if count > 1:
            yield f"{count} are called {quoted(name)}"


def _scheme(seen: Sighting) -> Iterator[str]:
    for label, skill in _entries(seen):
        if skill is not None and not skill.uri.lower().startswith("skill:"):
            yield label


def _reserved(seen: Sighting) -> Iterator[str]:
    for label, skill in _entries(seen):
        metadata = as_dict(as_dict(skill.frontmatter).get("metadata")) if skill is not None else {}
        yield from (f"{label}: {quoted(key)}" for key in metadata if key.startswith(RESERVED))


# skills/get


def _got(seen: Sighting) -> tuple[ProbeExchange, Mapping[str, Any]]:
    """The answer about a listed skill, and the entry in it. Raises Unjudged."""
    exchange = answered(seen, "skill")
    if exchange.complete is None:
        raise Unjudged(f"skills/get got {exchange.outcome()}")
    return exchange, as_dict(exchange.complete.get("skill"))


def _gets(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("skill")
    outcome, asked = exchange.outcome(), as_dict(exchange.sent.get("params")).get("uri")
    if exchange.complete is None:
        yield f"{quoted(asked)} got {outcome}"
    elif not isinstance(skill := exchange.complete.get("skill"), dict):
        yield f"skill is {quoted(skill)}"
    elif skill.get("uri") != asked:
        yield f"{quoted(asked)} got {quoted(skill.get('uri'))}"


def _alike(seen: Sighting) -> Iterator[str]:
    _, skill = _got(seen)
    for item in seen.items(SKILLS):
        if item.get("uri") == skill.get("uri"):
            for member in ENTRY:
                if canonical(item.get(member)) != canonical(skill.get(member)):
                    yield f"{quoted(skill.get('uri'))}: {member} differs"
            return
    raise Unjudged("skills/get gave another skill")


def _without_cursor(seen: Sighting) -> Iterator[str]:
    exchange, _ = _got(seen)
    if "nextCursor" in (exchange.complete or {}):
        yield "it has one"


def _list_hints(seen: Sighting) -> Iterator[str]:
    pages = [page.complete for page in seen.pages.get(SKILLS, []) if page.complete is not None]
    if not pages:
        raise Unjudged(f"no answer to {SKILLS} was seen")
    for page in pages:
        yield from _missing_hints(page)


def _get_hints(seen: Sighting) -> Iterator[str]:
    exchange, _ = _got(seen)
    yield from _missing_hints(exchange.complete or {})


def _missing_hints(result: Mapping[str, Any]) -> Iterator[str]:
    if missing := [name for name in HINTS if name not in result]:
        yield f"it has no {' and no '.join(missing)}"


# Folders


def _reads_folders(seen: Sighting) -> bool:
    settings = as_dict(as_dict(seen.capabilities.get("extensions")).get(SKILLS_EXTENSION))
    return settings.get(DIRECTORY_READ) is True


def _of_folders(rule: Rule) -> Rule:
    """The rule where the server declares that it lists folders."""

    def judged(seen: Sighting) -> Iterator[str]:
        if not _reads_folders(seen):
            raise Unjudged(f"the server does not declare {DIRECTORY_READ}")
        yield from rule(seen)

    return judged


def _folder(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("folder")
    outcome = exchange.outcome()
    if exchange.complete is None:
        yield f"the folder of a skill got {outcome}"
    elif not isinstance(given := exchange.complete.get("resources"), list):
        yield f"resources is {quoted(given)}"


def _children(seen: Sighting) -> Iterator[str]:
    exchange = answered(seen, "folder")
    above = as_text(as_dict(exchange.sent.get("params")).get("uri"))
    for child in dicts_in((exchange.complete or {}).get("resources")):
        uri = as_text(child.get("uri"))
        step = uri.removeprefix(f"{above}/")
        if step == uri or not step.rstrip("/") or "/" in step.rstrip("/"):
            yield f"{quoted(child.get('uri'))} is not directly in {quoted(above)}"
        elif uri.endswith("/"):
            yield f"{quoted(uri)} ends with a slash"


def _typed_folders(seen: Sighting) -> Iterator[str]:
    exchange = answered(seen, "folder")
    above = as_text(as_dict(exchange.sent.get("params")).get("uri"))
    files = [as_text(each.get("uri")) for item in seen.items(SKILLS) for each in dicts_in(item.get("resources"))]
    steps = [each.removeprefix(f"{above}/").partition("/") for each in files if each.startswith(f"{above}/")]
    folders = {f"{above}/{step}" for step, slash, _ in steps if slash}
    for child in dicts_in((exchange.complete or {}).get("resources")):
        if child.get("uri") in folders and child.get("mimeType") != FOLDER_TYPE:
            yield f"{quoted(child.get('uri'))} has the type {quoted(child.get('mimeType'))}"


def _no_folder(seen: Sighting) -> Iterator[str]:
    yield from with_code(-32602, probe="unknown-folder")(seen)
    yield from with_code(-32602, probe="file-as-folder")(seen)


RULES: Final[Mapping[str, Rule]] = {
    "SSKILL-01": _listed,
    "SSKILL-02": _of_folders(_folder),
    "SSKILL-03": _with_resources,
    "SSKILL-04": _with_uri,
    "SSKILL-05": _sound("missing-frontmatter", "missing-name", "missing-description"),
    "SSKILL-06": _scheme,
    "SSKILL-07": _sound("name-path-mismatch"),
    "SSKILL-08": _sound("malformed-name"),
    "SSKILL-13": _unique_names,
    "SSKILL-14": _sound("missing-resources", "malformed-file"),
    "SSKILL-15": _sound("missing-self", "duplicate-file"),
    "SSKILL-16": _sound("file-outside-folder", "malformed-file-uri"),
    "SSKILL-17": _sound("malformed-size"),
    "SSKILL-18": _sound("malformed-digest"),
    "SSKILL-20": _sound("too-many-files", "too-large"),
    "SSKILL-21": _list_hints,
    "SSKILL-22": _get_hints,
    "SSKILL-23": with_code(-32602, probe="unknown-skill"),
    "SSKILL-24": _gets,
    "SSKILL-26": _of_folders(_no_folder),
    "SSKILL-31": _declaration,
    "SSKILL-32": _alike,
    "SSKILL-33": _without_cursor,
    "SSKILL-34": _once,
    "SSKILL-35": _sound(
        "long-description",
        "malformed-license",
        "malformed-compatibility",
        "malformed-metadata",
        "malformed-allowed-tools",
        "look-alike-files",
    ),
    "SSKILL-36": _reserved,
    "SSKILL-37": _of_folders(_children),
    "SSKILL-38": _of_folders(_typed_folders),
}
