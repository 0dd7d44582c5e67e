"""The address of ``mcphost gate URL``, with its headers and what takes the place of a program there; own addresses."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final
from urllib.parse import urlsplit

from mcphost.config.fields import HEADER_NAME, reason_against_url
from mcphost.config.servers import is_protocol_header
from mcphost.errors import UsageError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import Mask, secret_parameters
from mcphost.shim import Shim

ENDING: Final = {
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL")
    if name in signal.Signals.__members__
}  # fmt: skip
"""Signals that end a program which does not handle them. Some are missing on Windows."""


@dataclass(frozen=True, slots=True)
class GatedAddress:
    url: str
    headers: Mapping[str, str] = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


class AddressShim(Shim):
    """A shim whose program is a connection to an address, in a thread of this process."""

    def __init__(self, address: GatedAddress, advice: Callable[[], str], mask: Mask) -> None:
        from mcphost.composition.gated_addresses import AddressProgram  # late: a program's gate does without

        super().__init__([address.url])
        self._program = AddressProgram(address.url, address.headers, advice, mask)
        self._signal = 0

    def spawn(self, streams: Sequence[int]) -> int:
        self._program.start([os.dup(each) for each in streams])
        return os.getpid()

    def wait(self) -> int:
        code = self._program.wait()
        return -self._signal if self._signal else code

    def signal(self, number: int) -> None:
        if number in ENDING:
            self._signal = self._signal or number
            self._program.stop()


def address_of(options: Namespace, env: Mapping[str, str]) -> GatedAddress | None:
    """The address in the place of a program; None for a program. Raises UsageError."""
    given = [*options.words, *(getattr(options, "program", None) or ())]
    named = getattr(options, "header_env", None) or [], getattr(options, "bearer_env", None)
    if not (len(given) == 1 and given[0].casefold().startswith(("http://", "https://"))):
        if any(named):
            raise UsageError("--header-env and --bearer-env are for an address; a program gets the environment")
        return None
    url = given[0]
    if reason := reason_against_url(url):
        raise UsageError(f"{show_line(url, 200)} {reason}")
    if any(secret_parameters(url)):
        raise UsageError("the address holds a secret, which every user can read there; send it with --header-env")
    return GatedAddress(url, _headers(*named, env))


def own_port(address: str) -> int:
    """The port of an address at which mcphost is to listen; 0: any that is free. Raises UsageError."""
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise UsageError(f"{show_line(address, 200)!a}: write the address as 127.0.0.1:PORT")
    if host not in ("127.0.0.1", "localhost"):
        raise UsageError(f"{show_line(address, 200)!a}: mcphost listens on this machine only; write 127.0.0.1:{port}")
    return int(port)


def _headers(named: Sequence[str], bearer: str | None, env: Mapping[str, str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for each in named:
        name, _, variable = each.partition("=")
        if not HEADER_NAME.fullmatch(name) or not variable:
            raise UsageError(f"--header-env {show_line(each, 100)}: write HEADER=VARIABLE, such as X-API-Key=DOCS_KEY")
        if is_protocol_header(name):
            raise UsageError(f"--header-env {name}: the protocol sets this header itself")
        if name.lower() in map(str.lower, headers):
            raise UsageError(f"--header-env {name}: the header is given twice")
        headers[name] = _value(variable, "--header-env", env)
    if bearer is not None:
        if "authorization" in map(str.lower, headers):
            raise UsageError("--bearer-env and --header-env both give the header Authorization")
        headers["Authorization"] = f"Bearer {_value(bearer, '--bearer-env', env)}"
    return headers


def _value(variable: str, option: str, env: Mapping[str, str]) -> str:
    value = env.get(variable, "").strip()
    if not value:
        raise UsageError(f"{option}: the environment variable {show_line(variable, 100)} is not set, or empty")
    if not value.isascii() or not value.isprintable():
        raise UsageError(f"{option}: the value of {show_line(variable, 100)} holds what no header can carry")
    return value
