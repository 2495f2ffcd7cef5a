"""Files of the source that the destination asks about: signed once, and remembered between questions."""

from __future__ import annotations

from collections import OrderedDict

from rdc.errors import FileChangedError, printable
from rdc.files.source import HeldContent
from rdc.limits import HELD_CONTENT_BYTES, HELD_FILE_BYTES, SOURCE_TREES_BYTES
from rdc.model.entries import Kind
from rdc.records import dataclass
from rdc.session.description import no_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile
    from rdc.model.entries import Identity
    from rdc.session.description import Description
    from rdc.signature.tree import SignatureTree
    from rdc.tree.manifest import Entry

__all__ = ["AskedFile", "AskedFiles"]

SIGNED_OBJECT_BYTES = 2048
"""Bytes of a remembered tree besides its columns: 1,350 to 2,150 were measured, and the look-up's own."""


@dataclass(frozen=True, slots=True)
class AskedFile:
    """One of them, as it was when it was signed."""

    tree: SignatureTree
    identity: Identity
    memory: int
    """What remembering it takes: small files are many, and mostly objects."""
    path: bytes


class AskedFiles:
    """By their row in the description. Few are asked about at a time: the trees of the last ones that take
    SOURCE_TREES_BYTES are remembered, or one, and of small ones the content, up to HELD_CONTENT_BYTES.

    What is said of a file is said of one version: a later one is a FileChangedError, or is signed anew where
    nothing depends on what was said before.
    """

    def __init__(self, root: Root, description: Description, signer: FileSigner) -> None:
        self._root = root
        self._description = description
        self._signer = signer
        self._signed: OrderedDict[int, AskedFile] = OrderedDict()
        self._signed_bytes = 0
        self._contents: dict[int, bytes] = {}
        """Of signed files that are small, as they were then, while there is room."""
        self._contents_bytes = 0

    def entry(self, file: int) -> Entry:
        """ProtocolError unless it is a listed regular file."""
        manifest = self._description.manifest
        entry = manifest.entry(file) if file < len(manifest) else None
        if entry is None or entry.kind != Kind.FILE:
            raise no_file(file)
        return entry

    def open(self, file: int) -> SourceFile:
        """As it is now."""
        return self._root.open_read(self.entry(file).path)

    def open_again(self, file: int, end: int) -> SourceFile:
        """FileChangedError unless it is the one that was signed, if it is remembered, and has `end` bytes."""
        signed = self._signed.get(file)
        path = self.entry(file).path if signed is None else signed.path
        content = self._contents.get(file)
        source: SourceFile
        if signed is not None and content is not None:
            source = HeldContent(self._root, path, signed.identity, content)
        else:
            source = self._root.open_read(path)
        if signed is not None and source.identity != signed.identity:
            why = "changed while it was synced"
        elif end > source.size:
            why = "shorter than when it was signed"
        else:
            return source
        source.close()
        raise FileChangedError(path, f"{printable(path)}: {why}")

    def signed(self, file: int) -> AskedFile:
        """As it was signed before; now, if that is forgotten."""
        signed = self._signed.get(file)
        if signed is None:
            with self.open(file) as source:
                signed = self.sign(file, source)
        return signed

    def content(self, file: int) -> bytes:
        """All of it, as it was signed; b"" when that is not remembered."""
        return self._contents.get(file, b"")

    def sign(self, file: int, source: SourceFile) -> AskedFile:
        """The version that is open."""
        kept = self._signed.get(file)
        if kept is not None and kept.identity == source.identity:
            return kept
        self.forget(file)
        tree = self._signer.sign(source)
        signed = AskedFile(tree, source.identity, tree.memory + SIGNED_OBJECT_BYTES, source.path)
        self._signed[file] = signed
        self._signed_bytes += signed.memory
        while self._signed_bytes > SOURCE_TREES_BYTES and len(self._signed) > 1:
            self.forget(next(iter(self._signed)))
        return signed

    def sign_whole(self, file: int, source: SourceFile) -> tuple[AskedFile, bytes]:
        """As `sign`, and the content of a small file: remembered with the tree while there is room."""
        if source.size > HELD_FILE_BYTES:
            return self.sign(file, source), b""
        spans: list[bytes] = []
        source.on_span = spans.append
        signed = self.sign(file, source)
        content = b"".join(spans)
        if not content and source.size:
            # Its tree was known.
            content = source.pread(0, source.size)
            source.check_unchanged()
        if file not in self._contents and self._contents_bytes + len(content) <= HELD_CONTENT_BYTES:
            self._contents[file] = content
            self._contents_bytes += len(content)
        return signed, content

    def forget(self, file: int) -> None:
        """Nothing more is going to be asked about it."""
        signed = self._signed.pop(file, None)
        if signed is not None:
            self._signed_bytes -= signed.memory
        self._contents_bytes -= len(self._contents.pop(file, b""))
