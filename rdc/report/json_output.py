"""Events as JSON, one per line, for scripts. The fields are a stable interface, versioned by `v`.

An event is made of a record of rdc.model or rdc.progress by the names of its fields. `EVENTS` declares the
name of each event, and its fields where they are not those of the record, in their order.
"""

from __future__ import annotations

import base64
import json
from operator import attrgetter

from rdc.errors import FileError
from rdc.lean.enums import Enum
from rdc.lean.records import Record, field_names
from rdc.progress import Problem, Progressed
from rdc.report.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from rdc.errors import RdcError

    Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | None


EVENT_VERSION = 1
"""`v` of each event. Within one version, fields may be added but never renamed or removed."""

PROGRESS_INTERVAL = 0.2
"""Seconds between progress events of one phase. Five per second suit any display and cost nothing."""

EVENTS: dict[str, tuple[str, str]] = {
    # Events of several jobs.
    "Problem": ("error", ""),
    "Progressed": ("progress", ""),
    # A sync, and a watch, which consists of syncs.
    "PlanKnown": ("plan", ""),
    "ItemChanged": ("item", "change path"),
    "SyncReport": (
        "summary",
        "files changed deleted moved bytes_sent bytes_received literal_bytes reused_bytes round_trips"
        " bytes_by_purpose=by_purpose created updated unchanged content_bytes",
    ),
    "InStep": ("in_step", ""),
    "Halted": ("halted", "message=reason"),
    "Resumed": ("resumed", ""),
    "Limited": ("limited", "message=reason seconds"),
    "Disconnected": ("disconnected", "message=reason seconds"),
    "WatchReport": ("stopped", ""),
    "EntryDiffers": ("difference", "aspects path"),
    "CheckReport": (
        "summary",
        "entries different missing extra files bytes=total_bytes files_compared bytes_compared bytes_sent"
        " bytes_received round_trips",
    ),
    "UndoItem": ("item", ""),
    "UndoableSync": ("undoable", "number began=seconds entries bytes complete left_alone"),
    "UniteItem": ("item", "side action path target copied"),
    "UniteConflict": ("conflict", "path about left_size right_size left_mtime_ns right_mtime_ns"),
    "United": ("united", ""),
    "UnitePair": ("pair", "place last=seconds entries interrupted rules conflicts"),
    "UniteReport": ("summary", "left right left_bytes right_bytes entries conflicts held first"),
    "UndoReport": ("summary", "number restored removed moved changed left_alone older"),
    # Stores.
    "SnapshotInfo": (
        "snapshot",
        "number began=seconds series host path entries files bytes stored alone problems?",
    ),
    "StoreReport": (
        "summary",
        "number series entries files bytes files_read bytes_read new_bytes stored deltas errors",
    ),
    "ForgetReport": ("summary", "forgotten kept applied"),
    "GcReport": ("summary", "packs freed written snapshots"),
    "PackReport": ("summary", "number base? bytes frames"),
    "VerifyReport": ("summary", "snapshots packs chunks frames_read bytes_read damaged"),
    # Searches.
    "DuplicateGroup": ("group", "size waste files"),
    "DuplicateFile": ("", "path links? covered?"),
    "DirectoryGroup": ("directories", "files bytes waste paths"),
    "DuplicateReport": ("summary", "*summary"),
    "SimilarGroup": ("group", "bytes files"),
    "SimilarFile": ("match", "path size similarity contained like.path=like copies?"),
    "SimilarFolders": (
        "folders",
        "overlap shared first.path=first first.bytes=first_bytes second.path=second"
        " second.bytes=second_bytes",
    ),
    "SimilarReport": ("summary", "*summary"),
    "DocumentGroup": ("group", "count documents"),
    "SimilarDocument": (
        "match",
        "*document size=document.size resemblance estimate like copies? differences?",
    ),
    "Document": ("", "path row?"),
    "DocumentReport": ("summary", "*summary"),
    # Deduplication, and the removal of duplicates.
    "Instance": ("item", "action path source bytes won perhaps compressed held destination?"),
    "DedupeReport": (
        "summary",
        "groups files bytes won perhaps compressed held already skipped errors capped journal!",
    ),
    # A scan, which is one document of its own: rdc/survey/report/scan.schema.json.
    "ScanReport": (
        "",
        "paths files bytes allocated_bytes hardlinks holes_bytes already_shared_bytes duplicate_groups"
        " duplicate_bytes coverage levels attribution directories types overlaps similar identical ages"
        " growth errors more_errors exit",
    ),
    "LevelSummary": (
        "",
        "name mean_bytes chunks bytes unique_chunks unique_bytes ratio compressed_bytes! compressed_low!"
        " compressed_high! exact low high sizes copies",
    ),
}
"""The name of the event and its fields, by the name of the record; "": all fields of the record.

"name=field" renames a field or property, "name.key=field" puts it into an object "name", and "*field" stands
for the fields of a record in that field. A field that is None is left out; in front of a "?" also one that is
empty or 0, and in front of a "!" none.
"""

_PATHS = frozenset(("path", "paths", "target", "source", "like", "links", "copies"))
"""Properties that are text for a field with "_bytes" at its end."""

_RESULTS = {
    "DuplicateReport": ("directories", "groups"),
    "SimilarReport": ("matches", "folders", "groups"),
    "DocumentReport": ("matches", "groups"),
}
"""Fields of reports whose items are events in front of the summary."""

_MANY = {"item", "difference", "group", "match", "folders", "directories"}
"""Events that may come by the million. Each is written with the next event of another kind, which saves a
flush for each."""

_PLACES = {
    "seconds": 3,
    "similarity": 4,
    "contained": 4,
    "overlap": 4,
    "resemblance": 4,
    "estimate": 4,
    "ratio": 6,
    "mean_bytes": 1,
}
"""Decimal places, by the name of a field."""

_AS_TEXT: dict[str, Callable[[Any], str]] = {
    "aspects": lambda aspects: " ".join(aspects.names),
    "journal": lambda path: (path or b"").decode("utf-8", "replace"),
}
"""Fields that are text in events and something else in their records."""


class _Field(Record):
    """One field of an event."""

    name: str
    """The key, or "" for all fields of the record in this field."""
    inside: str
    """The object with the key; "" for the event itself."""
    read: Callable[[object], Any]
    optional: bool
    nullable: bool


_FIELDS: dict[type, tuple[_Field, ...]] = {}
"""The fields of each class of records that was written."""


def json_line(event: str, **fields: Value) -> str:
    """Return one event as a line of ASCII without control characters, whatever its strings contain."""
    text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
    # JSON allows a raw DEL, which a terminal may interpret. It can only occur inside a string.
    return text.replace("\x7f", "\\u007f") + "\n"


def path_fields(path: bytes, name: str = "path") -> dict[str, Value]:
    """Return `path`, and `path_b64` if the path is not UTF-8, since `path` then has replacement characters.
    `name` replaces "path" in both keys."""
    try:
        return {name: path.decode("utf-8")}
    except UnicodeDecodeError:
        encoded = base64.b64encode(path).decode("ascii")
        return {name: path.decode("utf-8", "replace"), f"{name}_b64": encoded}


def json_fields(record: object) -> dict[str, Value]:
    """Return the fields of a record as an event has them."""
    fields = _FIELDS.get(type(record))
    if fields is None:
        fields = _FIELDS[type(record)] = _read_fields(type(record))
    found: dict[str, Value] = {}
    inside: dict[str, dict[str, Value]] = {}
    for field in fields:
        value = field.read(record)
        if (value is None and not field.nullable) or (field.optional and not value):
            continue
        if not field.name:
            found |= json_fields(value)
            continue
        written = _written(field.name, value)
        if not field.inside:
            found |= written
        else:
            found[field.inside] = inside.setdefault(field.inside, {})
            inside[field.inside] |= written
    return found


def _read_fields(record: type) -> tuple[_Field, ...]:
    found = []
    names = field_names(record)
    for text in EVENTS.get(record.__name__, ("", ""))[1].split() or map(_event_key, names):
        key, renamed, source = text.rstrip("?!").partition("=")
        inside, _, name = key.rpartition(".")
        source = source if renamed else key.removeprefix("*")
        name = "" if key.startswith("*") else name
        # A path is text to a program; an event takes its bytes.
        source = f"{source}_bytes" if f"{source}_bytes" in names and source not in names else source
        found.append(_Field(name, inside, attrgetter(source), text.endswith("?"), text.endswith("!")))
    return tuple(found)


def _event_key(field: str) -> str:
    """Return the key of a field: "path" for `path_bytes`."""
    stem = field.removesuffix("_bytes")
    return stem if stem in _PATHS else field


def _written(name: str, value: Any) -> dict[str, Value]:
    """Return one field, which for a path may be two."""
    if name in _AS_TEXT:
        return {name: _AS_TEXT[name](value)}
    if isinstance(value, bytes):
        return path_fields(value, name)
    if name in _PLACES:
        return {name: round(value, _PLACES[name])}
    return {name: _value(value)}


def _value(value: Any) -> Value:
    if isinstance(value, Enum):
        found: Value = value.value
        return found
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return path_fields(value)
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if isinstance(value, dict):
        return {str(_value(key)): _value(one) for key, one in value.items()}
    return json_fields(value)


class JsonOutput(Output):
    """The events of one job: `start` comes first, a summary or an `error` last."""

    def __init__(
        self,
        write: Callable[[str], None],
        flush: Callable[[], None],
        clock: Callable[[], float],
        **start: bool | bytes,
    ) -> None:
        """`clock` returns seconds and never goes back. `start`: the fields of the first event."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._start = start
        self._began = clock()
        self._progress_at: dict[str, float] = {}
        self._done: dict[str, int] = {}

    def start(self) -> None:
        fields: dict[str, Value] = {}
        for name, value in self._start.items():
            fields |= _written(name, value)
        self._emit("start", fields)

    def __call__(self, event: object, /) -> None:
        """Write an event of any job. What is no record of an event is ignored."""
        name, _ = EVENTS.get(type(event).__name__, ("", ""))
        if not name or (isinstance(event, Progressed) and not self._is_due(event)):
            return
        self._emit(name, json_fields(event))

    def finish(self, report: Any) -> None:
        """Write the results of the report, then its totals."""
        kind = type(report).__name__
        for results in _RESULTS.get(kind, ()):
            for one in getattr(report, results):
                self(one)
        # A ranking has no summary.
        fields = json_fields(report) or {"matches": len(report.matches)}
        fields["seconds"] = round(self._clock() - self._began, 3)
        if hasattr(report, "exit"):
            fields["exit"] = int(report.exit)
        self._emit(EVENTS[kind][0], fields)

    def fail(self, error: RdcError) -> None:
        """Write the last event of a run that has no report."""
        self(Problem(error.code, error.path_bytes if isinstance(error, FileError) else b"", str(error)))

    def _emit(self, event: str, fields: dict[str, Value]) -> None:
        self._write(json_line(event, **fields))
        if event not in _MANY:
            self._flush()

    def _is_due(self, event: Progressed) -> bool:
        """Progress is written at most every PROGRESS_INTERVAL, and at the end of a phase. It never goes
        back."""
        now = self._clock()
        last = self._progress_at.get(event.phase)
        complete = event.total is not None and event.done >= event.total
        if last is not None and now - last < PROGRESS_INTERVAL and not complete:
            return False
        if event.done <= self._done.get(event.phase, -1):
            return False
        self._progress_at[event.phase] = now
        self._done[event.phase] = event.done
        return True
