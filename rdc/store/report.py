"""The text of `rdc store`: snapshots as lines on stdout, problems and summaries on stderr."""

from __future__ import annotations

import time

from rdc.report.output import TerminalOutput, counted, size_text
from rdc.store.records import (
    ForgetReport,
    GcReport,
    PackReport,
    SnapshotInfo,
    StoreReport,
    VerifyReport,
    shown_series,
)


class StoreTerminal(TerminalOutput):
    """Shows a put, a list or a check."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, SnapshotInfo):
            self._data(snapshot_line(event) + "\n")
        else:
            super().__call__(event)

    def summary(self, report: StoreReport | VerifyReport | ForgetReport | GcReport | PackReport) -> str:
        if isinstance(report, PackReport):
            return pack_summary(report)
        if isinstance(report, ForgetReport):
            return forget_summary(report)
        if isinstance(report, GcReport):
            return gc_summary(report)
        return put_summary(report) if isinstance(report, StoreReport) else verify_summary(report)


def snapshot_line(snapshot: SnapshotInfo) -> str:
    """`  17  2026-11-28 03:00  data  6,725 files  42.7 MB  added 58.6 KB  alone 12.0 KB`: number, local time,
    series, what it holds, what its put added, what no other snapshot needs. At the end how many problems
    the put had, if any."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(snapshot.seconds))
    parts = [
        f"{snapshot.number:>4}",
        began,
        shown_series(snapshot.series),
        counted(snapshot.files, "file"),
        size_text(snapshot.bytes),
        f"added {size_text(snapshot.stored)}",
    ]
    if snapshot.alone is not None:
        parts.append(f"alone {size_text(snapshot.alone)}")
    if snapshot.problems:
        parts.append(counted(snapshot.problems, "problem"))
    return "  ".join(parts)


def put_summary(report: StoreReport) -> str:
    """Return the line at the end of a put."""
    text = (
        f"snapshot {report.number} of {shown_series(report.series)}: {counted(report.files, 'file')},"
        f" {size_text(report.bytes)}; read {counted(report.files_read, 'file')},"
        f" stored {size_text(report.stored)}"
    )
    if report.deltas:
        text += f" ({counted(report.deltas, 'delta')})"
    if report.errors:
        text += f"; {counted(report.errors, 'problem')}, exit code {int(report.exit)}"
    return text


def forget_summary(report: ForgetReport) -> str:
    """Return the line at the end of forget."""
    gone = counted(len(report.forgotten), "snapshot")
    if not report.applied:
        return f"{gone} to forget, {report.kept:,} to keep (nothing was changed; --apply does it)"
    return f"forgot {gone}, kept {report.kept:,}; rdc store gc frees their space after 7 days"


def gc_summary(report: GcReport) -> str:
    """Return the line at the end of gc."""
    text = f"removed {counted(report.packs, 'pack')}, {size_text(report.freed)}"
    if report.written:
        text += f"; wrote {size_text(report.written)} of them again"
    if report.snapshots:
        text += f"; removed {counted(report.snapshots, 'forgotten snapshot')}"
    return text


def pack_summary(report: PackReport) -> str:
    """Return the line at the end of pack."""
    text = f"packed snapshot {report.number}, {size_text(report.bytes)}"
    return text if report.base is None else f"{text}, for those who have snapshot {report.base}"


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
