"""Options of a script on the command line, as argparse reads them.

Importing argparse takes as long as the rest of a script's start; it is left to what is not plain: help, mistakes,
and values that begin with a dash.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace

TYPE_CHECKING = False  # importing typing takes a tenth of a script's start
if TYPE_CHECKING:
    from typing import Any

Options = SimpleNamespace


class OptionsParser:
    """Knows what `add_argument` has added, with the keywords of argparse; options have one name, which is long."""

    def __init__(self, description: str | None) -> None:
        self._description = description
        self._added: dict[str, dict[str, Any]] = {}

    def add_argument(self, name: str, **keywords: Any) -> None:
        self._added[name] = keywords

    def parse_args(self) -> Options:
        """Return the options of this process; ends it after help or a mistake."""
        found = self._plain(sys.argv[1:])
        return self._with_argparse() if found is None else found

    def _plain(self, words: Sequence[str]) -> Options | None:
        """Return what the words say; None if there is one that argparse must read."""
        values = {name: each.get("default", _default(each)) for name, each in self._added.items()}
        missing = [name for name, each in self._added.items() if name[0] != "-" or each.get("required")]
        remaining = iter(words)
        for word in remaining:
            name, keywords = word, self._added.get(word)
            if keywords and keywords.get("action") == "store_true":
                values[name] = True
                continue
            if keywords is None and missing:
                name, keywords = missing[0], self._added[missing[0]]
            elif keywords:
                word = next(remaining, "-")
            if keywords is None or word[:1] == "-" or word not in keywords.get("choices", (word,)):
                return None
            try:
                value = keywords.get("type", str)(word)
            except ValueError:
                return None
            values[name] = [*values[name], value] if keywords.get("action") == "append" else value
            if name in missing:
                missing.remove(name)
        return None if missing else Options(**{name.lstrip("-").replace("-", "_"): values[name] for name in values})

    def _with_argparse(self) -> Options:
        import argparse

        formatter = argparse.RawDescriptionHelpFormatter
        parser = argparse.ArgumentParser(description=self._description, formatter_class=formatter)
        for name, keywords in self._added.items():
            parser.add_argument(name, **keywords)
        return parser.parse_args(namespace=Options())


def _default(keywords: dict[str, Any]) -> object:
    return False if keywords.get("action") == "store_true" else None
