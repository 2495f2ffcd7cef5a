"""WritePermission: whether an entry below a Root may be made or changed, by quota and by append-only mode."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.entry_check import EntryCheck, difference_from, found_at
from rdc.files.base.write_quota import ENTRY_BYTES, WriteQuota
from rdc.files.root.confined_access import ConfinedAccess
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.append_only import MadeEntries
    from rdc.files.base.entry_check import Expected
    from rdc.model.file_system_facts import FileSystemFacts

__all__ = ["WritePermission"]


class WritePermission(ConfinedAccess):
    """The questions that every writer of rdc.files asks before it writes, changes, renames or removes."""

    def __init__(
        self, fd: int, label: bytes, allowance: WriteQuota | None = None, made: MadeEntries | None = None
    ) -> None:
        """Take over `fd`, an O_PATH descriptor of a directory. Messages name the root by `label`.

        `allowance` bounds the bytes written below the root. With `made` the root is append-only: only
        the entries in `made` may be changed, and new entries are added to it.
        """
        super().__init__(fd, label)
        self._quota = allowance
        self._made = made
        self.append_only = made is not None
        """Whether new entries may be made while existing ones must not be changed, renamed or removed."""
        self.check = EntryCheck(self.stable)
        """Recognises entries that were listed, and knows this run's own steps."""

    def rely_on(self, facts: FileSystemFacts, *, learned: bool) -> None:
        """Take `facts` as those of the tree's file system. What it does not keep stable is not compared."""
        self.storage.rely_on(facts, learned=learned)
        self.check.leave_out(facts.stable)

    def require(self, path: bytes, found: os.stat_result | None, expected: Expected, doing: str) -> None:
        """Raise FileError unless the entry at `path`, with the stat `found`, is what it is expected to be.

        Writers call this right before the call that changes what is there.
        """
        if not self.check.is_expected(expected, found):
            raise self.another(path, found, expected if isinstance(expected, Identity) else None, doing)

    def require_listed(self, path: bytes, expected: Expected, doing: str) -> None:
        """Raise FileError if another entry than `expected` is at `path`. Nothing may be there."""
        found = self.perform(path, "look at it", found_at, reading=True)
        if found is not None:
            self.require(path, found, expected, doing)

    def another(
        self, path: bytes, found: os.stat_result | None, expected: Identity | None, doing: str
    ) -> FileError:
        """Return the error for an entry that is not what was listed. `found`: its stat."""
        wanted, there = difference_from(expected, found)
        advice = "what is there was kept; run again once nothing else changes it"
        return self.refused(path, doing, expected=wanted, found=there, advice=advice)

    def may_spend(self, size: int, *, entries: int = 0) -> bool:
        """Return whether `size` bytes and `entries` new entries fit into the write quota."""
        return self._quota is None or self._quota.covers(size + entries * ENTRY_BYTES)

    def spend(self, path: bytes, size: int, *, entries: int = 0) -> None:
        """Charge the write quota before `size` bytes are written or `entries` new entries are made.

        Raises RdcError (exit code 11) if the quota does not cover them.
        """
        if self._quota is not None and not self._quota.take(size + entries * ENTRY_BYTES):
            raise self._quota_exceeded(path, self._quota)

    def _quota_exceeded(self, path: bytes, quota: WriteQuota) -> RdcError:
        return RdcError(
            f"{printable(self.shown(path))}: cannot write it: this session may write {quota.size} bytes"
            " in all; what was complete is there, run again to go on",
            code=ExitCode.FILE_IO,
        )

    def check_change(self, path: bytes, doing: str) -> None:
        """Raise FileError if the root is append-only.

        Writers call this before they change, rename or remove an entry that may exist.
        """
        if self._made is not None:
            raise self.append_only_refusal(path, doing)

    def check_made(self, path: bytes, found: os.stat_result, doing: str) -> None:
        """Raise FileError if the root is append-only and `found` was not made through it.

        Writers call this before they change the metadata of `found`, the stat of the entry at `path`.
        """
        if self._made is not None and not self._made.has(found):
            raise self.append_only_refusal(path, doing)

    def note_made(self, found: os.stat_result) -> None:
        """Record that `found` was made through this root, so that an append-only root lets it be changed."""
        if self._made is not None:
            self._made.note(found)

    def may_change(self, path: bytes) -> bool:
        """Return whether the metadata of the entry at `path` may be set.

        Raises FileChangedError if the root is append-only and nothing is there.
        """
        return self._made is None or self._made.has(self._stat(path))

    def append_only_refusal(self, path: bytes, doing: str) -> FileError:
        """Return the FileError for an existing entry that an append-only root protects."""
        return self.refused(
            path,
            doing,
            expected="a new entry, as this directory takes no others (append-only)",
            found="one that is there already",
            advice="it stays as it is; give what is to be kept beside it another name",
        )
