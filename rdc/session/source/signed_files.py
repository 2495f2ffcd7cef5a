"""Signatures of the source's files: each file is signed once, and cached between requests."""

from __future__ import annotations

from collections import OrderedDict

from rdc.errors import FileChangedError, printable
from rdc.files.base.known_devices import is_unchanged
from rdc.files.root.memory_file import MemoryFile
from rdc.lean.records import dataclass
from rdc.limits.sessions import CACHED_CONTENT_BYTES, CACHED_FILE_BYTES, SOURCE_TREES_BYTES
from rdc.model.entries import Kind
from rdc.session.source.no_file import no_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.session.source.tree_description import Description
    from rdc.signature.tree import SignatureTree
    from rdc.tree.manifest import Entry

__all__ = ["SourceSignature", "SourceSignatures"]

SIGNED_OBJECT_BYTES = 2048
"""Memory in bytes of a cached tree besides its columns, its dictionary entry included. The objects take 1,350
to 2,150 bytes (measured)."""


@dataclass(frozen=True, slots=True)
class SourceSignature:
    """The signature of one version of a file."""

    tree: SignatureTree
    identity: Identity
    memory: int
    """Bytes of memory that it takes."""
    path: bytes


class SourceSignatures:
    """Signatures by row in the manifest.

    The last signatures that fit into SOURCE_TREES_BYTES are cached, but at least one. The content of small
    files is cached too, up to CACHED_CONTENT_BYTES. All answers about a file are about one version. A later
    version raises FileChangedError, or is signed anew if no earlier answer depends on the old one.
    """

    def __init__(self, root: Root, description: Description, signer: FileSigner) -> None:
        self._root = root
        self._description = description
        self._signer = signer
        self._signed: OrderedDict[int, SourceSignature] = OrderedDict()
        self._signed_bytes = 0
        self._contents: dict[int, bytes] = {}
        """Content of small signed files, while there is room."""
        self._contents_bytes = 0

    def __contains__(self, file: int) -> bool:
        """Tells whether the signature of `file` is cached."""
        return file in self._signed

    def entry(self, file: int) -> Entry:
        """Returns the manifest's entry. Raises ProtocolError unless it is a regular file."""
        manifest = self._description.manifest
        entry = manifest.entry(file) if file < len(manifest) else None
        if entry is None or entry.kind != Kind.FILE:
            raise no_file(file)
        return entry

    def open(self, file: int) -> SourceFile:
        """Opens the current version. Raises FileError if it cannot be read."""
        return self._root.open_read(self.entry(file).path)

    def open_again(self, file: int, end: int) -> SourceFile:
        """Opens the signed version, or the current one if no signature is cached.

        Raises FileChangedError if the file changed since it was signed, or has fewer than `end` bytes.
        """
        signed = self._signed.get(file)
        path = self.entry(file).path if signed is None else signed.path
        content = self._contents.get(file)
        source: SourceFile
        if signed is not None and content is not None:
            source = MemoryFile(self._root, path, signed.identity, content)
        else:
            source = self._root.open_read(path)
        if signed is not None and not is_unchanged(signed.identity, source.identity):
            why = "changed while it was synced"
        elif end > source.size:
            why = "shorter than when it was signed"
        else:
            return source
        source.close()
        raise FileChangedError(path, f"{printable(path)}: {why}")

    def signed(self, file: int) -> SourceSignature:
        """Returns the cached signature, or signs the current version. Raises FileError."""
        signed = self._signed.get(file)
        if signed is None:
            with self.open(file) as source:
                signed = self.sign(file, source)
        return signed

    def content(self, file: int) -> bytes:
        """Returns the content of the signed version, or b"" if it is not cached."""
        return self._contents.get(file, b"")

    def sign(self, file: int, source: SourceFile) -> SourceSignature:
        """Signs the open version, unless its signature is cached. Raises FileError."""
        cached = self._signed.get(file)
        if cached is not None and is_unchanged(cached.identity, source.identity):
            return cached
        self.forget(file)
        tree = self._signer.sign(source)
        signed = SourceSignature(tree, source.identity, tree.memory + SIGNED_OBJECT_BYTES, source.path)
        self._signed[file] = signed
        self._signed_bytes += signed.memory
        while self._signed_bytes > SOURCE_TREES_BYTES and len(self._signed) > 1:
            self.forget(next(iter(self._signed)))
        return signed

    def sign_whole(self, file: int, source: SourceFile) -> tuple[SourceSignature, bytes]:
        """Does what `sign` does; also returns the content of a small file, and caches it if there is room."""
        if source.size > CACHED_FILE_BYTES:
            return self.sign(file, source), b""
        spans: list[bytes] = []
        source.on_span = spans.append
        signed = self.sign(file, source)
        content = b"".join(spans)
        if not content and source.size:
            # The catalog knew the tree, so signing did not read the file.
            content = source.pread(0, source.size)
            source.check_unchanged()
        if file not in self._contents and self._contents_bytes + len(content) <= CACHED_CONTENT_BYTES:
            self._contents[file] = content
            self._contents_bytes += len(content)
        return signed, content

    def forget(self, file: int) -> None:
        """Drops signature and content of a file from the cache."""
        signed = self._signed.pop(file, None)
        if signed is not None:
            self._signed_bytes -= signed.memory
        self._contents_bytes -= len(self._contents.pop(file, b""))
