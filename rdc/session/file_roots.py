"""Roots of the source's files, asked for in any number: of small ones at once, of the others singly."""

from __future__ import annotations

from array import array

from rdc.errors import FileError
from rdc.files.opened import most_opened
from rdc.kernel import take_rows
from rdc.limits import OPENED_FILES_LEAST, ROOTS_REMEMBERED
from rdc.model.entries import Kind
from rdc.protocol.messages import FileFailed
from rdc.records import dataclass
from rdc.session.commands import Send
from rdc.session.description import no_file
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.session.asked_files import AskedFiles
    from rdc.session.commands import Conversation
    from rdc.session.description import Description
    from rdc.session.many_roots import ManyRoots
    from rdc.session.root_memory import RootMemory

__all__ = ["FileRoots", "Rooted"]

_NO_FILE = bytes(kind != Kind.FILE for kind in range(256))
"""By kind, for bytes.translate."""


@dataclass(frozen=True, slots=True)
class Rooted:
    """Files and, one each, their sizes in bytes and their roots."""

    files: list[int]
    sizes: list[int]
    roots: bytearray
    """DIGEST_BYTES each."""


class FileRoots:
    """Of files of one description; `files`: where those that are looked at singly are signed."""

    def __init__(self, root: Root, description: Description, signer: FileSigner, files: AskedFiles) -> None:
        self._root = root
        self._description = description
        self._signer = signer
        self._files = files
        self._read: RootMemory | None = None
        """Of small files that the catalog is not told of."""

    def find(self, files: Sequence[int], round_: int, *, keep: bool) -> Conversation[Rooted]:
        """Those of `files` that can be read; of the others it is said that they cannot. `keep`: the catalog
        is told of the small ones too."""
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

    def _many(self, files: Sequence[int], *, keep: bool) -> ManyRoots:
        """Sizes and roots of those of these files that go together; closed."""
        from rdc.session.many_roots import ManyRoots, many_roots

        if len(files) < OPENED_FILES_LEAST:
            return ManyRoots.none(len(files), [0] * len(files))
        manifest = self._description.manifest
        entries, kinds = len(manifest), manifest.kinds
        if files[-1] >= entries or any(take_rows(kinds, 1, array("Q", files)).translate(_NO_FILE)):
            raise no_file(next(file for file in files if file >= entries or kinds[file] != Kind.FILE))
        if self._read is None and not keep and len(manifest) <= ROOTS_REMEMBERED:
            from rdc.session.root_memory import RootMemory

            self._read = RootMemory(len(manifest))
        keep, memory = keep or self._read is None, None if keep else self._read
        with many_roots(self._root, manifest, files, self._signer, keep=keep, memory=memory) as found:
            return found

    def _one(self, file: int, source: SourceFile) -> bytes:
        """One that the catalog knows spares the chunk list too."""
        known = self._signer.catalog.root(source, self._signer.params)
        return known or self._files.sign(file, source).tree.root
