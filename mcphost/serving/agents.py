"""The limits within which agents wait for a tool call, as measured with the versions that the real tests name."""

from __future__ import annotations

from typing import Final, NamedTuple


class AgentLimits(NamedTuple):
    """Seconds from the call."""

    answer: float
    """In which the agent is answered."""
    answer_with_progress: float
    """The same for a call with a progress token."""
    silence: float
    """After which an agent that heard nothing may have given up without a word."""

    def seconds(self, configured: float | None, *, progress: bool) -> float:
        """The seconds in which a call is answered: as configured, else by whether the agent hears of progress."""
        if configured is not None:
            return configured
        return self.answer_with_progress if progress else self.answer


# A margin is left for a busy machine: some seconds of a minute, half a minute or more of longer limits.
UNKNOWN: Final = AgentLimits(50, 50, 60)  # the SDKs give up after 60 s, and progress does not always extend that
_BY_NAME: Final = {
    # It looks for silence of 30 minutes, and never sends ``cancelled`` for it.
    "claude-code": AgentLimits(25 * 60, 25 * 60, 30 * 60),
    "codex": AgentLimits(270, 270, 300),  # 300 s, which progress does not extend
    "gemini": AgentLimits(9 * 60, 9 * 60, 10 * 60),  # 10 minutes, which progress does not extend
    "copilot-cli": AgentLimits(50, 25 * 60, 60),  # more than 30 minutes with progress
    "opencode": AgentLimits(50, 25 * 60, 60),  # 60 s of silence, and more than 30 minutes with progress
}


def limits_of(agent: str) -> AgentLimits:
    """The limits by the agent's name, or by that of its client, such as ``codex-mcp-client``."""
    name = agent.casefold().replace(" ", "-")
    return next((limits for known, limits in _BY_NAME.items() if name.startswith(known)), UNKNOWN)
