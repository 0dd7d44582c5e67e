"""Puts the manual pages into the wheel, where ``man`` finds them: made from the code that is packaged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface[Any]):
    """Makes both pages in the build folder; an editable install has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from mcphost.cli.manual import command_page, configuration_page

        folder = Path(self.directory) / "man"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("mcphost.1", command_page()), ("mcphost-config.5", configuration_page())):
            (folder / name).write_text(text, encoding="utf-8")
            build_data["shared_data"][str(folder / name)] = f"share/man/man{name[-1]}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        for path in (Path(self.directory) / "man").glob("*.[15]"):
            path.unlink()
        if (Path(self.directory) / "man").is_dir():
            (Path(self.directory) / "man").rmdir()
