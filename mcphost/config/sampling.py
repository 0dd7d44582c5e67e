"""``[servers.NAME.sampling]``: what a server may have of the user's language models.

Knows units and defaults. Refuses to know who counts what was spent, and what is done when it is used up.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mcphost.config.fields import ConfigTable, Count, Name, Price
from mcphost.config.policy import PolicyAction


class SamplingConfig(ConfigTable):
    """What a server may ask of the user's language model, and spend of it."""

    policy: PolicyAction | None = None
    """Whether a request is put to the model at once, asked about or refused; absent: ``[policy]`` decides."""
    review: Literal["ask", "allow"] | None = None
    """Whether the model's answer is asked about before the server gets it; absent: as the request was."""
    model: Name | None = None
    """The ``[models]`` entry that always answers; absent: chosen by what the server prefers."""
    max_tokens: Count = 4_096
    """The most tokens of one answer, whatever the server asks for."""
    per_minute: Annotated[int, Field(ge=0, le=10_000)] = 10
    """The most requests in a minute; 0 refuses all."""
    budget_tokens: Count | None = None
    """The tokens, in and out, of one run of mcphost; once they are used up the user is to raise them."""
    budget_cost: Price | None = None
    """The same in money, by the prices of the models."""
    tool_rounds: Annotated[int, Field(ge=0, le=1000)] = 25
    """How often the model may want tools on behalf of one call."""
    context: Literal["none", "this-server"] = "none"
    """What is added where the server asks for context: nothing, or what it answered itself before."""
