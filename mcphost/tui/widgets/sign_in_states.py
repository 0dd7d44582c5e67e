"""What stands for the states of a sign-in, and which keys do something in each.

Knows states and names of actions. Refuses to act.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcphost.host.signing_in import SignInState

_UNDER_WAY: Final = ("◐", "$text-warning")
_MARKS: Final[Mapping[SignInState, tuple[str, str]]] = {
    SignInState.AGREEING: ("?", "$text-warning"),
    SignInState.DONE: ("●", "$text-success"),
    SignInState.FAILED: ("✖", "$text-error"),
    SignInState.DECLINED: ("◌", "$foreground-muted"),
    SignInState.CANCELLED: ("◌", "$foreground-muted"),
}
_KEYS: Final[Mapping[SignInState, str]] = {
    SignInState.AGREEING: "y sign in · n do not · p later · l steps · x cancel",
    SignInState.VISITING: "c copy · o open · v paste · q QR code · x cancel · esc leave, it goes on",
    SignInState.DONE: "enter opens a step · esc back",
    SignInState.FAILED: "r try again · enter opens a step · esc back",
    SignInState.DECLINED: "r try again · esc back",
    SignInState.CANCELLED: "r try again · esc back",
}
_ONLY_IN: Final[Mapping[str, SignInState]] = {
    "agree": SignInState.AGREEING,
    "decline": SignInState.AGREEING,
    "park": SignInState.AGREEING,
    "page": SignInState.AGREEING,
    "steps": SignInState.AGREEING,
    "copy_link": SignInState.VISITING,
    "copy_ssh": SignInState.VISITING,
    "open_again": SignInState.VISITING,
    "code": SignInState.VISITING,
    "paste": SignInState.VISITING,
}


def mark_of(state: SignInState) -> tuple[str, str]:
    """Shape and style."""
    return _MARKS.get(state, _UNDER_WAY)


def keys_in(state: SignInState) -> str:
    """The keys that matter now, for the frame."""
    return _KEYS.get(state, "enter opens a step · x cancel · esc leave, it goes on")


def acts_in(action: str, state: SignInState) -> bool:
    """Does this action of the screen do something now?"""
    if action == "cancel":
        return not state.ended
    if action == "again":
        return state.ended and state is not SignInState.DONE
    return _ONLY_IN.get(action, state) is state
