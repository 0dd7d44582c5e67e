"""``mcphost man``: prints a manual page, for systems where none is installed."""

from __future__ import annotations

from argparse import Namespace

from mcphost.cli.man_pages import command_page, configuration_page
from mcphost.cli.output import Outcome
from mcphost.cli.run import finish


def run_man(options: Namespace) -> int:
    return finish(Outcome(configuration_page() if options.page == "config" else command_page()))
