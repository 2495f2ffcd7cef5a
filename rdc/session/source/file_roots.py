"""Roots of the source's files: small files are read in bulk, the others one by one."""

from __future__ import annotations

from array import array

from rdc.errors import FileError
from rdc.files.bulk.open_many import most_opened
from rdc.kernel import take_rows
from rdc.lean.records import dataclass
from rdc.limits.sessions import OPENED_FILES_LEAST, ROOTS_REMEMBERED
from rdc.model.entries import Kind
from rdc.protocol.messages import FileFailed
from rdc.session.runtime.commands import Send
from rdc.session.source.no_file import no_file
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.session.runtime.commands import Conversation
    from rdc.session.source.signed_files import SourceSignatures
    from rdc.session.source.tree_description import Description
    from rdc.session.trees.digest_cache import DigestCache
    from rdc.session.trees.small_file_digests import SmallFileDigests

__all__ = ["FileRoots", "Rooted"]

_NO_FILE = bytes(kind != Kind.FILE for kind in range(256))
"""A table for bytes.translate: 1 for every kind that is no regular file."""


@dataclass(frozen=True, slots=True)
class Rooted:
    """Files with their roots."""

    files: list[int]
    sizes: list[int]
    """Bytes of each file."""
    roots: bytearray
    """DIGEST_BYTES per file, back to back."""


class FileRoots:
    """Finds roots of files of one description."""

    def __init__(
        self, root: Root, description: Description, signer: FileSigner, files: SourceSignatures
    ) -> None:
        """`files`: signs those that are not read in bulk."""
        self._root = root
        self._description = description
        self._signer = signer
        self._files = files
        self._read: DigestCache | None = None
        """Digests of small files that do not go into the catalog."""

    def find(self, files: Sequence[int], round_: int, *, keep: bool) -> Conversation[Rooted]:
        """Returns the roots of all `files` that can be read, and sends FileFailed for the others.

        `keep`: small files go into the catalog too. Raises ProtocolError for entries that are no files.
        """
        found = Rooted([], [], bytearray())
        most = most_opened()
        for at in range(0, len(files), most):
            part = files[at : at + most]
            many = self._many(part, keep=keep)
            if not many.missing:
                found.files.extend(part)
                found.sizes.extend(many.sizes)
                found.roots.extend(many.roots)
                continue
            missing = set(many.missing)
            for row, file in enumerate(part):
                size, root = many.sizes[row], many.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]
                if row in missing:
                    try:
                        with self._files.open(file) as source:
                            size, root = source.size, self._one(file, source)
                    except FileError as error:
                        yield Send(FileFailed(file, error.code, str(error)), round_)
                        continue
                found.files.append(file)
                found.sizes.append(size)
                found.roots.extend(root)
        return found

    def _many(self, files: Sequence[int], *, keep: bool) -> SmallFileDigests:
        """Reads small files in bulk and returns their sizes and roots. Other files are `missing`."""
        from rdc.session.trees.small_file_digests import SmallFileDigests, small_file_digests

        if len(files) < OPENED_FILES_LEAST:
            return SmallFileDigests.none(len(files), [0] * len(files))
        manifest = self._description.manifest
        entries, kinds = len(manifest), manifest.kinds
        if files[-1] >= entries or any(take_rows(kinds, 1, array("Q", files)).translate(_NO_FILE)):
            raise no_file(next(file for file in files if file >= entries or kinds[file] != Kind.FILE))
        if self._read is None and not keep and len(manifest) <= ROOTS_REMEMBERED:
            from rdc.session.trees.digest_cache import DigestCache

            self._read = DigestCache(len(manifest))
        keep, memory = keep or self._read is None, None if keep else self._read
        with small_file_digests(self._root, manifest, files, self._signer, keep=keep, memory=memory) as found:
            return found

    def _one(self, file: int, source: SourceFile) -> bytes:
        """Returns the root of one file, from the catalog if it knows the file."""
        known = self._signer.catalog.root(source, self._signer.params)
        return known or self._files.sign(file, source).tree.root
