"""``[chat]``: the bounds of a conversation with a language model.

Knows units and defaults. Refuses to know what is done when one is reached.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mcphost.config.fields import ConfigTable, Count, Name, Price, Seconds, Text


class ChatConfig(ConfigTable):
    """What holds for every conversation."""

    model: Name | None = None
    """The ``[models]`` entry that is talked to; absent: the first one."""
    system: Text = ""
    """What the model is told before everything else, after mcphost's own few sentences."""
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 25
    """How often the model may answer to one message before the user is to say that it may go on."""
    max_calls: Annotated[int, Field(ge=0, le=10_000)] = 100
    """The most tool calls to one message; 0 refuses all."""
    same_calls: Annotated[int, Field(ge=1, le=1000)] = 3
    """How often one message may lead to the very same call."""
    max_tokens: Count = 4_096
    """The most tokens of one answer."""
    budget_tokens: Count = 2_000_000
    """The tokens, in and out, of a conversation; once they are used up the user is to say that it may go on."""
    budget_cost: Price | None = None
    """The same in money, by the prices of the models; absent: not watched."""
    turn_seconds: Seconds = 1_800.0
    """How long one message may be worked on, by the model and by tools; waiting for the user does not count."""
    result_characters: Count = 40_000
    """Characters of one tool result that the model gets."""
    attachment_bytes: Count = 200_000
    """Bytes of one attached file or resource that the model gets."""
    tools_tokens: Annotated[int, Field(ge=0, le=1_000_000_000)] = 20_000
    """About the most tokens of tool definitions; with more of them the model gets a tool to search them instead."""
    hold: Literal["never", "outside", "always"] = "never"
    """Which tool results wait for the user's review before the model gets them; outside: those of open-world tools."""
    save: bool = True
    """Whether conversations are kept in the state folder."""
