"""Identical files as JSON events, one per line."""

from __future__ import annotations

from rdc.records import asdict
from rdc.report.json_events import JsonEvents, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import ExitCode
    from rdc.model.duplicates import DuplicateFile, DuplicateGroup, DuplicateSummary

__all__ = ["DuplicatesJson"]


class DuplicatesJson(JsonEvents):
    """Adds `group` to the events of every command. `start` names the directory that relative names refer
    to."""

    def start(self, directory: bytes | None = None) -> None:
        """`directory`: an absolute path; None if it has no name any more."""
        self.emit("start", **({} if directory is None else path_fields(directory, "cwd")))

    def group(self, group: DuplicateGroup) -> None:
        files = [_file(file) for file in group.files]
        self.queue("group", {"size": group.size, "waste": group.waste, "files": files})

    def finish(self, summary: DuplicateSummary, code: ExitCode) -> None:
        self.summary(asdict(summary), code)


def _file(file: DuplicateFile) -> dict[str, Value]:
    fields: dict[str, Value] = {**path_fields(file.path)}
    if file.links:
        fields["links"] = [{**path_fields(link)} for link in file.links]
    return fields
