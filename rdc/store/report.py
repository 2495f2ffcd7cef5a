"""The text of `rdc store`: snapshots as lines on stdout, problems and summaries on stderr."""

from __future__ import annotations

import time

from rdc.errors import printable
from rdc.report.output import TerminalOutput, counted, size_text
from rdc.store.records import SnapshotInfo, StoreReport, VerifyReport


class StoreTerminal(TerminalOutput):
    """Shows a put, a list or a check."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, SnapshotInfo):
            self._data(snapshot_line(event) + "\n")
        else:
            super().__call__(event)

    def summary(self, report: StoreReport | VerifyReport) -> str:
        return put_summary(report) if isinstance(report, StoreReport) else verify_summary(report)


def snapshot_line(snapshot: SnapshotInfo) -> str:
    """`  17  2026-11-28 03:00  data  6,725 files  42.7 MB  added 58.6 KB`: number, local time, series, what
    it holds, what its put added."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(snapshot.seconds))
    parts = [
        f"{snapshot.number:>4}",
        began,
        printable(snapshot.series),
        counted(snapshot.files, "file"),
        size_text(snapshot.bytes),
        f"added {size_text(snapshot.stored)}",
    ]
    return "  ".join(parts)


def put_summary(report: StoreReport) -> str:
    """Return the line at the end of a put."""
    text = (
        f"snapshot {report.number} of {printable(report.series)}: {counted(report.files, 'file')},"
        f" {size_text(report.bytes)}; read {counted(report.files_read, 'file')},"
        f" stored {size_text(report.stored)}"
    )
    if report.deltas:
        text += f" ({counted(report.deltas, 'delta')})"
    if report.errors:
        text += f"; {counted(report.errors, 'problem')}, exit code {int(report.exit)}"
    return text


def verify_summary(report: VerifyReport) -> str:
    """Return the line at the end of a check."""
    text = (
        f"{counted(report.snapshots, 'snapshot')}, {counted(report.packs, 'pack')},"
        f" {counted(report.chunks, 'chunk')}"
    )
    if report.bytes_read:
        text += f"; read {size_text(report.bytes_read)}"
    if not report.damaged:
        return text + "; no damage found"
    return text + f"; {counted(report.damaged, 'problem')}, exit code {int(report.exit)}"
