"""Checks that parts are whole, or all slices of one scan or of one search for documents."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, UsageError, printable
from rdc.model.scan import ScanProblem
from rdc.records import dataclass
from rdc.survey.scan.slice_set import SliceSet
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.survey.parts.part_head import PartHead

__all__ = [
    "SCAN",
    "JobWords",
    "SlicedHead",
    "check_complete",
    "check_one_scan",
    "check_slices",
    "joined_slices",
    "tree_change",
]


class SlicedHead(Protocol):
    """What a part says about itself before its content."""

    @property
    def name(self) -> str:
        """The part in messages."""

    @property
    def paths(self) -> tuple[bytes, ...]:
        """The paths of the job."""

    @property
    def slices(self) -> SliceSet | None:
        """The slices in the part; None for a whole job."""


@dataclass(frozen=True, slots=True)
class JobWords:
    """How messages call a job."""

    one: str
    several: str
    verb: str
    """As one would say it to the user."""
    command: str


SCAN = JobWords("scan", "scans", "scan", "rdc scan")

NAMED = 10
"""Most missing slices that a message names."""


def check_one_scan(heads: Sequence[PartHead]) -> None:
    """Raises UsageError, with the part's name, unless the parts have the same levels and are all whole scans
    or all different slices of one scan."""
    first = heads[0]
    for head in heads:
        for what, a, b in (
            ("--level", ", ".join(first.fixed), ", ".join(head.fixed)),
            ("compression", _on(first.compress), _on(head.compress)),
        ):
            _check_equal(first.name, head.name, what, a, b, SCAN)
    check_slices(heads, SCAN)


def check_slices(heads: Sequence[SlicedHead], job: JobWords) -> None:
    """Raises UsageError, with the part's name, unless the parts are all whole or all different slices of one
    job."""
    first = heads[0]
    owner: dict[int, str] = {}
    for head in heads:
        if first.slices is None or head.slices is None:
            if first.slices is not head.slices:
                part, whole = (head, first) if first.slices is None else (first, head)
                raise UsageError(
                    f"{part.name}: {_shown(part.slices)}, but {whole.name} is a whole {job.one}; merge the"
                    f" slices with -o first, and then whole {job.several}"
                )
            continue
        _check_one_job(first, first.slices, head, head.slices, job)
        for number in head.slices.numbers:
            other = owner.setdefault(number, head.name)
            if other is not head.name:
                raise UsageError(
                    f"{head.name}: slice {number}/{head.slices.of} is also in {other}; give each slice once"
                )


def _check_one_job(
    first: SlicedHead, one: SliceSet, head: SlicedHead, other: SliceSet, job: JobWords
) -> None:
    if one.of != other.of:
        raise UsageError(
            f"{head.name}: {_shown(other)}, but {first.name} is {_shown(one)}; give the slices of one"
            f" {job.one}"
        )
    if first.paths != head.paths:
        _check_equal(first.name, head.name, "PATH", _paths(first.paths), _paths(head.paths), job)
    own, options = (dict(line.split(" ", 1) for line in each.options.splitlines()) for each in (one, other))
    for name in dict.fromkeys((*own, *options)):
        _check_equal(first.name, head.name, name, own.get(name, "none"), options.get(name, "none"), job)
    for path, a, b in zip(first.paths, one.roots, other.roots, strict=True):
        if a != b:
            raise UsageError(
                f"{head.name}: {_shown(other)} read another {printable(path)} than {first.name} (inode {a}"
                f" there, {b or 'none'} here), as if the file system was not mounted; {job.verb} that slice"
                " again"
            )


def _check_equal(one: str, other: str, what: str, a: str, b: str, job: JobWords) -> None:
    if a != b:
        raise UsageError(
            f"{other}: made with other parameters than {one}: {what} differs"
            f" ({a or 'none'} there, {b or 'none'} here); {job.verb} again with the same options"
        )


def check_complete(heads: Sequence[SlicedHead], job: JobWords = SCAN) -> None:
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
            f"{'slices' if plural else 'slice'} {named}{more} {'are' if plural else 'is'} missing; {job.verb}"
            f" {'them' if plural else 'it'} with the options of {heads[0].name}: {job.command}"
            f" --slice={missing[0]}/{of} -o FILE ..."
        )


def joined_slices(heads: Sequence[SlicedHead]) -> SliceSet | None:
    """The slices of all parts together, or None if these are all, or if the parts are whole scans."""
    joined = _joined(heads)
    return None if joined is None or len(joined.numbers) == joined.of else joined


def _joined(heads: Sequence[SlicedHead]) -> SliceSet | None:
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


def tree_change(heads: Sequence[SlicedHead]) -> ScanProblem | None:
    """A problem of the first path if the slices did not find the same files. All walks must be finished."""
    joined = _joined(heads)
    if joined is None:
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
