from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcphost
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import (
    ErrorObject,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    answered_by,
    decode,
    encode,
)
from mcphost.protocol.wire.strict_json import BIG_TEXT


def one(data: bytes | str, **limits: int) -> Message | Malformed:
    (message,) = decode(data.encode() if isinstance(data, str) else data, **limits)
    return message


def refused(data: bytes | str, **limits: int) -> Malformed:
    message = one(data, **limits)
    assert isinstance(message, Malformed)
    return message


def answer(members: str) -> str:
    return f'{{"jsonrpc":"2.0","id":7,{members}}}'


READ: list[tuple[str, Message]] = [
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping")),
    ('{"method":"a","id":"1","jsonrpc":"2.0","params":{"x":[]},"new":0}', Request("1", "a", {"x": []})),
    ('{"jsonrpc":"2.0","method":"notifications/x"}', Notification("notifications/x")),
    ('{"jsonrpc":"2.0","id":0,"result":{}}', Response(0, result={})),
    (' {"jsonrpc":"2.0","id":"","result":{"_meta":{"io.mcp/x":7}}}\t', Response("", result={"_meta": {"io.mcp/x": 7}})),
    (answer('"error":{"code":-1,"message":""}'), Response(7, error=ErrorObject(-1, ""))),
    (answer('"error":{"code":1,"message":"m","data":[1]}'), Response(7, error=ErrorObject(1, "m", [1]))),
    ('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}', Response(None, error=ErrorObject(1, "m"))),
    ('{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}', Response(None, error=ErrorObject(1, "m"))),
    ('\ufeff{"jsonrpc":"2.0","method":"behind a mark"}', Notification("behind a mark")),
    ('{"jsonrpc":"2.0","method":"\\ud83d\\ude00 \u2028 世"}', Notification("😀 \u2028 世")),
    ('{"jsonrpc":"2.0","method":"\\ud800","params":{"\\uDC00":"\\udfff."}}', Notification("�", {"�": "�."})),
    (answer('"result":{"__proto__":{"__class__":1},"constructor":2}'),
     Response(7, result={"__proto__": {"__class__": 1}, "constructor": 2})),
]  # fmt: skip


@pytest.mark.hostile("J04", "J05", "J07")
@pytest.mark.requirement("MSG-16", "MSG-17")
@pytest.mark.parametrize(("data", "message"), READ)
def test_unknown_members_of_a_message_are_ignored(data: str, message: Message) -> None:
    assert one(data) == message


@pytest.mark.parametrize(
    ("data", "message", "null"),
    [
        (answer('"result":{},"error":null'), Response(7, result={}), "error"),
        (answer('"result":null,"error":{"code":1,"message":"m"}'), Response(7, error=ErrorObject(1, "m")), "result"),
        (answer('"method":null,"params":null,"result":{"a":null},"error":null'), Response(7, result={"a": None}),
         "error, method, params"),
        (answer('"method":"a","params":null'), Request(7, "a"), "params"),
        (answer('"method":"a","params":{"x":null},"result":null,"error":null'), Request(7, "a", {"x": None}),
         "error, result"),
        ('{"jsonrpc":"2.0","method":"notifications/a","params":null}', Notification("notifications/a"), "params"),
        ('{"jsonrpc":"2.0","id":null,"method":"notifications/a"}', Notification("notifications/a"), "id"),
    ],
)  # fmt: skip
def test_a_null_member_that_may_be_absent_is_absent_with_a_remark(data: str, message: Message, null: str) -> None:
    read = one(data)
    assert not isinstance(read, Malformed)
    assert read == message
    assert read.remark == f"messages with null as {null}, which must be absent instead"


@pytest.mark.parametrize(("data", "reason"), [
    (answer('"result":null'), "the result is a JSON null"),
    (answer('"result":null,"error":null'), "the result is a JSON null"),
    (answer('"error":null'), "the error is a JSON null"),
    (answer('"method":null'), "neither a method nor"),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', "the id is neither"),
    ('{"jsonrpc":"2.0","id":null,"result":{}}', "whose id is neither"),
    ('{"jsonrpc":null,"id":7,"result":{}}', '"jsonrpc" is not'),
])  # fmt: skip
def test_a_null_that_decides_is_not_absent(data: str, reason: str) -> None:
    assert reason in refused(data).reason


QUOTA = "monthly quota used up"


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        (f'"error":"{QUOTA}"', "the error is a JSON string"),
        (f'"error":["{QUOTA}"]', "the error is a JSON array"),
        (f'"error":{{"code":"E_QUOTA","message":"{QUOTA}"}}', "code is not an integer"),
        (f'"error":{{"message":"{QUOTA}"}}', "code is not an integer"),
        (f'"error":{{"error":"{QUOTA}"}}', "code is not an integer"),
        (f'"error":{{"error":{{"detail":"{QUOTA}"}}}}', "code is not an integer"),
        (f'"error":{{"code":-32000,"data":"{QUOTA}"}}', "message is not a string"),
        (f'"error":{{"code":-32000,"message":{{"text":"{QUOTA}"}}}}', "message is not a string"),
        (f'"error":{{"code":-32000,"why":"{QUOTA}"}}', "message is not a string"),
        (f'"result":{{}},"error":{{"code":1,"message":"{QUOTA}"}}', "both"),
        (f'"result":"{QUOTA}"', "the result is a JSON string"),
        (f'"result":[{{"type":"text","text":"{QUOTA}"}}]', "the result is a JSON array"),
    ],
)
def test_an_answer_of_the_wrong_shape_keeps_what_the_server_says(members: str, fault: str) -> None:
    problem = refused(answer(members))
    assert fault in problem.reason
    assert QUOTA in problem.reason
    assert problem.answers == 7


@pytest.mark.parametrize(
    "data",
    [
        f'{{"error":"{QUOTA}"}}',
        f'{{"id":7,"error":{{"code":1,"message":"{QUOTA}"}}}}',
        f'{{"message":"{QUOTA}"}}',
        f'{{"jsonrpc":"2.0","id":7,"output":"{QUOTA}"}}',
    ],
)
def test_an_invalid_answer_keeps_the_servers_text(data: str) -> None:
    assert QUOTA in refused(data).reason


@pytest.mark.parametrize("head", ['"id":"a","method":"ping"', '"method":"notifications/tools/list_changed"'])
def test_an_empty_array_as_params_is_absent_with_a_remark(head: str) -> None:
    read = one(f'{{"jsonrpc":"2.0",{head},"params":[]}}')
    assert isinstance(read, Request | Notification)
    assert read.params is None
    assert "an empty array as params" in read.remark
    assert refused(f'{{"jsonrpc":"2.0",{head},"params":[1]}}').reason == "params is not an object"


def test_the_text_of_an_odd_error_omits_the_request_state() -> None:
    problem = refused(answer('"error":{"data":[{"requestState":"secret","why":"no"}],"requestState":"secret"}'))
    assert 'it says: {"why": "no"}' in problem.reason


def test_the_text_of_an_odd_error_is_bounded() -> None:
    assert len(refused(answer(f'"error":"{"x" * 100_000}"')).reason) < 400


@pytest.mark.hostile("J07")
def test_text_with_a_replaced_surrogate_can_be_written() -> None:
    message = one('{"jsonrpc":"2.0","method":"\\ud800","params":{"\\udc00":["\\udfff"]}}')
    assert not isinstance(message, Malformed)
    assert one(encode(message)) == message
    assert one(encode(Notification("a\ud800"))) == Notification("a?")


INVALID_ANSWERS: list[tuple[str, str]] = [
    (answer('"result":{},"error":{"code":1,"message":""}'), "both"),
    (answer('"other":{}'), "neither"),
    (answer('"method":"ping","result":{}'), "a method and an answer"),
    (answer('"error":"it broke"'), "the error is a JSON string"),
    (answer('"error":null'), "the error is a JSON null"),
    (answer('"error":{"message":"m"}'), "code is not an integer"),
    (answer('"error":{"code":"1","message":"m"}'), "code is not an integer"),
    (answer('"error":{"code":true,"message":"m"}'), "code is not an integer"),
    (answer('"error":{"code":1.0,"message":"m"}'), "code is not an integer"),
    (answer('"error":{"code":1}'), "message is not a string"),
    (answer('"result":[]'), "the result is a JSON array"),
    (answer('"result":null'), "the result is a JSON null"),
    (answer('"result":"x"'), "the result is a JSON string"),
    (answer('"result":true'), "the result is a JSON boolean"),
    (answer('"result":1'), "the result is a JSON number"),
    ('{"jsonrpc":"1.0","id":7,"result":{}}', '"jsonrpc" is not "2.0"'),
    ('{"jsonrpc":2.0,"id":7,"result":{}}', '"jsonrpc" is not "2.0"'),
    ('{"id":7,"result":{}}', '"jsonrpc" is not "2.0"'),
    (answer('"result":{"a":NaN}'), "NaN is not JSON"),
    (answer('"result":{"a":-1e400}'), "too large"),
    (answer('"result":{"a":1,"a":2}'), "twice"),
    (answer('"result":{},"result":{}'), "twice"),
    (answer('"result":{"a":' + "[" * 200 + "]" * 200 + "}"), "nested deeper than 128"),
    (answer('"result":{"a":' + "[" * 100_000 + "]" * 100_000 + "}"), "nested deeper than 128"),
    (answer('"result":{"a":' + "9" * 10_000 + "}"), "a number too long to read"),
    (answer('"result":{"a":1,}'), "not JSON"),
    (answer('"result":{"a":'), "not JSON"),
]


@pytest.mark.hostile("J06", "J10")
@pytest.mark.requirement("MSG-13")
@pytest.mark.parametrize(("data", "reason"), INVALID_ANSWERS)
def test_an_invalid_answer_says_why_and_whose_it_was(data: str, reason: str) -> None:
    problem = refused(data)
    assert reason in problem.reason
    assert problem.answers == 7
    assert problem.asks is None
    assert problem.data == data.encode()


UNREADABLE: list[tuple[bytes, int | str | None]] = [
    ('{"result":{"a":"é"},"jsonrpc":"2.0","id":7}'.encode("latin-1"), 7),
    ('{"jsonrpc":"2.0","result":{"a":"é"},"id":"x"}'.encode("latin-1"), "x"),
    (b'{"result":{"a":1,"a":2},"jsonrpc":"2.0","id":7}', 7),
    (b'{"error":{"code":1,"code":2,"message":"m"},"id":7,"jsonrpc":"2.0"}', 7),
    (b'{"result":{"a":"\t"},"jsonrpc":"2.0","id":7}', 7),
    (b'{"result":{"a":NaN},"jsonrpc":"2.0","id":7}', 7),
    (b'{"result":{"id":8,"a":1e999},"jsonrpc":"2.0","id":7}', 7),
    (b'{"result":{"a":%s},"jsonrpc":"2.0","id":7}' % (b"9" * 10_000), 7),
    # No request is named if the answer could be another one's.
    (b'{"result":{"a":1,"a":2},"jsonrpc":"2.0","id":7,"id":8}', None),
    (b'{"result":{"a":1,"a":2},"jsonrpc":"2.0","id":true}', None),
    (b'{"result":{"a":1,"a":2},"jsonrpc":"2.0"}', None),
    (b'{"method":"m","params":{"a":1,"a":2},"id":7}', None),
    (b'{"result":{"a":{"a":1,"jsonrpc":"2.0","id":7}', None),
]


@pytest.mark.requirement("MSG-13")
@pytest.mark.parametrize(("data", "answers"), UNREADABLE)
def test_an_unreadable_answer_names_its_request(data: bytes, answers: int | str | None) -> None:
    assert refused(data).answers == answers


@pytest.mark.parametrize("order", ['{"jsonrpc":"2.0","id":7,%s}', '{%s,"jsonrpc":"2.0","id":7}', '{%s,"id":7}'])
def test_an_answer_with_too_many_items_says_whose_it_was(order: str) -> None:
    problem = one((order % f'"result":{{"a":[{"[]," * 400_000}0]}}').encode(), max_items=1000)
    assert isinstance(problem, Malformed)
    assert (problem.answers, problem.limit) == (7, 1000)


@pytest.mark.requirement("BATCH-01")
@pytest.mark.parametrize(("limit", "reason"), [(0, "which only revision 2025-03-26 has"), (2, "over the limit of 2")])
def test_a_batch_that_may_not_be_says_whose_answers_it_holds(limit: int, reason: str) -> None:
    items = ['{"jsonrpc":"2.0","id":7,"result":{}}', '{"jsonrpc":"2.0","method":"n"}', '{"id":"x","error":{}}', "[]"]
    found = decode(f"[{','.join(items)}]".encode(), batch_items=limit)
    assert [problem.answers for problem in found if isinstance(problem, Malformed) and reason in problem.reason] == [
        7,
        "x",
    ]
    assert len(decode(f"[{','.join(items[:1] * 1000)}]".encode())) == 100
    assert len(decode(b'[{"jsonrpc":"2.0","method":"n"},1]')) == 1


@pytest.mark.hostile("J06")
def test_how_deep_a_message_may_be_can_be_set() -> None:
    data = answer(f'"result":{{"a":{"[" * 9}{"]" * 9}}}')
    assert isinstance(one(data, max_depth=11), Response)
    refused = one(data, max_depth=10)
    assert isinstance(refused, Malformed)
    assert refused.reason == "nested deeper than 10"


INVALID_REQUESTS: list[tuple[str, int | str | None, ErrorCode]] = [
    ('{"jsonrpc":"2.0","id":7,"method":"a","params":[1]}', 7, ErrorCode.INVALID_PARAMS),
    ('{"jsonrpc":"2.0","id":"x","method":1}', "x", ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"1.0","id":7,"method":"a"}', 7, ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"2.0","id":1.5,"method":"a"}', None, ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"2.0","id":true,"method":"a"}', None, ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"2.0","id":{},"method":"a"}', None, ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"2.0","id":null,"method":"a"}', None, ErrorCode.INVALID_REQUEST),
    ('{"jsonrpc":"2.0","method":"a","params":[1]}', None, ErrorCode.INVALID_PARAMS),
]


@pytest.mark.hostile("F11")
@pytest.mark.requirement("MSG-10")
@pytest.mark.parametrize(("data", "asks", "code"), INVALID_REQUESTS)
def test_an_invalid_request_says_to_which_id_an_error_is_owed(
    data: str, asks: int | str | None, code: ErrorCode
) -> None:
    problem = refused(data)
    assert (problem.asks, problem.code, problem.answers) == (asks, code, None)


STRAY: list[tuple[bytes, bool]] = [
    (b"Server v1.0 listening", False),
    (b"", False),
    (b"\x00\x01\xff", False),
    (b'{"jsonrpc":"2.0"', False),
    ('{"jsonrpc":"2.0","method":"ü"}'.encode("latin-1"), False),
    ('{"jsonrpc":"2.0","method":"u"}'.encode("utf-16"), False),
    (b'{"method":"\xed\xa0\x80"}', False),
    (b'{"method":"\xc0\xaf"}', False),
    (b"{}", True),
    (b"null", True),
    (b"42", True),
    (b'"text"', True),
    (b'{"jsonrpc":"2.0","id":true,"result":{}}', True),
    (b'{"jsonrpc":"2.0","id":3.0,"result":{}}', True),
    (b'{"jsonrpc":"2.0","id":null,"result":{}}', True),
    (b'{"jsonrpc":"2.0","id":[3],"error":{"code":1,"message":"m"}}', True),
]


@pytest.mark.hostile("J03", "J04", "J09")
@pytest.mark.parametrize(("data", "is_json"), STRAY)
def test_an_invalid_message_answers_no_request(data: bytes, is_json: bool) -> None:
    problem = refused(data)
    assert (problem.answers, problem.asks, problem.is_json) == (None, None, is_json)


@pytest.mark.hostile("J04")
def test_the_place_of_invalid_utf8_is_reported() -> None:
    assert refused(b'{"a\xff"}').reason == "not UTF-8 at byte 3"


@pytest.mark.parametrize("spare", [0, 1])
def test_a_big_message_may_hold_so_many_objects_and_no_more(spare: int) -> None:
    text = "x" * BIG_TEXT
    data = answer(f'"result":{{"text":"{text}","list":[{",".join(["{}"] * 47)}]}}')
    assert isinstance(one(data, max_items=50 - spare), Malformed) is bool(spare)


def test_a_small_message_may_hold_any_number_of_objects() -> None:
    assert isinstance(one(answer('"result":{"a":[[],[],[]]}'), max_items=1), Response)


@pytest.mark.parametrize(("depth", "fits"), [(128, True), (129, False)])
def test_the_depth_of_a_message_is_bounded(depth: int, fits: bool) -> None:
    data = answer(f'"result":{{"a":{"[" * (depth - 2)}{"]" * (depth - 2)},"b":[{",".join(["[]"] * 130)}]}}')
    assert isinstance(one(data), Response) is fits


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.hostile("J11")
@pytest.mark.requirement("BATCH-01", "BATCH-04", "BATCH-06", "BATCH-07")
@pytest.mark.parametrize(
    ("data", "limit", "expected"),
    [
        (f"[{PING},{PING}]", 2, ["ping", "ping"]),
        (f'[1,{PING},{{}},[{PING}],{{"jsonrpc":"2.0","method":"n"}}]', 9, ["!", "ping", "!", "!", "n"]),
        ("[]", 9, ["!"]),
        (f"[{PING},{PING}]", 1, ["!"]),
        (f"[{','.join(['0'] * 1_000_000)}]", 100, ["!"]),
        (f"[{PING}]", 0, ["!"]),
    ],
    ids=["good", "bad elements", "empty", "over the limit", "a million", "not in this revision"],
)
def test_the_elements_of_a_batch_are_messages_of_their_own(data: str, limit: int, expected: list[str]) -> None:
    read = [
        "!" if isinstance(message, Malformed | Response) else message.method
        for message in decode(data.encode(), batch_items=limit)
    ]
    assert read == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
PARAMS = st.none() | st.dictionaries(st.text(), JSON)
IDS = st.integers(-(2**53), 2**53) | st.text()
RESPONSES = st.one_of(
    st.builds(Response, IDS, st.dictionaries(st.text(), JSON)),
    st.builds(Response, IDS, st.none(), st.builds(ErrorObject, st.integers(), st.text(), JSON)),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, IDS, st.text(), PARAMS), st.builds(Notification, st.text(), PARAMS), RESPONSES
)


@pytest.mark.requirement("MSG-01", "MSG-02", "MSG-05", "MSG-08", "MSG-09", "MSG-11", "TRANS-STDIO-02", "BATCH-03")
@given(MESSAGES)
def test_a_written_message_is_one_line_and_reads_back(message: Message) -> None:
    line = encode(message)
    assert b"\n" not in line
    written: dict[str, Any] = json.loads(line.decode("utf-8"))
    assert written["jsonrpc"] == "2.0"
    assert ("id" in written) is not isinstance(message, Notification)
    assert ("result" in written) + ("error" in written) == isinstance(message, Response)
    assert written.get("params", {}) is not None
    assert one(line) == message


STANDARD = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.integers(-(10**40), 10**40)
TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(["\ud800", "\u2028\x7f\0", "1e5", "0.00001", "NaN"])
WRITTEN = st.recursive(
    NUMBERS | TEXTS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


@given(st.dictionaries(TEXTS, WRITTEN, max_size=4))
def test_the_bytes_written_are_those_of_the_standard_library(params: dict[str, Any]) -> None:
    message = Request(1, "m", params)
    assert encode(message) == STANDARD.encode(message.as_object()).encode("utf-8", "replace")


@pytest.mark.parametrize("number", [1e16, 1e15, 1e-4, 1e-5, 1.5e-5, 1e-6, -0.0, 5e-324, 1e300])
def test_floats_are_written_as_the_standard_library_does(number: float) -> None:
    assert encode(Notification("m", {"n": number})).endswith(f'{{"n":{number!r}}}}}'.encode())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Notification("m", {"n": number}))


@given(st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_that_arrives_raises(data: bytes) -> None:
    list(decode(data, batch_items=3))


@given(RESPONSES)
def test_the_start_of_an_answer_names_its_request_or_none(message: Response) -> None:
    assert answered_by(encode(message)[:200]) in (message.id, None)


@pytest.mark.requirement("ERR-07")
def test_only_error_codes_of_the_specification_are_written() -> None:
    """The numbers early notes had for tools, prompts and sampling stand nowhere in the source."""
    source = "".join(file.read_text("utf-8") for file in Path(mcphost.__path__[0]).rglob("*.py"))
    assert {*re.findall(r"-3200\d\b", source)} <= {"-32002"}
