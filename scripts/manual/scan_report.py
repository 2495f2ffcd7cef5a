"""The fields of the report of `rdc scan --json`, from its JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from scripts.manual.notes import TOP

SCHEMA = TOP / "rdc" / "survey" / "report" / "scan.schema.json"


def scan_report() -> str:
    """One table of all fields. A field of an object, or of the items of a list, has its parent before it."""
    schema = json.loads(SCHEMA.read_text())
    rows = [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in _fields(schema, "")]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])


def _fields(schema: dict[str, Any], before: str) -> Iterator[tuple[str, str, str]]:
    for name, part in schema.get("properties", {}).items():
        if name.endswith("_b64"):
            continue  # the page says once what they are
        yield before + name, _kind(part), part.get("description", "")
        yield from _fields(part, f"{before}{name}.")
        yield from _fields(part.get("items", {}), f"{before}{name}[].")


def _kind(part: dict[str, Any]) -> str:
    if "const" in part:
        return f"always {part['const']}"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    kinds = part.get("type", "")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
