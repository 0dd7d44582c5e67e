"""The composition root: builds a host's transports, stores, sign-in and models from the configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcphost import __version__
from mcphost.composition.detected_transports import DetectedTransports
from mcphost.composition.models import ConfiguredModels
from mcphost.composition.secret_items import SecretItems, keychain_is_used, secret_items
from mcphost.composition.selection import Selection, is_ad_hoc, select, select_entries, server_from_argument
from mcphost.composition.sign_in import SignIns, has_sign_in, hosted_document
from mcphost.composition.transports import open_transport
from mcphost.config import (
    KEYRING_SERVICE,
    Config,
    ModelConfig,
    ServerConfig,
    Values,
    resolve_roots,
    state_folder,
    users_path,
)
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.host.consent.questions import Approver
from mcphost.host.dependencies import Dependencies
from mcphost.host.desktop import Open, no_browser
from mcphost.host.traffic.book import TrafficBook
from mcphost.transports.base import Transport
from mcphost.transports.stdio.pid_files import PidFiles
from mcphost.transports.stdio.usage import usage_of

if TYPE_CHECKING:
    from mcphost.config.calls import CallsFile
    from mcphost.host.traffic.redactions import TrafficTarget

__all__ = [
    "SecretItems",
    "Selection",
    "calls_file",
    "demo_config",
    "dependencies",
    "has_sign_in",
    "hosted_document",
    "is_ad_hoc",
    "keychain_is_used",
    "secret_items",
    "select",
    "select_entries",
    "server_from_argument",
    "values_for",
]


def dependencies(
    approver: Approver,
    values: Values,
    *,
    state: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
    refused: dict[str, ConfigError] | None = None,
    traffic_target: TrafficTarget | None = None,
    open_url: Open = no_browser,
    begin_sign_ins: bool = True,
    prefetch: bool = True,
    answers: frozenset[str] = frozenset(),
    roots: Sequence[Path] = (),
) -> Dependencies:
    """Build the parts that a host needs besides its configuration.

    ``state`` is the folder for what is learned and for the audit log (None: nothing is kept); ``report`` takes a
    sentence for the user when a file in it was damaged, or a server of a killed mcphost still runs; ``refused`` takes
    the servers that could not run as they are configured. ``traffic_target`` takes all that passes in this run.
    ``open_url`` opens the page of a sign-in; ``begin_sign_ins`` says whether a call that needs one begins it;
    ``prefetch`` whether resources and prompts are listed before they are used.
    ``answers`` is what the approver can answer of what servers ask; ``roots`` are folders that all of them may know of.
    """
    traffic = TrafficBook(values.mask)
    noted = {} if refused is None else refused
    store = None if state is None else StateStore(state, report)
    detected = DetectedTransports(store, report)
    pid_files = None if state is None else PidFiles(state / "running")
    for leftover in pid_files.leftovers() if pid_files else ():
        report(str(leftover))

    models = ConfiguredModels(values)
    sign_ins = SignIns(values, state_folder(os.environ) / "locks", keychain=keychain_is_used(os.environ))

    async def opened(config: Config, name: str) -> Transport:
        noted.pop(name, None)
        try:
            return await open_transport(
                config,
                values,
                name,
                observer=traffic.tap(name),
                detected=detected,
                pid_files=pid_files,
                sign=sign_ins.presenter,
            )
        except ConfigError as error:
            noted[name] = error
            raise

    def audit_sign_ins(before: Callable[[Mapping[str, Any]], Awaitable[None]]) -> None:
        sign_ins.audit = before

    async def forget(config: Config, name: str) -> Sequence[str]:
        return await sign_ins.forget(config, name, detected)

    async def close() -> None:
        await models.aclose()
        await sign_ins.aclose()

    return Dependencies(
        opened,
        approver,
        __version__,
        store=store,
        audit_path=None if state is None else state / "audit.jsonl",
        chats_path=None if state is None else state / "chats",
        history_path=None if state is None else state / "history.sqlite",
        mask=values.mask,
        traffic=traffic,
        traffic_target=traffic_target,
        answers=answers,
        roots=tuple(roots),
        resolve_roots=lambda config, name: resolve_roots(config, values, name),
        sign_in=sign_ins.port,
        identity=sign_ins.identity,
        audit_sign_ins=audit_sign_ins,
        open_url=open_url,
        begin_sign_ins=begin_sign_ins,
        prefetch=prefetch,
        measure=usage_of,
        forget=forget,
        open_calls=lambda config: calls_file(config, values),
        models=models,
        program_values=values.without_keychain(),
        close=close,
    )


def calls_file(config: Config, values: Values) -> CallsFile:
    """The saved calls beside the configuration in use."""
    from mcphost.config.calls import CallsFile  # late: few runs need them

    return CallsFile.beside(config.path, users_path(os.environ), values)


def values_for(config: Config, env: Mapping[str, str]) -> Values:
    """Resolves the references of ``config``; relative paths start at its file's folder."""
    keychain = _from_keychain if keychain_is_used(env) else None
    return Values(env, keychain, None if config.path is None else config.path.absolute().parent)


def _from_keychain(name: str) -> str | None:
    from mcphost.auth.storage.keychain import (  # late: few configurations need it
        KeychainUnusable,
        NoKeychain,
        given_secret,
    )

    try:
        return given_secret(KEYRING_SERVICE, name)
    except KeychainUnusable as error:
        instead = "; use an environment variable or a file instead" if isinstance(error, NoKeychain) else ""
        raise ConfigError(f"the keychain could not be asked for {name}: {error}{instead}") from None


def demo_config(era: Literal["legacy", "modern"] = "legacy") -> Config:
    """A configuration with the built-in demo server and the demo's script in place of a language model.

    The server speaks revisions of both eras; ``era`` says in which it is spoken to.
    """
    from mcphost.providers.demo_script import NAME  # late: only the demo needs it

    # -P keeps the working directory, which may be anybody's project, off the import path.
    demo = ServerConfig.model_construct(command=sys.executable, args=("-P", "-m", "mcphost.demo"), protocol=era)
    script = ModelConfig.model_construct(provider="demo", model=NAME)
    return Config.model_construct(servers={"demo": demo}, models={"demo-script": script})
