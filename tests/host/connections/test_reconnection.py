from __future__ import annotations

import pytest

from mcphost.host.connections.reconnection import (
    CRASH_WINDOW,
    FIRST,
    JITTER,
    LONGEST,
    LOST_SESSIONS,
    LOST_WINDOW,
    STEADY,
    Backoff,
)

FAR_APART = CRASH_WINDOW  # seconds between failures that never count as a crash loop


def waits(backoff: Backoff, lives: list[float], apart: float) -> list[float | None]:
    return [backoff.after_failure(number * apart, lived) for number, lived in enumerate(lives)]


@pytest.mark.requirement("LIFE-27")
def test_waits_double_up_to_the_longest() -> None:
    found = waits(Backoff(lambda: 0.5), [0.0] * 10, FAR_APART)
    assert found == [min(FIRST * 2**n, LONGEST) for n in range(10)]


@pytest.mark.parametrize(("random", "share"), [(0.0, 1 - JITTER), (1.0, 1 + JITTER)])
def test_a_wait_is_moved_by_a_share_of_itself(random: float, share: float) -> None:
    assert Backoff(lambda: random).after_failure(0, 0) == pytest.approx(FIRST * share)


@pytest.mark.parametrize(("lived", "last"), [(STEADY - 0.1, FIRST * 4), (STEADY, FIRST)])
@pytest.mark.requirement("LIFE-27")
def test_a_life_that_lasted_starts_the_waits_anew(lived: float, last: float) -> None:
    assert waits(Backoff(lambda: 0.5), [0, 0, lived], FAR_APART)[-1] == last


@pytest.mark.hostile("S06")
@pytest.mark.parametrize(("apart", "tired"), [(CRASH_WINDOW / 4, True), (CRASH_WINDOW / 4 + 0.1, False)])
def test_five_failures_within_the_window_end_the_retries(apart: float, tired: bool) -> None:
    """A crash loop stops by itself."""
    backoff = Backoff(lambda: 0.5)
    assert (waits(backoff, [0.0] * 5, apart)[-1] is None) is tired
    backoff.reset()
    assert backoff.after_failure(5 * apart, 0) == FIRST


@pytest.mark.hostile("H03", "S06")
@pytest.mark.requirement("LIFE-27", "HTTP-10")
def test_an_outage_is_not_a_crash_however_long() -> None:
    backoff = Backoff(lambda: 0.5)
    assert [backoff.after_failure(0, 0, outage=True) for _ in range(9)] == [
        min(FIRST * 2**n, LONGEST) for n in range(9)
    ]
    assert backoff.after_failure(0, 0) is not None
    found = [backoff.after_lost_session(float(second)) for second in range(LOST_SESSIONS)]
    assert found == [0.0] * (LOST_SESSIONS - 1) + [None]
    assert backoff.after_lost_session(LOST_WINDOW + LOST_SESSIONS) == 0.0
