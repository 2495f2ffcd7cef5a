"""Output of `rdc index` on a terminal: problems, a bar, and the counts at the end."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import ExitCode, FileError, worse
from rdc.progress import Problem, Progressed
from rdc.report.sizes import counted, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["IndexTerminal"]


class IndexTerminal:
    """Counts and displays. `talk` writes whole lines to stderr."""

    def __init__(self, talk: Callable[[str], None], bar: ProgressBar | ProgressLines | None) -> None:
        self._trouble = Trouble(talk, bar)
        self._files = 0
        self._known = 0
        self._bytes = 0
        self._bytes_read = 0
        self._failed = 0
        self.code = ExitCode.OK

    def report(self, event: Event, /) -> None:
        """A Reporter for the walk."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._problem(event)

    def signed(self, files: int, size: int, *, known: bool) -> None:
        """`size`: bytes of all these files."""
        self._files += files
        self._known += files if known else 0
        self._bytes += size
        self._bytes_read += 0 if known else size
        self._trouble(Progressed("compare", self._bytes, None))

    def failed(self, error: FileError) -> None:
        self._problem(Problem(error.code, error.path, str(error)))

    def summary(self, lost: int) -> str:
        read = self._files - self._known
        text = f"{counted(self._files, 'file')}: {self._known:,} known, {read:,} read"
        text += f" ({size_text(self._bytes_read)})"
        if self._failed:
            text += f", {self._failed:,} failed"
        return text + (f", {lost:,} not kept" if lost else "")

    def close(self) -> None:
        self._trouble.close()

    def _problem(self, event: Problem) -> None:
        self._failed += 1
        self.code = worse(self.code, event.code)
        self._trouble(event)
