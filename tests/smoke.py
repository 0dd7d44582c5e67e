"""Tries an installed mcphost as its user would: its version, the demo on a terminal, and its diagnosis.

`python -m tests.smoke FOLDER` runs the program in FOLDER, which may be an environment that holds nothing but mcphost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mcphost import __version__
from tests.terminal import Terminal

SECONDS = 60


def main(folder: Path) -> None:
    """Fail if anything does not work. ``folder`` contains the program ``mcphost``."""
    program = str(folder.absolute() / "mcphost")
    for page in ("man1/mcphost.1", "man5/mcphost-config.5"):
        if not (folder.parent / "share" / "man" / page).is_file():
            raise SystemExit(f"the manual page {page} was not installed")
    with tempfile.TemporaryDirectory() as home:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR", "LANG", "LC_ALL")}
        env = {**kept, "HOME": home, "MCPHOST_KEYCHAIN": "off"}
        version = _answer(program, "--version", home=home, env=env)
        if version != f"mcphost {__version__}\n":
            raise SystemExit(f"--version says {version!r}")
        if "lighthouse" not in _answer(program, "help", "tour", home=home, env=env):
            raise SystemExit("the manual was not installed")
        with Terminal([program, "demo"], cwd=Path(home), env=env) as terminal:
            terminal.wait_for("demo", "Brew a storm")
            terminal.press("ctrl+q")
            if code := terminal.wait_exit():
                raise SystemExit(f"the demo ends with {code}:\n{terminal.text}")
        print(version, _answer(program, "doctor", home=home, env=env), sep="")


def _answer(*command: str, home: str, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ends with {done.returncode}:\n{(done.stdout + done.stderr).decode()}")
    return done.stdout.decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
