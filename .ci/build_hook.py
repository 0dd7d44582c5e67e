"""What is put into a wheel besides the package: the manual pages, or the path of an editable installation.

The pages are made from the code that is packaged. The path is written as bytes, since Python reads a .pth file in
the locale's encoding; hatchling's own way around that costs each start of Python 20 ms.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelContents(BuildHookInterface[Any]):
    """Writes the files into the build folder, and removes them after the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._written: list[Path] = []
        if version == "editable":
            path = self._write(
                "mcphost-editable.pth", f"import os, sys; sys.path.append(os.fsdecode({os.fsencode(self.root)!r}))\n"
            )
            build_data["force_include_editable"][str(path)] = path.name
            return
        sys.path.insert(0, self.root)
        from mcphost.cli.man_pages import command_page, configuration_page

        for name, text in (("mcphost.1", command_page()), ("mcphost-config.5", configuration_page())):
            build_data["shared_data"][str(self._write(name, text))] = f"share/man/man{name[-1]}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        for path in self._written:
            path.unlink()

    def _write(self, name: str, text: str) -> Path:
        path = Path(self.directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._written.append(path)
        return path
