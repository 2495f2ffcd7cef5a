"""Similar files and folders as JSON events, one per line, in the form of the events of identical files."""

from __future__ import annotations

from rdc.records import asdict
from rdc.report.json_events import JsonEvents, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import ExitCode
    from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarSummary

__all__ = ["SimilarJson"]


class SimilarJson(JsonEvents):
    """Adds `group`, `match` and `folders` to the events of every command."""

    def group(self, group: SimilarGroup) -> None:
        self.queue("group", {"bytes": group.bytes, "files": [_file(file) for file in group.files]})

    def match(self, file: SimilarFile) -> None:
        self.queue("match", _file(file))

    def folders(self, pair: SimilarFolders) -> None:
        self.queue(
            "folders",
            {
                "overlap": round(pair.overlap, 4),
                "shared": pair.shared,
                "first": {**path_fields(pair.first), "bytes": pair.first_bytes},
                "second": {**path_fields(pair.second), "bytes": pair.second_bytes},
            },
        )

    def finish(self, summary: SimilarSummary, code: ExitCode) -> None:
        self.summary(asdict(summary), code)

    def finish_matches(self, count: int, code: ExitCode) -> None:
        self.summary({"matches": count}, code)


def _file(file: SimilarFile) -> dict[str, Value]:
    fields: dict[str, Value] = {
        **path_fields(file.path),
        "size": file.size,
        "similarity": round(file.similarity, 4),
        "contained": round(file.contained, 4),
        "like": {**path_fields(file.like)},
    }
    if file.copies:
        fields["copies"] = [{**path_fields(copy)} for copy in file.copies]
    return fields
