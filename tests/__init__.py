"""The tests. Python keeps what it compiles for them, also where ``PYTHONDONTWRITEBYTECODE`` says that it shall not.

Containers often say so; each worker, and each process that the tests start, would then compile all its imports again.
"""

from __future__ import annotations

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
