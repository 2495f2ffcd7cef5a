"""Roots of the source's files, asked for in any number: of small ones at once, of the others singly."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.opened import most_opened
from rdc.limits import OPENED_FILES_LEAST, ROOTS_REMEMBERED
from rdc.model.entries import Kind
from rdc.protocol.messages import FileFailed
from rdc.records import dataclass
from rdc.session.commands import Send
from rdc.session.description import no_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.session.asked_files import AskedFiles
    from rdc.session.commands import Conversation
    from rdc.session.description import Description
    from rdc.session.root_memory import RootMemory

__all__ = ["FileRoots", "Rooted"]


@dataclass(frozen=True, slots=True)
class Rooted:
    """Files and, one each, their sizes in bytes and their roots."""

    files: list[int]
    sizes: list[int]
    roots: list[bytes]


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
        found = Rooted([], [], [])
        most = most_opened()
        for at in range(0, len(files), most):
            part = files[at : at + most]
            sizes, roots = self._many(part, keep=keep)
            if all(roots):
                found.files.extend(part)
                found.sizes.extend(sizes)
                found.roots.extend(roots)
                continue
            for file, size, root in zip(part, sizes, roots, strict=True):
                if not root:
                    try:
                        with self._files.open(file) as source:
                            size, root = source.size, self._one(file, source)  # noqa: PLW2901
                    except FileError as error:
                        yield Send(FileFailed(file, error.code, str(error)), round_)
                        continue
                found.files.append(file)
                found.sizes.append(size)
                found.roots.append(root)
        return found

    def _many(self, files: Sequence[int], *, keep: bool) -> tuple[list[int], list[bytes]]:
        """Sizes and roots of those of these files that go together; b"" for a root of the others."""
        if len(files) < OPENED_FILES_LEAST:
            return [0] * len(files), [b""] * len(files)
        from rdc.session.many_roots import many_roots

        manifest = self._description.manifest
        entries, kinds = len(manifest), manifest.kinds
        for file in files:
            if file >= entries or kinds[file] != Kind.FILE:
                raise no_file(file)
        if self._read is None and not keep and len(manifest) <= ROOTS_REMEMBERED:
            from rdc.session.root_memory import RootMemory

            self._read = RootMemory(len(manifest))
        keep, memory = keep or self._read is None, None if keep else self._read
        with many_roots(self._root, manifest, files, self._signer, keep=keep, memory=memory) as found:
            return found.sizes, found.roots

    def _one(self, file: int, source: SourceFile) -> bytes:
        """One that the catalog knows spares the chunk list too."""
        known = self._signer.catalog.root(source, self._signer.params)
        return known or self._files.sign(file, source).tree.root
