"""A scan report as one JSON document. scan.schema.json beside this file defines it."""

from __future__ import annotations

import json

from rdc.model.scan import Bin, LevelSummary, ScanReport
from rdc.report.json_events import path_fields
from rdc.report.scan.headline import headline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["SCHEMA", "Json", "scan_document", "scan_json"]

SCHEMA = 1
"""`schema` of the document. Within one schema, fields may be added but never renamed or removed."""

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


def scan_json(report: ScanReport) -> str:
    """The document as one line of ASCII without control characters, whatever names it contains."""
    return json.dumps(scan_document(report)).replace("\x7f", "\\u007f") + "\n"


def scan_document(report: ScanReport) -> dict[str, Json]:
    """The document that scan.schema.json defines. A path that is not UTF-8 has `NAME_b64` beside `NAME`."""
    # long because it lists the document's fields in their order
    # Long because it lists the fields of the document in their order, one per line.
    return {
        "schema": SCHEMA,
        "headline": headline(report),
        "paths": [_path("path", path) for path in report.paths],
        "files": report.files,
        "bytes": report.bytes,
        "allocated_bytes": report.allocated_bytes,
        "hardlinks": report.hardlinks,
        "holes_bytes": report.holes_bytes,
        "already_shared_bytes": report.already_shared_bytes,
        "duplicate_groups": report.duplicate_groups,
        "duplicate_bytes": report.duplicate_bytes,
        "coverage": {
            "complete": report.coverage.complete,
            "reason": report.coverage.reason,
            "found_files": report.coverage.found_files,
            "found_bytes": report.coverage.found_bytes,
            "known_bytes": report.coverage.known_bytes,
        },
        "levels": [_level(level) for level in report.levels],
        "attribution": {"level": report.attribution.level, "rate": report.attribution.rate},
        "directories": [
            {
                **_path("path", one.path),
                "files": one.files,
                "bytes": one.bytes,
                "duplicate_bytes": one.duplicate_bytes,
                "own_bytes": one.own_bytes,
                "own_duplicate_bytes": one.own_duplicate_bytes,
            }
            for one in report.directories
        ],
        "types": [
            {"name": one.name, "files": one.files, "bytes": one.bytes, "duplicate_bytes": one.duplicate_bytes}
            for one in report.types
        ],
        "overlaps": [
            {
                **_path("first", one.first),
                **_path("second", one.second),
                "shared_bytes": one.shared_bytes,
                "first_bytes": one.first_bytes,
                "second_bytes": one.second_bytes,
            }
            for one in report.overlaps
        ],
        "similar": [
            {
                "paths": [_path("path", path) for path in one.paths],
                "bytes": one.bytes,
                "resemblance": round(one.resemblance, 4),
            }
            for one in report.similar
        ],
        "errors": [
            {**_path("path", one.path), "message": one.message, "code": int(one.code)}
            for one in report.errors
        ],
        "more_errors": report.more_errors,
        "exit": int(report.exit),
    }


def _level(level: LevelSummary) -> dict[str, Json]:
    return {
        "name": level.name,
        "mean_bytes": round(level.mean_bytes, 1),
        "chunks": level.chunks,
        "bytes": level.bytes,
        "unique_chunks": level.unique_chunks,
        "unique_bytes": level.unique_bytes,
        "ratio": round(level.ratio, 6),
        "compressed_bytes": level.compressed_bytes,
        "compressed_low": level.compressed_low,
        "compressed_high": level.compressed_high,
        "exact": level.exact,
        "low": level.low,
        "high": level.high,
        "sizes": [_bin(one) for one in level.sizes],
        "copies": [_bin(one) for one in level.copies],
    }


def _bin(one: Bin) -> dict[str, Json]:
    return {"upto": one.upto, "chunks": one.chunks, "bytes": one.bytes}


def _path(name: str, path: bytes) -> dict[str, Json]:
    fields = path_fields(path)
    named: dict[str, Json] = {name: fields["path"]}
    if "path_b64" in fields:
        named[f"{name}_b64"] = fields["path_b64"]
    return named
