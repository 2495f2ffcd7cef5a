"""The events of --json: each writer of rdc.report writes one of each kind, and the fields are read off."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from rdc.errors import ExitCode, RdcError
from rdc.model.check import Aspect, CheckReport, EntryDiffers
from rdc.model.documents import Document, DocumentGroup, DocumentSummary, SimilarDocument
from rdc.model.duplicates import DuplicateFile, DuplicateGroup, DuplicateSummary
from rdc.model.instances import Action, DedupeReport, Instance
from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarSummary
from rdc.model.sync_report import SyncReport
from rdc.model.undo import UndoableSync, UndoItem, UndoReport
from rdc.model.watch import Disconnected, Halted, InStep, Limited, Resumed, WatchReport
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.check_json import CheckJson
from rdc.report.dedupe_json import DedupeJson
from rdc.report.documents.events import DocumentsJson
from rdc.report.duplicates_json import DuplicatesJson
from rdc.report.json_events import JsonEvents
from rdc.report.similar_json import SimilarJson
from rdc.report.sync_json import SyncJson
from rdc.report.undo.events import UndoJson
from rdc.report.watch_json import WatchJson
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
    """A record with a value in each field: those of `chosen`, and others by their type."""
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


def _common(events: JsonEvents | WatchJson, *, plan: bool = False) -> None:
    tell = events.report if isinstance(events, WatchJson) else events
    if plan:
        tell(sample(PlanKnown))
        tell(sample(ItemChanged, change=">f.st......"))
    tell(sample(Progressed, phase="compare", done=1, total=2))
    tell(sample(Problem, code=ExitCode.PARTIAL, message="a.txt: Permission denied"))


def _sync(write: Callable[[str], None]) -> None:
    events = SyncJson(write, _nothing, _zero)
    events.start()
    _common(events, plan=True)
    events.finish(sample(SyncReport))


def _check(write: Callable[[str], None]) -> None:
    events = CheckJson(write, _nothing, _zero)
    events.start()
    _common(events)
    events.differs(EntryDiffers(b"a.txt", Aspect.CONTENT | Aspect.TIME))
    events.finish(sample(CheckReport, exit=ExitCode.DIFFERENT))


def _watch(write: Callable[[str], None]) -> None:
    events = WatchJson(write, _nothing, _zero)
    events.start()
    _common(events, plan=True)
    for event in (InStep, Halted, Resumed, Limited, Disconnected):
        events.emit(sample(event))
    events.finish(sample(WatchReport))


def _dupes(write: Callable[[str], None]) -> None:
    events = DuplicatesJson(write, _nothing, _zero)
    events.start(b"/home/me")
    _common(events)
    files = (sample(DuplicateFile, path=b"a.txt", links=(b"c.txt",)), sample(DuplicateFile, path=b"b.txt"))
    events.group(sample(DuplicateGroup, files=files))
    events.finish(sample(DuplicateSummary), ExitCode.OK)


def _similar(write: Callable[[str], None]) -> None:
    events = SimilarJson(write, _nothing, _zero)
    events.start()
    _common(events)
    file = sample(SimilarFile, like=b"b.txt", copies=(b"c.txt",))
    events.group(sample(SimilarGroup, files=(file,)))
    events.match(file)
    events.folders(sample(SimilarFolders, first=b"backup", second=b"old-backup"))
    events.finish(sample(SimilarSummary), ExitCode.OK)


def _similar_text(write: Callable[[str], None]) -> None:
    events = DocumentsJson(write, _nothing, _zero)
    events.start()
    _common(events)
    first = sample(Document, path=b"a.jsonl")
    copies = (sample(Document, path=b"c.txt", row=0),)
    one = sample(SimilarDocument, document=first, like=sample(Document, path=b"b.jsonl"), copies=copies)
    events.match(one)
    events.group(sample(DocumentGroup, documents=(one,)))
    events.finish(sample(DocumentSummary), ExitCode.OK)


def _dedupe(write: Callable[[str], None]) -> None:
    events = DedupeJson(write, _nothing, _zero, dry_run=True)
    events.start()
    events(sample(Instance, action=Action.SHARE, path=b"b.txt", source=b"a.txt"))
    _common(events)
    events.finish(sample(DedupeReport, journal=None), None)


def _undo(write: Callable[[str], None]) -> None:
    events = UndoJson(write, _nothing, _zero, dry_run=False)
    events.start()
    events(sample(UndoItem, action="restored", path=b"a.txt"))
    events(sample(Problem, code=ExitCode.PARTIAL, message="b.txt: newer work"))
    events.listed((sample(UndoableSync),))
    events.finish(sample(UndoReport))


def _nothing() -> None:
    """Flushes nothing."""


def _zero() -> float:
    """A clock that stands."""
    return 0.0


EVENTS: dict[str, Callable[[Callable[[str], None]], None]] = {
    "sync": _sync,
    "check": _check,
    "watch": _watch,
    "dupes": _dupes,
    "similar": _similar,
    "dedupe": _dedupe,
    "undo": _undo,
}
"""Each verb with events, and what writes one of each kind."""

MODES: dict[str, Callable[[Callable[[str], None]], None]] = {"similar-text": _similar_text}
"""The same for options that give a verb events of another kind."""


def events_of(verb: str) -> list[EventExample]:
    """One example of each event of a verb, in the order of a run."""
    return _written((EVENTS | MODES)[verb])


def failure() -> EventExample:
    """The last event of a run that could not go on."""

    def fill(write: Callable[[str], None]) -> None:
        JsonEvents(write, _nothing, _zero).fail(RdcError("the connection was lost", code=ExitCode.STREAM))

    return _written(fill)[0]


def events_section(verb: str) -> str:
    """The events of one verb: an example line each, and the meaning of its fields."""
    parts = []
    for example in events_of(verb):
        parts += [f"### `{example.name}` {{#{verb}-{example.name}}}", _note(verb, example.name, "event")]
        parts.append(f"```json\n{example.line}\n```")
        rows = [f"| `{name}` | {_note(verb, example.name, name)} |" for name in example.fields if name != "v"]
        if rows:
            parts.append("\n".join(["| field | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _note(verb: str, event: str, field: str) -> str:
    """What docs/notes says of a field: for this verb's event, for the event, or for every event."""
    table = notes("events")
    for section in (table.get(f"{verb}-{event}", {}), table.get(event, {}), table["fields"]):
        if field in section:
            return str(section[field])
    raise MissingNoteError(f"rdc/cli/notes/events.toml: nothing about {field} of {event} of rdc {verb}")
