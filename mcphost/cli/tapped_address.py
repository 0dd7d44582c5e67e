"""``mcphost tap URL``: an address of this machine that stands for a server's, and shows what passes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from argparse import Namespace
from collections.abc import Callable

from mcphost.cli.addresses import address_of, own_port
from mcphost.cli.observing import check_redactions, claim_record, observer_of
from mcphost.cli.output import Exit, Signalled, remark
from mcphost.cli.run import run
from mcphost.composition.tapped_address import TappedAddress
from mcphost.errors import NotDone
from mcphost.json_values import as_dict
from mcphost.protocol.display import show_line
from mcphost.redaction import MASK, is_secret_header
from mcphost.serving.http_relay import HttpRelay
from mcphost.shim import Observer, Shim

HEAD_CHARACTERS = 4000
"""Characters of a request's or response's head in the record."""


def run_address_tap(options: Namespace) -> int:
    """Relay until a signal or the screen ends it. Raises UsageError, ConnectionLost or NotDone."""
    address = address_of(options, os.environ)
    assert address is not None
    check_redactions(options)
    if options.recorded_by == "record":
        claim_record(options, options.name or address.host)
    port, secrets = own_port(options.listen or "127.0.0.1:0"), _SeenSecrets()
    more = {"command": None, "url": address.url, "child": None}
    observer = observer_of("tap", options.name or address.host, Shim([address.url]), options, more)
    observer.masked = secrets.mask
    try:
        return run(_relay(address.url, port, observer, secrets))
    except Signalled as signalled:
        if signalled.number == signal.SIGINT:
            return Exit.DONE
        raise
    finally:
        observer.close()


async def _relay(url: str, port: int, observer: Observer, secrets: _SeenSecrets) -> int:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def received(line: bytes) -> None:
        if _is_disconnect(line):
            loop.call_soon_threadsafe(ended.set)

    observer.received = received
    copies = _Copies(observer)
    tapped = TappedAddress(url, copies, secrets.add)
    relay = HttpRelay(tapped.exchange, copies, _once(lambda: remark(f"{show_line(url)} wants a sign-in. {SIGN_IN}")))
    try:
        try:
            bound = await relay.open(port)
        except OSError as error:
            raise NotDone(f"mcphost cannot listen at 127.0.0.1:{port}: {error.strerror or error}") from None
        observer.open()
        own = f"http://127.0.0.1:{bound}{tapped.path}"
        remark(f"{own} stands for {show_line(url)} until ctrl+c; put it into the agent's configuration")
        await ended.wait()
    finally:
        await relay.aclose()
        await tapped.aclose()
    return Exit.DONE


SIGN_IN = (
    "That cannot pass through a tap, since it names the server's own address. "
    "Instead use mcphost gate URL --bearer-env VARIABLE, or add the server to mcphost and use mcphost serve"
)


class _Copies:
    """Gives copies to an observer as the streams of a program: a message a line; see `MessageObserver`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def sent(self, data: bytes) -> None:
        self._observer.take("agent", _line(data))

    def received(self, data: bytes) -> None:
        self._observer.take("server", _line(data))

    def noted(self, kind: str, text: str) -> None:
        head = "; ".join(text.splitlines())[:HEAD_CHARACTERS]
        self._observer.take("stderr", head.encode("utf-8", "replace") + b"\n")


class _SeenSecrets:
    """Masks the values of secret headers that passed, in what passes: the server may repeat them."""

    def __init__(self) -> None:
        self._values: tuple[bytes, ...] = ()

    def add(self, name: str, value: str) -> None:
        word = value.rpartition(" ")[2].encode()
        if is_secret_header(name) and len(word) >= MIN_SECRET and word not in self._values:
            self._values = (*self._values, word)[-MOST_SECRETS:]

    def mask(self, line: bytes) -> bytes:
        for value in self._values:
            line = line.replace(value, MASK.encode())
        return line


MIN_SECRET = 8
"""Characters of a value that is masked wherever it is: shorter ones are in other words, too."""

MOST_SECRETS = 100


def _line(data: bytes) -> bytes:
    return b" ".join(data.splitlines()) + b"\n"


def _is_disconnect(line: bytes) -> bool:
    try:
        return as_dict(json.loads(line)).get("type") == "disconnect"
    except (ValueError, RecursionError):
        return False


def _once(act: Callable[[], None]) -> Callable[[], None]:
    done = False

    def once() -> None:
        nonlocal done
        if not done:
            done = True
            act()

    return once
