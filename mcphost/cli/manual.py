"""The manual pages, made from the parser and from the docstrings of the configuration's models.

mcphost(1) needs no library, so that building a package needs none for it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcphost import __version__
from mcphost.cli.parser import ABOUT, EXAMPLES, MORE, STREAMS, command_parser

ENVIRONMENT: Final = {
    "MCPHOST_CONFIG": "The configuration file, in place of the one in your configuration folder.",
    "MCPHOST_STATE_DIR": "The state folder, in place of the platform's.",
    "MCPHOST_KEYCHAIN": "off: no keychain is asked for anything; tokens end with mcphost.",
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY": "Proxies for servers, sign-ins and models; never for this machine.",
    "SSL_CERT_FILE, SSL_CERT_DIR": "Certificate authorities, in place of the bundled ones.",
    "NO_COLOR": "The screen has no colours.",
}

FILES: Final = {
    "~/.config/mcphost/config.toml": "Your configuration; mcphost config path prints the place on your system.",
    "~/.config/mcphost/servers.toml": "Servers that mcphost added for you.",
    "mcphost.toml": "A project's servers, in its folder; used after mcphost config trust.",
    "~/.local/state/mcphost": "The state folder: approvals, the audit log, conversations, crashes.",
}


def command_page() -> str:
    """mcphost(1) as roff."""
    return _page(_command_lines())


def configuration_page() -> str:
    """mcphost-config(5) as roff."""
    from mcphost.config.schema import config_schema  # late: it needs pydantic

    return _page(_configuration_lines(config_schema()))


def _page(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _command_lines() -> Iterator[str]:
    parser = command_parser()
    yield from _head("MCPHOST", 1, "User Commands", "mcphost", "a terminal host for the Model Context Protocol")
    yield from (".SH SYNOPSIS", ".B mcphost", "[\\fIoptions\\fR] [\\fICOMMAND\\fR [\\fIarguments\\fR]]")
    yield from (".SH DESCRIPTION", *_text(parser.description or ""))
    yield from _block(STREAMS)
    yield from (".SH OPTIONS", *_arguments(parser))
    yield ".SH COMMANDS"
    commands = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        yield f'.SS "{_escaped(" ".join(["mcphost", name, *_positional(command)]))}"'
        yield from _text(ABOUT[name])
        yield from _arguments(command, but=("-h", "--traffic"))
        yield from _block(MORE.get(name, ""))
        yield from (".PP", "Examples:", *_block(EXAMPLES[name]))
    yield from (".SH ENVIRONMENT", *_definitions(ENVIRONMENT), ".SH FILES", *_definitions(FILES))
    yield from (".SH SEE ALSO", ".BR mcphost\\-config (5)")


def _head(title: str, section: int, volume: str, name: str, about: str) -> Iterator[str]:
    yield f'.TH {title} {section} "" "mcphost {__version__}" "{volume}"'
    yield from (".SH NAME", f"{_escaped(name)} \\- {_escaped(about)}")


def _positional(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._get_positional_actions():
        name = str(action.metavar or action.dest)
        yield {"?": f"[{name}]", "*": f"[{name}...]"}.get(str(action.nargs), name)


def _arguments(parser: argparse.ArgumentParser, but: Sequence[str] = ()) -> Iterator[str]:
    """Arguments and options, without the options ``but``, which all commands have."""
    for action in parser._actions:
        hidden = action.help in (None, argparse.SUPPRESS) or isinstance(action, argparse._SubParsersAction)
        if hidden or set(but) & set(action.option_strings):
            continue
        value = "" if action.nargs == 0 else f" \\fI{_escaped(str(action.metavar or action.dest.upper()))}\\fR"
        names = ", ".join(f"\\fB{_escaped(each)}\\fR" for each in action.option_strings)
        yield from (".TP", f"{names}{value}".strip(), *_text((action.help or "").replace("%%", "%")))


def _definitions(words: Mapping[str, str]) -> Iterator[str]:
    for word, meaning in words.items():
        yield from (".TP", f"\\fB{_escaped(word)}\\fR", *_text(meaning))


# mcphost-config(5)

REFERENCES: Final = {
    "${NAME}": "an environment variable",
    "${NAME:-default}": "the same, or a default where it is not set",
    "${keyring:NAME}": "an item of the system's keychain, under the service mcphost",
    "${file:PATH}": "the content of a file",
    "$${": "a literal ${",
}


def _configuration_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _head("MCPHOST-CONFIG", 5, "File Formats", "mcphost-config", "the configuration of mcphost")
    yield ".SH DESCRIPTION"
    yield from _text("The configuration is TOML. Every key is optional unless it says otherwise.")
    yield from _text("mcphost config check reports mistakes; mcphost config schema prints a JSON Schema for editors.")
    yield from (".PP", *_text("Strings may hold references, which are looked up when they are used:"))
    yield from _definitions(REFERENCES)
    for name, section in schema["properties"].items():
        if name != "mcp_servers":  # only another name of servers
            yield from _table(name, section, schema["$defs"])
    yield from (".SH FILES", *_definitions(FILES), ".SH SEE ALSO", ".BR mcphost (1)")


def _table(path: str, found: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[str]:
    """A table with its keys, then the tables in it."""
    further = found.get("additionalProperties")
    if isinstance(further, dict) and "$ref" in further:
        path, found = f"{path}.{'TOOL' if path.endswith('.tools') else 'NAME'}", further
    table = tables[found["$ref"].rpartition("/")[2]]
    yield f'.SH "[{_escaped(path)}]"'
    yield from _text(re.sub(r"^`\[.+?\]`: (.)", lambda found: found[1].upper(), table.get("description", "")))
    inner: list[tuple[str, Mapping[str, Any]]] = []
    for key, each in table["properties"].items():
        nested = each.get("additionalProperties")
        if "$ref" in each or (isinstance(nested, dict) and "$ref" in nested):
            inner.append((key, each))
            continue
        yield from (".TP", f"\\fB{_escaped(key)}\\fR = {_value(each)}", *_text(each["description"]))
        items = each.get("items", {})
        inner += [(f"{key}[]", shape) for shape in (items, *items.get("anyOf", ())) if "$ref" in shape]
    for key, each in inner:
        if not (path == "servers.NAME" and key == "limits"):
            yield from _table(f"{path}.{key}", each, tables)
        else:
            yield from (f'.SH "[{path}.limits]"', *_text(f"{each['description']} The keys are those of [limits]."))


def _value(key: Mapping[str, Any]) -> str:
    """What may stand there, and what holds where nothing does."""
    kind = " | ".join(f"\\(dq{_escaped(str(each))}\\(dq" for each in key.get("enum", ())) or _KINDS.get(
        str(key.get("type")), ""
    )
    bounds = [f"{word} {key[name]:g}" for name, word in _BOUNDS.items() if name in key]
    default = [f"default {_escaped(_toml(key['default']))}"] if "default" in key else []
    more = ", ".join([*bounds, *default])
    return f"{kind}{f' ({more})' if more else ''}"


_KINDS: Final = {
    "string": "\\fIstring\\fR",
    "integer": "\\fIwhole number\\fR",
    "number": "\\fInumber\\fR",
    "boolean": "\\fItrue\\fR | \\fIfalse\\fR",
    "array": "\\fIlist\\fR",
    "object": "\\fItable\\fR",
}
_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


# roff


def _escaped(text: str) -> str:
    r"""A text in which roff reads nothing else: ``\``, hyphens that people copy, and quotes."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return plain.replace('"', "\\(dq").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")


def _text(text: str) -> Iterator[str]:
    """A paragraph. A line must not begin as a request does."""
    words = re.sub(r"``(.+?)``|`(.+?)`", lambda found: found[1] or found[2], " ".join(text.split()))
    if words:
        yield f"\\&{_escaped(words)}" if words[0] in ".'" else _escaped(words)


def _block(text: str) -> Iterator[str]:
    """Lines as they stand."""
    if text.strip():
        yield from (".PP", ".nf", ".RS", *_unindented(text.splitlines()), ".RE", ".fi")


def _unindented(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"\\&{_escaped(line.removeprefix('  '))}"
