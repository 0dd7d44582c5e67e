"""Rules about answers to single probes: unknown names, completion, logging, cancellation, tasks and subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.host.server_rules.outcomes import (
    Rule,
    answered,
    expect_life,
    quoted,
    with_code,
    with_error,
    with_result,
)
from mcphost.host.server_rules.sighting import ReceivedMessage, Sighting, Unjudged
from mcphost.json_values import as_dict, as_list
from mcphost.protocol.lifecycle.revisions import MAY_NEED_INPUT, META_PREFIX

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
MOST_VALUES: Final = 100
"""Suggestions of one completion."""


def _lives_on(probe: str, after: str) -> Rule:
    """Neither the probe nor the request after it shows a reply to a notification or a lost connection."""

    def rule(seen: Sighting) -> Iterator[str]:
        expect_life(seen)
        first, then = seen.exchange(probe), seen.exchange(after)
        outcome = then.outcome()
        for message in (*first.messages, *then.messages):
            if message.is_response and message is not then.response and first.status < 400:
                yield f"it got a reply with the id {quoted(message.object.get('id'))}"
        if then.response is None:
            yield f"the request after it got {outcome}"

    return rule


# Resources and completion


def _no_contents(seen: Sighting) -> Iterator[str]:
    result = answered(seen, "unknown-resource").result
    if result is not None and result.get("contents") == []:
        yield "it got an empty contents list"


def _completed(seen: Sighting) -> Mapping[str, Any]:
    result = seen.exchange("completion").result
    if result is None:
        raise Unjudged("no completion was answered with a result")
    return result


def _completion_values(seen: Sighting) -> Iterator[str]:
    values = as_dict(_completed(seen).get("completion")).get("values")
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        yield f"values is {quoted(values)}"


def _few_values(seen: Sighting) -> Iterator[str]:
    values = as_list(as_dict(_completed(seen).get("completion")).get("values"))
    if len(values) > MOST_VALUES:
        yield f"it has {len(values)}"


def _completion_totals(seen: Sighting) -> Iterator[str]:
    completion = as_dict(_completed(seen).get("completion"))
    if type(completion.get("total", 0)) is not int:
        yield f"total is {quoted(completion['total'])}"
    if not isinstance(completion.get("hasMore", False), bool):
        yield f"hasMore is {quoted(completion['hasMore'])}"


def _completes_undeclared(seen: Sighting) -> Iterator[str]:
    if "completions" in seen.capabilities:
        return
    result = seen.exchange("undeclared-completion").complete or {}
    if as_list(as_dict(result.get("completion")).get("values")):
        yield "it completes without it"


def _no_completion(seen: Sighting) -> Iterator[str]:
    if "completions" in seen.capabilities:
        raise Unjudged("the server declares completions")
    yield from with_code(-32601, probe="undeclared-completion")(seen)


# Logging


def _logs(seen: Sighting) -> Iterator[Mapping[str, Any]]:
    for message in seen.messages():
        if message.is_notification and message.object.get("method") == "notifications/message":
            yield as_dict(message.object.get("params"))


def _logs_declared(seen: Sighting) -> Iterator[str]:
    if "logging" not in seen.capabilities:
        yield from (f"it sends one of level {quoted(params.get('level'))}" for params in _logs(seen))


def _log_levels(seen: Sighting) -> Iterator[str]:
    yield from (quoted(params.get("level")) for params in _logs(seen) if params.get("level") not in LEVELS)


def _log_data(seen: Sighting) -> Iterator[str]:
    for params in _logs(seen):
        if "data" not in params:
            yield "one has no data"
        if not isinstance(params.get("logger", ""), str):
            yield f"logger is {quoted(params['logger'])}"


def _asked_logs(seen: Sighting) -> Iterator[str]:
    """Of the messages before the first request that asks for a level, as none of the probes does."""
    yield from (f"one of level {quoted(params.get('level'))} came" for params in _logs(seen))


def _least_level(seen: Sighting) -> Iterator[str]:
    if answered(seen, "log-level").result is None:
        raise Unjudged("logging/setLevel was refused")
    after = False
    for exchange in seen.exchanges.values():
        after = after or exchange.probe == "log-level"
        for message in exchange.messages if after and exchange.probe != "log-level" else ():
            level = as_dict(message.object.get("params")).get("level")
            if message.object.get("method") == "notifications/message" and level in LEVELS[: LEVELS.index("warning")]:
                yield f"one of level {level} came after warning was set"


# Rounds, tasks and subscriptions


def _no_rounds(seen: Sighting) -> Iterator[str]:
    for exchange, result in seen.results():
        if result.get("resultType") == "input_required" and exchange.method not in MAY_NEED_INPUT:
            yield f"{exchange.method} is"


def _cancels(seen: Sighting) -> Iterator[str]:
    """Only a listen request may be cancelled by the server."""
    listened = [exchange.sent.get("id") for exchange in seen.exchanges.values() if exchange.probe == "listen"]
    for message in seen.messages():
        about = as_dict(message.object.get("params")).get("requestId")
        if message.object.get("method") == "notifications/cancelled" and about not in listened:
            yield f"it cancels {quoted(about)}"


def _task_capability(seen: Sighting) -> Iterator[str]:
    tasks = as_dict(seen.capabilities.get("tasks"))
    call = as_dict(as_dict(tasks.get("requests")).get("tools")).get("call", {})
    for name, given in (
        ("list", tasks.get("list", {})),
        ("cancel", tasks.get("cancel", {})),
        ("requests.tools.call", call),
    ):
        if not isinstance(given, dict):
            yield f"tasks.{name} is {quoted(given)}"


def _no_old_tasks(seen: Sighting) -> Iterator[str]:
    if "tasks" in seen.capabilities:
        yield "it declares it"


ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


def _listening(seen: Sighting) -> list[ReceivedMessage]:
    """The notifications that came on the subscription. Raises Unjudged if the server has none."""
    exchange = seen.exchange("listen")
    found = [message for message in exchange.messages if message.is_notification]
    if not found:
        raise Unjudged(f"subscriptions/listen got {exchange.outcome()}")
    return found


def _of_subscriptions(seen: Sighting) -> list[ReceivedMessage]:
    """On stdio, other messages may come before; those of a subscription say so."""
    found = _listening(seen)
    if seen.transport == "http":
        return found
    key = f"{META_PREFIX}subscriptionId"
    return [each for each in found if key in _meta(each) or each.object.get("method") == ACKNOWLEDGED]


def _meta(message: ReceivedMessage) -> Mapping[str, Any]:
    return as_dict(as_dict(message.object.get("params")).get("_meta"))


def _acknowledged_first(seen: Sighting) -> Iterator[str]:
    found = _of_subscriptions(seen)
    if found and (first := found[0].object.get("method")) != ACKNOWLEDGED:
        yield f"it is {quoted(first)}"


def _acknowledgment(seen: Sighting) -> Mapping[str, Any]:
    for message in _listening(seen):
        if message.object.get("method") == ACKNOWLEDGED:
            return as_dict(as_dict(message.object.get("params")).get("notifications"))
    raise Unjudged("no acknowledgment came")


def _honoured(seen: Sighting) -> Iterator[str]:
    asked = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    yield from (f"it names {quoted(name)}" for name, on in _acknowledgment(seen).items() if name not in asked and on)


def _honest(seen: Sighting) -> Iterator[str]:
    for name, on in _acknowledgment(seen).items():
        feature = name.removesuffix("ListChanged")
        if on is True and feature != name and as_dict(seen.capabilities.get(feature)).get("listChanged") is not True:
            yield f"it names {quoted(name)}, and {feature}.listChanged is not declared"


def _wanted_only(seen: Sighting) -> Iterator[str]:
    for message in _of_subscriptions(seen):
        method = message.object.get("method")
        if method in ("notifications/message", "notifications/progress", "notifications/resources/updated"):
            yield f"it carries {method}"


def _subscription_ids(seen: Sighting) -> Iterator[str]:
    for message in _of_subscriptions(seen):
        if f"{META_PREFIX}subscriptionId" not in _meta(message):
            yield f"{quoted(message.object.get('method'))} has none"


def _own_subscription(seen: Sighting) -> Iterator[str]:
    asked = seen.exchange("listen").sent.get("id")
    for message in _of_subscriptions(seen):
        given = _meta(message).get(f"{META_PREFIX}subscriptionId", asked)
        if type(given) is not type(asked) or given != asked:
            yield f"it is {quoted(given)} instead of {quoted(asked)}"


def _stays_open(seen: Sighting) -> Iterator[str]:
    exchange = seen.exchange("listen")
    if exchange.code is not None:
        raise Unjudged(f"subscriptions/listen got {exchange.outcome()}")
    if exchange.media and exchange.media != "text/event-stream":
        yield f"it is {quoted(exchange.media)}"
    elif exchange.status == 200 and exchange.ended:
        yield "it ended at once"


RULES: Final[Mapping[str, Rule]] = {
    "STOOL-20": with_error("unknown-tool"),
    "STOOL-21": with_code(-32602, probe="unknown-tool"),
    "STOOL-23": with_error("nameless-tool"),
    "SRES-25": with_code(-32002, probe="unknown-resource"),
    "SRES-26": with_code(-32602, probe="unknown-resource"),
    "SRES-27": _no_contents,
    "SRES-29": with_error("malformed-uri"),
    "SRES-33": with_result("subscribe"),
    "SPROM-20": with_code(-32602, probe="unknown-prompt"),
    "SPROM-21": with_code(-32602, probe="prompt-without-argument"),
    "SCOMP-01": _completes_undeclared,
    "SCOMP-02": _completion_values,
    "SCOMP-03": _few_values,
    "SCOMP-04": _completion_totals,
    "SCOMP-08": with_error("completion-without-argument"),
    "SCOMP-09": _no_completion,
    "SCOMP-10": with_code(-32602, probe="completion-of-unknown-prompt"),
    "SCOMP-11": with_code(-32602, probe="completion-without-argument"),
    "SLOG-01": _logs_declared,
    "SLOG-02": _log_levels,
    "SLOG-03": _log_data,
    "SLOG-04": with_result("log-level"),
    "SLOG-05": _least_level,
    "SLOG-06": with_code(-32602, probe="bad-log-level"),
    "SLOG-08": _asked_logs,
    "SLOG-12": with_code(-32602, probe="bad-log-level"),
    "SPAGE-05": with_error("bad-cursor"),
    "SPAGE-06": with_code(-32602, probe="bad-cursor"),
    "SCANC-07": _lives_on("cancelled-unknown", "after-cancelled"),
    "SCANC-08": _lives_on("cancelled-malformed", "after-cancelled"),
    "SCANC-11": _cancels,
    "SMRTR-02": _no_rounds,
    "STASK-02": _task_capability,
    "STASK-42": with_code(-32602, probe="unknown-task"),
    "STASK-43": with_code(-32602, probe="bad-task-cursor"),
    "SXTASK-26": with_code(-32602, probe="unknown-task"),
    "SXTASK-27": with_code(-32602, probe="unknown-task-cancel"),
    "SXTASK-28": with_code(-32021, probe="task-undeclared"),
    "SXTASK-36": with_code(-32601, probe="removed-task-result"),
    "SXTASK-38": _no_old_tasks,
    "SSUB-01": _wanted_only,
    "SSUB-02": _acknowledged_first,
    "SSUB-03": _acknowledged_first,
    "SSUB-04": _honoured,
    "SSUB-05": _honest,
    "SSUB-06": _subscription_ids,
    "SSUB-07": _own_subscription,
    "SSUB-12": _stays_open,
}
