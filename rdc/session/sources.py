"""What is selected of the sources of a run: one location, or several on one host."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.lean.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.location import Location
    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions

__all__ = ["selected_of"]


_ONE_SOURCE = "--files-from takes one SRC: the directory that the listed names are below"


def selected_of(
    sources: Sequence[Location], options: SyncOptions
) -> tuple[Location, tuple[SelectedPaths, ...] | None]:
    """Where the sources are, and what is selected there; None for all that one source means.

    Raises UsageError for sources on several hosts or in several modules, and for more than a run takes.
    """
    first = sources[0]
    if options.files_from is not None:
        if len(sources) > 1:
            raise UsageError(_ONE_SOURCE)
        return first, None
    if len(sources) == 1 and _is_whole(options):
        return first, None
    from rdc.model.selection import check_bounds, select_listed, select_operands

    for other in sources[1:]:
        if (other.host, other.port) != (first.host, first.port):
            raise UsageError(f"{first} and {other} are on two hosts: all SRC have to be on one")
        if first.port is not None and _module(other) != _module(first):
            raise UsageError(f"{first} and {other} are in two modules: all SRC have to be in one")
    if options.files is None:
        selected = select_operands([source.inner or b"." for source in sources], relative=options.relative)
    elif len(sources) > 1:
        raise UsageError(_ONE_SOURCE)
    else:
        selected = select_listed(first.inner or b".", options.files.names, relative=options.relative)
    check_bounds(selected)
    return replace(first, path=b"." if first.port is None else _module(first)), selected


def _is_whole(options: SyncOptions) -> bool:
    """Whether one SRC stands for all that it has."""
    asks_for_missing = options.delete_missing_args
    return options.recursive and not (options.relative or asks_for_missing) and options.files is None


def _module(source: Location) -> bytes:
    return source.path.partition(b"/")[0]
