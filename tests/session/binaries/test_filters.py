"""The filters stay behind one interface, and their forms on the wire are inverse to each other."""

from __future__ import annotations

import ast
import random
from array import array
from pathlib import Path

import pytest

import rdc
from rdc.errors import ProtocolError
from rdc.protocol.messages import Code, Data, Table
from rdc.session.binaries import RangeOffsets, decode, encode

PACKAGE = Path(rdc.__file__).parent
BINARIES = PACKAGE / "session" / "binaries"


def imported(path: Path) -> set[str]:
    """Modules that a file imports names from, at its top or inside of functions."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_other_packages_import_only_the_interface() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if path.parent != BINARIES]
    found = {module for path in others for module in imported(path)}
    inside = {module for module in found if module.startswith("rdc.session.binaries.")}
    assert inside == {"rdc.session.binaries"}


CALLS = b"\xe8\x01\0\0\0" * 100
TABLE = b"".join((0x2A3410 + 16 * row).to_bytes(8, "little") for row in range(200))


@pytest.mark.parametrize(
    ("content", "kind"), [(CALLS, Code), (TABLE, Table), (random.Random(1).randbytes(500), Data)]
)
def test_what_is_encoded_is_decoded(content: bytes, kind: type) -> None:
    rows = array("Q", (16, 200, 1_000, len(content) - 200))
    message = encode(3, bytearray(content), rows)
    assert type(message) is kind
    assert message.file == 3
    assert bytes(decode(message, RangeOffsets(rows))) == content


def test_literals_that_nobody_requested_are_refused() -> None:
    with pytest.raises(ProtocolError, match="file 3 that were not asked for"):
        decode(Data(3, b"content"), None)
