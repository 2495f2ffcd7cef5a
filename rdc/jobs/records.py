"""A job, as the settings file describes it, and the record of its last run."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.model.settings import SettingKind, setting

HOOK_SECONDS = 600
"""The default time limit of a hook."""

HOOK_SECONDS_MOST = 7 * 86_400


class JobKind(Enum):
    """The verb that a job runs."""

    SYNC = "sync"
    UNITE = "unite"
    STORE = "store"


class JobSettings(Record):
    """The keys of a table [jobs.NAME], as they are in the file. rdc/jobs/JOBS.md says what each means."""

    kind: str = setting(SettingKind.TEXT, "sync")
    source: tuple[str, ...] = setting(SettingKind.TEXTS, (), required=True)
    destination: str = setting(SettingKind.TEXT, "", required=True)
    exclude: tuple[str, ...] = setting(SettingKind.TEXTS, ())
    delete: bool = setting(SettingKind.FLAG, False)
    keep_undo: str = setting(SettingKind.SCALAR, "")
    rdcignore: bool = setting(SettingKind.FLAG, False)
    name: str = setting(SettingKind.TEXT, "")
    options: tuple[str, ...] = setting(SettingKind.TEXTS, ())
    schedule: str = setting(SettingKind.TEXT, "")
    before: tuple[str, ...] = setting(SettingKind.TEXTS, ())
    after: tuple[str, ...] = setting(SettingKind.TEXTS, ())
    on_failure: tuple[str, ...] = setting(SettingKind.TEXTS, ())
    hook_seconds: int = setting(SettingKind.NUMBER, HOOK_SECONDS, least=1, most=HOOK_SECONDS_MOST)


class Job(Record):
    """A checked job. Its paths are absolute, or on another host."""

    name: str
    kind: JobKind
    sources: tuple[str, ...]
    destination: str
    settings: JobSettings

    @property
    def words(self) -> list[str]:
        """The words after the verb that mean the same."""
        chosen = self.settings
        words = ["put"] if self.kind is JobKind.STORE else []
        words += [f"--exclude={pattern}" for pattern in chosen.exclude]
        words += ["--rdcignore"] if chosen.rdcignore else []
        words += ["--delete"] if chosen.delete else []
        words += [f"--keep-undo={chosen.keep_undo}"] if chosen.keep_undo else []
        words += [f"--name={chosen.name}"] if chosen.name else []
        return [*words, *chosen.options, "--", *self.sources, self.destination]


class Figure(Record):
    """A number that a run reports."""

    name: str
    """One of FIGURES."""
    value: int


FIGURES = {
    "created_entries": "Entries that the run created at the destination.",
    "updated_entries": "Entries that the run updated at the destination.",
    "deleted_entries": "Entries that the run deleted at the destination.",
    "unchanged_entries": "Entries that were identical already.",
    "changed_entries": "Entries that the run changed on both sides.",
    "conflicts": "Conflicts that remain.",
    "entries": "Entries of the snapshot.",
    "content_bytes": "Size of new and updated files.",
    "sent_bytes": "Bytes on the connection, in both directions.",
    "stored_bytes": "Bytes that the store grew by.",
    "errors": "Entries that could not be read or written.",
}
"""The meaning of each figure. Lists and metrics have this order."""

_OF_REPORT: dict[JobKind, dict[str, tuple[str, ...]]] = {
    JobKind.SYNC: {
        "created_entries": ("created",),
        "updated_entries": ("updated",),
        "deleted_entries": ("deleted",),
        "unchanged_entries": ("unchanged",),
        "content_bytes": ("content_bytes",),
        "sent_bytes": ("bytes_sent", "bytes_received"),
        "errors": ("errors",),
    },
    JobKind.UNITE: {
        "changed_entries": ("left", "right"),
        "content_bytes": ("left_bytes", "right_bytes"),
        "conflicts": ("conflicts",),
        "errors": ("held",),
    },
    JobKind.STORE: {
        "entries": ("entries",),
        "content_bytes": ("new_bytes",),
        "stored_bytes": ("stored",),
        "errors": ("errors",),
    },
}
"""The fields of a verb's report that add up to a figure."""


def figures_of(kind: JobKind, report: object) -> tuple[Figure, ...]:
    """Return the figures of a verb's report."""
    return tuple(
        Figure(name, sum(int(getattr(report, field)) for field in fields))
        for name, fields in _OF_REPORT[kind].items()
    )


class Outcome(Record):
    """The end of a verb that a job ran."""

    code: ExitCode
    figures: tuple[Figure, ...] = ()


class JobRun(Record):
    """The last run of a job."""

    job: str
    started: int
    """The start, in seconds since 1970."""
    seconds: float
    """Its duration, hooks included."""
    code: int
    """Its exit code."""
    succeeded: int = 0
    """The start of the last run with exit code 0; 0: there was none."""
    figures: tuple[Figure, ...] = ()
