"""The table of the scenarios of rsync's own test suite, with what rdc does in each.

docs/notes/rsync-scenarios.toml has their names in groups, each with the test of rdc that holds the same.
Whether rdc has the option of a group comes from its own tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rdc.cli.options.sync_options import SYNC_OPTIONS
from scripts.manual.notes import notes


class Outcome(Enum):
    SAME = "same"
    DIFFERS = "differs by design"
    NOT_HAD = "not had"
    UNTESTED = "had, and no test is named"


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Scenarios of the command line that one test holds."""

    names: tuple[str, ...]
    outcome: Outcome
    note: str
    """The test, or how rdc differs, or the option that it lacks."""


def groups() -> Iterator[Scenarios]:
    """Yield the scenarios about the command line."""
    had = {name for group in SYNC_OPTIONS for option in group.options for name in option.names}
    for group in notes("rsync-scenarios")["command-line"]:
        option, test, differs = (group.get(key, "") for key in ("option", "test", "differs"))
        names = tuple(group["names"])
        if option and option not in had:
            yield Scenarios(names, Outcome.NOT_HAD, f"rdc has no `{option}`")
        elif differs:
            yield Scenarios(names, Outcome.DIFFERS, differs)
        elif test:
            yield Scenarios(names, Outcome.SAME, f"`{test}`")
        else:
            yield Scenarios(names, Outcome.UNTESTED, f"`{option}`")


def all_names() -> list[str]:
    """Return the names of all scenarios, those of rsync's code and daemon included."""
    table = notes("rsync-scenarios")
    own = [name for group in table["command-line"] for name in group["names"]]
    return sorted([*own, *table["daemon"], *table["internal"]])


def counts() -> Counter[Outcome]:
    """Count the scenarios about the command line by their outcome."""
    found: Counter[Outcome] = Counter()
    for group in groups():
        found[group.outcome] += len(group.names)
    return found


def scenario_table() -> str:
    """Return the table, below the counts."""
    found, table = counts(), notes("rsync-scenarios")
    total = sum(found.values())
    parts = ", ".join(f"{found[outcome]} {outcome.value}" for outcome in Outcome if found[outcome])
    share = 100 * found[Outcome.SAME] / total
    lines = [
        f"{total} scenarios are about the command line: {parts}. {share:.0f} % are the same.",
        f"{len(table['daemon'])} are about rsync's daemon, its helpers and proxies, and "
        f"{len(table['internal'])} about its own code; rdc has neither.",
        "",
        "| scenarios | rdc | |",
        "|---|---|---|",
    ]
    for group in groups():
        names = ", ".join(f"`{name}`" for name in group.names)
        lines.append(f"| {names} | {group.outcome.value} | {group.note} |")
    return "\n".join(lines)
