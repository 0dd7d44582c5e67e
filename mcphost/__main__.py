"""``python -m mcphost``."""

from __future__ import annotations

import sys

from mcphost.cli import main

if __name__ == "__main__":
    sys.exit(main())
