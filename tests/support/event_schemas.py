"""The schemas of the events of --json, and the check of one event."""

from __future__ import annotations

import json
from typing import Any

Schema = dict[str, type | tuple[type, ...]]
# Every field of every event with its type. Scripts rely on these names.
SCHEMAS: dict[str, Schema] = {
    "start": {},
    "plan": {"files": int, "bytes": int, "deletes": int},
    "item": {"change": str, "path": str},
    "progress": {"phase": str, "done": int, "total": int, "line_bytes": int},
    "error": {"code": int, "path": str, "message": str},
    "summary": {
        "files": int,
        "changed": int,
        "deleted": int,
        "moved": int,
        "bytes_sent": int,
        "bytes_received": int,
        "literal_bytes": int,
        "reused_bytes": int,
        "round_trips": int,
        "bytes_by_purpose": dict,
        "created": int,
        "updated": int,
        "unchanged": int,
        "content_bytes": int,
        "seconds": (int, float),
        "exit": int,
    },
}
OPTIONAL = {"item": {"path_b64"}, "error": {"path_b64"}}
MAY_LACK = {"progress": {"total", "line_bytes"}}


def check_event(line: str) -> dict[str, Any]:
    assert line.endswith("\n")
    assert line[:-1].isascii()
    assert line[:-1].isprintable()
    event: dict[str, Any] = json.loads(line)
    assert event.pop("v") == 1
    kind = event["event"]
    fields = {name: value for name, value in event.items() if name != "event"}
    schema = SCHEMAS[kind]
    assert set(schema) - MAY_LACK.get(kind, set()) <= set(fields) <= set(schema) | OPTIONAL.get(kind, set())
    for name, value in fields.items():
        assert isinstance(value, schema.get(name, str))
        assert not isinstance(value, bool)
    return event
