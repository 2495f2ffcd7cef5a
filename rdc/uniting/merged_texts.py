"""`rdc unite --merge`: texts that both sides edited are merged where that is clean. The result is an edit.

A run that found conflicts is followed by a second one. In between, the merged text replaces the version of
one side as a checked step that `rdc undo` takes back, like an edit of the user's. The second run then lets
that version win, provided that both sides still have exactly what was merged. A kill in between leaves an
edit that contains the other side's: merging both again gives the same text, or stays a conflict.

What both sides had in common is needed for that. `BaseTexts` keeps such texts, found by the stamp that this
side's file had then.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from blake3 import blake3

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.names.entry_names import make_durable
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import Metadata
from rdc.model.preserved import ACCESS_ACL, bits_before_acl
from rdc.progress import Problem
from rdc.uniting.conflicts import Merged
from rdc.uniting.describe import text_of
from rdc.uniting.file_systems import lasting
from rdc.uniting.merging import TEXT_BYTES, is_text, merge
from rdc.uniting.records import UniteConflict, UniteItem, UniteReport
from rdc.uniting.rows import DIGEST_BYTES, FILE, LEFT, Stamp
from rdc.uniting.state import PairDirectory, RootState
from rdc.uniting.steps import SIDES, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rdc.files.base.metadata import Expected
    from rdc.model.preserved import Attributes
    from rdc.progress import Event
    from rdc.uniting.ancestor_file import OwnAncestor
    from rdc.uniting.records import UniteEvent, UniteOptions, UniteReporter
    from rdc.watching.records import WatchEvent

PREFIX = b"base-"
"""The prefix of kept texts' names in a pair's directory."""


class BaseTexts:
    """Texts that both sides had in common, in the directory of the pair. A lost one costs a conflict."""

    def __init__(self, pair: PairDirectory) -> None:
        self._pair = pair

    @staticmethod
    def _name(stamp: Stamp) -> bytes:
        said = b"%d %d %d %d %d" % stamp
        return PREFIX + blake3(said).hexdigest(DIGEST_BYTES).encode()

    def text(self, stamp: Stamp) -> bytes | None:
        """Return the text that this side's file had with that stamp; None: it is not kept, or damaged."""
        data = self._pair.kept(self._name(stamp), TEXT_BYTES + DIGEST_BYTES)
        if data is None or blake3(data[DIGEST_BYTES:]).digest(DIGEST_BYTES) != data[:DIGEST_BYTES]:
            return None
        text = data[DIGEST_BYTES:]
        return text if len(text) == stamp.size and is_text(text) else None

    def fill(self, root: Root, ancestor: OwnAncestor, most: int) -> None:
        """Keep the texts of `ancestor` that changed last, of `most` bytes at most, and no others."""
        files = sorted(
            (
                (stamp, path)
                for path, row, stamp in zip(ancestor.paths, ancestor.rows, ancestor.stamps, strict=True)
                if row.kind == FILE and stamp.ctime_ns and 0 < stamp.size <= TEXT_BYTES
            ),
            key=lambda each: -each[0].mtime_ns,
        )
        there = self._pair.kept_names(PREFIX)
        wanted: set[bytes] = set()
        for stamp, path in files:
            name = self._name(stamp)
            size = stamp.size + DIGEST_BYTES
            if size > most:
                break
            if name not in there:
                text = _text_of(root, path, stamp)
                if text is None:
                    continue
                digest = blake3(text).digest(DIGEST_BYTES)
                self._pair.keep(name, [digest, text])
            wanted.add(name)
            most -= size
        for name in there - wanted:
            self._pair.drop(name)


def _text_of(root: Root, path: bytes, stamp: Stamp) -> bytes | None:
    """Return the text of a file that still has this stamp; None if it is no text or has changed."""
    try:
        with root.open_read(path) as source:
            data = b"".join(bytes(span) for span in source.spans())
            source.check_unchanged()
            found = source.identity
    except RdcError:
        return None
    now = Stamp(found.size, stamp.mode, found.mtime_ns, found.inode, found.ctime_ns)
    return data if lasting(now, root.stable) == stamp and is_text(data) else None


class Merging:
    """The work between the two runs of a merge, and the events of both as those of one."""

    def __init__(self, path: bytes, side: int, options: UniteOptions, reporter: UniteReporter) -> None:
        """`path`, `side`: the directory of this machine in which merged texts are written."""
        self._path = path
        self._side = side
        self._options = options
        self._reporter = reporter
        self._withheld: list[UniteConflict] = []
        self._problems: set[Problem] = set()
        self._is_second = False
        self._before: UniteReport | None = None
        self._copied = [0, 0]
        self.merged: dict[bytes, Merged] = {}

    @property
    def options(self) -> UniteOptions:
        """The merges of the next run. They take precedence over other ways to solve a conflict."""
        if self._is_second or not self._options.merge:
            return self._options
        return replace(self._options, prefer=None, keep_both=False)

    def report(self, event: UniteEvent | Event | WatchEvent, /) -> None:
        """Take an event of a run. Conflicts wait until it is known whether they stay."""
        if isinstance(event, UniteConflict) and self._options.merge and not self._is_second:
            self._withheld.append(event)
            return
        if isinstance(event, Problem):
            if event in self._problems:
                return
            self._problems.add(event)
        self._reporter(event)

    @property
    def may_merge(self) -> tuple[bytes, ...]:
        """The paths whose other version is needed."""
        return tuple(
            event.path_bytes
            for event in self._withheld
            if event.about == "content" and max(event.left_size, event.right_size) <= TEXT_BYTES
        )

    def goes_on(self, report: UniteReport, pair: bytes, other: Callable[[bytes], bytes | None]) -> bool:
        """Merge what the run left, and return whether another run has to follow. `pair`: the name of the
        pair's state. `other`: reads the other side's version. Raises RdcError."""
        if not self._options.merge:
            return False
        if self._is_second or self._options.dry_run:
            self._end(report, pair)
            return False
        self._before = report
        root = Root.open(self._path)
        try:
            with _remembered(root, pair) as found:
                for path in self.may_merge:
                    text = other(path)
                    if found is not None and text is not None and is_text(text):
                        self._merge(root, found, path, text)
        finally:
            root.release()
        chooses = self._options.prefer is not None or self._options.keep_both or self._options.resolve
        if self.merged or (chooses and self._withheld):
            self._is_second = True
            return True
        self._end(report, pair)
        return False

    def _merge(self, root: Root, found: _Remembered, path: bytes, other: bytes) -> None:
        stamp = found.stamps.get(path)
        base = found.texts.text(stamp) if stamp is not None else None
        if base is None:
            return
        try:
            with root.open_read(path) as source:
                own = b"".join(bytes(span) for span in source.spans())
                source.check_unchanged()
                here = os.fstat(source.fileno())
                if self._options.hard_links and here.st_nlink > 1:
                    return  # the merged text would be a file of its own
                identity, mode = source.identity, here.st_mode & 0o7777
                attributes = self._attributes(source.fileno())
        except (FileError, OSError):
            return
        merged = merge(base, own, other) if is_text(own) else None
        if merged is None or len(merged) > TEXT_BYTES:
            return
        if merged != own:
            metadata = Metadata(mode & _bits_before(attributes), time.time_ns(), 0, 0)
            try:
                self._write(root, path, merged, metadata, attributes, identity)
            except FileError as error:
                self.report(Problem(ExitCode.PARTIAL, path, str(error)))
                return
            self._copied[0] += 1
            self._copied[1] += len(merged)
            self.report(UniteItem(SIDES[self._side], "merged", path, None, len(merged)))
        contents = [blake3(text).digest(DIGEST_BYTES) for text in (merged, other)]
        if self._side != LEFT:
            contents.reverse()
        self.merged[path] = Merged(self._side, (contents[0], contents[1]))

    def _attributes(self, fd: int) -> Attributes:
        """Return the attributes of this side's version that take part in runs. Raises OSError."""
        options = self._options
        if not (options.xattrs or options.acls):
            return ()
        from rdc.files.facts.xattrs import read_attributes_at
        from rdc.uniting.attributes import asked_kinds

        return read_attributes_at(fd, asked_kinds(xattrs=options.xattrs, acls=options.acls), follow=True)

    def _write(
        self,
        root: Root,
        path: bytes,
        text: bytes,
        metadata: Metadata,
        attributes: Attributes,
        expected: Expected,
    ) -> None:
        """Replace this side's version, whose attributes the new one gets, if it is still the one that was
        read. Raises RdcError."""
        fsync, sheds_acls = self._options.fsync, self._options.acls
        target = writable(root, self._options.keep_undo, fsync=fsync, sheds_acls=sheds_acls)
        if attributes:
            target = _giving(target, attributes)
        try:
            # Without `on_error` a version that is not the one that was read raises FileError, and stays.
            group = CommitGroup(target, fsync=fsync, on_commit=_committed)
            with group, Replacement(target, path, expected_size=len(text)) as temporary:
                temporary.write(text)
                group.add(temporary, path, metadata, False, expected)
                group.flush()
            if fsync:
                make_durable(target, [b""])
            if target.writes.undo is not None:
                target.writes.undo.finish()
        finally:
            if target.writes.undo is not None:
                target.writes.undo.close()

    def _end(self, report: UniteReport, pair: bytes) -> None:
        if not self._is_second:
            for event in self._withheld:
                self._reporter(event)
        if self._options.dry_run or report.exit is ExitCode.INTERRUPTED:
            return
        root = Root.open(self._path)
        try:
            with _remembered(root, pair) as found:
                if found is not None:
                    found.texts.fill(root, found.ancestor, self._options.keep_base)
        finally:
            root.release()

    def total(self, report: UniteReport) -> UniteReport:
        """Return the report of both runs as that of one."""
        before = self._before
        if before is None or not self._is_second:
            return report
        counts = [before.left + report.left, before.right + report.right]
        copied = [before.left_bytes + report.left_bytes, before.right_bytes + report.right_bytes]
        counts[self._side] += self._copied[0]
        copied[self._side] += self._copied[1]
        return replace(
            report, left=counts[0], right=counts[1], left_bytes=copied[0], right_bytes=copied[1],
            first=before.first,
        )  # fmt: skip


def _bits_before(attributes: Attributes) -> int:
    """Return the bits of a mode that a file may have until it has these attributes."""
    acl = dict(attributes).get(ACCESS_ACL)
    return ~0 if acl is None else ~0o77 | bits_before_acl(acl)


def _giving(root: Root, attributes: Attributes) -> Root:
    """Return a root whose new files get these attributes before they have their names."""
    from rdc.uniting.attributes import give_to_new

    def complete(_path: bytes, fd: int) -> None:
        give_to_new(fd, attributes, needed=True)

    return root.having(writes=replace(root.writes, completes=complete))


class _Remembered:
    """The data that this side keeps of the pair."""

    def __init__(self, pair: PairDirectory, ancestor: OwnAncestor) -> None:
        self.ancestor = ancestor
        self.texts = BaseTexts(pair)
        self.stamps: Mapping[bytes, Stamp] = dict(zip(ancestor.paths, ancestor.stamps, strict=True))


@contextmanager
def _remembered(root: Root, name: bytes) -> Iterator[_Remembered | None]:
    """Open what this side keeps of a pair, for as long as the block runs; None if it keeps nothing."""
    with RootState(root, write=False) as state:
        pair = PairDirectory.open(state, name) if state.fd >= 0 and name else None
        if pair is None:
            yield None
            return
        try:
            latest = pair.latest()
            yield _Remembered(pair, latest.read()) if latest is not None else None
        finally:
            pair.close()


def _committed(_path: bytes) -> None:
    """Do nothing: the second run looks at what is there."""


def near_text(path: bytes) -> Callable[[bytes], bytes | None]:
    """Return what reads the versions of a side on this machine."""

    def read(below: bytes) -> bytes | None:
        root = Root.open(path)
        try:
            return text_of(root, below, TEXT_BYTES)
        finally:
            root.release()

    return read
