"""Rules about what the lists hold, and about their pages and cache hints."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.errors import InvalidResult
from mcphost.host.server_rules.outcomes import Rule, quoted
from mcphost.host.server_rules.prober import PAGES
from mcphost.host.server_rules.sighting import LISTS, Sighting, Unjudged
from mcphost.json_values import as_dict, as_list, as_text, dicts_in, is_number
from mcphost.protocol.schema.validation import SchemaRefused, check_schema
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.wire.headers import ANNOTATION, TOKEN, annotated

TOOLS, RESOURCES, TEMPLATES, PROMPTS, _ = LISTS
Item = Mapping[str, Any]


def _name(item: Item) -> str:
    return quoted(next((item[key] for key in ("name", "uri", "uriTemplate") if isinstance(item.get(key), str)), "?"))


def of_each(method: str, check: Callable[[Item], Iterable[str]]) -> Rule:
    """Every item of a list passes ``check``, which yields what is wrong."""

    def rule(seen: Sighting) -> Iterator[str]:
        for item in seen.items(method):
            yield from (f"{_name(item)}: {problem}" for problem in check(item))

    return rule


# Shapes


def _strings(item: Item, *names: str) -> Iterator[str]:
    yield from (f"{name} is {quoted(item.get(name))}" for name in names if not isinstance(item.get(name), str))


def _objects(seen: Sighting, method: str) -> Iterator[str]:
    yield from (f"an item is {quoted(item)}" for item in seen.raw_items(method) if not isinstance(item, dict))


def _has_list(method: str) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        pages = seen.pages.get(method, [])
        results = [page.complete for page in pages if page.complete is not None]
        unanswered = pages and (pages[0].response is None or pages[0].code == -32601)
        if unanswered and method != TEMPLATES:
            yield f"it got {pages[0].outcome()}"
        elif not results:
            raise Unjudged(f"no result of {method} was seen")
        for result in results:
            if not isinstance(given := result.get(LISTS[method]), list):
                yield f"{LISTS[method]} is {quoted(given)}"

    return rule


def _is_answered(method: str) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        pages = seen.pages.get(method)
        if not pages:
            raise Unjudged(f"{method} was not sent")
        outcome = pages[0].outcome()
        if pages[0].result is None:
            yield f"it got {outcome}"

    return rule


def _tools(seen: Sighting) -> Iterator[str]:
    yield from _objects(seen, TOOLS)
    for item in seen.items(TOOLS):
        yield from (f"{_name(item)}: {problem}" for problem in _strings(item, "name"))
        schema = item.get("inputSchema")
        if not isinstance(schema, dict):
            yield f"{_name(item)}: inputSchema is {quoted(schema)}"
        elif schema.get("type") != "object":
            yield f"{_name(item)}: the type of inputSchema is {quoted(schema.get('type'))}"


def _resources(seen: Sighting) -> Iterator[str]:
    yield from _objects(seen, RESOURCES)
    yield from of_each(RESOURCES, lambda item: _strings(item, "uri", "name"))(seen)


def _templates(seen: Sighting) -> Iterator[str]:
    yield from _objects(seen, TEMPLATES)
    yield from of_each(TEMPLATES, lambda item: _strings(item, "uriTemplate", "name"))(seen)


def _prompts(seen: Sighting) -> Iterator[str]:
    yield from _objects(seen, PROMPTS)
    for item in seen.items(PROMPTS):
        yield from (f"{_name(item)}: {problem}" for problem in _strings(item, "name"))
        for argument in as_list(item.get("arguments")):
            yield from (f"{_name(item)}: an argument's {problem}" for problem in _strings(as_dict(argument), "name"))


_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "a string": lambda value: isinstance(value, str),
    "a boolean": lambda value: isinstance(value, bool),
    "a number": is_number,
    "an object": lambda value: isinstance(value, dict),
    "a list": lambda value: isinstance(value, list),
}

Field = tuple[str, str, str]
"""A field, the kind of its value, and the first revision whose schema names it."""

_NAMED: Final[tuple[Field, ...]] = (
    ("description", "a string", "2024-11-05"),
    ("title", "a string", "2025-06-18"),
    ("_meta", "an object", "2025-06-18"),
    ("icons", "a list", "2025-11-25"),
)
_TOOL: Final = (*_NAMED, ("annotations", "an object", "2025-03-26"), ("outputSchema", "an object", "2025-06-18"))
_RESOURCE: Final = (
    *_NAMED,
    ("mimeType", "a string", "2024-11-05"),
    ("annotations", "an object", "2024-11-05"),
    ("size", "a number", "2024-11-05"),
)
_PROMPT: Final = (*_NAMED, ("arguments", "a list", "2024-11-05"))
_ARGUMENT: Final = (
    ("description", "a string", "2024-11-05"),
    ("required", "a boolean", "2024-11-05"),
    ("title", "a string", "2025-06-18"),
)


def _misfits(item: Item, fields: Iterable[Field], version: str) -> Iterator[str]:
    for name, kind, since in fields:
        if name in item and version >= since and not _KINDS[kind](item[name]):
            yield f"{name} is {quoted(item[name])}, not {kind}"


def _fields(*kinds: tuple[str, tuple[Field, ...]]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        version = seen.revision.version
        for method, fields in kinds:
            if method in seen.pages:
                for item in seen.items(method):
                    yield from (f"{_name(item)}: {problem}" for problem in _misfits(item, fields, version))
                    for argument in dicts_in(item.get("arguments")) if method == PROMPTS else ():
                        found = _misfits(argument, _ARGUMENT, version)
                        yield from (f"{_name(item)}: {_name(argument)}: {problem}" for problem in found)

    return rule


# Names


def _unique(method: str, key: str) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        found = Counter(item[key] for item in seen.items(method) if isinstance(item.get(key), str))
        yield from (f"{quoted(name)} is there {count} times" for name, count in found.items() if count > 1)

    return rule


def _tool_names(bad: Callable[[str], bool]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        names = (item.get("name") for item in seen.items(TOOLS))
        yield from (quoted(name) for name in names if isinstance(name, str) and bad(name))

    return rule


# Schemas and annotations


def _well_formed(schema: object) -> str:
    """The fault of a schema; empty also for one over the limits of this host."""
    try:
        check_schema(schema)
    except SchemaRefused as refused:
        words = str(refused)
        return words if "malformed" in words and not any(each in words for each in _NO_FAULT) else ""
    return ""


_NO_FAULT: Final = ("leads back", "points to nothing")
"""References that no schema can resolve; the text of a schema with one is still valid."""


def _schemas(*names: str) -> Rule:
    def check(item: Item) -> Iterator[str]:
        for name in names:
            if isinstance(item.get(name), dict) and (problem := _well_formed(item[name])):
                yield f"{name}: {problem}"

    return of_each(TOOLS, check)


def _input_schemas(item: Item) -> Iterator[str]:
    schema = item.get("inputSchema")
    if not isinstance(schema, dict):
        yield f"inputSchema is {quoted(schema)}"
    elif problem := _well_formed(schema):
        yield problem


def _object_output(item: Item) -> Iterator[str]:
    schema = item.get("outputSchema", {"type": "object"})
    if as_dict(schema).get("type") != "object":
        yield f"its type is {quoted(as_dict(schema).get('type') if isinstance(schema, dict) else schema)}"


def _any_output(item: Item) -> Iterator[str]:
    if not isinstance(schema := item.get("outputSchema", {}), dict):
        yield f"it is {quoted(schema)}"


def _hints(item: Item) -> Iterator[str]:
    annotations = item.get("annotations", {})
    if not isinstance(annotations, dict):
        yield f"annotations is {quoted(annotations)}"
        return
    for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"):
        if not isinstance(annotations.get(name, False), bool):
            yield f"{name} is {quoted(annotations[name])}"


def _mirrors(bad: Callable[[tuple[str, ...] | None, Item], bool]) -> Rule:
    """The ``x-mcp-header`` annotations; ``bad`` gets the path of the argument, None where no chain leads to it."""

    def check(item: Item) -> Iterator[str]:
        for path, schema in annotated(item.get("inputSchema")):
            if bad(path, schema):
                yield f"{'.'.join(path) if path else 'a part of the schema'} has {quoted(schema[ANNOTATION])}"

    return of_each(TOOLS, check)


def _repeated_mirrors(item: Item) -> Iterator[str]:
    found = Counter(as_text(schema[ANNOTATION]).lower() for _, schema in annotated(item.get("inputSchema")))
    yield from (f"{quoted(name)} is there {count} times" for name, count in found.items() if count > 1)


def _task_support(item: Item) -> Iterator[str]:
    support = as_dict(item.get("execution")).get("taskSupport", "optional")
    if support not in ("required", "optional", "forbidden"):
        yield f"it is {quoted(support)}"


# URIs


def _uri(item: Item) -> Iterator[str]:
    uri = item.get("uri")
    if isinstance(uri, str) and not _ABSOLUTE.fullmatch(uri):
        yield "it is relative, or has characters that a URI must encode"


_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f\"<>\\^`{|}]*")


def _scheme(item: Item) -> Iterator[str]:
    scheme, colon, _ = as_text(item.get("uri")).partition(":")
    if colon and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        yield f"the scheme is {quoted(scheme)}"


def _template(item: Item) -> Iterator[str]:
    if isinstance(text := item.get("uriTemplate"), str):
        try:
            UriTemplate.read(text)
        except InvalidResult as invalid:
            if "more than" not in str(invalid):
                yield str(invalid)


def _annotations(check: Callable[[Item], Iterable[str]]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        for method in (RESOURCES, TEMPLATES):
            if method in seen.pages:
                yield from of_each(method, lambda item: check(as_dict(item.get("annotations"))))(seen)

    return rule


def _audience(annotations: Item) -> Iterator[str]:
    given = annotations.get("audience", [])
    if not isinstance(given, list) or any(each not in ("user", "assistant") for each in given):
        yield f"audience is {quoted(given)}"


def _priority(annotations: Item) -> Iterator[str]:
    given = annotations.get("priority", 0)
    if not is_number(given) or not 0 <= given <= 1:
        yield f"priority is {quoted(given)}"


def _modified(annotations: Item) -> Iterator[str]:
    given = annotations.get("lastModified", "2025-01-01")
    try:
        datetime.fromisoformat(given)
    except (TypeError, ValueError):
        yield f"lastModified is {quoted(given)}"


def _icons(check: Callable[[Item], Iterable[str]]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        for method in seen.pages:
            for item in seen.items(method):
                for icon in dicts_in(item.get("icons")):
                    yield from (f"{_name(item)}: {problem}" for problem in check(icon))

    return rule


def _icon_source(icon: Item) -> Iterator[str]:
    if not isinstance(given := icon.get("src"), str) or not urlsplit(given[:200]).scheme:
        yield f"src is {quoted(given)}"


def _icon_scheme(icon: Item) -> Iterator[str]:
    given = icon.get("src")
    if isinstance(given, str) and not re.match(r"(?i)https?://|data:[^,]*;base64,", given):
        yield f"src is {quoted(given)}"


def _icon_sizes(icon: Item) -> Iterator[str]:
    for size in as_list(icon.get("sizes")):
        if not isinstance(size, str) or not re.fullmatch(r"\d+x\d+|any", size):
            yield f"a size is {quoted(size)}"


def _icon_theme(icon: Item) -> Iterator[str]:
    if icon.get("theme", "light") not in ("light", "dark"):
        yield f"theme is {quoted(icon['theme'])}"


# Interfaces


def _ui(check: Callable[[Item], Iterable[str]]) -> Rule:
    return of_each(TOOLS, lambda item: check(as_dict(as_dict(item.get("_meta")).get("ui"))))


def _ui_resource(ui: Item) -> Iterator[str]:
    if not as_text(given := ui.get("resourceUri", "ui://")).startswith("ui://"):
        yield f"it is {quoted(given)}"


def _ui_visibility(ui: Item) -> Iterator[str]:
    given = ui.get("visibility", [])
    if not isinstance(given, list) or any(each not in ("model", "app") for each in given):
        yield f"it is {quoted(given)}"


def _ui_type(item: Item) -> Iterator[str]:
    if as_text(item.get("uri")).startswith("ui://") and item.get("mimeType") != "text/html;profile=mcp-app":
        yield f"mimeType is {quoted(item.get('mimeType'))}"


def _flat_key(item: Item) -> Iterator[str]:
    meta = as_dict(item.get("_meta"))
    if "ui/resourceUri" in meta and "resourceUri" not in as_dict(meta.get("ui")):
        yield "it has only the flat key"


# Capabilities, pages and hints


def _declared(method: str) -> Rule:
    """A list that is not empty comes only from a server that declared the capability."""

    def rule(seen: Sighting) -> Iterator[str]:
        if method in seen.pages:
            return
        items = (seen.exchange(f"undeclared-{method}").complete or {}).get(LISTS[method])
        if items and isinstance(items, list):
            yield f"{method} gives {len(items)} without it"

    return rule


def _same_again(method: str, *, in_order: bool = False) -> Rule:
    """The first page is the same on another connection."""

    def rule(seen: Sighting) -> Iterator[str]:
        first = seen.pages.get(method, [])
        again = seen.exchange(f"again-{method}")
        if not first or first[0].complete is None or again.complete is None:
            raise Unjudged(f"{method} was not answered twice")
        if _announced(seen, method):
            raise Unjudged("the server said that its list changed")
        one, other = (_keys(each.complete or {}, method) for each in (first[0], again))
        if in_order and sorted(one) == sorted(other) and one != other:
            yield "the order differs"
        elif not in_order and "nextCursor" not in (first[0].complete or {}) and sorted(one) != sorted(other):
            differing = sorted(set(one) ^ set(other))
            yield f"they differ{f' in {quoted(differing[0])}' if differing else ''}"

    return rule


def _announced(seen: Sighting, method: str) -> bool:
    notice = f"notifications/{method.partition('/')[0]}/list_changed"
    return any(message.object.get("method") == notice for message in seen.messages())


def _keys(result: Item, method: str) -> list[str]:
    return [json.dumps([item.get("name"), item.get("uri")]) for item in dicts_in(result.get(LISTS[method]))]


def _cursors(seen: Sighting) -> Iterator[str]:
    for method, pages in seen.pages.items():
        for page in pages:
            cursor = (page.result or {}).get("nextCursor", "")
            if not isinstance(cursor, str):
                yield f"that of {method} is {quoted(cursor)}"


def _ends(seen: Sighting) -> Iterator[str]:
    for method, pages in seen.pages.items():
        given = [(page.complete or {}).get("nextCursor") for page in pages]
        texts = [cursor for cursor in given if isinstance(cursor, str)]
        if len(texts) > len(set(texts)):
            yield f"{method} gives the cursor {quoted(texts[-1])} again"
        elif len(pages) >= PAGES:
            raise Unjudged(f"{method} has more than {PAGES} pages")


def _no_repeats(seen: Sighting) -> Iterator[str]:
    for method, pages in seen.pages.items():
        if len(pages) < PAGES:
            for one, other in pairwise(_keys(page.complete or {}, method) for page in pages):
                if one and one == other:
                    yield f"two pages of {method} are the same"


def _same_page(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("same-cursor")
    second = seen.pages[exchange.method][1] if len(seen.pages.get(exchange.method, [])) > 1 else None
    if second is None or second.complete is None or _announced(seen, exchange.method):
        raise Unjudged("no page was read twice")
    outcome = exchange.outcome()
    if exchange.complete is None:
        yield f"the second time it got {outcome}"
    elif _keys(exchange.complete, exchange.method) != _keys(second.complete, exchange.method):
        yield f"the page of {exchange.method} differs"


def _cacheable(seen: Sighting) -> Iterator[tuple[str, Item]]:
    for exchange, result in seen.results():
        if (
            exchange.method in (TOOLS, RESOURCES, TEMPLATES, PROMPTS, "server/discover")
            and exchange.complete is not None
        ):
            yield exchange.method, result


def _hints_there(seen: Sighting) -> Iterator[str]:
    for method, result in _cacheable(seen):
        missing = [name for name in ("ttlMs", "cacheScope") if name not in result]
        if missing:
            yield f"the result of {method} has no {' and no '.join(missing)}"


def _ttl(seen: Sighting) -> Iterator[str]:
    for method, result in _cacheable(seen):
        given = result.get("ttlMs", 0)
        if type(given) is not int or given < 0:
            yield f"that of {method} is {quoted(given)}"


def _scope(seen: Sighting) -> Iterator[str]:
    for method, result in _cacheable(seen):
        if (given := result.get("cacheScope", "public")) not in ("public", "private"):
            yield f"that of {method} is {quoted(given)}"


def _one_scope(seen: Sighting) -> Iterator[str]:
    for method, pages in seen.pages.items():
        if len({quoted((page.complete or {}).get("cacheScope")) for page in pages}) > 1:
            yield f"those of {method} differ"


RULES: Final[Mapping[str, Rule]] = {
    "SSCHEMA-01": _schemas("inputSchema", "outputSchema"),
    "STOOL-01": _declared(TOOLS),
    "STOOL-04": _is_answered(TOOLS),
    "STOOL-05": _same_again(TOOLS),
    "STOOL-07": _same_again(TOOLS, in_order=True),
    "STOOL-08": _has_list(TOOLS),
    "STOOL-09": _tools,
    "STOOL-10": _fields((TOOLS, _TOOL)),
    "STOOL-11": of_each(TOOLS, _object_output),
    "STOOL-12": of_each(TOOLS, _any_output),
    "STOOL-13": of_each(TOOLS, _input_schemas),
    "STOOL-14": _unique(TOOLS, "name"),
    "STOOL-15": _unique(TOOLS, "name"),
    "STOOL-16": _tool_names(lambda name: not 1 <= len(name) <= 128),
    "STOOL-17": _tool_names(lambda name: not re.fullmatch(r"[A-Za-z0-9_.-]*", name)),
    "STOOL-18": _tool_names(lambda name: not re.fullmatch(r"[A-Za-z0-9_.-]*", name)),
    "STOOL-40": of_each(TOOLS, _hints),
    "STASK-03": of_each(TOOLS, _task_support),
    "SXHDR-01": _mirrors(lambda _, schema: schema[ANNOTATION] == ""),
    "SXHDR-02": _mirrors(lambda _, schema: not re.fullmatch(TOKEN, as_text(schema[ANNOTATION]))),
    "SXHDR-03": _mirrors(lambda _, schema: bool(re.search(r"[\x00-\x1f\x7f]", as_text(schema[ANNOTATION])))),
    "SXHDR-04": of_each(TOOLS, _repeated_mirrors),
    "SXHDR-05": _mirrors(lambda _, schema: schema.get("type") not in ("string", "integer", "boolean")),
    "SXHDR-06": _mirrors(lambda path, _: not path),
    "SXHDR-07": _mirrors(lambda path, _: path is None),
    "SRES-01": _declared(RESOURCES),
    "SRES-03": _is_answered(RESOURCES),
    "SRES-04": _same_again(RESOURCES),
    "SRES-06": _has_list(RESOURCES),
    "SRES-07": _has_list(TEMPLATES),
    "SRES-08": _resources,
    "SRES-09": _templates,
    "SRES-10": _fields((RESOURCES, _RESOURCE), (TEMPLATES, _RESOURCE)),
    "SRES-11": _unique(RESOURCES, "uri"),
    "SRES-12": of_each(RESOURCES, _uri),
    "SRES-13": of_each(RESOURCES, _scheme),
    "SRES-14": of_each(TEMPLATES, _template),
    "SRES-19": _annotations(_audience),
    "SRES-20": _annotations(_priority),
    "SRES-21": _annotations(_modified),
    "SPROM-01": _declared(PROMPTS),
    "SPROM-24": _declared(PROMPTS),
    "SPROM-04": _is_answered(PROMPTS),
    "SPROM-05": _same_again(PROMPTS),
    "SPROM-07": _has_list(PROMPTS),
    "SPROM-08": _prompts,
    "SPROM-09": _fields((PROMPTS, _PROMPT)),
    "SPROM-10": _unique(PROMPTS, "name"),
    "SICON-01": _icons(_icon_source),
    "SICON-02": _icons(_icon_scheme),
    "SICON-03": _icons(_icon_sizes),
    "SICON-04": _icons(_icon_theme),
    "SAPPS-01": _ui(_ui_resource),
    "SAPPS-05": of_each(RESOURCES, _ui_type),
    "SAPPS-08": _ui(_ui_visibility),
    "SAPPS-09": of_each(TOOLS, _flat_key),
    "SPAGE-01": _cursors,
    "SPAGE-02": _ends,
    "SPAGE-03": _no_repeats,
    "SPAGE-04": _same_page,
    "SCACHE-01": _hints_there,
    "SCACHE-04": _ttl,
    "SCACHE-05": _scope,
    "SCACHE-06": _one_scope,
}
