"""Who gets what is sent to a server, in words: what a dialog shows and an approval is bound to."""

from __future__ import annotations

import shlex

from mcphost.config import ServerConfig


def sent_to(config: ServerConfig) -> str:
    """What runs the server, as configured: command line or URL, folder, and the names of what it is given besides.

    References stay references, and no value is told. What is quoted in the command line cannot pass for the rest.
    """
    line = config.url or shlex.join([config.command or "", *config.args])
    given = sorted({*config.env, *config.env_vars, *config.http_headers, *config.env_http_headers})
    more = [f"in {shlex.quote(config.cwd)}"] if config.cwd else []
    more += [f"given {shlex.join(given)}"] if given else []
    return f"{line} ({', '.join(more)})" if more else line
