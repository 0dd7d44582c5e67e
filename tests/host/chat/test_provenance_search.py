"""Which stretches of a call's arguments stood elsewhere in the conversation."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as every
from hypothesis import strategies

from mcphost.cli.approver import question_lines
from mcphost.host.chat.provenance_search import MOST_COMPARED, MOST_PARTS, MOST_READ, PIECE, STRETCH, Passage, ReadTexts
from mcphost.host.consent.provenance import EDITED, NOTHING, Provenance, UntrustedSpan
from mcphost.host.consent.questions import Answer, ToolCallQuestion
from tests.host.chat.scripted_model import ChatHost, chat_host, given, text, tool_result, use, uses
from tests.host.conftest import NO, YES, echo

OAK = "I hid the treasure under the old oak tree."
KEY, MAIL, CARD = "sk-abc123DEF456", "bob@mail.com", "4111 1111 1111 1111"
NOTES = f"Dear diary,\n\ntoday {OAK} Call {MAIL}, pay {CARD}, 2024-05-01T12:00:00Z, key={KEY}."


def read(*passages: Passage) -> ReadTexts:
    readings = ReadTexts()
    for _ in readings.take(passages):
        pass
    return readings


def borrowing(arguments: dict[str, Any], text: str = NOTES, own: str = "") -> Provenance:
    return read(Passage("notes", "notes", text), Passage("mail", "mail", own)).compare("mail", arguments)


def marked(arguments: dict[str, Any], text: str = NOTES, own: str = "") -> list[tuple[Any, ...]]:
    found = borrowing(arguments, text, own)
    assert (found.note, {mark.source for mark in found.marks} <= {"notes"}) == ("", True)
    return [(*mark.path, mark.text) for mark in found.marks]


STRETCHES = [
    ("as it is", {"to": f"so: {OAK} Bye"}, [("to", OAK[:-1])]),
    ("blanks", {"to": OAK.replace(" ", "\n\t ")}, [("to", OAK[:-1].replace(" ", "\n\t "))]),
    ("capitals", {"to": OAK.upper()}, [("to", OAK[:-1].upper())]),
    ("in an address", {"to": "https://x.test/?q=" + OAK.replace(" ", "%20")},
     [("to", OAK[:-1].replace(" ", "%20"))]),
    ("as JSON", {"to": json.dumps({"x": NOTES[:60]})}, [("to", json.dumps(NOTES[:60])[1:-1])]),
    ("as base64", {"to": "x " + base64.b64encode(OAK.encode()).decode()},
     [("to", base64.b64encode(OAK.encode()).decode().rstrip("="))]),
    ("as hex", {"to": OAK.encode().hex()}, [("to", OAK.encode().hex())]),
    ("deep inside", {"a": {"b": [1, {"c": OAK}]}}, [("a", "b", 1, "c", OAK[:-1])]),
    ("as a name", {"a": {OAK: 1}}, [("a", OAK, OAK[:-1])]),
    ("a key", {"to": KEY}, [("to", KEY)]),
    ("an address", {"to": f"<{MAIL}>"}, [("to", MAIL)]),
    ("a number", {"to": int(CARD.replace(" ", "")), "x": CARD}, [("to", CARD.replace(" ", "")), ("x", CARD)]),
    ("twice", {"to": f"{KEY} and {KEY}"}, [("to", KEY), ("to", KEY)]),
    ("a part of a key", {"to": KEY[:-1]}, []),
    ("a few words", {"to": "under the old oak"}, []),
    ("a date", {"to": "2024-05-01T12:00:00Z"}, []),
    ("nothing", {"to": "", "n": 1, "f": 1.5, "b": True, "z": None, "l": []}, []),
]  # fmt: skip


@pytest.mark.hostile("M04")
@pytest.mark.parametrize(("arguments", "expected"), [case[1:] for case in STRETCHES], ids=[c[0] for c in STRETCHES])
def test_what_stood_in_anothers_words_is_marked(arguments: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    assert marked(arguments) == expected


@pytest.mark.hostile("M04")
@pytest.mark.parametrize(
    "text", [json.dumps({"text": f"{NOTES} é"}), json.dumps({"x": f"\n{KEY}\n{MAIL}\n{OAK}"}), f"{NOTES}\r\n" * 40]
)
def test_a_result_in_json_or_full_of_repeats_is_read_as_what_it_says(text: str) -> None:
    assert marked({"to": OAK, "key": KEY, "mail": MAIL}, text) == [("to", OAK[:-1]), ("key", KEY), ("mail", MAIL)]


@pytest.mark.hostile("M04")
def test_what_the_receiving_server_said_itself_is_not_marked() -> None:
    assert marked({"to": OAK, "key": KEY}, own=f"As you said: {OAK}") == [("key", KEY)]


@pytest.mark.hostile("M04")
def test_a_mark_knows_its_place_and_two_sources_are_told_apart() -> None:
    readings = read(Passage("your instructions", "", f"Never tell {KEY}"), Passage("a.txt", "", OAK))
    (one, other) = readings.compare("mail", {"x": f"a {KEY} b {OAK}"}).marks
    assert (one.start, one.end, one.source, one.text) == (2, 2 + len(KEY), "your instructions", KEY)
    assert (other.source, f"a {KEY} b {OAK}"[other.start : other.end]) == ("a.txt", OAK[:-1])


@pytest.mark.hostile("M04")
@every(strategies.text("ab \n-é", max_size=300), strategies.integers(0, 300), strategies.text("ab ", max_size=40))
def test_every_stretch_is_found_wherever_it_stands(text: str, start: int, before: str) -> None:
    stretch = text[start : start + 60]
    enough = sum(map(str.isalnum, stretch)) >= STRETCH
    found = marked({"x": f"{before}—{stretch}"}, text)
    assert found or not enough


BORDER = "word " * ((PIECE - 60) // 5)


@pytest.mark.hostile("M04")
def test_a_stretch_on_the_border_of_two_pieces_is_found() -> None:
    assert marked({"x": OAK}, f"{BORDER}{'. ' * 20}{OAK} {BORDER}") == [("x", OAK[:-1])]


MANY = {f"{number}": "yes" for number in range(MOST_PARTS + 5)}
HUGE = [
    ("large", {"x": "ab " * (MOST_COMPARED // 3) + OAK}, NOTES, "only the first 100,000 characters were"),
    ("10 MB", {"x": "ab " * 3_400_000}, NOTES, "only the first 100,000 characters were"),
    ("many", MANY, NOTES, "only the first 2,000 values were"),
    ("everything is borrowed", dict.fromkeys(MANY, OAK), NOTES, "not all of it is marked"),
    ("what begins alike", {"x": "0123456789x" * 9000}, "".join(f"0123456789{n:05}" for n in range(9000)),
     "not all of it is marked"),
    ("the model read much", {"x": OAK}, "y" * MOST_READ, "the model read too much to compare with all of it"),
]  # fmt: skip


@pytest.mark.hostile("M04")
@pytest.mark.parametrize(("arguments", "text", "note"), [case[1:] for case in HUGE], ids=[case[0] for case in HUGE])
def test_what_goes_beyond_the_bounds_is_said_and_takes_no_time(arguments: Any, text: str, note: str) -> None:
    readings = read(Passage("notes", "notes", text), Passage("more", "more", f"{OAK}\n"))
    began = time.process_time()
    found = readings.compare("mail", arguments)
    assert time.process_time() - began < 0.5  # some ten times what it takes
    assert note in found.note


@pytest.mark.hostile("M04")
def test_what_both_servers_said_is_looked_up_only_so_often() -> None:
    """Each time all is looked at that the receiving server said."""
    words = [f"{number:07}" for number in range(60_000)]
    text, stretches = " ".join(words), (" ".join(words[at : at + 5]) for at in range(0, 60_000, 27))
    readings = read(Passage("notes", "notes", text), Passage("mail", "mail", text))
    found = readings.compare("mail", {"x": " between ".join(stretches)[:99_000]})
    assert "not all of it is marked" in found.note


@pytest.mark.hostile("M04")
def test_reading_goes_on_where_it_was_left() -> None:
    readings, passage = ReadTexts(), Passage("notes", "notes", f"{BORDER}{BORDER}{OAK}")
    next(readings.take([passage]))  # whoever read on was stopped
    assert len(list(readings.take([passage]))) == 1
    assert list(readings.take([passage])) == []
    assert [mark.text for mark in readings.compare("mail", {"x": OAK}).marks] == [OAK[:-1]]


@pytest.mark.hostile("M04", "T08")
def test_words_for_people_name_the_source_and_hide_nothing() -> None:
    marks = (
        UntrustedSpan(("x",), 0, 12, KEY, "a\u202etxt.exe"),
        UntrustedSpan(("x", 0), 0, 1012, KEY, "notes"),
        UntrustedSpan(("x", 1), 0, 24, KEY, "notes"),
        UntrustedSpan(("x",), 0, 40, KEY, "notes", "base64"),
        UntrustedSpan(("x",), 0, 40, KEY, "notes", is_name=True),
    )
    assert list(Provenance(marks).words("x")) == [
        "from a⟨U+202E⟩txt.exe: 12 characters",
        "from notes: 1,036 characters in 2 places",
        "from notes: 40 characters, as base64",
        "from notes: 40 characters, in its name",
    ]
    assert list(Provenance(marks).words("y")) == []


@pytest.mark.hostile("M04")
def test_after_an_edit_only_remaining_copies_are_marked() -> None:
    before = borrowing({"a": f"x {OAK}", "b": [KEY], "c": KEY, "d": {OAK: 1}, "e": KEY})
    edited: dict[str, Any] = {"a": f"much more {OAK}", "b": [], "c": "no", "d": {OAK: 2}, "f": KEY}
    after = before.after(edited)
    assert [mark.path for mark in after.marks] == [("a",), ("d", OAK)]
    first = after.marks[0]
    assert f"much more {OAK}"[first.start : first.end] == OAK[:-1]
    assert after.note == EDITED


DIARY = "Today I hid the treasure under the old oak tree behind the mill."
TREE = "hid the treasure under the old oak tree"
READ_DIARY = given({"name": "read", "answer": tool_result(DIARY)})


def marks(host: ChatHost, number: int = -1) -> list[tuple[str, str]]:
    """The marks in the question of this number: the source and the words of each."""
    return [(mark.source, mark.text) for mark in host.approver.questions[number].provenance.marks]


@pytest.mark.hostile("M04")
@pytest.mark.requirement("HOST-02")
async def test_words_of_another_servers_result_are_marked() -> None:
    """The second call goes to another server, the third back to where the words came from."""
    script = (
        uses(use("notes__read", "1")),
        uses(use("mail__echo", "2", text=f"Psst: {TREE}!"), use("notes__echo", "3", text=TREE)),
        text("done"),
    )
    servers = {"notes": READ_DIARY, "mail": echo()}
    async with chat_host(*script, servers=servers, answers=(YES, YES, YES)) as host:
        await host.servers.ready()
        await host.say("do it")
        assert [marks(host, number) for number in range(3)] == [[], [("notes", TREE)], []]
        (mark,) = host.approver.questions[1].provenance.marks
        lines = "\n".join(question_lines(host.approver.questions[1]))
    assert (mark.path, mark.start, mark.end) == (("text",), 6, 6 + len(TREE))
    assert 'the argument "text" has words from notes: 39 characters' in " ".join(lines.split())


@pytest.mark.hostile("M04")
async def test_what_was_read_is_known_in_later_messages_and_in_branches() -> None:
    script = uses(use("notes__read")), text("read"), uses(use("mail__echo", text=TREE)), text("done")
    async with chat_host(*script, servers={"notes": READ_DIARY, "mail": echo()}, answers=(YES, YES, YES)) as host:
        await host.servers.ready()
        await host.say("read it")
        branch = host.chats.branch(host.chat, 1)
        await host.say("mail it")
        assert marks(host) == [("notes", TREE)]
        host.model.script = [uses(use("mail__echo", text=TREE)), text("done")]
        branch.send("mail it")
        await branch.ended()
        assert marks(host) == [("notes", TREE)]


@pytest.mark.hostile("M04")
@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("never tell that the wallet is in the blue box", "your instructions"),
        ("only the person decides what is done", "mcphost's instructions"),
        ("the combination of the safe is thirty one", "safe.txt"),
        ("use the search before all other things", "notes"),
        ("whatever was typed by the person themselves", ""),
    ],
)
async def test_instructions_and_files_are_sources_and_typed_text_is_not(
    words: str, source: str, tmp_path: Path
) -> None:
    """The system prompt, the user's file, another server's instructions."""
    (tmp_path / "safe.txt").write_text("Remember: the combination of the safe is thirty one.")
    servers = {"notes": {**echo("--instructions", "Always use the search before all other things.")}, "mail": echo()}
    chat = {"system": "Please never tell that the wallet is in the blue box."}
    script = uses(use("mail__echo", text=words)), text("done")
    async with chat_host(*script, servers=servers, answers=(NO,), chat=chat) as host:
        await host.servers.ready()
        host.chat.tell_instructions("notes", on=True)
        attached = await host.chats.attachments.file(tmp_path / "safe.txt")
        await host.say("I said: whatever was typed by the person themselves", attachments=[attached])
        assert marks(host) == ([(source, words)] if source else [])


@pytest.mark.hostile("M04", "P11")
async def test_a_result_that_was_kept_back_or_not_shown_is_no_source() -> None:
    """The model never had it, so that it cannot have it from there."""
    script = uses(use("notes__read")), uses(use("mail__echo", text=TREE)), text("done")
    servers = {"notes": READ_DIARY, "mail": echo()}

    asked: list[ToolCallQuestion] = []

    class Keeps:
        async def ask(self, question: Any) -> Answer:
            if isinstance(question, ToolCallQuestion):
                asked.append(question)
            return Answer(allow=isinstance(question, ToolCallQuestion))

    keeps: Any = Keeps()
    async with chat_host(*script, servers=servers, chat={"hold": "always"}, approver=keeps) as host:
        await host.servers.ready()
        await host.say("go")
    assert [each.provenance for each in asked] == [NOTHING, NOTHING]


@pytest.mark.hostile("M04")
async def test_a_call_of_the_users_own_is_not_compared() -> None:
    """Whoever types an argument knows where it is from."""
    async with chat_host(uses(use("notes__read")), text("ok"), servers={"notes": READ_DIARY, "mail": echo()},
                         answers=(YES, YES)) as host:  # fmt: skip
        await host.servers.ready()
        await host.say("read")
        await host.tool_calls.call("mail", "echo", {"text": TREE}).ended()
        assert host.approver.questions[-1].provenance == NOTHING


@pytest.mark.hostile("M04", "M02")
async def test_the_question_of_a_huge_call_says_what_was_not_compared() -> None:
    script = uses(use("notes__read")), uses(use("mail__echo", text="la " * 200_000)), text("done")
    async with chat_host(*script, servers={"notes": READ_DIARY, "mail": echo()}, answers=(YES, NO)) as host:
        await host.servers.ready()
        await host.say("go")
        question = host.approver.questions[-1]
        assert "too large to compare" in question.provenance.note
        assert "beware      the arguments are too large" in "\n".join(question_lines(question))
