"""The events that a job reports while it runs, and the Reporter that receives them."""

from __future__ import annotations

from os import fsdecode

from rdc.errors import ExitCode, StoppedError, WithPath
from rdc.lean.records import Record
from rdc.lean.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


STOP_SECONDS = 0.1
"""The longest wait after which a waiting job looks at its StopSignal."""


class PlanKnown(Record):
    """The comparison is complete. These totals describe the work ahead."""

    files: int
    """The number of entries to create or change."""
    bytes: int
    """The content bytes of the files among them."""
    deletes: int


class ItemChanged(WithPath, Record):
    """An entry was changed; in a dry run, it would be."""

    change: str
    """rsync's 11-character code, or '*deleting  '."""
    path_bytes: bytes
    """The path relative to the destination root. A directory ends in '/'."""
    target_bytes: bytes | None = None
    """The target of a symlink, the other name of a new hard link, or the new path of a moved file."""

    @property
    def target(self) -> str | None:
        """`target_bytes` as text."""
        return None if self.target_bytes is None else fsdecode(self.target_bytes)


class Progressed(Record):
    """The progress of one phase.

    >>> import rdc
    >>> rdc.Progressed("read", 512, 1024).done
    512
    """

    phase: str
    """A sync and a two-way sync have 'compare', 'transfer' and 'delete'; a scan 'read'; a dedupe 'compare'
    and 'share'; an undo 'undo'."""
    done: int
    total: int | None
    """The total of the phase; None while unknown. 'delete' and 'undo' count entries, other phases bytes.

    In 'compare' these are the bytes that the destination reads of its own files.
    """
    line_bytes: int | None = None
    """Bytes on the connection so far, both ways; None within one process."""


class Problem(WithPath, Record):
    """An error or notice about one path. The path is b'' if none is meant. The run continues.

    >>> import rdc
    >>> rdc.Problem(rdc.ExitCode.PARTIAL, b"a", "a: Permission denied").code
    <ExitCode.PARTIAL: 23>
    """

    code: ExitCode
    """The exit code. OK marks a notice that does not change it, such as a skipped socket."""
    path_bytes: bytes
    message: str
    """One printable line that names the path."""


Event: TypeAlias = PlanKnown | ItemChanged | Progressed | Problem


class Reporter(Protocol):
    """A function that receives the events of one job.

    >>> import os, rdc
    >>> def reporter(event):
    ...     if isinstance(event, rdc.ItemChanged):
    ...         print(event.path)
    >>> os.mkdir("src"); open("src/file", "w").close()
    >>> _ = rdc.sync("src/", "copy/", reporter=reporter, catalog=None)
    ./
    file
    """

    def __call__(self, event: Event, /) -> None: ...


def silent(event: Event, /) -> None:
    """Ignore the event; a Reporter."""


class StopSignal(Protocol):
    """Tells a running job to stop, such as a threading.Event that another thread sets.

    A job asks it between two steps, and at least every STOP_SECONDS while it waits. A step is short, except
    that a source reads one file whole.

        >>> import os, rdc, threading
        >>> os.mkdir("src")
        >>> stop = threading.Event()
        >>> stop.set()
        >>> rdc.sync("src/", "copy/", catalog=None, stop=stop)
        Traceback (most recent call last):
        rdc.errors.StoppedError: stopped by the caller
    """

    def is_set(self) -> bool:
        """Return whether the job must stop. Once True, it must stay True."""


def check_stop(stop: StopSignal | None) -> None:
    """Raise StoppedError if `stop` is set."""
    if stop is not None and stop.is_set():
        raise StoppedError


def stopping(reporter: Reporter, stop: StopSignal | None) -> Reporter:
    """Return a Reporter that raises StoppedError in place of the first event after `stop` was set."""
    if stop is None:
        return reporter

    def report(event: Event, /) -> None:
        check_stop(stop)
        reporter(event)

    return report
