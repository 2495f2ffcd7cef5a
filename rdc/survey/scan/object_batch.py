"""Objects of a store in a scan: they are read several at a time, and are signed as files are."""

from __future__ import annotations

from array import array

from rdc.catalog.small_files import SmallOutcome, sign_contents
from rdc.catalog.store import SignedFiles
from rdc.errors import FileError
from rdc.files.bulk.read_many import REPLACED, Contents
from rdc.files.objects.object_tree import ListedObject, ObjectTree
from rdc.survey.scan.small_batch import SignedBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.chunking import ChunkParams
    from rdc.survey.scan.found_files import FoundFile
    from rdc.survey.scan.scanned_file import ScannedFile
    from rdc.survey.scan.small_batch import SmallBatch

__all__ = ["fetch_objects", "sign_objects"]


def sign_objects(batch: SmallBatch, tree: ObjectTree, params: ChunkParams) -> SignedBatch:
    """Signs the objects of `batch`, which are of `tree`. Threads may run this in parallel.

    One that cannot be read fails as a file that was replaced. It is then asked for once more, which names
    the reason.
    """
    objects = [_listed(batch.file(row)) for row in range(len(batch))]
    sizes = array("Q", [one.size for one in objects])
    spans: list[bytes] = []
    outcomes = array("i")
    for one, content in zip(objects, tree.read_small(objects), strict=True):
        failed = isinstance(content, FileError)
        outcomes.append(REPLACED if failed else 0)
        spans.append(bytes(one.size) if isinstance(content, FileError) else content)
    ctimes = array("q", bytes(8 * len(objects)))
    rows = array("I", range(len(objects)))
    read, failures = sign_contents(Contents(b"".join(spans), outcomes, ctimes), rows, sizes, params)
    known = SignedFiles(array("I"), read.signatures.chosen([]), array("q"), None)
    return SignedBatch(batch, SmallOutcome(read, known, failures), [], 0)


def fetch_objects(files: Sequence[ScannedFile]) -> None:
    """Reads the contents of those that are objects, several at a time. The files are few megabytes in all."""
    found = [(file, file.found.root) for file in files if isinstance(file.found.root, ObjectTree)]
    at = 0
    while at < len(found):
        tree = found[at][1]
        end = at + 1
        while end < len(found) and found[end][1] is tree:
            end += 1
        contents = tree.read_small([_listed(file.found) for file, _ in found[at:end]])
        for (file, _), content in zip(found[at:end], contents, strict=True):
            file.content = content
        at = end


def _listed(found: FoundFile) -> ListedObject:
    return ListedObject(found.path, found.size, found.inode[1])
