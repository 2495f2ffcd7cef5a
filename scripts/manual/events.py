"""The events of --json: rdc.report.json_output writes one of each kind, and the fields are read off."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from rdc.checking.records import Aspect, CheckReport, EntryDiffers
from rdc.errors import ExitCode, RdcError
from rdc.model.duplicates import (
    Action,
    DedupeReport,
    DirectoryGroup,
    DuplicateFile,
    DuplicateGroup,
    DuplicateReport,
    DuplicateSummary,
    Instance,
)
from rdc.model.runs import SyncReport
from rdc.model.similar import (
    Document,
    DocumentGroup,
    DocumentReport,
    DocumentSummary,
    SimilarDocument,
    SimilarFile,
    SimilarFolders,
    SimilarGroup,
    SimilarReport,
    SimilarSummary,
    TextDifference,
)
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.json_output import JsonOutput
from rdc.store.records import ForgetReport, GcReport, PackReport, SnapshotInfo, StoreReport, VerifyReport
from rdc.undoing.records import UndoableSync, UndoItem, UndoReport
from rdc.uniting.records import UniteConflict, United, UniteItem, UnitePair, UniteReport
from rdc.watching.records import Disconnected, Halted, InStep, Limited, Resumed, WatchReport
from scripts.manual.notes import MissingNoteError, notes

Record = TypeVar("Record")

_VALUES: dict[str, Any] = {
    "int": 1,
    "float": 0.5,
    "str": "text",
    "bytes": b"a.txt",
    "_Path": b"a.txt",
    "bool": True,
    "ExitCode": ExitCode.OK,
}
"""A value for each type of a record's field. Tuples are empty."""


class EventExample(NamedTuple):
    name: str
    line: str
    fields: dict[str, Any]


def sample(record: type[Record], **chosen: Any) -> Record:
    """Return a record with a value in each field: those of `chosen`, and others by their type."""
    values = dict(chosen)
    for field in dataclasses.fields(record):  # type: ignore[arg-type] - every record of rdc is a dataclass
        if field.name not in values:
            kind = str(field.type).split(" | ")[0]
            values[field.name] = () if kind.startswith("tuple") else _VALUES[kind]
    return record(**values)


def _written(fill: Callable[[Callable[[str], None]], None]) -> list[EventExample]:
    lines: list[str] = []
    fill(lines.append)
    found: dict[str, EventExample] = {}
    for line in lines:
        fields = json.loads(line)
        name = fields.pop("event")
        found.setdefault(name, EventExample(name, line.strip(), fields))
    return list(found.values())


class _Run:
    """One run of a verb, which writes its events with `write`."""

    def __init__(self, write: Callable[[str], None], **start: bool | bytes) -> None:
        self.write = JsonOutput(write, _nothing, _zero, **start)
        self.write.start()

    def common(self, *, plan: bool = False) -> None:
        if plan:
            self.write(sample(PlanKnown))
            self.write(sample(ItemChanged, change=">f.st......"))
        self.write(sample(Progressed, phase="compare", done=1, total=2))
        self.write(sample(Problem, code=ExitCode.PARTIAL, message="a.txt: Permission denied"))


def _sync(write: Callable[[str], None]) -> None:
    run = _Run(write)
    run.common(plan=True)
    run.write.finish(sample(SyncReport))


def _check(write: Callable[[str], None]) -> None:
    run = _Run(write)
    run.common()
    run.write(EntryDiffers(b"a.txt", Aspect.CONTENT | Aspect.TIME))
    run.write.finish(sample(CheckReport, exit=ExitCode.DIFFERENT))


def _watch(write: Callable[[str], None]) -> None:
    run = _Run(write)
    run.common(plan=True)
    for event in (InStep, Halted, Resumed, Limited, Disconnected):
        run.write(sample(event))
    run.write.finish(sample(WatchReport))


def _dupes(write: Callable[[str], None]) -> None:
    run = _Run(write, cwd=b"/home/me")
    run.common()
    files = (
        sample(DuplicateFile, path_bytes=b"a.txt", links_bytes=(b"c.txt",)),
        sample(DuplicateFile, path_bytes=b"b.txt"),
    )
    group = sample(DuplicateGroup, files=files)
    directories = (sample(DirectoryGroup, paths_bytes=(b"a", b"b")),)
    summary = sample(DuplicateSummary)
    run.write.finish(sample(DuplicateReport, groups=(group,), summary=summary, directories=directories))


def _similar(write: Callable[[str], None]) -> None:
    run = _Run(write)
    run.common()
    file = sample(SimilarFile, like_bytes=b"b.txt", copies_bytes=(b"c.txt",))
    run.write(sample(SimilarGroup, files=(file,)))
    run.write(file)
    run.write(sample(SimilarFolders, first=b"backup", second=b"old-backup"))
    run.write.finish(sample(SimilarReport, groups=(), summary=sample(SimilarSummary)))


def _similar_text(write: Callable[[str], None]) -> None:
    run = _Run(write)
    run.common()
    first = sample(Document, path_bytes=b"a.jsonl")
    copies = (sample(Document, path_bytes=b"c.txt", row=0),)
    one = sample(
        SimilarDocument,
        document=first,
        like=sample(Document, path_bytes=b"b.jsonl"),
        copies=copies,
        differences=(TextDifference("words before", "new", "old", "words after"),),
    )
    group = sample(DocumentGroup, documents=(one,))
    summary = sample(DocumentSummary)
    run.write.finish(sample(DocumentReport, matches=(one,), groups=(group,), kept=(), summary=summary))


def _dedupe(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=True)
    run.write(sample(Instance, action=Action.SHARE, path_bytes=b"b.txt", source_bytes=b"a.txt"))
    run.common()
    run.write.finish(sample(DedupeReport, journal=None))


def _undo(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.common()
    run.write(sample(UndoItem, action="restored", path_bytes=b"a.txt"))
    run.write(sample(UndoableSync))
    run.write.finish(sample(UndoReport))


def _store(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.write(sample(SnapshotInfo, series=b"data", host=b"host", path_bytes=b"/home/data"))
    run.common()
    run.write.finish(sample(StoreReport, series=b"data"))


def _store_forget(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.common()
    run.write.finish(sample(ForgetReport, forgotten=(3, 4)))


def _store_gc(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.common()
    run.write.finish(sample(GcReport))


def _store_pack(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.common()
    run.write.finish(sample(PackReport))


def _store_verify(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.common()
    run.write.finish(sample(VerifyReport))


def _unite(write: Callable[[str], None]) -> None:
    run = _Run(write, dry_run=False)
    run.write(sample(UniteItem, side="right", action="edited", path_bytes=b"a.txt"))
    conflict = sample(UniteConflict, path_bytes=b"b.txt", about="content")
    run.write(conflict)
    run.common(plan=True)
    run.write(sample(UnitePair, place=b"/mnt/work", conflicts=(conflict,)))
    for event in (United, Halted, Resumed, Limited, Disconnected):
        run.write(sample(event))
    run.write.finish(sample(UniteReport))


def _nothing() -> None:
    """Flush nothing."""


def _zero() -> float:
    """Return a clock that stands."""
    return 0.0


EVENTS: dict[str, Callable[[Callable[[str], None]], None]] = {
    "sync": _sync,
    "check": _check,
    "watch": _watch,
    "dupes": _dupes,
    "similar": _similar,
    "dedupe": _dedupe,
    "undo": _undo,
    "store": _store,
    "unite": _unite,
}
"""Each verb with events, and what writes one of each kind."""

MODES: dict[str, Callable[[Callable[[str], None]], None]] = {
    "similar-text": _similar_text,
    "store-forget": _store_forget,
    "store-gc": _store_gc,
    "store-verify": _store_verify,
    "store-pack": _store_pack,
}
"""The same for options that give a verb events of another kind."""


def events_of(verb: str) -> list[EventExample]:
    """One example of each event of a verb, in the order of a run."""
    return _written((EVENTS | MODES)[verb])


def failure() -> EventExample:
    """Return the last event of a run that could not go on."""

    def fill(write: Callable[[str], None]) -> None:
        JsonOutput(write, _nothing, _zero).fail(RdcError("the connection was lost", code=ExitCode.STREAM))

    return _written(fill)[0]


def events_section(verb: str) -> str:
    """Return the events of one verb: an example line each, and the meaning of its fields."""
    parts = []
    for example in events_of(verb):
        parts += [f"### `{example.name}` {{#{verb}-{example.name}}}", _note(verb, example.name, "event")]
        parts.append(f"```json\n{example.line}\n```")
        rows = [f"| `{name}` | {_note(verb, example.name, name)} |" for name in example.fields if name != "v"]
        if rows:
            parts.append("\n".join(["| field | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _note(verb: str, event: str, field: str) -> str:
    """Return the note about a field: for this verb's event, for the event, or for every event."""
    table = notes("events")
    for section in (table.get(f"{verb}-{event}", {}), table.get(event, {}), table["fields"]):
        if field in section:
            return str(section[field])
    raise MissingNoteError(f"rdc/cli/notes/events.toml: nothing about {field} of {event} of rdc {verb}")
