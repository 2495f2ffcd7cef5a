"""Sharer: makes identical files, or equal ranges of files, share their blocks on disk."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from rdc.errors import FileError
from rdc.files.base.os_errors import changed
from rdc.files.facts.block_sharing_volume import Volume, volume_of
from rdc.files.facts.shared_space import measure_sharing
from rdc.files.names.dedupe_range import NO_SHARING, SLICE_BYTES, can_share, dedupe_range, sharing_failure
from rdc.files.root.source_file import SPAN_BYTES
from rdc.instances.group import by_volume, choose_source
from rdc.instances.release import Span, move, spans_to_move
from rdc.model.instances import Action, Instance, RootedPath, Sharing
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.instances.group import Inode
    from rdc.instances.run_totals import RunTotals
    from rdc.instances.tree import Tree
    from rdc.model.instances import EqualRuns

__all__ = ["Sharer"]


@dataclass(frozen=True, slots=True)
class _Range:
    source_offset: int
    offset: int
    length: int


class Sharer:
    """Shares blocks. In a dry run it only computes what that would free. It never changes the content of a
    file."""

    def __init__(self, trees: Sequence[Tree], totals: RunTotals) -> None:
        self._trees = trees
        self._totals = totals
        self._volumes: dict[int, Volume] = {}
        """Volumes by device number."""
        self._unable: set[int] = set()
        """Devices whose file systems cannot share blocks. This is reported once; their other files are only
        counted."""

    def group(self, inodes: Sequence[Inode]) -> None:
        """Makes the inodes of one group share the blocks of one of them, separately on each volume."""
        for part in by_volume(inodes, self._volume):
            source = choose_source(part)
            others = [inode for inode in part if inode is not source and not inode.protected]
            size = source.facts.identity.size
            self._totals.groups += self._whole_files(source.names[0], [one.names[0] for one in others], size)

    def _whole_files(self, source: RootedPath, others: Sequence[RootedPath], size: int) -> bool:
        """Shares whole files. Returns whether something was, or would be, shared."""
        shared = False
        try:
            with self._opened(source) as one:
                for number, other in enumerate(others):
                    if self._totals.capped:
                        break
                    if one.identity.device in self._unable:
                        self._totals.skipped += len(others) - number
                        break
                    began = self._totals.advanced
                    shared |= self._pair(one, source, other, [_Range(0, 0, size)])
                    self._totals.reach(began + size)
        except FileError as error:
            self._totals.problem(error)
        return shared

    def runs(self, runs: Sequence[EqualRuns]) -> None:
        """Makes ranges of one file share blocks with other files. All of `runs` must have the same
        destination."""
        if not runs:
            return
        location = runs[0].destination
        root = self._trees[location.root].root
        shared = False
        try:
            with root.open_read(location.path) as file:
                if file.identity.device in self._unable:
                    self._totals.skipped += 1
                    return
                moved = self._to_move(root, location.path, file, runs)
                if moved and self._totals.options.apply and not self._totals.capped:
                    # Moved first: after a kill in between, the next run still finds extents to free.
                    move(root, location.path, file, moved)
            for one in runs:
                columns = zip(one.source_offsets, one.offsets, one.lengths, strict=True)
                ranges = [_Range(*row) for row in columns]
                with self._opened(one.source) as source:
                    shared |= self._pair(source, one.source, location, ranges, by_blocks=bool(moved))
        except FileError as error:
            self._totals.problem(error)
        self._totals.groups += shared

    def _opened(self, location: RootedPath) -> SourceFile:
        return self._trees[location.root].root.open_read(location.path)

    def _to_move(self, root: Root, path: bytes, file: SourceFile, runs: Sequence[EqualRuns]) -> list[Span]:
        """The spans that must move so that sharing frees the extents around them."""
        if not self._volume_of(root, path, file).whole_extents:
            return []
        spans = [
            Span(start, start + length)
            for one in runs
            for start, length in zip(one.offsets, one.lengths, strict=True)
        ]
        try:
            return spans_to_move(file.fileno(), file.size, sorted(spans, key=lambda span: span.start))
        except OSError:
            return []  # the file system does not report extents

    def _pair(
        self,
        source: SourceFile,
        source_location: RootedPath,
        destination: RootedPath,
        ranges: Sequence[_Range],
        *,
        by_blocks: bool = False,
    ) -> bool:
        """Shares ranges of one pair. Returns whether something was, or would be, shared. Errors of the
        destination are reported and not raised.

        `by_blocks`: sharing frees single blocks, even on a volume that frees whole extents only.
        """
        shown = self._trees[source_location.root].root.shown(source_location.path)
        try:
            return self._into(source, shown, destination, ranges, by_blocks=by_blocks)
        except FileError as error:
            self._totals.problem(error)
            return False

    def _into(
        self,
        source: SourceFile,
        shown: bytes,
        destination: RootedPath,
        ranges: Sequence[_Range],
        *,
        by_blocks: bool,
    ) -> bool:
        root, path = self._trees[destination.root].root, destination.path
        with root.open_read(path) as other:
            volume = self._volume_of(root, path, other)
            if by_blocks:
                volume = replace(volume, whole_extents=False)
            total = Instance(Action.SHARE, root.shown(path), shown, 0, 0, 0)
            for part in ranges:
                # A file may have shrunk since the range was found.
                if part.source_offset + part.length > source.size or part.offset + part.length > other.size:
                    raise changed(path, root.shown(path), "the sizes that were compared", "smaller ones")
                total = self._range(source, root, path, other, part, volume, total)
                if self._totals.capped:
                    break
        if total.bytes:
            self._totals.done(total)
        return bool(total.bytes)

    def _range(
        self,
        source: SourceFile,
        root: Root,
        path: bytes,
        other: SourceFile,
        part: _Range,
        volume: Volume,
        total: Instance,
    ) -> Instance:
        """Shares one range. Returns `total` with the range added."""
        before = _shared_space(source, other, part, volume)
        self._totals.already += min(before.same, part.length)
        if not before.own and not before.perhaps:
            return total
        if not self._totals.take(part.length, another=not total.bytes):
            return total
        try:
            if self._totals.options.apply:
                self._share(source, root, path, other, part)
                after = _shared_space(source, other, part, volume)
                won = max(0, before.own - after.own)
                perhaps = max(0, before.perhaps - after.perhaps)
            else:
                can_share(source.fileno(), other.fileno())
                if not self._totals.options.searched:
                    _compare(source, root, path, other, part)
                won, perhaps = before.own, before.perhaps
        except OSError as error:
            if error.errno in NO_SHARING:
                self._unable.add(other.identity.device)
            raise sharing_failure(root, path, error) from error
        done = min(part.length, before.own + before.perhaps)
        return Instance(
            total.action,
            total.path,
            total.source,
            total.bytes + done,
            total.won + won,
            total.perhaps + perhaps,
        )

    def _share(self, source: SourceFile, root: Root, path: bytes, other: SourceFile, part: _Range) -> None:
        done = 0
        while done < part.length:
            shared = dedupe_range(
                source.fileno(),
                part.source_offset + done,
                min(SLICE_BYTES, part.length - done),
                other.fileno(),
                part.offset + done,
            )
            if shared is None:
                raise changed(path, root.shown(path), "the content that was compared", "another")
            done += shared
            self._totals.advance(shared)

    def _volume(self, inode: Inode) -> bytes | None:
        """The id of the inode's volume. None if it cannot be determined; the error is reported."""
        known = self._volumes.get(inode.facts.identity.device)
        if known is not None:
            return known.id
        location = inode.names[0]
        try:
            with self._opened(location) as file:
                return self._volume_of(self._trees[location.root].root, location.path, file).id
        except FileError as error:
            self._totals.problem(error)
            return None

    def _volume_of(self, root: Root, path: bytes, file: SourceFile) -> Volume:
        device = file.identity.device
        if device not in self._volumes:
            try:
                self._volumes[device] = volume_of(file.fileno())
            except OSError as error:
                raise root.failure(error, path, "look at its file system", reading=True) from error
        return self._volumes[device]


def _compare(source: SourceFile, root: Root, path: bytes, other: SourceFile, part: _Range) -> None:
    """Compares the bytes as the kernel would. Raises FileChangedError if they differ."""
    for at in range(0, part.length, SPAN_BYTES):
        length = min(SPAN_BYTES, part.length - at)
        if source.pread(part.source_offset + at, length) != other.pread(part.offset + at, length):
            raise changed(path, root.shown(path), "the content that was compared", "another")


def _shared_space(source: SourceFile, other: SourceFile, part: _Range, volume: Volume) -> Sharing:
    """Compares where both ranges lie on disk. If the file system does not report extents, the whole length
    counts as `perhaps`."""
    length = part.length
    if part.offset + length == other.size:
        length = volume.rounded(length)
    try:
        return measure_sharing(
            source.fileno(),
            part.source_offset,
            other.fileno(),
            part.offset,
            length,
            whole_extents=volume.whole_extents,
        )
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL}:
            raise
        return Sharing(0, 0, length)
