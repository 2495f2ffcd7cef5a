"""Reads the events of `rdc dupes --json` as groups of files below the PATHs that were given.

A report may be old, edited or made by somebody else. Nothing of it is believed but that it is worth a look:
paths outside of the PATHs are refused, and who acts compares the content of what is there.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from array import array
from collections.abc import Callable, Iterator

from rdc.errors import FileError, RdcError, UsageError, printable
from rdc.files.path import check_path
from rdc.files.record_log import read_log
from rdc.instances.tree import is_below
from rdc.limits import PATH_BYTES, REPORT_BYTES, SIZE_LIMIT
from rdc.model.instances import IdenticalFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from rdc.cli.dedupe_places import Operands

__all__ = ["groups_of_report", "place_of", "read_report"]


def read_report(name: str, stdin: BinaryIO) -> bytes:
    """The report's text; '-' is stdin. Raises RdcError."""
    if name != "-":
        return read_log(os.fsencode(name), REPORT_BYTES)
    data = stdin.read(REPORT_BYTES + 1)
    if len(data) > REPORT_BYTES:
        raise RdcError(f"standard input: expected a report of at most {REPORT_BYTES} bytes, found more")
    return data


def groups_of_report(
    name: str, text: bytes, operands: Operands, min_size: int, problem: Callable[[FileError], None]
) -> list[IdenticalFiles]:
    """One group for each `group` event: `size`, and `files`, of which each has `path` (and `path_b64` where
    that is not UTF-8) and perhaps `links`, its other names.

    Raises UsageError for anything else; a path outside of the PATHs is given to `problem`.
    """
    groups = []
    for number, event in _groups(name, text):
        size, paths = _group(name, number, event)
        if size < max(1, min_size):
            continue
        roots, below = array("H"), []
        for path in paths:
            place = place_of(path, operands)
            if place is None:
                shown = printable(path)
                problem(
                    FileError(
                        path, f"{shown}: expected a file below the PATHs given, found another; left alone"
                    )
                )
                continue
            roots.append(place[0])
            below.append(place[1])
        if len(below) > 1:
            groups.append(IdenticalFiles(size, roots, tuple(below)))
    return groups


def place_of(path: bytes, operands: Operands) -> tuple[int, bytes] | None:
    """Number of the tree, and path below it, of a path as a person writes it; None outside of all."""
    absolute = os.path.abspath(path)
    for number, operand in enumerate(operands.all):
        real = operand.tree.real if operand.only is None else os.path.join(operand.tree.real, operand.only)
        for top in (operand.absolute, real):
            if is_below(absolute, top):
                below = operand.only if operand.only is not None else absolute[len(top) :].lstrip(b"/")
                try:
                    check_path(below)
                except FileError:
                    return None
                return (number, below) if below else None
    return None


def _groups(name: str, text: bytes) -> Iterator[tuple[int, dict[str, object]]]:
    """The `group` events, with the numbers of their lines."""
    any_event = False
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _error(name, "a JSON event a line, as rdc dupes --json writes it", number) from error
        if not isinstance(event, dict) or event.get("v") != 1 or not isinstance(event.get("event"), str):
            raise _error(name, 'an event with "v":1', number)
        any_event = True
        if event["event"] == "group":
            yield number, event
    if not any_event:
        raise _error(name, "events of rdc dupes --json", 1)


def _group(name: str, number: int, event: dict[str, object]) -> tuple[int, list[bytes]]:
    size, files = event.get("size"), event.get("files")
    paths: list[bytes] = []
    good = isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= SIZE_LIMIT
    for file in files if isinstance(files, list) else (None,):
        names = [file, *_links(file)]
        found = [path for one in names if (path := _path(one)) is not None]
        good = good and len(found) == len(names)
        paths += found
    if not good or not isinstance(size, int):
        raise _error(name, "a group with a size and files with paths", number)
    return size, paths


def _links(file: object) -> list[object]:
    links = file.get("links", []) if isinstance(file, dict) else []
    return links if isinstance(links, list) else [None]


def _path(file: object) -> bytes | None:
    """None for anything but an object with a path that can be one."""
    if not isinstance(file, dict):
        return None
    text, encoded = file.get("path"), file.get("path_b64")
    try:
        if isinstance(encoded, str):
            path = base64.b64decode(encoded, validate=True)
        elif isinstance(text, str):
            path = text.encode("utf-8")
        else:
            return None
    except (binascii.Error, ValueError):
        return None
    return path if path and len(path) <= PATH_BYTES and b"\0" not in path else None


def _error(name: str, expected: str, line: int) -> UsageError:
    return UsageError(f"{name}, line {line}: not a report of duplicates: expected {expected}")
