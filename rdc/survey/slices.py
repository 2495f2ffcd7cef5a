"""Slices: one of N shares of a scan, or of a search for documents, and what all shares must have in common.

SliceDivision says which slice has what, SliceSet which slices a part has, and the checks say whether parts
are all slices of one job.
"""

from __future__ import annotations

import os

from blake3 import blake3

from rdc.errors import ExitCode, UsageError, printable
from rdc.kernel import name_ranks
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.model.entries import little_endian_integers
from rdc.model.scan import ScanProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from rdc.model.scan import ScanSlice
    from rdc.model.selection import DirectoryRules, FilterRule
    from rdc.survey.walk.file_columns import FileRows, Met

SLICE_KEY = b"rdc survey slice"
"""The key of all hashes that divide. It is no secret: every machine must choose alike."""

NAMED = 10
"""Most missing slices that a message names."""


# Which slice has what


def name_rank(name: bytes) -> int:
    """Return the number by which a name goes to a slice, on every machine."""
    return int.from_bytes(name_ranks(SLICE_KEY, name + b"\0"), "little")


class SliceDivision:
    """Each directory belongs to one slice, and so do the files in it that have one name.

    Files with several names go by their inode number, because only one slice may count them. Nothing else
    decides: not the device number, which differs between machines, and not the place of a mount. So machines
    that see the same tree agree without a word.
    """

    def __init__(self, of: int, *, by_inode: bool) -> None:
        """`by_inode`: whether all files go by inode, since a path may name a file that a walk also finds."""
        self._of = of
        self._by_inode = by_inode

    def of_directory(self, operand: int, path: bytes) -> int:
        """Return the slice, from 1 on, of the directory at `path` below the path number `operand` of the
        job."""
        return self._of_name(b"%d/%b" % (operand, path))

    def of_inode(self, inode: int) -> int:
        return self._of_name(b"inode %d" % inode)

    def shares(self, met: Met) -> dict[int, FileRows]:
        """Return what each slice has of a directory. The slice that the directory belongs to is there even
        without files."""
        files = met.files
        own = self.of_directory(met.operand, met.below)
        links = little_endian_integers("I", files.inodes.links)
        if self._of == 1 or (not self._by_inode and max(links, default=1) <= 1):
            return {own: files}
        rows: dict[int, list[int]] = {} if met.is_single else {own: []}
        numbers: array[int] = little_endian_integers("Q", files.inodes.inodes)
        for row, (inode, names) in enumerate(zip(numbers, links, strict=True)):
            # An object has no links, and no other name.
            by_inode = names > 1 or (self._by_inode and names)
            rows.setdefault(self.of_inode(inode) if by_inode else own, []).append(row)
        return {number: files.rows(chosen) for number, chosen in rows.items()}

    def _of_name(self, name: bytes) -> int:
        return 1 if self._of == 1 else 1 + name_rank(name) % self._of


# What a part says of its slices


class WalkTotals(Record):
    """The figures of one slice's walk over everything. All slices find the same, unless the tree changes."""

    files: int
    """Names of regular files."""
    bytes: int
    directories: int
    slice: int
    """The number of the slice."""

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Orders totals: the fewest files come first."""
        return self.files, self.bytes, self.directories, self.slice


class SliceSet(Record):
    """Slices of one job."""

    of: int
    numbers: tuple[int, ...]
    """From 1 to `of`, increasing."""
    options: str
    """The lines that option_lines writes."""
    roots: tuple[int, ...]
    """Inode number of each path of the job; 0 if it could not be looked at."""
    fewest: WalkTotals
    most: WalkTotals

    @classmethod
    def one(cls, slice_: ScanSlice, options: str, roots: Sequence[int], totals: WalkTotals) -> SliceSet:
        """Return one slice, after its walk."""
        return cls(slice_.of, (slice_.number,), options, tuple(roots), totals, totals)

    @classmethod
    def expected(cls, of: int, options: str, roots: Sequence[int]) -> SliceSet:
        """Return what all slices of a job have in common, before any of them."""
        nothing = WalkTotals(0, 0, 0, 0)
        return cls(of, (), options, tuple(roots), nothing, nothing)


def option_lines(
    rules: Sequence[FilterRule | DirectoryRules], one_file_system: bool, *others: tuple[str, object]
) -> str:
    """Return the options in which all slices of a job must agree, one line each: a name, a space, a value."""
    digest = blake3(repr(rules).encode()).hexdigest()[:16] if rules else "none"
    first = (("filters", digest), ("-x", "on" if one_file_system else "off"))
    return "".join([f"{name} {value}\n" for name, value in (*first, *others)])


def are_options(text: str) -> bool:
    """Return whether each line is a name, a space and a value."""
    lines = text.splitlines()
    return all(name and mark and value for name, mark, value in (line.partition(" ") for line in lines))


# Whether parts belong together


class SlicedHead(Protocol):
    """The head of a part, before its content."""

    @property
    def name(self) -> str:
        """The part in messages."""

    @property
    def paths(self) -> tuple[bytes, ...]:
        """The paths of the job."""

    @property
    def slices(self) -> SliceSet | None:
        """The slices in the part; None for a whole job."""

    @property
    def size(self) -> int:
        """Bytes of the files that the part is of, as listed."""


class JobWords(Record):
    """The words by which messages call a job."""

    one: str
    several: str
    verb: str
    """The name for the user."""
    command: str


SCAN = JobWords("scan", "scans", "scan", "rdc scan")
SEARCH = JobWords("search", "searches", "search", "rdc similar --text")


def check_slices(heads: Sequence[SlicedHead], job: JobWords) -> None:
    """Raise UsageError, with the part's name, unless the parts are all whole or all different slices of one
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
        check_equal(first.name, head.name, "PATH", _paths(first.paths), _paths(head.paths), job)
    own, options = (dict(line.split(" ", 1) for line in each.options.splitlines()) for each in (one, other))
    for name in dict.fromkeys((*own, *options)):
        check_equal(first.name, head.name, name, own.get(name, "none"), options.get(name, "none"), job)
    for path, a, b in zip(first.paths, one.roots, other.roots, strict=True):
        if a != b:
            raise UsageError(
                f"{head.name}: {_shown(other)} read another {printable(path)} than {first.name} (inode {a}"
                f" there, {b or 'none'} here), as if the file system was not mounted; {job.verb} that slice"
                " again"
            )


def check_equal(one: str, other: str, what: str, a: str, b: str, job: JobWords) -> None:
    """Raise UsageError if the parts `one` and `other` have different values `a` and `b` of an option."""
    if a != b:
        raise UsageError(
            f"{other}: made with other parameters than {one}: {what} differs"
            f" ({a or 'none'} there, {b or 'none'} here); {job.verb} again with the same options"
        )


def check_complete(heads: Sequence[SlicedHead], job: JobWords = SCAN) -> None:
    """Raise UsageError unless no slice is missing."""
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
    """Return the slices of all parts together, or None if these are all, or if the parts are whole scans."""
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
    """Return a problem of the first path if the slices did not find the same files. All walks must be
    finished."""
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


def _paths(paths: Sequence[bytes]) -> str:
    return " ".join(printable(os.fsencode(path)) for path in paths)


def _shown(slices: SliceSet | None) -> str:
    if slices is None:
        return "a whole scan"
    if len(slices.numbers) == 1:
        return f"slice {slices.numbers[0]}/{slices.of}"
    return f"{len(slices.numbers)} slices of {slices.of}"
