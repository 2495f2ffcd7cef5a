"""The functions of `import rdc` that run a whole job. They check their arguments; the verbs call them.

`trees` has what works on a tree and its copy. `duplicates`, `scans` and `similar` survey trees. `streams`
takes buffers and open files.
"""

from __future__ import annotations

import os
from functools import update_wrapper

from rdc import errors
from rdc.catalog.store import UserCatalog
from rdc.errors import ExitCode, UsageError, printable, worse
from rdc.lean.checks import check_argument, check_callable, check_method, found_type
from rdc.lean.typed import TypeVar
from rdc.model.location import Location, RemoteShell, parse_location
from rdc.progress import Event, Problem, Progressed, Reporter, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")


# What the functions of `import rdc` share: checks of their arguments, and the exit code of a job whose search
# counts no problems.


def public(function: F) -> F:
    """Decorate a function of `import rdc`: a FileError that leaves it is also an OSError."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except errors.FileError as error:
            raise public_error(error) from error.__cause__

    found: Any = update_wrapper(call, function)
    made: F = found
    return made


# The errors of single files as a program catches them: also an OSError, with errno, strerror and filename.
#
# Inside of rdc a FileError is no OSError. There, `except OSError` catches what the system said, and a
# FileError that says it better passes to whoever counts it.


class FileError(errors.FileError, OSError):
    """One file could not be read or written. It is an OSError, too: `filename` is the path, and `errno` that
    of the system, or None if the system refused nothing.

    >>> import rdc
    >>> try:
    ...     rdc.sign_file("missing")
    ... except OSError as error:
    ...     print(error.filename, error.strerror)
    missing No such file or directory
    """

    def __init__(
        self, path: bytes, message: str, *, code: errors.ExitCode | None = None, cause: OSError | None = None
    ) -> None:
        super().__init__(path, message, code=code)
        self.errno = None if cause is None else cause.errno
        self.strerror = str(self) if cause is None else cause.strerror
        self.filename = self.path

    def __str__(self) -> str:
        return str(self.args[0])


class FileChangedError(errors.FileChangedError, FileError):
    """A source file vanished or changed while it was read."""


def public_error(error: errors.FileError) -> FileError:
    """Return the error for a program: the same path, text and code, and its errno if a call failed."""
    if isinstance(error, FileError):
        return error
    cause = error.__cause__
    make = FileChangedError if isinstance(error, errors.FileChangedError) else FileError
    found = make(
        error.path_bytes, str(error), code=error.code, cause=cause if isinstance(cause, OSError) else None
    )
    return found.with_traceback(error.__traceback__)


def location_of(function: str, name: str, given: object, *, published: bool = False) -> Location:
    """Return the location that an argument means. `published`: it may be the address of a published store.
    Raises TypeError, and UsageError for an invalid one."""
    if isinstance(given, Location):
        return given
    if isinstance(given, str):
        return parse_location(given, published=published)
    if not isinstance(given, (bytes, os.PathLike)):
        expected = "Location | str | bytes | PathLike"
        raise TypeError(f"{function}.{name}: expected {expected}, found {found_type(given)}")
    path = os.fsencode(given)
    if b"\0" in path:
        raise UsageError(f"{printable(path)}: a path cannot contain a NUL character")
    return Location(None, path)


def location_list(function: str, given: object) -> tuple[Location, ...]:
    """Return the locations that the argument `source` means: one, or those of a list or tuple. Raises as
    location_of."""
    if not isinstance(given, (list, tuple)):
        return (location_of(function, "source", given, published=function == "sync"),)
    if not given:
        raise UsageError("one source at least is needed")
    return tuple(
        location_of(function, f"source[{number}]", one, published=function == "sync")
        for number, one in enumerate(given)
    )


def path_list(function: str, name: str, paths: object) -> list[bytes]:
    """Return the paths of an argument that is one path or a sequence of paths. Raises TypeError."""
    # A string is a sequence too, and '/' alone would be a path.
    given = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"{function}.{name}: expected a path, or a list or tuple of paths, found {found_type(paths)}"
        )
    for number, path in enumerate(given):
        check_argument(function, f"{name}[{number}]", path, str, bytes, os.PathLike)
    return [os.fsencode(path) for path in given]


def local_path_list(function: str, name: str, paths: object) -> list[bytes]:
    """Return the paths of path_list, for a job that reads local files alone. Raises UsageError for a URL,
    too."""
    given = path_list(function, name, paths)
    for path in given:
        if b"://" in path:
            from rdc.files.objects.object_store import is_url  # few paths look so

            if is_url(path):
                raise UsageError(
                    f"{printable(path)}: rdc {function} reads files of this machine; rdc scan and rdc similar"
                    " --text read objects of a store, and a local path begins with ./"
                )
    return given


def check_job(function: str, reporter: object, catalog: object, stop: object) -> None:
    """Raise TypeError if one of the arguments that every job takes has a wrong type."""
    check_callable(function, "reporter", reporter)
    if catalog is not None and not isinstance(catalog, UserCatalog):
        check_method(function, "catalog", catalog, "flush")
    if stop is not None:
        check_method(function, "stop", stop, "is_set")


def options_of(function: str, record: type[T], given: T | None, keywords: dict[str, object]) -> T:
    """Return the options that a call means: `given`, or a record of `keywords`, or the defaults.

    Raises TypeError, and for keywords as rdc.library.keywords.read_keywords.
    """
    if keywords:
        from rdc.library.keywords import read_keywords

        return read_keywords(function, record, given, keywords)
    check_argument(function, "options", given, record, None)
    return record() if given is None else given


def reporting(
    function: str,
    reporter: Callable[[Any], None],
    progress: Callable[[Progressed], None] | None,
    turn: type | None = None,
) -> Callable[[Any], None]:
    """Return the reporter of a job: `reporter`, and `progress` for the events about progress alone.

    Neither receives progress that goes back. `turn`: an event after which all phases start again. Raises
    TypeError.
    """
    check_callable(function, "reporter", reporter)
    if progress is not None:
        check_callable(function, "progress", progress)
    return reporter if reporter is silent and progress is None else Forward(reporter, progress, turn)


def check_far(function: str, shell: object, keys: object) -> None:
    """Raise TypeError if one of the arguments about the remote side has a wrong type."""
    check_argument(function, "shell", shell, RemoteShell, None)
    check_argument(function, "keys", keys, str, os.PathLike, None)


class Forward:
    """A Reporter. In each phase, what is done and its total only grow, whoever counts them.

    The remote side counts some of the phases, and events of two threads may overtake each other.
    """

    def __init__(
        self,
        reporter: Callable[[Any], None],
        progress: Callable[[Progressed], None] | None,
        turn: type | None = None,
    ) -> None:
        """`turn`: as in `reporting`."""
        self._reporter = reporter
        self._progress = progress
        self._turn = turn
        self._seen: dict[str, Progressed] = {}

    def __call__(self, event: Any, /) -> None:
        if self._turn is not None and isinstance(event, self._turn):
            self.finish()
            self._seen.clear()
        elif isinstance(event, Progressed):
            before = self._seen.get(event.phase)
            if before is not None:
                done = max(event.done, before.done)
                total = event.total if before.total is None else max(event.total or 0, before.total)
                whole = None if total is None else max(total, done)
                event = Progressed(event.phase, done, whole, event.line_bytes)
                if event == before:
                    return
            self._seen[event.phase] = event
            if self._progress is not None:
                self._progress(event)
        self._reporter(event)

    def finish(self) -> None:
        """Say that each phase is complete, after a run without errors: files that were equal after all may
        have left its count short."""
        for event in self._seen.values():
            if self._progress is not None and event.total is not None and event.done < event.total:
                self._progress(Progressed(event.phase, event.total, event.total))


class CodeReporter:
    """A Reporter. `code` is the exit code so far."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.code = ExitCode.OK

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.code = worse(self.code, event.code)
        self._reporter(event)
