"""The functions of `import rdc` that run a whole job. They check their arguments; the verbs call them.

`trees` has what works on a tree and its copy. `duplicates`, `scans` and `similar` survey trees. `streams`
takes buffers and open files.
"""

from __future__ import annotations

import os

from rdc.catalog.catalog import UserCatalog
from rdc.errors import ExitCode, UsageError, printable, worse
from rdc.lean.checks import check_argument, check_callable, check_method, found_type
from rdc.model.location import Location, RemoteShell, parse_location
from rdc.progress import Event, Problem, Reporter

TYPE_CHECKING = False

__all__ = [
    "CodeReporter",
    "check_far",
    "check_job",
    "local_path_list",
    "location_list",
    "location_of",
    "path_list",
]


# What the functions of `import rdc` share: checks of their arguments, and the exit code of a job whose search
# counts no problems.


def location_of(function: str, name: str, given: object) -> Location:
    """Return the location that an argument means. Raises TypeError, and UsageError for an invalid one."""
    if isinstance(given, Location):
        return given
    if isinstance(given, str):
        return parse_location(given)
    if not isinstance(given, os.PathLike):
        raise TypeError(f"{function}.{name}: expected Location | str | PathLike, found {found_type(given)}")
    path = os.fsencode(given)
    if b"\0" in path:
        raise UsageError(f"{given}: a path cannot contain a NUL character")
    return Location(None, path)


def location_list(function: str, given: object) -> tuple[Location, ...]:
    """Return the locations that the argument `source` means: one, or those of a list or tuple. Raises as
    location_of."""
    if not isinstance(given, (list, tuple)):
        return (location_of(function, "source", given),)
    if not given:
        raise UsageError("one source at least is needed")
    return tuple(location_of(function, f"source[{number}]", one) for number, one in enumerate(given))


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
    """The paths of path_list, for a job that reads local files alone. Raises UsageError for a URL, too."""
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


def check_far(function: str, shell: object, keys: object) -> None:
    """Raise TypeError if one of the arguments about the remote side has a wrong type."""
    check_argument(function, "shell", shell, RemoteShell, None)
    check_argument(function, "keys", keys, str, os.PathLike, None)


class CodeReporter:
    """A Reporter. `code` is the exit code so far."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.code = ExitCode.OK

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.code = worse(self.code, event.code)
        self._reporter(event)
