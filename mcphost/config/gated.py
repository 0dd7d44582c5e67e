"""The program behind a gate: what an agent's file runs as a server, in the words of a configured one."""

from __future__ import annotations

from pathlib import Path

from mcphost.config.models import Config
from mcphost.config.resolved import resolve_program
from mcphost.config.servers import ServerConfig, program_words
from mcphost.config.values import Values
from mcphost.errors import McphostError
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GatedProgram:
    """A command line in a folder, or an address."""

    command: tuple[str, ...] = ()
    url: str | None = None
    folder: str = ""
    """Where the gate runs, and with it the command: an absolute path."""
    names: frozenset[str] = frozenset()
    """Names of the variables of a command's environment, or of the headers that an address is sent."""

    @property
    def identity(self) -> str:
        """The words that approvals are bound to, always with the folder.

        The names of a command's variables do not count: which of them the agent's file gave is not known.
        """
        if self.url is not None:
            return program_words(self.url, self.folder, self.names)
        return program_words(self.command, self.folder, ())

    def is_entry(self, config: Config, name: str, values: Values) -> bool:
        """True if the configuration's entry ``name`` runs the same: command, arguments, folder, variables.

        The folder counts where the entry has one. All variables that the entry gives must be there, and its headers
        must be the same. An entry with a reference that has no value is not the same. May block on a keychain.
        """
        entry = config.servers.get(name)
        if entry is None or not entry.enabled:
            return False
        try:
            runs, folder = resolve_program(config, values, name)
        except McphostError:
            return False
        if self.url is not None:
            return runs == self.url and {name.lower() for name in self.names} == _headers(entry)
        same_folder = folder is None or folder.resolve() == Path(self.folder).resolve()
        return runs == self.command and same_folder and entry.env.keys() <= self.names


def _headers(entry: ServerConfig) -> set[str]:
    bearer = ["authorization"] if entry.bearer_token_env_var else []
    return {name.lower() for name in (*entry.http_headers, *entry.env_http_headers, *bearer)}
