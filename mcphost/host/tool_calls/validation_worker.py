"""The child process of `mcphost.host.tool_calls.validation`: one check, then the end; started by ``python -m``.

It writes ``ready`` once everything is imported, reads ``{"schema", "instance"}`` from stdin to its end, and writes
either ``{"problems": [[path, message], …]}`` or ``{"refused": sentence}``. It bounds its own memory and processor time,
so that it ends even if its parent was killed.
"""

from __future__ import annotations

import json
import sys

import jsonschema_rs  # noqa: F401  # imported before "ready", so that it costs no checking time

from mcphost.protocol.schema.validation import SchemaRefused, problems

MEMORY = 1 << 30
"""Bytes of address space; a check that needs more is one that explodes."""

PROCESSOR_SECONDS = 30


def main() -> None:
    """Do one check."""
    _bound()
    print("ready", flush=True)
    request = json.load(sys.stdin)
    print(json.dumps(_answer(request["schema"], request["instance"])), flush=True)


def _answer(schema: object, instance: object) -> dict[str, object]:
    try:
        return {"problems": [(problem.path, problem.message) for problem in problems(schema, instance)]}
    except SchemaRefused as refused:
        return {"refused": str(refused)}


def _bound() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
