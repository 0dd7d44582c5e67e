"""The manual pages as roff, made from the parser and from the reference of the configuration.

mcphost(1) needs no library, so that building a package needs none for it. argparse-manpage was judged and not taken:
it runs at build time, and ``mcphost man`` prints the pages where none is installed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mcphost import __version__
from mcphost.cli.parser import COMMANDS, STREAMS, command_parser

ENVIRONMENT: Final = {
    "MCPHOST_CONFIG": "The configuration file, in place of the one in your configuration folder.",
    "MCPHOST_STATE_DIR": "The state folder, in place of the platform's.",
    "MCPHOST_KEYCHAIN": "off: mcphost does not use the keychain; tokens last until it exits.",
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY": "Proxies for servers, sign-ins and models; never for this machine.",
    "SSL_CERT_FILE, SSL_CERT_DIR": "Certificate authorities, in place of the bundled ones.",
    "NO_COLOR": "mcphost shows no colours.",
    "FORCE_COLOR, CLICOLOR_FORCE": "Tables have colours in a pipe, too.",
    "VISUAL, EDITOR, PAGER": "The editor and the pager that the screen opens.",
}

FILES: Final = {
    "~/.config/mcphost/config.toml": "Your configuration; mcphost config path prints the place on your system.",
    "~/.config/mcphost/servers.toml": "Servers that mcphost added for you.",
    "mcphost.toml": "A project's servers, in its folder; used after mcphost config trust.",
    "~/.local/state/mcphost": "The state folder: approvals, the audit log, conversations, crashes.",
}

MANUAL: Final = "The manual has a page for each topic: mcphost help lists them."


def command_page() -> str:
    """Return mcphost(1)."""
    return "\n".join(_command_lines()) + "\n"


def configuration_page() -> str:
    """Return mcphost-config(5)."""
    return "\n".join(_configuration_lines()) + "\n"


def _command_lines() -> Iterator[str]:
    parser = command_parser()
    yield from _head("MCPHOST", 1, "User Commands", "mcphost", "a terminal host for the Model Context Protocol")
    yield from (".SH SYNOPSIS", ".B mcphost", "[\\fIoptions\\fR] [\\fICOMMAND\\fR [\\fIarguments\\fR]]")
    yield from (".SH DESCRIPTION", *_text(parser.description or ""), *_block(STREAMS), ".PP", *_text(MANUAL))
    yield from (".SH OPTIONS", *_arguments(parser), ".SH COMMANDS")
    for name, command in COMMANDS.items():
        its_parser = parser.commands[name]
        yield f'.SS "{_escaped(" ".join(["mcphost", name, *_positional(its_parser)]))}"'
        yield from (
            *_text(command.about),
            *_arguments(its_parser, but=("-h", "--traffic", "--redact")),
            *_block(command.more),
        )
        yield from (".PP", "Examples:", *_block(command.examples))
    yield from (".SH ENVIRONMENT", *_definitions(ENVIRONMENT), ".SH FILES", *_definitions(FILES))
    yield from (".SH SEE ALSO", ".BR mcphost\\-config (5)")


def _configuration_lines() -> Iterator[str]:
    from mcphost.manual.configuration import REFERENCES, documented_tables  # late: it needs pydantic

    yield from _head("MCPHOST-CONFIG", 5, "File Formats", "mcphost-config", "the configuration of mcphost")
    yield ".SH DESCRIPTION"
    yield from _text("The configuration is TOML. Every key is optional unless it says otherwise.")
    yield from _text("mcphost config check reports mistakes; mcphost config schema prints a JSON Schema for editors.")
    yield from (".PP", *_text("Strings may hold references, which are looked up when they are used:"))
    yield from (*_definitions(REFERENCES), ".PP", *_text(MANUAL))
    for table in documented_tables():
        yield from (f'.SH "[{_escaped(table.path)}]"', *_text(table.about))
        for key in table.keys:
            value = " | ".join(map(_escaped, key.choices)) or f"\\fI{key.kind}\\fR"
            limits = f" ({_escaped(key.limits)})" if key.limits else ""
            yield from (".TP", f"\\fB{_escaped(key.name)}\\fR = {value}{limits}", *_text(key.about))
    yield from (".SH FILES", *_definitions(FILES), ".SH SEE ALSO", ".BR mcphost (1)")


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


def _escaped(text: str) -> str:
    r"""Escape what roff reads as markup: ``\``, hyphens that people copy, and quotes."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return plain.replace('"', "\\(dq").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")


def _text(text: str) -> Iterator[str]:
    words = re.sub(r"``(.+?)``|`(.+?)`", lambda found: found[1] or found[2], " ".join(text.split()))
    if words:  # a line that begins with a period or an apostrophe would be a request
        yield f"\\&{_escaped(words)}" if words[0] in ".'" else _escaped(words)


def _block(text: str) -> Iterator[str]:
    """Lines as they are, without an indent of two."""
    if text.strip():
        lines = (f"\\&{_escaped(line.removeprefix('  '))}" for line in text.splitlines())
        yield from (".PP", ".nf", ".RS", *lines, ".RE", ".fi")
