"""The options of `rdc dupes` that remove duplicates: their table, and the request they are read into."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.duplicates import Action, KeepOrder, KeepRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words

__all__ = ["REMOVAL_GROUP", "RemovalRequest", "read_removal"]

REMOVAL_GROUP = OptionGroup(
    "What is done with them",
    (
        Option(("--delete",), "delete all files of a set but one"),
        Option(("--move",), "move them below DIR, with their paths", "DIR"),
        Option(("--symlink",), "make them symbolic links to the one that stays"),
        Option(("--apply",), "act; without it only show what would be done, and the bytes it frees"),
        Option(("-n", "--dry-run"), "do not act, --apply or not"),
        Option(
            ("--keep",), "which one stays: newest, oldest, shortest-path, longest-path, first, in:DIR", "RULE"
        ),
        Option(("--keep-in",), "change nothing below DIR; its files count as copies", "DIR"),
        Option(("--only-in",), "change nothing outside of DIR", "DIR"),
        Option(("--journal",), "where it is written down (default: your state directory)", "FILE"),
    ),
)

_ACTIONS = {"--delete": Action.DELETE, "--move": Action.MOVE, "--symlink": Action.SYMLINK}
_NEED_ACTION = ("--apply", "--dry-run", "--keep", "--keep-in", "--only-in", "--journal")
_NOT_WITH_ACTION = ("--null", "--csv", "--links", "--verify")
_HELP = "(see rdc dupes --help)"


@dataclass(frozen=True, slots=True)
class RemovalRequest:
    """What the command line says about removal. Paths are as typed."""

    action: Action
    apply: bool
    rules: tuple[KeepRule, ...]
    keep_in: tuple[bytes, ...]
    only_in: tuple[bytes, ...]
    destination: bytes
    """The DIR of --move; otherwise empty."""
    journal: bytes | None


def read_removal(words: Words) -> RemovalRequest | None:
    """Read the request; None if nothing is to be removed. Raises UsageError."""
    given = {one.key for one in words.given}
    actions = [key for key in _ACTIONS if key in given]
    if not actions:
        for key in _NEED_ACTION:
            if key in given:
                raise UsageError(f"{key} is for --delete, --move or --symlink {_HELP}")
        return None
    if len(actions) > 1:
        raise UsageError(f"{' and '.join(actions)} exclude each other {_HELP}")
    for key in _NOT_WITH_ACTION:
        if key in given:
            raise UsageError(f"{key} and {actions[0]} exclude each other {_HELP}")
    moved, journal = words.last("--move"), words.last("--journal")
    return RemovalRequest(
        action=_ACTIONS[actions[0]],
        apply=words.has("--apply") and not words.has("-n", "--dry-run"),
        rules=tuple(_rule(one.value) for one in words.given if one.key == "--keep"),
        keep_in=_directories(words, "--keep-in"),
        only_in=_directories(words, "--only-in"),
        destination=b"" if moved is None else _path("--move", moved.value),
        journal=None if journal is None else _path("--journal", journal.value),
    )


def _rule(text: str) -> KeepRule:
    if text.startswith("in:"):
        return KeepRule(KeepOrder.IN, os.path.realpath(_path("--keep=in:DIR", text[3:], directory=True)))
    orders = [order.value for order in KeepOrder if order is not KeepOrder.IN]
    if text not in orders:
        raise UsageError(f"--keep={text}: expected {', '.join(orders)} or in:DIR {_HELP}")
    return KeepRule(KeepOrder(text))


def _directories(words: Words, key: str) -> tuple[bytes, ...]:
    return tuple(_path(key, one.value, directory=True) for one in words.given if one.key == key)


def _path(key: str, value: str, *, directory: bool = False) -> bytes:
    if not value or "\0" in value:
        raise UsageError(f"{key} needs a path without NUL characters {_HELP}")
    path = os.fsencode(value)
    # A rule about a misspelt directory would protect nothing.
    if directory and not os.path.isdir(path):
        raise UsageError(f"{key}: there is no directory {value} {_HELP}")
    return path
