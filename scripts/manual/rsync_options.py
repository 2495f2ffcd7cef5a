"""The table of all options of rsync, with what rdc does about each.

docs/notes/rsync-options.txt has rsync's list in its order. The state of each option comes from rdc's own
tables: what it accepts, what it refuses, and whether reading an option changes the request. How an option
differs is said where it is declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from rdc.cli.options.sync_options import SYNC_OPTIONS, parse_sync, read_request
from rdc.errors import UsageError
from rdc.model.options import Option
from scripts.manual.notes import DOCS, MissingNoteError
from scripts.manual.options import PAGES, anchor, escaped


class State(Enum):
    SAME = "same"
    DIFFERS = "differs"
    ALWAYS = "always so"
    NOT_HAD = "not had"


@dataclass(frozen=True, slots=True)
class Row:
    """One option of rsync."""

    spelled: str
    """The option as rsync's help spells it, with its short name and its value."""
    state: State
    note: str
    """The difference, or the reason why rdc does not have it."""
    option: Option | None
    """rdc's; None: rdc does not have it, or has it in parts."""


@cache
def listed() -> tuple[str, ...]:
    """rsync's options in the order of its help."""
    lines = (DOCS / "notes" / "rsync-options.txt").read_text().splitlines()
    return tuple(line for line in lines if line)


def names_of(spelled: str) -> list[str]:
    """Return the names of an option in rsync's spelling: `--verbose, -v` or `--info=FLAGS`."""
    return [part.partition("=")[0] for part in spelled.split(", ")]


def row(spelled: str) -> Row:
    """Return what rdc does about one option. Raises MissingNoteError if its tables do not know the option."""
    names = names_of(spelled)
    if names[0] == "--no-OPTION":
        return Row(spelled, State.DIFFERS, "for the options that rdc can turn off; others are rejected", None)
    option = _option(names[0])
    if option is None:
        return Row(spelled, State.NOT_HAD, _advice(names[0]), None)
    note = " ".join(option.rsync.split())
    if note:
        return Row(spelled, State.DIFFERS, note, option)
    if option.metavar is None and option.key != "--help" and _changes_nothing(names[0]):
        return Row(spelled, State.ALWAYS, "", option)
    return Row(spelled, State.SAME, "", option)


def _option(name: str) -> Option | None:
    return next((one for group in SYNC_OPTIONS for one in group.options if name in one.names), None)


def _advice(name: str) -> str:
    """Return rdc's advice for this option, which it does not support."""
    try:
        parse_sync([name, "a", "b", "c"])
    except UsageError as error:
        refused, colon, advice = str(error).partition(": ")
        if colon and refused == f"rdc has no {name}":
            return advice
    raise MissingNoteError(f"rsync has {name}, of which rdc's tables say nothing")


def _changes_nothing(name: str) -> bool:
    """Return whether a run with this flag does what any run does."""
    plain, given = (read_request(parse_sync([*words, "a", "b"]), _no_file) for words in ((), (name,)))
    return plain == given


def _no_file(name: str) -> bytes:
    raise AssertionError(f"a flag reads {name}")


def rows() -> list[Row]:
    """All options of rsync."""
    return [row(spelled) for spelled in listed()]


def option_table() -> str:
    """Return the table, below a count of each state."""
    found = rows()
    counts = Counter(one.state for one in found)
    total = ", ".join(f"{counts[state]} {state.value}" for state in State)
    lines = [f"Of rsync's {len(found)} options: {total}.", "", "| option of rsync | rdc | |", "|---|---|---|"]
    return "\n".join([*lines, *map(_line, found)])


def _line(one: Row) -> str:
    page = PAGES["sync"].removeprefix("reference/")
    state = one.state.value if one.option is None else f"[{one.state.value}]({page}#{anchor(one.option)})"
    spelled = ", ".join(f"`{part}`" for part in _spellings(one))
    return f"| {spelled} | {state} | {escaped(one.note)} |"


def _spellings(one: Row) -> Sequence[str]:
    return [part.replace("|", r"\|") for part in one.spelled.split(", ")]
