"""rsync's 11-character change codes, as `-i` prints them (rsync(1), --itemize-changes)."""

from __future__ import annotations

from functools import cache

from rdc.model.entries import Kind
from rdc.plan.compare import Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.plan.compare import Decision

__all__ = ["DELETING", "RENAMING", "attributes_code", "itemize", "linking_code"]

DELETING = "*deleting  "
RENAMING = "*renaming  "

_LETTERS = {Kind.FILE: "f", Kind.DIRECTORY: "d", Kind.SYMLINK: "L", Kind.SPECIAL: "S"}
_COLUMNS = (
    ("c", Difference.CHECKSUM),
    ("s", Difference.SIZE),
    ("t", Difference.TIME),
    ("p", Difference.PERMISSIONS),
    ("o", Difference.OWNER),
    ("g", Difference.GROUP),
)


def itemize(kind: int, decision: Decision, *, transferred: bool, new: bool) -> str:
    """The code of an entry: `transferred` content came over, `new` nothing of its kind was there before."""
    return _code(kind, int(decision.difference), transferred, new)


def linking_code(difference: Difference, *, new: bool) -> str:
    """The code of a file that becomes another name of a file: rsync's blanks where it had all but that."""
    if new:
        return "hf+++++++++"
    return "h" + _code(Kind.FILE, int(difference), False, False)[1:] if difference else "hf         "


def attributes_code(kind: int, *, acl: bool, xattr: bool) -> str:
    """The code of an entry of which nothing else differs."""
    return f".{_LETTERS[Kind(kind)]}.......{'a' if acl else '.'}{'x' if xattr else '.'}"


@cache
def _code(kind: int, difference: int, transferred: bool, new: bool) -> str:
    letter = _LETTERS[Kind(kind)]
    if new:
        return (">" if kind == Kind.FILE else "c") + letter + "+++++++++"
    sign = "." if not transferred else ">" if kind == Kind.FILE else "c"
    flags = "".join(mark if difference & flag else "." for mark, flag in _COLUMNS)
    return f"{sign}{letter}{flags}..."
