"""A server that asks, and one of its questions."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from tests.cli.conftest import ECHO

ASKS = f"stdio:{shlex.join([sys.executable, '-S', '-E', str(ECHO.with_name('asks.py'))])}"


ELICIT = "elicitation/create"


PAGE: dict[str, Any] = {
    "method": ELICIT,
    "params": {"mode": "url", "message": "Look", "url": "https://example.com/x", "elicitationId": "e"},
}
