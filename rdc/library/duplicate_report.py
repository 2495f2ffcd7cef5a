"""Reads groups of identical files below the given PATHs from the events of `rdc dupes --json`.

A report is untrusted: it may be old, edited or forged. Paths outside the PATHs are refused. The deduper
compares the content of the files before it changes them.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from array import array
from collections.abc import Callable, Iterator

from rdc.duplicates.group import is_below
from rdc.errors import FileError, RdcError, UsageError, printable
from rdc.files.base.relative_path import check_path
from rdc.files.own.record_log import read_log
from rdc.limits.paths import PATH_BYTES
from rdc.limits.survey import REPORT_BYTES
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.instances import IdenticalFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from rdc.library.dedupe_operands import Operands

__all__ = ["groups_of_report", "location_of", "read_report"]


def read_report(name: str, stdin: BinaryIO) -> bytes:
    """Returns the text of the report; '-' is stdin. Raises RdcError."""
    if name != "-":
        return read_log(os.fsencode(name), REPORT_BYTES)
    data = stdin.read(REPORT_BYTES + 1)
    if len(data) > REPORT_BYTES:
        raise RdcError(f"standard input: expected a report of at most {REPORT_BYTES} bytes, found more")
    return data


def groups_of_report(
    name: str, text: bytes, operands: Operands, min_size: int, problem: Callable[[FileError], None]
) -> list[IdenticalFiles]:
    """Returns one group for each `group` event.

    An event holds `size` and `files`. Each file has `path` (`path_b64` as well if the path is not UTF-8) and
    optionally `links`, its other names. Relative paths start at `cwd` of the last `start` event; without it
    they start at the working directory. Raises UsageError for any other text. A path outside the PATHs goes
    to `problem`.
    """
    groups = []
    origin: bytes | None = None
    for number, event in _events(name, text):
        if event["event"] == "start":
            origin = _origin(name, number, event)
        if event["event"] != "group":
            continue
        size, paths = _group(name, number, event)
        if size < max(1, min_size):
            continue
        roots, below = array("H"), []
        for path in paths:
            location = location_of(path, operands, origin)
            if location is None:
                problem(_outside(path, origin))
                continue
            roots.append(location[0])
            below.append(location[1])
        if len(below) > 1:
            groups.append(IdenticalFiles(size, roots, tuple(below)))
    return groups


def location_of(path: bytes, operands: Operands, origin: bytes | None = None) -> tuple[int, bytes] | None:
    """Returns the number of the tree that holds `path`, and the path below it; None outside all trees.

    `origin` is the absolute directory where a relative path starts; None means the working directory.
    """
    absolute = _absolute(path, origin)
    found = _locate(absolute, operands)
    if found is not None:
        return found
    # The path may go through symlinks that the PATH does not contain.
    directory, name = os.path.split(absolute)
    return _locate(os.path.join(os.path.realpath(directory), name), operands)


def _absolute(path: bytes, origin: bytes | None) -> bytes:
    return os.path.abspath(path if origin is None else os.path.join(origin, path))


def _outside(path: bytes, origin: bytes | None) -> FileError:
    found = f"found {printable(_absolute(path, origin))}"
    advice = "left alone"
    if not os.path.isabs(path) and origin is None:
        found += ", as the report does not say from which directory its names are"
        advice += "; run it in the directory in which rdc dupes ran"
    return FileError(path, f"{printable(path)}: expected a file below the PATHs given, {found}; {advice}")


def _locate(absolute: bytes, operands: Operands) -> tuple[int, bytes] | None:
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


def _events(name: str, text: bytes) -> Iterator[tuple[int, dict[str, object]]]:
    """Yields all events with their line numbers. Raises UsageError for a line that is no event."""
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


def _origin(name: str, number: int, event: dict[str, object]) -> bytes | None:
    """Returns the directory of a report's relative names, or None without `cwd`. Raises UsageError."""
    if "cwd" not in event:
        return None
    origin = _path(event, "cwd")
    if origin is None or not os.path.isabs(origin):
        raise _error(name, "an absolute directory as cwd", number)
    return origin


def _links(file: object) -> list[object]:
    links = file.get("links", []) if isinstance(file, dict) else []
    return links if isinstance(links, list) else [None]


def _path(file: object, key: str = "path") -> bytes | None:
    """Returns the path of a JSON object, or None if it holds no valid path."""
    if not isinstance(file, dict):
        return None
    text, encoded = file.get(key), file.get(f"{key}_b64")
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
