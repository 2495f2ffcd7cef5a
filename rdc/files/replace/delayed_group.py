"""DelayedGroup: holds finished files back until all are there (--delay-updates).

The content of each is synced at once. Its temporary is then closed, so no number of files needs more
descriptors. When the run has everything, `land` opens the temporaries again and commits them as any
CommitGroup does: a kill leaves the old file or the new one at each path. Of what was held back, the next run
finds the temporaries and takes them up as bases.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from rdc.errors import FileError, RdcError
from rdc.files.base.entry_check import identity_of
from rdc.files.base.known_devices import stable_fields
from rdc.files.base.relative_path import join
from rdc.files.replace.commit_group import CommitGroup, Staged
from rdc.files.replace.replacement import KEEP_BYTES
from rdc.lean.records import dataclass, replace
from rdc.model.entries import ComparedFields, is_same_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.base.entry_check import Expected
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity, Metadata

__all__ = ["DelayedGroup"]


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A file that waits."""

    replacement: Replacement
    metadata: Metadata
    owner: bool
    expected: Expected
    distant: bool
    """True if its temporary is in the directory of --temp-dir."""
    identity: Identity | None = None
    """The temporary's, since it is closed."""


class DelayedGroup(CommitGroup):
    """A CommitGroup that commits nothing before `land`, and all at once from then on."""

    def __init__(
        self,
        root: Root,
        *,
        fsync: bool,
        on_commit: Callable[[bytes], None],
        on_error: Callable[[FileError], None],
    ) -> None:
        """Takes the arguments of CommitGroup. It is given Replacements alone: no small files in bulk."""
        super().__init__(root, fsync=fsync, on_commit=on_commit, on_error=on_error)
        self._delays = True
        self._open: dict[bytes, _Waiting] = {}
        self._waiting: dict[bytes, _Waiting] = {}

    def add(
        self,
        replacement: Replacement,
        path: bytes,
        metadata: Metadata,
        owner: bool,
        expected: Expected,
    ) -> None:
        """Like CommitGroup.add. Until `land`, the metadata are not set either."""
        if not self._delays:
            super().add(replacement, path, metadata, owner, expected)
            return
        replacement.hand_over()
        distant = (
            self._root.writes.distant is not None and replacement.directory is self._root.writes.distant.top()
        )
        self._open[path] = _Waiting(replacement, metadata, owner, expected, distant)
        self._count(1, replacement.size)

    def flush(self) -> None:
        """Make what was added durable, and close it. Raises RdcError."""
        if not self._delays:
            super().flush()
            return
        opened, self._open = self._open, {}
        self._taken()
        staged = [Staged(one.replacement, path, one.expected, None, False) for path, one in opened.items()]
        ready = self._sync_contents(staged, []) if self._fsync else staged
        for item in ready:
            try:
                identity = identity_of(os.fstat(item.replacement.fileno()))
            except OSError as error:
                item.replacement.abandon()
                self._fail(item.path, error, "look at its new content")
                continue
            item.replacement.rest()
            self._waiting[item.path] = replace(opened[item.path], identity=identity)
        self._raise_collected()

    def land(self) -> None:
        """Commit everything that was held back. From here on nothing is. Raises RdcError."""
        if not self._delays:
            return
        self.flush()
        self._delays = False
        for path, item in list(self._waiting.items()):
            self._release(path, item.expected)
        super().flush()

    def waits(self, path: bytes) -> bool:
        """Return whether the content of `path` is held back."""
        return path in self._waiting or path in self._open

    def land_one(self, path: bytes, expected: Expected) -> None:
        """Commit what was held back for `path`, if anything was. From here on nothing is held back that
        `add` takes over. Raises RdcError."""
        self.flush()
        self._delays = False
        self._release(path, expected)
        super().flush()

    def _release(self, path: bytes, expected: Expected) -> None:
        item = self._waiting.pop(path, None)
        if item is None:
            return
        try:
            self._open_again(path, item)
        except FileError as error:
            self._report(path, error)
        else:
            super().add(item.replacement, path, item.metadata, item.owner, expected)

    def _is_same(self, found: os.stat_result, closed: Identity | None) -> bool:
        """Return whether a temporary is the one that was closed. Some file systems change times at that."""
        if closed is None:
            return False
        fields = stable_fields(found.st_dev)
        if not self._root.storage.facts.steady:
            fields = fields.both(ComparedFields(mtime=False, ctime=False))
        return is_same_entry(closed, identity_of(found), fields)

    def _open_again(self, path: bytes, one: _Waiting) -> None:
        """Open and lock a temporary. Raises RdcError if another one has its name by now."""
        root = self._root
        if one.distant and root.writes.distant is not None:
            directory = root.writes.distant.top()
        else:
            directory, _ = root.locate_to_write(path)
        try:
            if one.replacement.resume(directory, partial(self._is_same, closed=one.identity)):
                return
        except OSError as error:
            raise root.failure(error, path, "find its new content again") from error
        raise root.refused(
            path,
            "put its new content in place",
            expected="the temporary file that was made for it",
            found="another one",
            advice="what is there was kept; run again once no other run of rdc works there",
        )

    def open_waiting(self, path: bytes) -> SourceFile | None:
        """Open the content that waits for `path`; None if none does. Raises FileError."""
        one = self._waiting.get(path)
        if one is None:
            return None
        name = one.replacement.temporary
        if one.distant and self._root.writes.distant is not None:
            return self._root.writes.distant.open_read(name)
        return self._root.open_read(join(path.rpartition(b"/")[0], name))

    def abandon(self) -> None:
        """Land nothing any more. What is long stays for the next run to resume from, as a Replacement's."""
        opened, self._open = self._open, {}
        waiting, self._waiting = self._waiting, {}
        for item in opened.values():
            item.replacement.keep()
        for path, item in waiting.items():
            if item.replacement.size < KEEP_BYTES:
                with suppress(RdcError):
                    self._open_again(path, item)
                    item.replacement.abandon()
        super().abandon()
