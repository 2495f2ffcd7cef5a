"""Checks that parts are whole scans, or all slices of one scan."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, UsageError, printable
from rdc.model.scan import ScanProblem
from rdc.survey.scan.slice_set import SliceSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.survey.parts.part_head import PartHead

__all__ = ["check_complete", "check_one_scan", "joined_slices", "tree_change"]

NAMED = 10
"""Most missing slices that a message names."""


def check_one_scan(heads: Sequence[PartHead]) -> None:
    """Raises UsageError, with the part's name, unless the parts have the same levels and are all whole scans
    or all different slices of one scan."""
    first = heads[0]
    owner: dict[int, str] = {}
    for head in heads:
        for what, a, b in (
            ("--level", ", ".join(first.fixed), ", ".join(head.fixed)),
            ("compression", _on(first.compress), _on(head.compress)),
        ):
            _check_equal(first.name, head.name, what, a, b)
        if first.slices is None or head.slices is None:
            if first.slices is not head.slices:
                part, whole = (head, first) if first.slices is None else (first, head)
                raise UsageError(
                    f"{part.name}: {_shown(part.slices)}, but {whole.name} is a whole scan; merge the slices"
                    " with -o first, and then whole scans"
                )
            continue
        _check_slices(first, first.slices, head, head.slices)
        for number in head.slices.numbers:
            other = owner.setdefault(number, head.name)
            if other is not head.name:
                raise UsageError(
                    f"{head.name}: slice {number}/{head.slices.of} is also in {other}; give each slice once"
                )


def _check_slices(first: PartHead, one: SliceSet, head: PartHead, other: SliceSet) -> None:
    if one.of != other.of:
        raise UsageError(
            f"{head.name}: {_shown(other)}, but {first.name} is {_shown(one)}; give the slices of one scan"
        )
    if first.paths != head.paths:
        _check_equal(first.name, head.name, "PATH", _paths(first.paths), _paths(head.paths))
    options = dict(line.split(" ", 1) for line in other.options.splitlines())
    for line in one.options.splitlines():
        name, value = line.split(" ", 1)
        _check_equal(first.name, head.name, name, value, options.get(name, "none"))
    for path, a, b in zip(first.paths, one.roots, other.roots, strict=True):
        if a != b:
            raise UsageError(
                f"{head.name}: {_shown(other)} read another {printable(path)} than {first.name} (inode {a}"
                f" there, {b or 'none'} here), as if the file system was not mounted; scan that slice again"
            )


def _check_equal(one: str, other: str, what: str, a: str, b: str) -> None:
    if a != b:
        raise UsageError(
            f"{other}: made with other parameters than {one}: {what} differs"
            f" ({a or 'none'} there, {b or 'none'} here); scan again with the same options"
        )


def check_complete(heads: Sequence[PartHead]) -> None:
    """Raises UsageError unless no slice is missing."""
    sets = [head.slices for head in heads if head.slices is not None]
    if not sets:
        return
    of, there = sets[0].of, {number for one in sets for number in one.numbers}
    if len(there) < of:
        missing = [number for number in range(1, of + 1) if number not in there]
        named = ", ".join(f"{number}/{of}" for number in missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        plural = len(missing) > 1
        raise UsageError(
            f"{'slices' if plural else 'slice'} {named}{more} {'are' if plural else 'is'} missing; scan"
            f" {'them' if plural else 'it'} with the options of {heads[0].name}: rdc scan"
            f" --slice={missing[0]}/{of} -o FILE ..."
        )


def joined_slices(heads: Sequence[PartHead]) -> SliceSet | None:
    """The slices of all parts together, or None if these are all, or if the parts are whole scans."""
    joined = _joined(heads)
    return None if joined is None or len(joined.numbers) == joined.of else joined


def _joined(heads: Sequence[PartHead]) -> SliceSet | None:
    sets = [head.slices for head in heads if head.slices is not None]
    if not sets:
        return None
    return SliceSet(
        sets[0].of,
        tuple(sorted(number for one in sets for number in one.numbers)),
        sets[0].options,
        sets[0].roots,
        min((one.fewest for one in sets), key=lambda totals: totals.rank),
        max((one.most for one in sets), key=lambda totals: totals.rank),
    )


def tree_change(heads: Sequence[PartHead]) -> ScanProblem | None:
    """A problem of the first path if the slices did not find the same files and all walks were finished."""
    joined = _joined(heads)
    if joined is None or any(head.reason in ("time", "interrupted") for head in heads):
        return None
    few, many = joined.fewest, joined.most
    if few.rank[:3] == many.rank[:3]:
        return None
    path = heads[0].paths[0]
    return ScanProblem(
        path,
        f"{printable(path)}: slice {few.slice}/{joined.of} found {few.files} files of {few.bytes} bytes in"
        f" {few.directories} directories, slice {many.slice}/{joined.of} {many.files} of {many.bytes} in"
        f" {many.directories}: the tree changed between the slices, or one machine did not see all of it",
        ExitCode.VANISHED,
    )


def _on(value: bool) -> str:
    return "on" if value else "off"


def _paths(paths: Sequence[bytes]) -> str:
    return " ".join(printable(os.fsencode(path)) for path in paths)


def _shown(slices: SliceSet | None) -> str:
    if slices is None:
        return "a whole scan"
    if len(slices.numbers) == 1:
        return f"slice {slices.numbers[0]}/{slices.of}"
    return f"{len(slices.numbers)} slices of {slices.of}"
