"""``mcphost secret``: keeps secrets in the keychain, for ``${keyring:NAME}``. No value is an argument, or printed."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Final

from mcphost.cli.approver import typed_line
from mcphost.cli.output import Exit, Outcome, is_terminal, json_text, remark, table
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find, read_settings
from mcphost.cli.terminal import secret_problem
from mcphost.composition import SecretItems, secret_items
from mcphost.config import Config, references_within, state_folder
from mcphost.errors import ConfigError, UsageError
from mcphost.imports.remembered import ImportRecords
from mcphost.lazy_dataclass import dataclass

MAX_SECRET: Final = 64 * 1024
"""Bytes of a secret: a key or a token, not a document."""

_NAME: Final = re.compile(r"[^\x00-\x20{}\x7f-\xa0][^\x00-\x1f{}\x7f-\x9f]{0,199}")


@dataclass(frozen=True, slots=True)
class _Store:
    """The keychain, and the record of the items that mcphost put there."""

    keychain: SecretItems
    records: ImportRecords


def run_secret(options: Namespace) -> int:
    if options.traffic is not None:
        raise UsageError("--traffic: this command connects to no server")
    if options.action == "list" and options.names:
        raise UsageError("list takes no NAME")
    if options.action != "list" and not options.names:
        raise UsageError(f"{options.action} needs a NAME")
    if options.action == "set" and len(options.names) > 1:
        raise UsageError("set takes one NAME; its value is asked for, or read from stdin, and is never an argument")
    for name in options.names:
        if not _NAME.fullmatch(name):
            raise UsageError("a NAME has up to 200 characters, none of them a brace or a control character")
    store = _opened(os.environ)
    if options.action == "set":
        return finish(run(_set(store, options.names[0])))
    if options.action == "forget":
        return finish(run(_forget(store, options.names)))
    config = read_settings(find(options.config, os.environ), os.environ).loaded.config
    return finish(run(_list(store, config, as_json=options.json)))


async def _set(store: _Store, name: str) -> Outcome:
    secret = await typed_line(f"Secret {name} (not shown): ", hidden=True) if is_terminal(sys.stdin) else _piped()
    if not secret:
        raise ConfigError(f"{name}: nothing was given, and nothing was stored")
    if problem := secret_problem(secret, lines=not is_terminal(sys.stdin)):
        raise ConfigError(f"{name}: {problem}; nothing was stored, give it again")
    there = await store.keychain.read(name) is not None
    await store.keychain.write(name, secret)
    store.records.add_item(name)
    words = "was replaced in the keychain" if there else "is in the keychain"
    return Outcome(f"{name} {words}; refer to it by ${{keyring:{name}}}\n")


async def _forget(store: _Store, names: Sequence[str]) -> Outcome:
    missing = [name for name in names if await store.keychain.read(name) is None]
    for name in names:
        await store.keychain.delete(name)
        store.records.drop_item(name)
    lines = [f"{name} {'was not in the keychain' if name in missing else 'is forgotten'}\n" for name in names]
    return Outcome("".join(lines), Exit.USAGE if len(missing) == len(names) else Exit.DONE)


async def _list(store: _Store, config: Config, *, as_json: bool) -> Outcome:
    used = used_items(config)
    rows, remarks = [("NAME", "IN THE KEYCHAIN", "USED BY")], list[str]()
    objects = list[Mapping[str, object]]()
    for name in sorted({*store.records.items(), *used}):
        stored: bool | None = None
        if not remarks:
            try:
                stored = await store.keychain.read(name) is not None
            except ConfigError as error:
                remarks.append(str(error))
        by = used.get(name, ())
        rows.append((name, {True: "yes", False: "no", None: "?"}[stored], ", ".join(by) or "nothing"))
        objects.append({"name": name, "stored": stored, "usedBy": list(by)})
    if as_json:
        return Outcome("".join(map(json_text, objects)), remarks=tuple(remarks))
    if not objects:
        remarks.append("no secret is kept; to keep one: mcphost secret set NAME")
    return Outcome(table(rows) if objects else "", remarks=tuple(remarks))


def used_items(config: Config) -> dict[str, tuple[str, ...]]:
    """The keychain items that the configuration refers to, with the fields that do."""
    used: dict[str, list[str]] = {}
    for section, entries in (("servers", config.servers), ("models", config.models)):
        for name, entry in entries.items():
            for key, reference in references_within(entry.model_dump(), f"{section}.{name}"):
                if reference.kind == "keyring":
                    used.setdefault(reference.name, []).append(key)
    return {name: tuple(keys) for name, keys in used.items()}


def _opened(env: Mapping[str, str]) -> _Store:
    keychain = secret_items(env)
    if keychain is None:
        raise ConfigError("no keychain is used here (MCPHOST_KEYCHAIN=off)")
    return _Store(keychain, ImportRecords(state_folder(env), remark))


def _piped() -> str:
    """All of stdin, without the line end that most programs write. Raises ConfigError."""
    content = sys.stdin.buffer.read(MAX_SECRET + 1)
    if len(content) > MAX_SECRET:
        raise ConfigError(f"a secret has at most {MAX_SECRET:,} bytes")
    try:
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigError("a secret is UTF-8 text") from None
