"""A command line with a model that gives scripted answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.conftest import entry
from tests.providers.endpoints import Steps, Web, openai_stream, streams  # type: ignore[attr-defined]

ECHO: Steps = (("use", "u1", "echo__echo", '{"text": "loud"}'), ("stop", "tools"))


OK: Steps = (("text", "so be it"), ("stop", "end"))


Says = Callable[..., Callable[[Any], None]]


@contextmanager
def model(
    tmp_path: Path, *answers: Steps, script: str = "echo.py", says: Says = streams
) -> Iterator[tuple[list[str], Web]]:
    """The first words of a command line whose model gives these answers, and the endpoint."""
    told = [says(*openai_stream(steps)) for steps in answers]
    with Web(lambda talk: (told.pop(0) if len(told) > 1 else told[0])(talk)) as web:
        path = tmp_path / "chat.toml"
        about = f'provider = "openai"\nmodel = "big"\nbase_url = "http://127.0.0.1:{web.port}/v1"'
        path.write_text(entry("echo").replace("echo.py", script) + f"[models.big]\n{about}\n")
        yield ["--config", str(path), "chat"], web
