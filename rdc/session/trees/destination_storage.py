"""What is known of the file system of a destination, and when a run finds it out.

Before the first write of a run the file system is tried (rdc.files.facts.learned_facts). What that shows
counts from then on, and is remembered beside the catalog. Until then what an earlier run remembered counts,
or else what the type of the file system makes one assume. So a run that changes nothing tries nothing.
"""

from __future__ import annotations

import errno
import os

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.shortfalls import Shortfall
from rdc.files.facts.facts_by_type import facts_by_type
from rdc.files.facts.mount_key import mount_key
from rdc.lean.records import replace
from rdc.model.entries import Kind
from rdc.model.preserved import ALL_MODES, FileSystemFacts, Preserved
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.files.root.root import Root
    from rdc.model.sync import SyncOptions

__all__ = ["DestinationStorage", "known_facts"]


def known_facts(root: Root, catalog: SignatureStore) -> FileSystemFacts:
    """What an earlier run learned of the file system of `root`, or what its type makes one assume."""
    try:
        found = catalog.facts_of(mount_key(root.fileno()))
    except OSError:
        found = None
    return facts_by_type(root) if found is None else found


class DestinationStorage:
    """The file system of one destination during one run."""

    def __init__(
        self,
        root: Root,
        catalog: SignatureStore,
        report: Callable[[Problem], None],
        options: SyncOptions,
        asked: Preserved,
    ) -> None:
        """`asked`: what the options ask to preserve. `root` has agreed on what both ends preserve."""
        self._root = root
        self._catalog = catalog
        self._tell = report
        self._asked = asked
        self._tries = not (options.dry_run or root.append_only or root.reads.fakes)
        self._before = root.storage.facts
        self._kept = 0
        self.doubts_times = False
        """Times are kept, against what was remembered. So no run has set those of the files that are there,
        and one that is near a source's is so by chance: contents are compared, in this run."""

    @property
    def preserved(self) -> Preserved:
        """What both ends preserve, as far as is known by now."""
        return self._root.storage.preserved

    def before_writing(self, directory: bytes) -> bool:
        """Find out what the file system keeps, once a run, before anything is written in a directory.

        Returns whether less is preserved than was assumed, so that a comparison has to be made again.
        """
        storage = self._root.storage
        if storage.is_learned or not self._tries:
            return False
        from rdc.files.facts.learned_facts import learn_facts

        learned = learn_facts(self._root, directory, owners=self._asked.owner and os.geteuid() == 0)
        before, untimed = storage.preserved, storage.facts.keeps.untimed
        if learned is None:
            self._root.rely_on(storage.facts, learned=True)
            return False
        # A trial syncs nothing. The first refusal of a run shows.
        self._root.rely_on(replace(learned.facts, syncs=storage.facts.syncs), learned=True)
        self.doubts_times = Kind.FILE in untimed - learned.facts.keeps.untimed
        self._report_lost(learned.facts.keeps, learned.refusals.get)
        return storage.preserved != before

    def _report_lost(self, keeps: Preserved, refused: Callable[[Shortfall], int | None]) -> None:
        """Report what the options ask for and the file system does not keep, unless that was known."""
        known, asked = self._before.keeps, self._asked
        lost: list[str] = []
        errors: list[int] = []

        def lose(text: str, *causes: Shortfall) -> None:
            lost.append(text)
            errors.extend(number for number in map(refused, causes) if number is not None)

        if asked.owner and known.owner and not keeps.owner:
            lose("owners")
            lose("groups")
        modes = keeps.modes & keeps.directory_modes
        if asked.keeps_all_modes and modes != ALL_MODES and known.modes & known.directory_modes != modes:
            some = "" if not modes & 0o777 else f" (all but {modes:04o})"
            lose(f"permissions{some}", Shortfall.MODE)
        untimed = keeps.untimed - known.untimed - asked.untimed
        names = {Kind.FILE: "files", Kind.DIRECTORY: "directories", Kind.SYMLINK: "symlinks"}
        if Kind.SYMLINK in keeps.unmade:
            untimed -= {Kind.SYMLINK}
        if untimed:
            of = _joined([name for kind, name in names.items() if kind in untimed])
            lose(f"modification times of {of}", Shortfall.TIME)
        if not lost:
            return
        what = _joined(lost)
        text = f"{printable(self._root.label)}: its file system does not keep {what}; that is not compared"
        if Kind.FILE in untimed:
            text += ", but the contents of files whose times differ are"
        code = ExitCode.PARTIAL if errors else ExitCode.OK
        text += f" ({os.strerror(errors[0])}, {errno.errorcode.get(errors[0], errors[0])})" if errors else ""
        self._tell(Problem(code, b"", text))

    def note_kept(self, count: int) -> None:
        """Note entries that are not deleted, since the source's file system has none of their kind."""
        self._kept += count

    def finish(self) -> None:
        """Remember what was learned, and report what failed for some entries, a line for each kind."""
        storage, label = self._root.storage, printable(self._root.label)
        if self._kept:
            text = f"{label}: {self._kept} symlinks or special files stay: the source's file system has none"
            self._tell(Problem(ExitCode.OK, b"", text))
            self._kept = 0
        if storage.unsynced and storage.facts.syncs:
            name = errno.errorcode.get(storage.unsynced, storage.unsynced)
            text = f"{label}: its file system does not sync ({name}): a power cut may cost what a run wrote"
            self._tell(Problem(ExitCode.OK, b"", text))
            self._root.rely_on(replace(storage.facts, syncs=False), learned=storage.is_learned)
        storage.unsynced = 0
        self.remember()
        for what, found in self._root.storage.shortfalls.items():
            reason = f"{os.strerror(found.error)} ({errno.errorcode.get(found.error, found.error)})"
            path = printable(self._root.shown(found.path))
            if what in (Shortfall.SYMLINK, Shortfall.NODE):
                many = f"{found.count} {what.value}{'s' if found.count > 1 else ''}"
                why = f": {reason}" if found.error else ""
                text = f"{many} could not be made, such as {path}{why}; the file system has none"
            else:
                entries = "an entry" if found.count == 1 else f"{found.count} entries"
                text = f"{what.value} of {entries} could not be set, such as {path}: {reason}"
            self._tell(Problem(ExitCode.PARTIAL, found.path, text))
        self._root.storage.shortfalls.clear()

    def remember(self) -> None:
        """Remember what this run learned, if that is not what the type says, or another was remembered."""
        storage = self._root.storage
        if not storage.is_learned:
            return
        try:
            key = mount_key(self._root.fileno())
        except (OSError, FileError):
            return
        if storage.facts != facts_by_type(self._root) or self._catalog.facts_of(key) is not None:
            self._catalog.remember_facts(key, storage.facts)


def _joined(words: list[str]) -> str:
    """The words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
