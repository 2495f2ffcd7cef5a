"""`rdc unite` on a terminal: the table of what is done at which side, the conflicts, and the last line."""

from __future__ import annotations

import time

from rdc.errors import ExitCode, one_line, printable
from rdc.limits import UNITE_LISTED
from rdc.report.output import Bar, TerminalOutput, counted, size_text
from rdc.uniting.records import Prefer, UniteConflict, United, UniteItem, UnitePair, UniteReport
from rdc.watching.records import Disconnected, Halted, Limited, Resumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_BOTH = (
    "; not both are kept: only a file gets another name, one that is free and not yet that of such a version,"
    " and --max-copies limits how many"
)

_ABOUT = {
    "content": "both sides edited it",
    "kind": "file, directory or symlink at the other side",
    "unit": "both sides changed something in it",
    "mode": "both sides changed its permissions",
    "attributes": "both sides changed its extended attributes",
    "links": "both sides changed which names are one file with it",
}


class UniteTerminal(TerminalOutput):
    """Items and conflicts on stdout, problems and the summary on stderr."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        operands: tuple[str, str],
        connection: tuple[str, ...] = (),
        *,
        quiet: bool,
        items: bool,
        dry_run: bool,
        flush: Callable[[], None],
        prefer: Prefer | None = None,
        both: tuple[bytes, ...] = (),
        bar: Bar | None = None,
        dials: bool = False,
        unseen: bool = False,
    ) -> None:
        """`operands`: both directories as typed, and `connection` the options of the connection, for commands
        that solve conflicts. `items`: each is shown. `flush`: write out what stdout still buffers.
        `prefer`: the rule that was to decide each conflict that is reported. `both`: paths at and below which
        both versions were to get names."""
        super().__init__(data, talk, bar, quiet=quiet, unseen=unseen and not items, dials=dials)
        self._operands = operands
        self._connection = connection
        self._items = items
        self._dry_run = dry_run
        self._headed = False
        self._conflicts = 0
        self._first = b""
        self._has_both = False
        self._flush = flush
        self._prefer = prefer
        self._both = both

    def __call__(self, event: object, /) -> None:
        if isinstance(event, UniteItem):
            if self._items:
                self._head()
                self._data(item_line(event) + "\n")
        elif isinstance(event, UniteConflict):
            self.reported = True
            self._conflict(event)
        elif isinstance(event, UnitePair):
            for line in pair_lines(event, self._operands):
                self._data(line + "\n")
        else:
            super().__call__(event)

    def _head(self) -> None:
        if not self._headed:
            self._headed = True
            self._data("left                right\n")

    def _conflict(self, event: UniteConflict) -> None:
        self._conflicts += 1
        if self._conflicts == 1:
            self._first = event.path_bytes
            # Only a file can get another name.
            self._has_both = event.about in ("content", "kind") and not self._keeps_both(event.path_bytes)
        if self._conflicts <= UNITE_LISTED:
            why = _NOT_BOTH if self._keeps_both(event.path_bytes) else _undecided(event, self._prefer)
            self._data(conflict_line(event) + why + "\n")

    def _keeps_both(self, path: bytes) -> bool:
        return any(not top or path == top or path.startswith(top + b"/") for top in self._both)

    def summary(self, report: UniteReport) -> str:
        self._advise()
        return summary_line(report, dry_run=self._dry_run)

    def _advise(self) -> None:
        """Say how the conflicts listed so far are solved."""
        if self._conflicts > UNITE_LISTED:
            self._talk(f"{self._conflicts - UNITE_LISTED:,} more conflicts\n")
        if self._conflicts:
            import shlex

            words = shlex.join((*self._connection, *self._operands))
            both = "     both: =both" if self._has_both else ""
            resolve = _as_word(f"--resolve={printable(self._first)}=left", b"--resolve=%s=left" % self._first)
            self._talk(f"keep one version: rdc unite {words} {resolve}{both}\n")
        self._conflicts = 0


def _as_word(shown: str, meant: bytes) -> str:
    """Return a word of a command line that a shell reads as `meant`, which is printed as `shown`."""
    import shlex
    from os import fsencode

    if fsencode(shown) == meant:
        return shlex.quote(shown)
    quoted = shown.replace("'", "\\'")
    return f"$'{quoted}'"


class WatchTerminal(UniteTerminal):
    """The same for runs that follow each other: a line after each that changed something."""

    _is_first = True
    _trouble: str | None = None
    """The last reported reason why no further run starts; None while runs go on."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, United):
            self._run_ended(event)
        elif isinstance(event, Resumed):
            self._trouble = None
            self._talk("rdc: resumed\n")
        elif isinstance(event, Limited):
            self._talk(
                f"rdc: not every directory can be watched: {one_line(event.reason)}; both sides are compared"
                f" every {event.seconds} seconds instead\n"
            )
        elif isinstance(event, Halted | Disconnected):
            word = "halted" if isinstance(event, Halted) else "interrupted"
            line = f"rdc: {word}: {one_line(event.reason)}\n"
            if line != self._trouble:
                # A remote side that is away for a night is reported once, not every minute.
                self._trouble = line
                self._talk(line)
        else:
            super().__call__(event)

    def _run_ended(self, event: United) -> None:
        self._flush()
        self._advise()
        if self._quiet:
            return
        report = UniteReport(
            event.left, event.right, event.left_bytes, event.right_bytes, event.entries, event.conflicts,
            event.held, False, ExitCode.OK,
        )  # fmt: skip
        if event.left or event.right:
            self._talk(summary_line(report, dry_run=False) + "\n")
        if self._is_first or self._trouble is not None:
            again = "" if self._is_first else " again"
            entries = counted(event.entries, "entry", "entries")
            self._talk(f"united{again}: {entries} in common; watching\n")
        self._is_first, self._trouble = False, None

    def summary(self, report: UniteReport) -> str:
        self._advise()
        return "stopped   " + summary_line(report, dry_run=False)


def item_line(item: UniteItem) -> str:
    """Return a line that says what was done, at which side, and where, such as
    `new         →               notes.txt  4.1 KB`."""
    from_left = item.side == "right"
    left, right = (item.action, "") if from_left else ("", item.action)
    arrow = "→" if from_left else "←"
    path = printable(item.path_bytes)
    if item.target_bytes is not None:
        path += f" to {printable(item.target_bytes)}"
    size = f"  {size_text(item.copied)}" if item.copied else ""
    return f"{left:<10} {arrow} {right:<10}  {path}{size}"


def conflict_line(event: UniteConflict) -> str:
    """Return a line such as
    `conflict   ≠             a.txt  left 9 B 10:14:02, right 7 B 10:20:00: both sides edited it`."""
    left = _version(event.about, event.left_size, event.left_mtime_ns)
    right = _version(event.about, event.right_size, event.right_mtime_ns)
    about = _ABOUT[event.about]
    return f"{'conflict':<10} ≠ {'':<10}  {printable(event.path_bytes)}  left {left}, right {right}: {about}"


def _undecided(event: UniteConflict, prefer: Prefer | None) -> str:
    """Return why `prefer` did not decide a conflict that is left; "" for none, left and right."""
    if prefer in (Prefer.NEWER, Prefer.OLDER):
        return f"; --prefer={prefer.value} does not decide: both have the same modification time"
    if prefer in (Prefer.LARGER, Prefer.SMALLER):
        comparable = event.about in ("content", "mode", "links") and event.left_size == event.right_size
        why = "both have the same size" if comparable else "it compares two files"
        return f"; --prefer={prefer.value} does not decide: {why}"
    return ""


def _version(about: str, size: int, mtime_ns: int) -> str:
    """Return how a conflict shows one version: by size and time, or as a directory, which has neither in an
    event."""
    if about not in ("content", "links") and size == mtime_ns == 0:
        return "directory"
    return f"{size_text(size)} {_when(mtime_ns)}"


def _when(mtime_ns: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(mtime_ns // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return "of no time"


def summary_line(report: UniteReport, *, dry_run: bool) -> str:
    """Return the last line of a run."""
    parts = [
        f"left ← {counted(report.left, 'entry', 'entries')}, {size_text(report.left_bytes)}",
        f"right → {counted(report.right, 'entry', 'entries')}, {size_text(report.right_bytes)}",
        counted(report.conflicts, "conflict"),
    ]
    if report.held:
        parts.append(f"{report.held:,} held or failed")
    text = "   ".join(parts)
    return f"would change: {text}; nothing was written" if dry_run else text


def pair_lines(pair: UnitePair, operands: tuple[str, str]) -> list[str]:
    """Return what --status shows of one pair."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(pair.seconds))
    entries = counted(pair.entries, "entry", "entries")
    lines = [f"{printable(pair.place)}: last united {when}, {entries} in common"]
    lines += [f"  {printable(rule)}" for rule in pair.rules]
    if pair.interrupted:
        lines.append("  a later run was interrupted; the next one resumes it")
    lines += ["  " + conflict_line(each) for each in pair.conflicts[:UNITE_LISTED]]
    if len(pair.conflicts) > UNITE_LISTED:
        lines.append(f"  {len(pair.conflicts) - UNITE_LISTED:,} more conflicts")
    return lines
