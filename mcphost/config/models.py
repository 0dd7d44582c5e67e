"""The whole configuration as immutable values, with the tables ``[models.NAME]``, ``[chat]`` and ``[ui]``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from mcphost.config.fields import (
    BindingId,
    ConfigTable,
    Count,
    Distinct,
    Filled,
    LogLevel,
    Name,
    PlainUrl,
    Price,
    Seconds,
    Several,
    Share,
    Text,
    Url,
    Variable,
    entry_of,
    misplaced,
)
from mcphost.config.identities import IdentityConfig
from mcphost.config.limits import MB, Limits
from mcphost.config.model_providers import HOSTED_PROVIDERS
from mcphost.config.policy import Policy, ToolChoices, chooses
from mcphost.config.servers import ServerConfig


class ChatConfig(ConfigTable):
    """``[chat]``: the settings of every conversation."""

    model: Name | None = None
    """The ``[models]`` entry that is talked to; absent: the first one."""
    system: Text = ""
    """Instructions for the model, sent after mcphost's own few sentences and before everything else."""
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 25
    """The most answers of the model to one message before the user is asked whether it may go on."""
    max_calls: Annotated[int, Field(ge=0, le=10_000)] = 100
    """The most tool calls to one message; 0 refuses all."""
    same_calls: Annotated[int, Field(ge=1, le=1000)] = 3
    """The most identical calls to one message."""
    max_tokens: Count = 4_096
    """The most tokens of one answer."""
    budget_tokens: Count = 2_000_000
    """The tokens, in and out, of a conversation; once they are used up the user is asked whether it may go on."""
    budget_cost: Price | None = None
    """The same in money, by the prices of the models; absent: not watched."""
    turn_seconds: Seconds = 1_800.0
    """Seconds in which the model and tools may work on one message; waiting for the user does not count.

    Parallel calls count as long as the longest of them, and no running call is cut short.
    """
    result_characters: Count = 40_000
    """Characters of one tool result that the model gets."""
    attachment_bytes: Count = 200_000
    """Bytes of an attached text that the model gets; pictures have up to 3.7 MB."""
    tools_tokens: Annotated[int, Field(ge=0, le=1_000_000_000)] = 20_000
    """About the most tokens of tool definitions; with more of them the model gets a tool to search them instead."""
    hold: Literal["never", "outside", "always"] = "never"
    """The tool results that the user reviews before the model gets them; outside: those of open-world tools."""
    save: bool = True
    """Keep conversations in the state folder."""


class ModelConfig(ConfigTable):
    """``[models.NAME]``: a language model for chat and for what servers ask."""

    provider: Literal["anthropic", "openai", "ollama", "manual", "demo"]
    """The protocol it speaks.

    ``openai`` is for everything compatible, ``manual`` a person who types, ``demo`` a script that knows a few phrases.
    """
    model: Filled | None = None
    """The provider's name of the model; ``manual`` and ``demo`` need none."""
    base_url: Url | None = None
    """The address, where it is not the provider's own."""
    api_key: Filled | None = None
    """The key; a reference such as ``${NAME}`` or ``${keyring:NAME}``."""
    cost: Share = 0.5
    """0 expensive to 1 cheap, for servers that say how much the price matters."""
    speed: Share = 0.5
    """0 slow to 1 fast."""
    intelligence: Share = 0.5
    """0 simple to 1 most capable."""
    input_price: Price | None = None
    """The price of a million tokens of a request, in the user's currency; absent: unknown."""
    output_price: Price | None = None
    """The price of a million tokens of an answer."""
    context_tokens: Count | None = None
    """The most tokens of a request and its answer, which is then never sent longer; absent: not known."""
    takes: Distinct[Literal["images", "audio", "tools"]] = ("images", "audio", "tools")
    """The kinds of content it takes besides text, of those that its provider can send."""

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if (self.input_price is None) != (self.output_price is None):
            given = "output_price" if self.input_price is None else "input_price"
            raise misplaced(given, "input_price and output_price go together; set both, 0 where it costs nothing")
        return self

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.model is None and self.provider in HOSTED_PROVIDERS:
            raise misplaced("provider", f'needs model = "…", the name {self.provider} knows it by')
        return self


Theme = Literal[
    "auto", "mcphost-dark", "mcphost-light", "mcphost-16",
    "textual-dark", "textual-light", "nord", "gruvbox", "catppuccin-mocha", "dracula", "tokyo-night", "monokai",
    "flexoki", "catppuccin-latte", "catppuccin-frappe", "catppuccin-macchiato", "solarized-light", "solarized-dark",
    "rose-pine", "rose-pine-moon", "rose-pine-dawn", "atom-one-dark", "atom-one-light", "ansi-dark", "ansi-light",
]  # fmt: skip
"""mcphost's own themes and Textual's, which only the screen imports."""


def _joined_ids(value: object) -> object:
    """Ids without quotes, which TOML reads as tables: ``form.submit = "f9"``."""
    if not isinstance(value, dict):
        return value
    joined: dict[object, object] = {}
    for name, each in value.items():
        joined |= {f"{name}.{key}": keys for key, keys in each.items()} if isinstance(each, dict) else {name: each}
    return joined


_OwnKeys = dict[BindingId, Filled]


class UI(ConfigTable):
    """``[ui]``: the screen, and the history of calls."""

    theme: Theme = "auto"
    """A theme's name, as the command palette lists them; auto: mcphost's own, as dark or as light as the terminal."""
    log_panel: Literal["auto", "open", "closed"] = "auto"
    """The log panel at the start; auto: open where there is room."""
    logs: LogLevel = "info"
    """The least severe log message shown."""
    images: Literal["auto", "off"] = "auto"
    """Draw pictures in results and resources; auto: if the terminal has the colours for it."""
    mouse: bool = True
    """Use the mouse; false leaves selecting text to the terminal."""
    history: bool = True
    """Keep calls and their results in the state folder; false: those of earlier runs are neither kept nor shown."""
    history_days: Count = 90
    """Days after which a kept call is deleted."""
    history_bytes: Annotated[int, Field(ge=MB, le=1 << 40)] = 100 * MB
    """Bytes of the file of kept calls; the oldest calls go first."""
    keys: Annotated[
        _OwnKeys, BeforeValidator(_joined_ids, json_schema_input_type=dict[BindingId, Filled | _OwnKeys])
    ] = Field(default_factory=dict)
    """Own keys by the id of what they do, such as ``form.submit = "alt+enter"``, with commas between several.

    ``mcphost help keys`` lists the ids.
    """
    notify: Literal["bell", "osc9", "osc777", "none"] = "bell"
    """The ring if a question waits or a long call ends while the terminal has no focus; its title then says so, too.
    osc9 and osc777 are the notifications of some terminals; none: neither ring nor title."""


OFFICIAL_REGISTRY = "https://registry.modelcontextprotocol.io"


class RegistryConfig(ConfigTable):
    """``[registry]``: where ``mcphost search`` and ``mcphost add`` look for servers. Nothing else asks there."""

    urls: Distinct[PlainUrl] = (OFFICIAL_REGISTRY,)
    """Registries of MCP servers, asked in this order; an empty list is none."""


class ServeConfig(ConfigTable):
    """``[serve]``: what agents get through ``mcphost serve``."""

    without_screen: Literal["run", "refuse"] = "run"
    """Without a screen, ``mcphost serve`` follows the rules and saved approvals (run), or offers nothing (refuse)."""
    drift: Literal["offer", "hold"] = "offer"
    """A tool or skill that changed; offer: agents get it at once; hold: they get it once you looked at it."""
    answer_within: Seconds | None = None
    """Seconds after which an agent hears that its call is not decided yet; absent: shortly before its own limit."""
    max_result: Count | None = None
    """Characters of a tool result above which an agent gets a preview and a link to the whole; absent: no limit."""


class ProfileConfig(ConfigTable):
    """``[profiles.NAME]``: servers and values that are used together; ``--profile NAME`` chooses one."""

    servers: Several[Filled] = ("*",)
    """The servers that start and are shown, as patterns (``*``, ``?``, ``[abc]``)."""
    variables: dict[Variable, Text] = Field(default_factory=dict)
    """Values of ``${NAME}`` in the entries of servers and models, before the environment's.

    Write a secret as a reference to it, such as ``${keyring:NAME}``.
    """
    tools: ToolChoices = ()
    """The tools that ``mcphost serve`` gives to agents, as patterns ``server:tool``; ``!`` in front leaves out."""
    skills: ToolChoices = ()
    """The same for skills, by their names: ``server:skill``."""
    sampling: Literal["agent", "mcphost", "deny"] | None = None
    """The side that answers a server's request for a language model in an agent's call: the agent if it can, or
    mcphost; deny: neither; absent: as ``--questions``."""
    elicitation: Literal["agent", "mcphost"] | None = None
    """The side that shows the forms and pages of servers in an agent's call; absent: as ``--questions``."""
    roots: Literal["agent", "mcphost", "both"] = "mcphost"
    """The folders that servers see in an agent's call: the agent's, those of their entry, or both."""
    _only: frozenset[str] | None = PrivateAttr(None)

    def has(self, server: str) -> bool:
        return any(fnmatchcase(server, pattern) for pattern in self.servers)

    def shows(self, server: str, tool: str) -> bool:
        """True if agents see this tool."""
        return chooses(self.tools, server, tool)

    def shows_skill(self, server: str, skill: str) -> bool:
        """True if agents see this skill."""
        return chooses(self.skills, server, skill)

    def variables_for(self, server: str | None) -> Mapping[str, str]:
        """The values for the entry of this server; None: of a model."""
        return self.variables if self._only is None or server in self._only else {}

    def of_project(self, servers: frozenset[str]) -> ProfileConfig:
        """The same of a project's file, whose values are for the project's own ``servers`` alone."""
        made = self.model_copy()
        made._only = servers
        return made


class Config(ConfigTable):
    """The whole configuration. ``path`` is the file it came from; None: built in code."""

    servers: dict[Name, ServerConfig] = Field(default_factory=dict)
    """MCP servers by name."""
    models: dict[Name, ModelConfig] = Field(default_factory=dict)
    """Language models by name."""
    identity: dict[Name, IdentityConfig] = Field(default_factory=dict)
    """Accounts at identity providers by name."""
    policy: Policy = Policy.model_construct()
    """The calls that need a question."""
    limits: Limits = Limits.model_construct()
    """The bounds of what servers may send."""
    ui: UI = UI.model_construct()
    """The screen."""
    chat: ChatConfig = ChatConfig.model_construct()
    """Conversations with a language model."""
    registry: RegistryConfig = RegistryConfig.model_construct()
    """The registries to search for servers."""
    serve: ServeConfig = ServeConfig.model_construct()
    """The endpoint for agents."""
    profiles: dict[Name, ProfileConfig] = Field(default_factory=dict)
    """Profiles by name."""
    path: Path | None = None
    """The file; not a key of it."""
    profile: Name | None = None
    """The profile in use; not a key."""
    added: Path | None = None
    """The ``servers.toml`` whose servers are among these; not a key."""

    def identity_of(self, server: str) -> IdentityConfig | None:
        """The identity with which this server is signed in to, if any."""
        entry = self.servers.get(entry_of(server))
        name = None if entry is None else entry.oauth.identity
        return None if name is None else self.identity.get(name)

    def limits_for(self, name: str) -> Limits:
        """Return the limits of the server ``name``: its own where it has some, else those of ``[limits]``."""
        server = self.servers.get(entry_of(name))
        if server is None or not server.limits.model_fields_set:  # nearly always, and making a dump takes its time
            return self.limits
        return self.limits.model_copy(update=server.limits.model_dump(exclude_unset=True))
