from __future__ import annotations

import pytest

from mcphost.host.logs import LINE_CHARACTERS, LOGGER_CHARACTERS, LogBook, LogBudget, LogSource
from mcphost.protocol.models.logging import LogLevel


class Book(LogBook):
    """A log book with a clock to turn, and a count of the reports of new ones."""

    def __init__(self) -> None:
        self.time, self.added = 100.0, 0
        super().__init__(lambda: self.time, lambda text: text.replace("hunter2!", "•••"), self.count)

    def count(self) -> None:
        self.added += 1

    def say(self, text: str, server: str = "a", logger: str = "") -> None:
        self.add(server, LogSource.SERVER, LogLevel.INFO, text, logger=logger)

    def texts(self, server: str) -> list[str]:
        return [record.text for record in self.of_server(server)]


@pytest.fixture
def book() -> Book:
    return Book()


def test_all_servers_stand_in_one_order(book: Book) -> None:
    for server in "abab":
        book.say(server, server)
    assert [record.text for record in book.since(0)] == ["a", "b", "a", "b"]
    assert [record.number for record in book.since(2)] == [3, 4]
    assert book.since(4) == []
    assert book.added == 4
    book.clear()
    assert book.since(0) == []


@pytest.mark.hostile("F01")
@pytest.mark.requirement("LOG-04", "SEC-07")
def test_a_flood_is_cut_to_its_rate_and_counted_and_says_so(book: Book) -> None:
    """Ten thousand lines in a second."""
    book.set_budget("a", LogBudget(per_second=100))
    for number in range(10_000):
        book.say(str(number))
    book.say("quiet neighbour", "b")
    assert len(book.texts("a")) == 100
    assert book.dropped("a") == 9900
    assert book.texts("b") == ["quiet neighbour"]
    book.time += 1
    book.say("later")
    assert book.texts("a")[-2:] == ["9900 log lines dropped: over 100 a second", "later"]


@pytest.mark.hostile("F01")
@pytest.mark.parametrize(
    ("budget", "line", "kept"),
    [(LogBudget(lines=3), "x", 3), (LogBudget(bytes=10), "xxxx", 2), (LogBudget(bytes=10), "ééé", 1)],
)
def test_a_server_keeps_its_newest_lines_and_pushes_out_nobody_elses(
    book: Book, budget: LogBudget, line: str, kept: int
) -> None:
    """The ring of one server is its own."""
    book.say("first of all", "b")
    book.set_budget("a", budget)
    for _ in range(50):
        book.say(line)
    assert book.texts("a") == [line] * kept
    assert len(book.since(0)) == kept + 1
    assert book.texts("b") == ["first of all"]


def test_a_budget_that_shrinks_holds_from_the_next_line_on(book: Book) -> None:
    for _ in range(10):
        book.say("x")
    book.set_budget("a", LogBudget(lines=2))
    book.say("y")
    assert book.texts("a") == ["x", "y"]


def test_a_long_line_is_cut_and_says_how_much_is_missing(book: Book) -> None:
    book.say("x" * LINE_CHARACTERS)
    book.say("x" * (LINE_CHARACTERS * 3 + 5), logger="l" * 1000)
    whole, cut = book.since(0)
    assert whole.text == "x" * LINE_CHARACTERS
    assert cut.text == "x" * LINE_CHARACTERS + f"… {LINE_CHARACTERS * 2 + 5} more"
    assert cut.logger.startswith("l" * LOGGER_CHARACTERS + "… ")


@pytest.mark.hostile("C10")
@pytest.mark.parametrize("before", [0, LINE_CHARACTERS - 4, 2 * LINE_CHARACTERS - 12])
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_a_secret_is_masked_wherever_a_line_is_cut(book: Book, before: int) -> None:
    """No half of a secret is left at the end of a line."""
    book.say("x" * before + "hunter2!" + "y" * LINE_CHARACTERS * 2, logger="hunter2!")
    assert "hunt" not in book.since(0)[0].text
    assert book.since(0)[0].logger == "•••"
