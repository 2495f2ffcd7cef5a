"""PROTOCOL.md says what the code does: its tables are compared with the code's, its example is decoded."""

from __future__ import annotations

import re
from pathlib import Path

import rdc.protocol
from rdc.limits import (
    ASKED_FILE_BYTES,
    ASKED_FREELY_BYTES,
    ASKED_NODE_BYTES,
    BLOCK_BYTES,
    BLOCK_CONTENT_BYTES,
    COMPARED_TIMES,
    DATA_BYTES,
    FILES_PER_MESSAGE,
    FRAME_BYTES,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    MESSAGE_BYTES,
    OUTSTANDING_ORDINALS,
    OUTSTANDING_REQUESTS,
    PATH_BYTES,
    PATH_DEPTH,
    RAW_BLOCK_BYTES,
    RECORDS_BYTES,
    RESERVED_AHEAD_BYTES,
    ROUND_LIMIT,
    ROW_REQUESTS,
    ROWS_FREELY,
    ROWS_PER_PART,
    RULES_BYTES,
    SENT_TIMES,
    SMALL_MANIFEST,
    TIER_NODES,
    TIER_NODES_WHOLE,
    TOP_NODES,
)
from rdc.model.sync import SyncOptions
from rdc.plan.manifest_descent import FEW_NODES
from rdc.protocol.connection import DIALECT, Connection, Received
from rdc.protocol.messages import (
    Open,
    Opened,
    Role,
    RowsRequest,
    State,
    TierRequest,
    answers_to,
    message_kinds,
)
from rdc.protocol.sequence import TRANSITIONS
from rdc.protocol.wire.codec import field_names
from rdc.protocol.wire.options import ADDED_OPTIONS, DISPENSABLE
from rdc.session.source.tree_description import CLOSE_BYTES

DOCUMENT = (Path(rdc.protocol.__file__).parent / "PROTOCOL.md").read_text()


def section(title: str) -> str:
    return DOCUMENT.split(f"{title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title: str) -> list[list[str]]:
    lines = re.findall(r"^\|(.*)\|$", section(title), re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines[1:] if not line.startswith("---")]


MESSAGE_ROWS = [row for row in rows("## 5. Messages") if row[0].isdigit()]


def test_the_message_table_names_every_message_and_its_fields_in_order() -> None:
    documented = {
        int(row[0]): (row[1], tuple(re.findall(r"(\w+)(?: \([^)]*\))?:", row[3]))) for row in MESSAGE_ROWS
    }
    assert documented == {kind: (cls.__name__, field_names(kind)) for kind, cls in message_kinds().items()}


def test_the_message_table_says_who_sends() -> None:
    def senders(name: str) -> set[str]:
        return {
            role.name[0]
            for role in Role
            for allowed in TRANSITIONS[role].values()
            if name in {cls.__name__ for cls in allowed}
        }

    expected = {"both": {"S", "D"}, "dialler": {"S", "D"}, "answerer": {"S", "D"}, "S": {"S"}, "D": {"D"}}
    for _, name, sender, _ in MESSAGE_ROWS:
        assert senders(name) == expected[sender], name


def test_the_table_of_added_options_is_the_code_s() -> None:
    documented = {
        name: "not in `needs`" in value
        for options, value, _ in rows("### Added options")
        for name in re.findall(r"`(\w+)`", options)
    }
    assert documented == {name: name in DISPENSABLE for name in ADDED_OPTIONS}


def state_groups() -> dict[str, set[str]]:
    """The names of messages that the table of states has together, from what they declare."""
    kinds = message_kinds().values()
    return {
        "Manifest answers": {cls.__name__ for cls in answers_to(TierRequest, RowsRequest)},
        "file answers": {
            cls.__name__ for cls in kinds if cls.place.answers and State.LISTING in cls.place.when
        },
        "requests": {cls.__name__ for cls in kinds if cls.place.asks},
    }


def test_the_groups_of_the_state_table_are_the_code_s() -> None:
    text = " ".join(section("## 6. States").split())
    for group, names in state_groups().items():
        listed = re.search(rf"{group} are ([\w, ]+?)[;.]", text)
        assert listed
        assert set(re.split(r", | and ", listed[1])) == names


def test_the_state_table_is_the_code_s() -> None:
    names = {cls.__name__ for cls in message_kinds().values()}
    groups = {group.lower(): names for group, names in state_groups().items()}
    listed: dict[str, dict[str, str]] = {}
    for side, state, may in rows("## 6. States"):
        if side in {"S", "D"}:
            allowed = listed.setdefault(f"{side} {state}", {"Refused": "CLOSED"})
            for item in filter(None, may.split(", ")):
                message, _, after = item.partition(" → ")
                for name in groups.get(message, {message}):
                    assert name in names
                    allowed[name] = after or state
    in_code = {
        f"{role.name[0]} {state.name}": {cls.__name__: after.name for cls, after in allowed.items()}
        for role in Role
        for state, allowed in TRANSITIONS[role].items()
        if state not in {State.GREETING, State.OPENING, State.CLOSED}
    }
    assert listed == in_code


def test_limits_are_the_code_s() -> None:
    for value in (
        FRAME_BYTES,
        BLOCK_CONTENT_BYTES,
        BLOCK_BYTES,
        RAW_BLOCK_BYTES,
        ROUND_LIMIT,
        RULES_BYTES,
        PATH_BYTES,
        PATH_DEPTH,
        FILES_PER_MESSAGE,
        OUTSTANDING_REQUESTS,
        OUTSTANDING_ORDINALS,
        DATA_BYTES,
        ROWS_PER_PART,
        TIER_NODES_WHOLE,
        RESERVED_AHEAD_BYTES,
        ASKED_FILE_BYTES,
        ASKED_NODE_BYTES,
        ASKED_FREELY_BYTES,
        CLOSE_BYTES,
        TOP_NODES << 4,
        TOP_NODES << 8,
        TOP_NODES << 12,
    ):
        assert f"{value:,}" in DOCUMENT, value
    for field in (
        f"payload: content[1..{DATA_BYTES}]",
        f"payload: content[0..{DATA_BYTES}]",
        f"paths: strings[{ITEMS_PER_MESSAGE}]",
        f"at most {ITEMS_BYTES:,} bytes",
        f"records: bytes[0..{RECORDS_BYTES}]",
        f"files: increasing[{FILES_PER_MESSAGE}]",
        f"nodes: increasing[{TIER_NODES}]",
        f"nodes: increasing[0..{TIER_NODES}]",
        f"references: bytes[1..{FRAME_BYTES}]",
        f"message: text[{MESSAGE_BYTES}]",
        f"up to {SMALL_MANIFEST} entries",
        f"may ask for {SENT_TIMES} times that in content",
        f"have S read {COMPARED_TIMES} times that",
        f"may ask for {ROW_REQUESTS} times as many nodes and rows as there are entries, and {ROWS_FREELY:,}",
        f"at most {TOP_NODES} nodes",
        f"more than {FEW_NODES} of its nodes",
    ):
        assert field in DOCUMENT, field


def example() -> list[bytes]:
    """The bytes of the example's two listings."""
    found = []
    for part in re.findall(r"(?:^    (?:[0-9a-f]{2} ?)+.*\n)+", section("## 9. Example"), re.MULTILINE):
        digits = [re.match(r"    ((?:[0-9a-f]{2} ?)+)(?: |$)", line) for line in part.splitlines()]
        found.append(b"".join(bytes.fromhex(match[1]) for match in digits if match))
    return found


def test_the_example_is_what_the_code_sends_and_understands() -> None:
    dialler_bytes, answer_bytes = example()
    hello = DIALECT.hello("rdc 1", b"p" * 32)
    opening = Open(Role.SOURCE, b"/srv", b"s" * 16, SyncOptions())
    dialler, answerer = Connection(True, hello), Connection(False, hello)
    dialler.send(opening, 0)
    dialler.flush()
    sent = dialler.data_to_send()
    assert sent.hex(" ") == dialler_bytes.hex(" ")
    answerer.receive_data(sent)
    assert [answerer.next(), answerer.next()] == [Received(hello, 0), Received(opening, 0)]
    greeting = answerer.data_to_send()
    assert sent.startswith(greeting)
    answerer.send(Opened(), 1)
    answerer.flush()
    answer = answerer.data_to_send()
    assert answer.hex(" ") == answer_bytes.hex(" ")
