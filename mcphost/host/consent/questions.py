"""The questions to the user, and their answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.consent.approvals import ApprovalStatus, Lifetime, ToolApproval
from mcphost.host.consent.provenance import NOTHING, Provenance
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_in, show_name
from mcphost.protocol.forms.secrets import asks_for_secret

if TYPE_CHECKING:  # what few questions are about, and most calls can do without
    from mcphost.auth.ports import SignInPlan
    from mcphost.host.consent.skill_approvals import SkillApproval
    from mcphost.protocol.models.elicitation import PageAddress
    from mcphost.protocol.models.skills import Skill
    from mcphost.protocol.models.tools import Tool


LONG_URL: Final = 300
"""Characters from which an address gets a warning: what matters may be far from its start."""


def why_not_always(tool: Tool, approval: ToolApproval, *, gated: bool) -> str:
    """Why calls of a tool cannot be allowed for good, as a clause; empty where they can.

    ``gated`` calls need not be allowed once before: where no screen runs, they could not be.
    """
    if "destructive" in tool.claims:
        return "the tool says that it is destructive"
    if tool.may_destroy and approval.kind is not ApprovalStatus.UNCHANGED and not gated:
        return "allow it once first, since it may be destructive"
    return ""


class Question(Protocol):
    """The description of itself that every question has."""

    @property
    def server(self) -> str:
        """The configured name of the server it is about."""

    @property
    def origin(self) -> str:
        """The asking party: ``you``, a model's name, or the server itself."""

    @property
    def about(self) -> str:
        """The subject in a few words; may hold foreign text."""


@dataclass(frozen=True, slots=True)
class ToolCallQuestion:
    """Asks whether a tool may run with these arguments."""

    call: int
    server: str
    """The configured name."""
    tool: Tool
    arguments: Mapping[str, Any]
    origin: str
    """The asking party: ``you``, or a model's name."""
    identity: str
    """The command line or URL that gets the arguments."""
    approval: ToolApproval
    rule: str
    """Why it is asked."""
    note: str | None = None
    """The checks that could not be made beforehand."""
    provenance: Provenance = NOTHING
    """Parts of the arguments copied from text that the receiving server never saw."""
    composed: bool = False
    """True if the user has just written the arguments, which then need not be read again."""
    repeats: str = ""
    """The times at which an allowed call runs, such as ``every 5 s until you stop it``; empty: once."""
    why_not_together: str = ""
    """Why the tool cannot be allowed together with its server's other read-only tools: a rule; empty where it can."""
    agent: AgentFacts | None = None
    """The agent whose call a gate holds; None: the call is mcphost's own."""
    folder: str = ""
    """The folder of a gate's server."""
    instance: str = ""
    """The instance of the server that gets the call; empty: the entry's own connection does."""
    own_tool: bool = False
    """True if the agent runs the tool itself, and asks only whether it may."""
    skill: str = ""
    """The skills that the asking model acts on, in words that are safe to show; empty: none."""

    @property
    def about(self) -> str:
        return f"run {show_name(self.tool.label)}"

    @property
    def careful(self) -> bool:
        """True if refusing should be the easy answer: the definition changed, or the tool may destroy something."""
        return self.approval.kind is ApprovalStatus.CHANGED or self.tool.may_destroy

    @property
    def why_not_always(self) -> str:
        """See `why_not_always`."""
        return why_not_always(self.tool, self.approval, gated=self.agent is not None)

    @property
    def changes_nothing(self) -> bool:
        """True if the tool claims to be read-only, and its definition has not changed since the user saw it."""
        return "read-only" in self.tool.claims and self.approval.kind is not ApprovalStatus.CHANGED


@dataclass(frozen=True, slots=True)
class ReadOnlyTools:
    """The tools of one server that claim to be read-only."""

    covered: Sequence[Tool]
    """Those that can be allowed together."""
    left_out: Sequence[tuple[Tool, str]]
    """The others, each with the reason."""


@dataclass(frozen=True, slots=True)
class SkillQuestion:
    """Asks whether a skill may be loaded for a model. Nothing of its files has been read for it."""

    server: str
    """The configured name."""
    skill: Skill
    identity: str
    """The command line or URL of the server."""
    approval: SkillApproval
    """The comparison with what was allowed before, and what differs."""
    origin: str
    """The asking party: ``you``, or a model's name."""
    rule: str
    """Why it is asked."""

    @property
    def about(self) -> str:
        return f"load the skill {show_name(self.skill.label)}"

    @property
    def careful(self) -> bool:
        """True if refusing should be the easy answer: it changed, its server vouches for no file, or it hides text."""
        return self.approval.state.value in ("changed", "dynamic") or self.hidden > 0

    @property
    def hidden(self) -> int:
        """The number of invisible characters in its frontmatter."""
        return hidden_in(self.skill.frontmatter)

    @property
    def tokens(self) -> int:
        """About what its SKILL.md costs, by the size that its server lists; 0 where that is not known."""
        from mcphost.providers.base import ASCII_PER_TOKEN  # late: few questions are about skills

        own = self.skill.file(self.skill.uri)
        return 0 if own is None else ceil(own.size / ASCII_PER_TOKEN)

    @property
    def why_not_always(self) -> str:
        """Why it cannot be allowed for good, as a clause; empty where it can. A dynamic one: neither for this run."""
        from mcphost.host.consent.skill_approvals import why_not_always  # late: few questions are about skills

        return why_not_always(self.skill)


@dataclass(frozen=True, slots=True)
class SignInQuestion:
    """Asks whether mcphost may sign in like this. Acceptance carries a `mcphost.auth.ports.SignInConsent`."""

    server: str
    plan: SignInPlan
    sign_in: int
    """The number of the attempt, `mcphost.host.sign_in.service.SignInService.all`."""
    origin: str = "you"

    @property
    def about(self) -> str:
        return "sign in"


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    server: str

    @property
    def origin(self) -> str:
        return self.server


@dataclass(frozen=True, slots=True)
class FormQuestion(ServerQuestion):
    """Asks the user to fill in a form. Acceptance carries its values as a mapping that fits ``schema``.

    Acceptance without content means the defaults.
    """

    message: str
    """Why, in the server's words."""
    schema: Mapping[str, Any]
    """``requestedSchema``, as it came."""
    call: int | None = None
    """The call it is asked for, as far as is known."""
    tool: str = ""
    """The tool of that call."""
    problem: str = ""
    """Why the answer before this one would not do."""

    @property
    def about(self) -> str:
        return "fill in a form"

    @property
    def wants_secret(self) -> bool:
        """True if the message seems to ask for a secret, whatever the fields say."""
        return asks_for_secret(self.message)


@dataclass(frozen=True, slots=True)
class UrlQuestion(ServerQuestion):
    """Asks the user to visit a page. Acceptance means that it was opened, not that anything was done there."""

    message: str
    url: str
    elicitation: str
    """The server's id for it; opaque."""
    call: int | None = None
    tool: str = ""
    address: PageAddress | None = None
    """The visible facts of the URL: its host in both spellings, and anything suspicious."""
    until: float | None = None
    """When it expires, in seconds of the monotonic clock; None: never."""

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences that a person should read before agreeing."""
        doubts: Sequence[str] = () if self.address is None else self.address.doubts
        if self.address is not None and self.address.opens.startswith("http://"):
            # Only on this machine, where an IP address is not suspicious.
            doubts = ("This page is served by a program on this machine.",)
        if len(self.url) > LONG_URL:
            doubts = (*doubts, f"The address is very long: {len(self.url):,} characters.")
        return doubts

    @property
    def about(self) -> str:
        return "open a page"


@dataclass(frozen=True, slots=True)
class RootsQuestion(ServerQuestion):
    """Asks which folders to share with a server for the first time. Acceptance carries the chosen paths.

    A refusal by the user is remembered for the program that runs the server now, a ``cancelled`` answer is not.
    ``Lifetime.ALWAYS`` shares them in later runs as well.
    """

    suggestions: tuple[Path, ...] = ()
    call: int | None = None
    tool: str = ""
    problem: str = ""
    """Why the folders chosen before would not do."""

    @property
    def about(self) -> str:
        return "share your roots (folders)"


@dataclass(frozen=True, slots=True)
class SamplingQuestion(ServerQuestion):
    """Asks whether a model may answer a server's request. `Sampling` has the request, the plan and the result."""

    sampling: int
    """Its number in `mcphost.host.sampling.service.SamplingService.all`."""
    call: int | None = None
    tool: str = ""
    review: bool = False
    """The model has answered: may that be sent to the server?"""

    @property
    def about(self) -> str:
        return "send a model's answer" if self.review else "ask a model"


@dataclass(frozen=True, slots=True)
class ResultQuestion:
    """Asks whether the model may get this result. Acceptance may carry a text that replaces it."""

    server: str
    tool: str
    call: int | None
    origin: str
    """The model that gets it."""
    text: str
    """The result as it came."""
    tokens: int
    """About what that costs."""
    links: tuple[str, ...] = ()
    """The addresses in it."""
    hidden: int = 0
    """The number of invisible characters."""
    pictures: int = 0

    @property
    def about(self) -> str:
        """The subject in a few words; may hold foreign text."""
        return f"show the model what {show_name(self.tool)} answered"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question. ``arguments`` replaces those of a tool call; ``reason`` is for the asking party.

    ``when`` limits an approval that outlives its call to calls whose arguments match these patterns, see
    `mcphost.host.consent.argument_rules`.
    """

    allow: bool
    lifetime: Lifetime = Lifetime.ONCE
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    by: str = "user"
    content: Any = None
    """The content that a question of another kind asks for; see the question's class."""
    cancelled: bool = False
    """Neither yes nor no: the user went away from the question."""
    when: Mapping[str, str] = field(default_factory=dict)
    together: Sequence[Tool] = ()
    """The read-only tools of the server that are allowed until mcphost exits, as the user saw them."""


class Approver(Protocol):
    """Asks a person, or whoever stands in for one."""

    async def ask(self, question: Question) -> Answer:
        """Exactly one answer. Cancelled when the question no longer matters."""


class DeclineAll:
    """The approver without a user to ask: declines, and says what would have allowed it."""

    def __init__(self, hint: str) -> None:
        self._hint = hint

    async def ask(self, question: Question) -> Answer:
        return Answer(allow=False, reason=self._hint, by="policy")


def wall_clock(moment: float) -> str:
    """The time of day, ``14:05:30``, of a moment of the monotonic clock in seconds, such as a question's ``until``."""
    return f"{datetime.now() + timedelta(seconds=moment - time.monotonic()):%H:%M:%S}"
