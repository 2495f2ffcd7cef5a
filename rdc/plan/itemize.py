"""rsync's 11-character change codes, as `-i` prints them (rsync(1), --itemize-changes)."""

from __future__ import annotations

from functools import cache

from rdc.model.entries import Kind
from rdc.plan.compare import Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.plan.compare import Decision

__all__ = [
    "DELETING",
    "RENAMING",
    "attributes_code",
    "copying_code",
    "itemize",
    "linking_code",
    "unchanged_code",
]

DELETING = "*deleting  "
RENAMING = "*renaming  "

_LETTERS = {
    Kind.FILE: "f",
    Kind.DIRECTORY: "d",
    Kind.SYMLINK: "L",
    Kind.SPECIAL: "S",
    Kind.FIFO: "S",
    Kind.SOCKET: "S",
    Kind.CHARACTER_DEVICE: "D",
    Kind.BLOCK_DEVICE: "D",
}
_COLUMNS = (
    ("c", Difference.CHECKSUM),
    ("s", Difference.SIZE),
    ("t", Difference.TIME),
    ("p", Difference.PERMISSIONS),
    ("o", Difference.OWNER),
    ("g", Difference.GROUP),
)


def itemize(kind: int, decision: Decision, *, transferred: bool, new: bool) -> str:
    """Returns the code of an entry. `transferred`: its content was sent. `new`: the destination had no entry
    of its kind."""
    return _code(kind, int(decision.difference), transferred, new)


def linking_code(kind: int, difference: Difference, *, new: bool) -> str:
    """Returns the code of an entry that becomes a hard link. Spaces, as in rsync, mean that only the link was
    missing."""
    if not new and difference:
        return "h" + _code(kind, int(difference), False, False)[1:]
    return f"h{_LETTERS[Kind(kind)]}" + 9 * ("+" if new else " ")


def copying_code(kind: int, difference: Difference) -> str | None:
    """Returns the code of an entry that is made from one in an alternate directory, without the source's
    content. None: it equals that one, and rsync's -i is silent about it."""
    return "c" + _code(kind, int(difference), False, False)[1:] if difference else None


def unchanged_code(kind: int) -> str:
    """Returns the code of an entry that nothing happens to. Spaces, as in rsync."""
    return f".{_LETTERS[Kind(kind)]}         "


def attributes_code(kind: int, *, acl: bool, xattr: bool, time: bool) -> str:
    """Returns the code of an entry that differs in ACLs, extended attributes or the access time only."""
    marks = (("u", time), ("a", acl), ("x", xattr))
    return f".{_LETTERS[Kind(kind)]}......" + "".join(mark if differs else "." for mark, differs in marks)


@cache
def _code(kind: int, difference: int, transferred: bool, new: bool) -> str:
    letter = _LETTERS[Kind(kind)]
    if new:
        return (">" if kind == Kind.FILE else "c") + letter + "+++++++++"
    sign = "." if not transferred else ">" if kind == Kind.FILE else "c"
    flags = "".join(mark if difference & flag else "." for mark, flag in _COLUMNS)
    return f"{sign}{letter}{flags}..."
