"""Parses and writes the formats of configuration files: JSON with comments, TOML and YAML.

The files are other programs' and may be hostile: size, depth and expansion are bounded, and YAML's tags are refused.
If a key occurs twice, the last one counts, as in the programs that the files are made for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NoReturn

import pyjson5
import tomli_w
import yaml

from mcphost.config.files import text_of
from mcphost.config.loading import parse_toml
from mcphost.errors import ConfigError

Kind = Literal["json", "toml", "yaml"]

MAX_BYTES: Final = 1024 * 1024
"""Bytes of a configuration file of another program."""

MAX_HISTORY_BYTES: Final = 64 * 1024 * 1024
"""Bytes of ``~/.claude.json``, which holds the history of all projects as well."""

MAX_ITEMS: Final = 4_000_000
"""Commas and brackets in a file above `MAX_BYTES`: they, not the bytes, take the memory."""

MAX_DEPTH: Final = 64
"""Levels of nesting."""

MAX_NODES: Final = 100_000
"""Values of a YAML document, each alias counted as a copy of what it stands for."""

_NEAR = re.compile(r"near (\d+)")  # in what pyjson5 says; the rest of it may quote the file
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TOML_START = re.compile(r"""(?:\s|\#[^\n]*\n)*(?:\[\[?[\w"'. -]+\]|[\w"'.-]+[ \t]*=)""")
_JSON_START = re.compile(r"\s*(?:[{\[]|//|/\*)")


def _no_number(_: str) -> NoReturn:
    raise ValueError


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_BLANKS = re.compile(r"[ \t\r\n]*")
_STEP_LEVELS = 3  # in ~/.claude.json: the file, its projects, and the members of each, such as the history


def read_document(content: bytes, kind: Kind) -> object:
    """Parse a file to dicts, lists, texts, numbers, booleans, None and (TOML) dates; every text is valid Unicode.

    JSON may hold comments, trailing commas and the rest of JSON5 up to `MAX_BYTES`. YAML is version 1.2: ``on`` is a
    text. Raises ConfigError.
    """
    if len(content) > (MAX_HISTORY_BYTES if kind == "json" else MAX_BYTES):
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes")
    try:
        text = text_of(content)
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8") from None
    try:
        document = {"json": _json, "toml": _toml, "yaml": _yaml}[kind](text)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(document)
    return document


def kind_of(content: bytes, name: str = "") -> Kind:
    """Say which format a file or a paste has: by its name, else by how it begins."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in ("json", "jsonc", "json5", "code-workspace"):
        return "json"
    if suffix in ("toml", "yaml", "yml"):
        return "toml" if suffix == "toml" else "yaml"
    start = content[:4096].decode("utf-8-sig", "replace")
    if _TOML_START.match(start):
        return "toml"
    return "json" if _JSON_START.match(start) else "yaml"


def write_document(document: dict[str, Any], kind: Kind) -> str:
    """Write a document as a person would."""
    if kind == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if kind == "toml":
        return tomli_w.dumps(document)
    return yaml.dump(document, Dumper=_YamlDumper, sort_keys=False, allow_unicode=True, width=1000)


def _json(text: str) -> object:
    if len(text) > MAX_BYTES:
        return _large_json(text)
    try:
        document = json.loads(text, parse_constant=_no_number)
    except ValueError:
        return _json5(text)
    return _without_surrogates(document) if _SURROGATE.search(text) else document


def _large_json(text: str) -> object:
    """Parse a large document, which must be plain JSON: JSON5 is for files that people write."""
    if sum(map(text.count, ",[{")) > MAX_ITEMS:
        raise ConfigError(f"holds more than {MAX_ITEMS:,} values")
    try:
        document, end = _in_steps(text, _after_blanks(text, 0), _STEP_LEVELS)
        if _after_blanks(text, end) != len(text):
            raise ValueError
    except ValueError:
        raise ConfigError("is not valid JSON") from None
    return document


def _in_steps(text: str, position: int, levels: int) -> tuple[object, int]:
    """Decode the value at ``position``, objects of the first levels member by member; return it and where it ends.

    The decoder holds the interpreter's lock: a file of 20 MB at once would freeze the screen for a tenth of a second.
    Raises ValueError.
    """
    if levels == 0 or not text.startswith("{", position):
        return _decoded(text, position)
    members: dict[str, object] = {}
    position = _after_blanks(text, position + 1)
    while not (text.startswith("}", position) and not members):
        key, position = _decoded(text, position)
        position = _after_blanks(text, position)
        if not isinstance(key, str) or not text.startswith(":", position):
            raise ValueError
        members[key], position = _in_steps(text, _after_blanks(text, position + 1), levels - 1)
        position = _after_blanks(text, position)
        if text.startswith("}", position):
            break
        if not text.startswith(",", position):
            raise ValueError
        position = _after_blanks(text, position + 1)
    return members, position + 1


def _after_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _decoded(text: str, position: int) -> tuple[object, int]:
    value, end = _DECODER.raw_decode(text, position)
    return (_without_surrogates(value) if _SURROGATE.search(text, position, end) else value), end


def _json5(text: str) -> object:
    try:
        return pyjson5.decode(text, MAX_DEPTH)
    except pyjson5.Json5NestingTooDeep:
        raise _too_deep() from None
    except pyjson5.Json5Exception as error:
        place = _NEAR.search(str(error.args[0]))
        line = None if place is None else text.count("\n", 0, int(place[1])) + 1
        raise ConfigError("is not valid JSON", line=line) from None
    except ValueError:
        raise ConfigError("is not valid JSON") from None


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    return [_without_surrogates(each) for each in value] if isinstance(value, list) else value


def _toml(text: str) -> object:
    try:
        return parse_toml(text)
    except ConfigError as error:  # what follows the colon may quote a key
        raise ConfigError(error.message.partition(":")[0].removeprefix("this "), line=error.line) from None


def _check_depth(document: object) -> None:
    level, depth = [document], 0
    while level:
        if (depth := depth + 1) > MAX_DEPTH:
            raise _too_deep()
        level = [each for value in level for each in _containers(value)]


def _containers(value: object) -> Iterator[object]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (each for each in inside if isinstance(each, dict | list))


def _too_deep() -> ConfigError:
    return ConfigError(f"is nested more than {MAX_DEPTH} levels deep")


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")} | {"!"}
_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOLEAN = re.compile(r"(?:true|True|TRUE|(false|False|FALSE))")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,300})|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def _yaml(text: str) -> object:
    try:
        return _YamlDocument(text).value
    except yaml.YAMLError as error:
        if "nesting depth" in str(getattr(error, "problem", "")):  # newer parsers have a limit of their own, of 1,000
            raise _too_deep() from None
        mark = getattr(error, "problem_mark", None)
        raise ConfigError("is not valid YAML", line=None if mark is None else mark.line + 1) from None


class _YamlDocument:
    """Builds one document from the events of PyYAML's parser.

    Its own constructors would expand aliases without a limit, follow tags, and read ``on``, ``1:30`` and ``010`` as
    YAML 1.1 does.
    """

    def __init__(self, text: str) -> None:
        self._events = iter(yaml.parse(text, Loader=_Loader))
        self._nodes = 0
        self._anchors: dict[str, tuple[object, int]] = {}
        self.value: object = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.value = self._node(next(self._events), 0)
                return  # further documents do not count

    def _node(self, event: Any, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise _too_deep()
        before = self._nodes
        self._count(1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        if event.tag is not None and event.tag not in _CORE_TAGS:
            raise ConfigError("holds a YAML tag, which is not read", line=event.start_mark.line + 1)
        value: object
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event.value) if event.implicit[0] else event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            value = list(self._items(yaml.SequenceEndEvent, depth))
        else:
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._nodes - before)
        return value

    def _items(self, end: type, depth: int) -> Iterator[object]:
        while not isinstance(event := next(self._events), end):
            yield self._node(event, depth + 1)

    def _mapping(self, depth: int) -> dict[str, object]:
        items, mapping = self._items(yaml.MappingEndEvent, depth), dict[str, object]()
        for key in items:
            if isinstance(key, dict | list):
                raise ConfigError("has a key that is not a text")
            mapping[key if isinstance(key, str) else json.dumps(key)] = next(items)
        return mapping

    def _alias(self, anchor: str | None) -> object:
        if anchor is None or anchor not in self._anchors:  # also an alias inside of what it stands for
            raise ConfigError("has an alias of something that is not there yet")
        value, size = self._anchors[anchor]
        self._count(size)
        return value

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise ConfigError(f"holds more than {MAX_NODES:,} values")


def _scalar(text: str) -> object:
    """Read a plain scalar by the core schema of YAML 1.2; with leading zeros it is a text."""
    if _NULL.fullmatch(text):
        return None
    if boolean := _BOOLEAN.fullmatch(text):
        return boolean[1] is None
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if special := _SPECIAL_FLOAT.fullmatch(text):
        return math.nan if special[1] is None else -math.inf if special[1] == "-" else math.inf
    return text


class _YamlDumper(yaml.SafeDumper):
    """Quotes each text that some version of YAML could take for anything else."""


_PLAIN = re.compile(r"[A-Za-z@/][\w@/.-]*(?: [\w@/.-]+)*", re.ASCII)
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.startswith("@")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_YamlDumper.add_representer(str, _text_node)
