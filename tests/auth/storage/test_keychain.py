"""A real keychain: what is written is there after a restart, and a keychain that cannot be had is a reason."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mcphost.auth.storage import tokens
from mcphost.auth.storage.credentials import Credentials
from mcphost.auth.storage.keychain import PART, Keychain, KeychainUnusable
from mcphost.auth.storage.tokens import TokenStore
from tests.auth.keyring_session import Session, daemon, end, session
from tests.auth.storage.grants import HELD

ROOT = Path(__file__).parents[3]
CANARY = "canary-7f3a"
LARGE = CANARY + "x" * 3 * PART

PROGRAM = """
import asyncio, sys
from mcphost.auth.storage.keychain import Keychain, KeychainUnusable

async def main(action, *names):
    keychain = Keychain("mcphost-test")
    for name in names:
        try:
            if action == "write":
                await keychain.write(name, sys.stdin.readline().strip())
            else:
                print(await getattr(keychain, action)(name))
        except KeychainUnusable as error:
            print(type(error).__name__, error)
    print(keychain.name, end="")

asyncio.run(main(*sys.argv[1:]))
"""


def another(env: dict[str, str], *arguments: str, stdin: str = "") -> list[str]:
    """The output of another process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=env,
        cwd=ROOT,
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def misled(env: dict[str, str], folder: Path) -> dict[str, str]:
    """With everything that could make the keyring library take another backend, or load foreign code."""
    (folder / "planted").mkdir()
    (folder / "planted" / "evil.py").write_text("raise SystemExit('planted code ran')")
    config = "[backend]\ndefault-keyring=evil.Keyring\nkeyring-path=" + str(folder / "planted")
    (Path(env["XDG_CONFIG_HOME"]) / "python_keyring").mkdir()
    (Path(env["XDG_CONFIG_HOME"]) / "python_keyring" / "keyringrc.cfg").write_text(config)
    return {**env, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


# The keyring library leaves its connection open where the keychain is locked.
pytestmark = [pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.hostile("C08", "C09")
@pytest.mark.requirement("AUTH-18")
def test_a_secret_is_encrypted_and_survives_a_restart(tmp_path: Path) -> None:
    """In the real one whatever the environment names, in parts where it is large."""
    with session(tmp_path) as first:
        env = misled(first.env, tmp_path)
        assert another(env, "write", "small", "large", stdin=f"{CANARY}\n{LARGE}\n") == ["SecretService"]
    kept = [path.read_bytes() for path in (tmp_path / "DATA_HOME").rglob("*") if path.is_file()]
    assert sum(map(len, kept)) > len(LARGE)
    assert not [content for content in kept if CANARY.encode() in content]
    with session(tmp_path) as second:
        env = {**env, **second.env}
        assert another(env, "read", "small", "large", "none") == [CANARY, LARGE, "None", "SecretService"]
        assert another(env, "delete", "small", "large", "none") == ["None"] * 3 + ["SecretService"]
        assert another(env, "read", "small", "large") == ["None", "None", "SecretService"]


@pytest.mark.hostile("C08")
@pytest.mark.parametrize("address", ["", "unix:path=/no/such/bus"])
def test_without_a_bus_no_keychain_is_found(address: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    env |= {"XDG_RUNTIME_DIR": str(tmp_path)} | ({"DBUS_SESSION_BUS_ADDRESS": address} if address else {})
    told = another(misled(env, tmp_path), "write", "a", stdin="x\n")
    assert told == ["NoKeychain this system has no keychain that mcphost knows"]


def test_only_trusted_keychain_backends_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('somebody else was loaded')")
    (tmp_path / "planted-1.dist-info").mkdir()
    (tmp_path / "planted-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1\n")
    (tmp_path / "planted-1.dist-info" / "entry_points.txt").write_text("[keyring.backends]\nplanted = planted\n")
    program = """
import sys
sys.addaudithook(lambda event, args: event == "subprocess.Popen" and print("runs", args[0]))
from mcphost.auth.storage.keychain import TRUSTED, NoKeychain, best_backend
try:
    best_backend()
except NoKeychain:
    print("none")
known = {*TRUSTED, "keyring.backends", "keyring.backends.fail"}
print({name for name in sys.modules if name.startswith("keyring.backends")} - known)
"""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", program], env=env, text=True, capture_output=True, timeout=60)
    assert (done.stdout, done.returncode) == ("none\nset()\n", 0), done.stderr


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with a keyring that was used before and starts locked; this process is in it."""
    with session(tmp_path) as before:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", before.env["DBUS_SESSION_BUS_ADDRESS"])
        _backend().set_password("mcphost-test", "old", "kept")
    with session(tmp_path, unlocked=False) as found:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", found.env["DBUS_SESSION_BUS_ADDRESS"])
        yield found


def _backend() -> Any:
    secret_service: Any = import_module("keyring.backends.SecretService")
    return secret_service.Keyring()


@pytest.mark.hostile("C08")
async def test_a_locked_keychain_works_once_unlocked(locked: Session) -> None:
    vault, clock = Keychain("mcphost-test", _backend), [0.0]
    store = TokenStore(vault, lambda secret: None, clock=lambda: clock[0])
    for attempt in (vault.read("old"), vault.write("new", "x"), vault.delete("old")):
        with pytest.raises(KeychainUnusable, match=r"^it is locked$"):
            await attempt
    assert await store.read("web") == Credentials()
    await store.write("web", HELD)
    assert store.place("web") == "in memory until mcphost ends: it is locked"
    locked.unlock()
    clock[0] += tokens.KEYCHAIN_PAUSE
    assert await vault.read("old") == "kept"
    assert await store.read("web", again=True) == HELD
    assert store.place("web") == "in the keychain (SecretService)"
    assert await TokenStore(vault, lambda secret: None).read("web") == HELD


@pytest.mark.hostile("C08")
async def test_a_keychain_that_is_killed_is_a_reason_and_costs_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(tmp_path) as here:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", here.env["DBUS_SESSION_BUS_ADDRESS"])
        clock = [0.0]
        store = TokenStore(Keychain("mcphost-test", _backend), lambda secret: None, clock=lambda: clock[0])
        assert await store.write("web", HELD)
        end(here.keyring)
        assert await store.read("web", again=True) == HELD
        assert await store.write("other", HELD) is False  # the bus starts another one, which is locked
        assert "locked" in store.place("other")
        here.keyring = daemon(here.env, "--replace", "--unlock")
        clock[0] += tokens.KEYCHAIN_PAUSE
        async with store.changing("other"):
            assert store.place("other") == "in the keychain (SecretService)"
