"""The operands of `rdc sync`: one SRC or several, and DST."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.model.location import Location, parse_location
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["read_operands"]


def read_operands(operands: Sequence[str], command: str) -> tuple[tuple[Location, ...], Location]:
    """Returns the sources and the destination. `command` is named by error messages; only `rdc sync` takes
    several sources. Raises UsageError."""
    if len(operands) < 2:
        found = "one was" if operands else "nothing was"
        raise UsageError(f"SRC and DST are needed, {found} given (see {command} --help)")
    if len(operands) > 2 and command != "rdc sync":
        raise UsageError(
            f"one SRC and one DST are expected, {len(operands)} were given; "
            f"name their directory as SRC and choose with --include and --exclude (see {command} --help)"
        )
    sources: list[Location] = []
    for operand in operands[:-1]:
        sources.append(_source(operand, sources))
    return tuple(sources), parse_location(operands[-1])


def _source(operand: str, before: Sequence[Location]) -> Location:
    """A SRC; `:PATH` is on the host of the one before it, as in rsync."""
    if operand.startswith(":") and not operand.startswith("::") and before:
        host = before[-1]
        if host.host is None or host.port is not None:
            raise UsageError(
                f"{operand}: there is no HOST:PATH before it; a file of this name is ./{operand}"
            )
        return replace(host, path=parse_location(f"host{operand}").path)
    return parse_location(operand)
