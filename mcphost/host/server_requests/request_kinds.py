"""The kinds of server requests that a front end can answer."""

from __future__ import annotations

from typing import Final

FORM, URL, ROOTS, SAMPLING, WRITING = "form", "url", "roots", "sampling", "writing"

DIALOG_KINDS: Final = frozenset({FORM, URL, ROOTS})
"""The kinds of server request that a front end with dialogs answers, except sampling."""

SCREEN_KINDS: Final = DIALOG_KINDS | {SAMPLING, WRITING}
"""All kinds; ``WRITING``: the user can also write the answer instead of a model."""
