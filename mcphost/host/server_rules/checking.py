"""Looks at one server in the eras that it speaks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from mcphost.errors import McphostError
from mcphost.host.comparison.sides import EraName
from mcphost.host.server_rules.ports import ProbeTarget
from mcphost.host.server_rules.prober import NotSpoken, Prober, Progress
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, read_message
from mcphost.host.traffic.message import MessageKind, TrafficMessage
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass


@dataclass(slots=True)
class EraSighting:
    """The attempt to look at a server in one era. ``seen`` is None if it does not speak it, which ``words`` say."""

    era: EraName
    seen: Sighting | None = None
    words: str = ""


async def look_at(
    target: ProbeTarget, eras: Sequence[EraName], identity: Mapping[str, str], progress: Progress
) -> list[EraSighting]:
    """Probe a server in these eras, over the first of its transports that answers."""
    found: list[EraSighting] = []
    for transport in target.transports:
        prober = Prober(target, transport, identity, progress)
        tried = [await _look(prober, era) for era in eras if era == "legacy" or transport != "sse"]
        found = found or tried
        if any(each.seen for each in tried):
            found = tried
            break
    spoken = [each.seen for each in found if each.seen is not None]
    for seen in spoken:
        older = seen.exchanges.get("initialize-modern")
        seen.both_eras = len(spoken) > 1 or (older is not None and older.result is not None)
    return found


async def _look(prober: Prober, era: EraName) -> EraSighting:
    try:
        return EraSighting(era, await (prober.legacy() if era == "legacy" else prober.modern()))
    except (NotSpoken, McphostError) as error:
        return EraSighting(era, words=str(error))


def calls_in(messages: Iterable[tuple[TrafficMessage, str]]) -> list[ProbeExchange]:
    """The tool calls in these messages and their texts, each round of a modern one by itself."""
    calls: dict[str, ProbeExchange] = {}
    for message, text in messages:
        if message.kind is MessageKind.REQUEST and message.sent and message.facts.method == "tools/call":
            calls[repr(message.facts.id)] = ProbeExchange("call", as_dict(json.loads(text)))
        answers = message.kind in (MessageKind.RESPONSE, MessageKind.ERROR) and not message.sent
        if answers and repr(message.facts.id) in calls:
            calls[repr(message.facts.id)].response = read_message(text.encode("utf-8", "replace"))
    return [call for call in calls.values() if call.response is not None]
