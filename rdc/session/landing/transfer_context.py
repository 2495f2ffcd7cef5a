"""The record that every way of transfer in one session shares."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.files.replace.replacement import Replacement
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.records import dataclass, field, replace
from rdc.session.landing.guesses import Guesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata
    from rdc.session.landing.file_commits import FileCommits
    from rdc.session.landing.partial_files import PartialFiles
    from rdc.session.runtime.event_relay import EventRelay, TransferProgress
    from rdc.session.trees.alternate_directories import AlternateDirectories
    from rdc.tree.manifest import Manifest

__all__ = ["TransferContext"]


@dataclass(frozen=True, slots=True)
class TransferContext:
    """The destination's tree and the parts that bring files into it."""

    root: Root
    entries: Manifest
    """The source's manifest; files are named by their rows in it."""
    landing: FileCommits
    partial_files: PartialFiles
    secret: bytes
    """Key of the session's short digests."""
    signer: FileSigner
    events: EventRelay
    progress: TransferProgress
    pack: bool
    """The source compresses literals with their surroundings."""
    fsync: bool
    """A file is durable before it is reported."""
    dry: bool
    """A dry run: the session reports changes and makes none."""
    seeks: bool
    """The destination has files, which may have the content of new ones."""
    leaves_size: Callable[[int], bool]
    """Whether --min-size or --max-size skips files of a size in bytes."""
    clones: StagedClones | None = None
    """Clones of the source's files, if the source is in this process."""
    alternates: AlternateDirectories | None = None
    """Directories that may have bases of new files; None: the run has none."""
    whole: bool = False
    """Changed files come whole."""
    guesses: Guesses = field(default_factory=Guesses)
    """What of the source's claims about local content did not hold."""
    uses_content: bool = True
    """As in SessionTerms. False makes all files come whole, without a look at what is here."""

    def new_version(
        self,
        path: bytes,
        expected: Identity | None,
        size: int,
        *,
        allocated: int | None = None,
        reserved: bool = True,
    ) -> Replacement:
        """What the new content of `path` is written to, of at most `size` bytes.

        `expected`: the entry that is there, None for nothing. `allocated`, `reserved`: as in Replacement.
        Raises RdcError.
        """
        if self.root.writes.overwrites and expected is not None and self.root.kind(path) is Kind.FILE:
            from rdc.files.replace.overwrite import Overwrite

            return Overwrite(self.root, path, expected, size=size, allocated=allocated)
        if self.root.writes.distant is not None:
            from rdc.files.replace.distant_replacement import DistantReplacement

            return DistantReplacement(
                self.root, path, expected_size=size, allocated=allocated, reserved=reserved
            )
        return Replacement(self.root, path, expected_size=size, allocated=allocated, reserved=reserved)

    def flush_links(self, path: bytes) -> bool:
        """Commits what waits, if the file at `path` is written into and has other names, one of which may
        wait. Returns whether it did: the file may have changed."""
        if not self.root.writes.overwrites:
            return False
        try:
            if self.root.link_count(path) < 2:
                return False
        except FileError:
            return False  # the next step that opens it reports why
        self.landing.flush()
        return True

    def expected(self, file: int, path: bytes) -> Identity | None:
        """What a new version replaces: the entry that was listed at `path`; None: nothing was there."""
        listed = self.landing.listed.of(file)
        if listed is not None:
            self.flush_links(path)
        return listed

    def metadata(self, file: int, mtime_ns: int | None) -> Metadata:
        """The listed metadata, with another mtime if the file changed between listing and reading."""
        metadata = self.entries.entry(file).metadata
        return metadata if mtime_ns is None else replace(metadata, mtime_ns=mtime_ns)

    def may_come(self, file: int, size: int) -> bool:
        """Whether to accept a file whose size may have changed since it was listed; reports a refusal.

        The comparison of directories has checked the listed size already.
        """
        if not self.leaves_size(size):
            return True
        path = self.entries.entry(file).path
        if size == self.entries.entry(file).size:
            return True
        self.events.report(
            Problem(
                ExitCode.VANISHED,
                path,
                f"{printable(path)}: changed while it was synced: expected"
                f" {self.entries.entry(file).size} bytes, found {size}, which --min-size or --max-size leaves"
                " alone; run again once it is left alone",
            )
        )
        return False

    def problem(self, path: bytes, error: FileError) -> None:
        """Reports that a file could not be written. Exit code 24, which is about the source, becomes 23."""
        code = ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
        self.events.report(Problem(code, path, str(error)))
