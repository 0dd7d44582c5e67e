"""The text of a SKILL.md: its frontmatter, read as YAML 1.2 or 1.1, and compared with what the entry says of it.

Most servers list a frontmatter as YAML 1.2 has it, those in Python as 1.1 does: it must equal one reading as a whole.
Everything here takes time that grows with the text, and belongs on a thread.

Specification: ext-skills skills (frontmatter verification); the Agent Skills format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcphost.errors import InvalidResult
from mcphost.protocol.models.skills import FRONTMATTER_DEPTH

if TYPE_CHECKING:
    from yaml.nodes import Node, ScalarNode

FRONTMATTER_BYTES: Final = 64 << 10
ALIASES: Final = 64
VALUES: Final = 20_000
"""Values of a frontmatter with its aliases expanded."""

SHOWN_CHARACTERS: Final = 200
"""Characters of a value in a difference."""


class FrontmatterDifference(NamedTuple):
    """A field that the entry and the file do not have alike, each as JSON; None where it is absent."""

    field: str
    listed: str | None
    served: str | None


def split_frontmatter(text: str) -> tuple[str, str]:
    """The YAML between the first two lines ``---``, and the body behind. Raises InvalidResult, with a sentence."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip(" \t\r") != "---":
        raise InvalidResult("SKILL.md does not begin with a line ---, so that it has no frontmatter.")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip(" \t\r") == "---"), None)
    if end is None:
        raise InvalidResult("The frontmatter of SKILL.md has no line --- at its end.")
    yaml = "\n".join(line.removesuffix("\r") for line in lines[1:end])
    if len(yaml.encode("utf-8", "surrogatepass")) > FRONTMATTER_BYTES:
        raise InvalidResult(f"The frontmatter of SKILL.md has more than {FRONTMATTER_BYTES:,} bytes.")
    return yaml, "\n".join(lines[end + 1 :])


def differences(
    listed: Mapping[str, Any], yaml: str, expired: Callable[[], bool] = lambda: False
) -> tuple[FrontmatterDifference, ...]:
    """The fields in which the frontmatter of a file differs from the entry's; none where either reading equals it.

    Those of the reading under YAML 1.2 are returned. Raises InvalidResult, with a sentence, for what cannot be read,
    or not before it has ``expired``.
    """
    root = _parsed(yaml, expired)
    served = _mapping(root, core_scalar)
    found = _differences(listed, served)
    if not found:
        return ()
    try:
        older = _mapping(root, _older_scalar())
    except InvalidResult:
        return found
    return found if _differences(listed, older) else ()


def equal(one: object, other: object) -> bool:
    """True if two JSON values are equal: numbers by value, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and one == other


def _differences(listed: Mapping[str, Any], served: Mapping[str, Any]) -> tuple[FrontmatterDifference, ...]:
    fields = [*listed, *(field for field in served if field not in listed)]
    return tuple(
        FrontmatterDifference(field, _shown(listed, field), _shown(served, field))
        for field in fields
        if not (field in listed and field in served and equal(listed[field], served[field]))
    )


def _shown(fields: Mapping[str, Any], field: str) -> str | None:
    if field not in fields:
        return None
    text = json.dumps(fields[field], ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


# Reading: nodes are composed within bounds, and made values here, so that no constructor of the library runs.

_Scalar = Callable[["ScalarNode"], Any]

_INT: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_PLAIN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def core_scalar(node: ScalarNode) -> Any:
    """The value of a scalar under the core schema of YAML 1.2."""
    text: str = node.value
    if node.style is not None:
        return text
    if text in _PLAIN:
        return _PLAIN[text]
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float("-inf" if text.startswith("-") else "inf")
    return text


@cache
def _older_scalar() -> _Scalar:
    """The reader of scalars as YAML 1.1 has them, dates as JSON writes them."""
    from yaml.constructor import SafeConstructor
    from yaml.resolver import Resolver

    resolve: Any = Resolver().resolve
    constructor = SafeConstructor()
    made: Mapping[str, Callable[[Any], Any]] = {
        "null": lambda node: None,
        "bool": constructor.construct_yaml_bool,
        "int": constructor.construct_yaml_int,
        "float": constructor.construct_yaml_float,
        "timestamp": lambda node: _as_json(constructor.construct_yaml_timestamp(node)),
    }

    def read(node: ScalarNode) -> Any:
        text: str = node.value
        kind = resolve(type(node), text, (node.style is None, False)).rpartition(":")[2]
        return made[kind](node) if node.style is None and kind in made else text

    return read


def _as_json(moment: date) -> str:
    return moment.isoformat()


def _mapping(root: Node | None, scalar: _Scalar) -> dict[str, Any]:
    from yaml.nodes import MappingNode

    if not isinstance(root, MappingNode):
        raise InvalidResult("The frontmatter of SKILL.md is not a mapping of fields.")
    found: dict[str, Any] = _Values(scalar).of(root)
    return found


class _Values:
    """Makes JSON values of nodes, at most `VALUES`, and none that holds itself."""

    def __init__(self, scalar: _Scalar) -> None:
        self._scalar, self._left, self._open = scalar, VALUES, set[int]()

    def of(self, node: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise InvalidResult(f"The frontmatter of SKILL.md holds more than {VALUES:,} values.")
        if id(node) in self._open:
            raise InvalidResult("The frontmatter of SKILL.md holds itself by an alias.")
        if len(self._open) > FRONTMATTER_DEPTH:  # by aliases, within bounds where each is written
            raise _too_deep()
        if isinstance(node.value, str):
            return self._read(node)
        self._open.add(id(node))
        if node.id == "sequence":
            made: Any = [self.of(each) for each in node.value]
        else:
            made = self._fields(node)
        self._open.discard(id(node))
        return made

    def _fields(self, node: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key.value, str):
                raise InvalidResult("The frontmatter of SKILL.md has a field whose name is not a text.")
            name = _name(self._read(key))
            if name in made:
                raise InvalidResult(f"The frontmatter of SKILL.md has the field {name[:80]!r} twice.")
            made[name] = self.of(value)
        return made

    def _read(self, node: ScalarNode) -> Any:
        try:
            value = self._scalar(node)
            if isinstance(value, int):
                str(value)  # raises for more digits than a number in JSON may have
            return _joined(value) if isinstance(value, str) else value
        except (ValueError, OverflowError, KeyError, AttributeError) as error:  # such as the 13th month
            raise InvalidResult(
                f"The frontmatter of SKILL.md has {node.value[:80]!r}, which cannot be read."
            ) from error


def _joined(text: str) -> str:
    """The text with each pair of surrogates, two escapes in the file, as the one character that JSON has for it."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _name(key: object) -> str:
    """The name of a field, as JSON writes a key that is not a text."""
    return key if isinstance(key, str) else json.dumps(key)


def _parsed(yaml: str, expired: Callable[[], bool]) -> Node | None:
    from yaml import YAMLError

    if "\0" in yaml:
        raise InvalidResult("The frontmatter of SKILL.md holds a NUL character.")
    try:
        root: Node | None = _loader()(yaml, expired).get_single_node()
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" in line {mark.line + 2}"  # the line --- is the first
        problem = str(getattr(error, "problem", "") or getattr(error, "reason", "") or "it cannot be read")
        raise InvalidResult(
            f"The frontmatter of SKILL.md is not valid YAML{place}: {problem[:SHOWN_CHARACTERS]}."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except (ValueError, OverflowError):  # the library does not expect an escape beyond Unicode
        raise InvalidResult("The frontmatter of SKILL.md has an escape that stands for no character.") from None
    return root


def _too_deep() -> InvalidResult:
    return InvalidResult(f"The frontmatter of SKILL.md is nested deeper than {FRONTMATTER_DEPTH} levels.")


@cache
def _loader() -> Callable[[str, Callable[[], bool]], Any]:
    from yaml import SafeLoader
    from yaml.events import AliasEvent

    class BoundedLoader(SafeLoader):
        """Composes nodes within bounds of depth, aliases and time; constructs nothing."""

        def __init__(self, text: str, expired: Callable[[], bool]) -> None:
            super().__init__(text)
            self._depth = self._aliases = 0
            self._expired = expired

        def fetch_more_tokens(self) -> Any:
            if self._expired():
                raise InvalidResult("The frontmatter of SKILL.md took too long to read.")
            return super().fetch_more_tokens()

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, AliasEvent):
                self._aliases += 1
                if self._aliases > ALIASES:
                    raise InvalidResult(f"The frontmatter of SKILL.md has more than {ALIASES} aliases.")
            elif event.tag is not None:
                raise InvalidResult(f"The frontmatter of SKILL.md has the tag {event.tag[:80]!r}; none is read.")
            self._depth += 1
            if self._depth > FRONTMATTER_DEPTH:
                raise _too_deep()
            node = super().compose_node(parent, index)
            self._depth -= 1
            return node

    return BoundedLoader
