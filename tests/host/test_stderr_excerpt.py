"""Which line of a dead server's stderr is quoted."""

from __future__ import annotations

import time

import pytest

from mcphost.host.stderr_excerpt import LINES, most_telling

ARGPARSE = """usage: git [-h] --repository PATH
git.py: error: the following arguments are required: --repository
see https://example.com for help"""

CHAINED = """starting
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    import git
ModuleNotFoundError: No module named 'git'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "server.py", line 5, in <module>
    raise RuntimeError("git is needed")
RuntimeError: git is needed
shutting down
bye"""

GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "server.py", line 5, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | ValueError: API_KEY is not set
    +------------------------------------"""

VALIDATION = """pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_key
  Field required [type=missing, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev"""

NODE = """node:internal/modules/cjs/loader:1143
  throw err;
  ^

Error: Cannot find module '/nowhere/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15) {
  code: 'MODULE_NOT_FOUND',
}

Node.js v18.19.0"""

NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.example/nothing
npm error 404
npm error 404  The requested resource 'nothing@*' could not be found.
npm error A complete log of this run can be found in: /var/log/npm.log"""

CAUSE = """error: No solution found when resolving tool dependencies
  cause: Because nothing was not found in the registry, it cannot be installed.
hint: try again"""

PANIC = """thread 'main' panicked at src/main.rs:2:5:
no token
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""

LOG = """2026-01-01 10:00:00 INFO starting
2026-01-01 10:00:01 ERROR cannot open the database
2026-01-01 10:00:02 INFO bye"""


@pytest.mark.parametrize(
    ("stderr", "quoted"),
    [
        (ARGPARSE, "git.py: error: the following arguments are required: --repository"),
        (CHAINED, "RuntimeError: git is needed"),
        (GROUP, "ValueError: API_KEY is not set"),
        (
            VALIDATION,
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings"
            " · api_key · Field required [type=missing, input_value={}, input_type=dict]",
        ),
        (NODE, "Error: Cannot find module '/nowhere/index.js'"),
        (NPM, "npm error 404 Not Found - GET https://registry.example/nothing"),
        (
            CAUSE,
            "error: No solution found when resolving tool dependencies"
            " · cause: Because nothing was not found in the registry, it cannot be installed.",
        ),
        (PANIC, "thread 'main' panicked at src/main.rs:2:5: no token"),
        (LOG, "2026-01-01 10:00:01 ERROR cannot open the database"),
        ("Traceback (most recent call last):\nAssertionError\nbye", "AssertionError"),
        ("python3: No module named nope\n\n", "python3: No module named nope"),
        ("0 errors found\nlast words", "last words"),
        ("", ""),
    ],
)
def test_the_message_of_an_error_is_quoted_and_else_the_last_line(stderr: str, quoted: str) -> None:
    assert most_telling(stderr.splitlines()) == quoted


def test_an_error_long_before_the_end_is_not_the_reason() -> None:
    assert most_telling(["error: a request failed", *["working"] * LINES]) == "working"


def test_long_hostile_lines_take_no_time() -> None:
    lines = ["error" * 1600, "a: " * 2700, "npm error " + "x " * 4000, " |" * 4000] * 20
    began = time.process_time()
    most_telling(lines)
    assert time.process_time() - began < 0.5
