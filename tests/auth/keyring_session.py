"""A real keychain for tests: a private bus with a GNOME keyring on it, away from the user's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory

import pytest

PROGRAMS = ("dbus-daemon", "dbus-send", "gnome-keyring-daemon")
PASSWORD = "not empty"  # an empty one makes no keyring
STARTS, SECONDS = 3, 7.0

WHO = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"]
WHO += ["org.freedesktop.DBus.GetConnectionUnixProcessID", "string:org.freedesktop.secrets"]


@dataclass
class Session:
    """``env`` is that of a program in the session."""

    env: dict[str, str]
    folder: Path
    keyring: Popen[bytes]

    def unlock(self) -> None:
        """As its owner would: a daemon that is open takes the place of the locked one."""
        end(self.keyring)
        self.keyring = daemon(self.env, "--replace", "--unlock")


def installed() -> bool:
    """True if a keyring can be started on this machine."""
    return all(map(shutil.which, PROGRAMS))


@contextmanager
def session(folder: Path, *, unlocked: bool = True) -> Iterator[Session]:
    """A session whose keyring is kept in ``folder``; skips where the programs for it are not installed."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"no keychain can be started: {', '.join(missing)} not installed (packages gnome-keyring and dbus)")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    for name in ("DATA_HOME", "CONFIG_HOME", "CACHE_HOME"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        env[f"XDG_{name}"] = str(folder / name)
    with ExitStack() as after:
        # Somewhere near: the path of a socket may have no more than 107 bytes.
        env["XDG_RUNTIME_DIR"] = after.enter_context(TemporaryDirectory(prefix="keyring-"))
        command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
        bus = Popen(command, env=env, stdout=PIPE, stderr=DEVNULL)
        after.callback(end, bus)
        assert bus.stdout is not None
        env["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()
        found = Session(env, folder, daemon(env, *(["--unlock"] if unlocked else ["--start"])))
        after.callback(lambda: end(found.keyring))
        yield found


def daemon(env: dict[str, str], *how: str) -> Popen[bytes]:
    """A keyring, once it is the one that is asked; started again where the bus started another before it was there."""
    for _ in range(STARTS):
        found = _started(env, *how)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if subprocess.run(WHO, env=env, capture_output=True).stdout.endswith(b"uint32 %d\n" % found.pid):
                return found
            time.sleep(0.01)
        end(found)
        how = ("--replace", "--unlock") if "--unlock" in how else how
    raise AssertionError("the keyring does not start")


def _started(env: dict[str, str], *how: str) -> Popen[bytes]:
    command = ["gnome-keyring-daemon", "--foreground", "--components=secrets", *how]
    found = Popen(command, env=env, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    assert found.stdin is not None
    found.stdin.write(PASSWORD.encode())
    found.stdin.close()
    return found


def end(program: Popen[bytes]) -> None:
    program.kill()
    program.wait()
    if program.stdout is not None:
        program.stdout.close()
