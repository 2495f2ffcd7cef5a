"""RunTotals: counts, limits and exit code of one deduplication run, and the events that it reports."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, worse
from rdc.lean.records import Record, field
from rdc.lean.typed import Protocol
from rdc.model.duplicates import DedupeOptions, DedupeReport, Instance
from rdc.progress import Problem, Progressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


DedupeEvent: TypeAlias = Instance | Progressed | Problem


class DedupeReporter(Protocol):
    """A function that receives the events of a dedupe."""

    def __call__(self, event: DedupeEvent, /) -> None: ...


class RunTotals(Record, frozen=False):
    """All results of a run pass through here to the reporter."""

    options: DedupeOptions
    """The options, with real paths in `keep` and the chosen journal."""
    reporter: DedupeReporter
    searched: bool = True
    """True if this run found the groups. A dry run then need not verify them, unlike those of a report."""
    journals: bytes | None = None
    """Directory of earlier journals and of links to them. Without it no leftover of an interrupted run is
    handled."""
    groups: int = 0
    files: int = 0
    content: int = 0
    """Bytes shared or linked."""
    won: int = 0
    perhaps: int = 0
    compressed: int = 0
    held: int = 0
    already: int = 0
    skipped: int = 0
    errors: int = 0
    capped: bool = False
    total: int | None = None
    """Bytes of content to process, for the progress; None while unknown."""
    advanced: int = 0
    """Bytes of content processed."""
    _code: ExitCode = field(default=ExitCode.OK)
    _files_taken: int = 0
    _bytes_taken: int = 0

    def take(self, size: int, *, another: bool = True) -> bool:
        """Return whether `size` more bytes may be changed, of a new file (`another`) or of the last one.

        False ends the run at its limit.
        """
        files, total = self.options.max_files, self.options.max_bytes
        if (files is not None and self._files_taken + another > files) or (
            total is not None and self._bytes_taken + size > total
        ):
            self.capped = True
            return False
        self._files_taken += another
        self._bytes_taken += size
        return True

    def untake(self, size: int, *, another: bool) -> None:
        """Take back what `take` counted: nothing was changed."""
        self._files_taken -= another
        self._bytes_taken -= size

    def advance(self, size: int) -> None:
        """Mark `size` more bytes of content as processed, whatever the result."""
        self.reach(self.advanced + size)

    def reach(self, position: int) -> None:
        """Set the bytes of content processed since the run began."""
        self.advanced = position
        self.reporter(Progressed("share", position, self.total))

    def done(self, instance: Instance, *, files: int = 1) -> None:
        self.files += files
        self.content += instance.bytes
        self.won += instance.won
        self.perhaps += instance.perhaps
        self.compressed += instance.compressed
        self.held += instance.held
        self.reporter(instance)

    def problem(self, error: FileError) -> None:
        self.errors += 1
        self._code = worse(self._code, error.code)
        self.reporter(Problem(error.code, error.path_bytes, str(error)))

    def skip(self, path: bytes, message: str) -> None:
        """Report a skipped file, which is no error."""
        self.skipped += 1
        self.notice(path, message)

    def notice(self, path: bytes, message: str) -> None:
        self.reporter(Problem(ExitCode.OK, path, message))

    def report(self) -> DedupeReport:
        code = self._code
        if code is ExitCode.OK and self.capped:
            code = ExitCode.MAX_DELETE
        return DedupeReport(
            self.groups,
            self.files,
            self.content,
            self.won,
            self.perhaps,
            self.already,
            self.skipped,
            self.errors,
            self.capped,
            code,
            compressed=self.compressed,
            held=self.held,
        )
