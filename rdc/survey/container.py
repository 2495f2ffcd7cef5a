"""Files of sections: parts of scans and of documents, and the lists of slices.

A file begins with eight bytes, its kind and version. A section is a tag of four bytes, its sizes, the
BLAKE3-256 of tag and stored bytes, and the stored bytes. The section LAST ends a file. A reader checks a
section before it uses it, and its caller bounds each size before anything is allocated.
"""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import ExitCode, RdcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from struct import Struct
    from typing import BinaryIO

MAGIC_BYTES = 8
"""Bytes of the kind and the version, which is the last one."""


class PartError(RdcError):
    """A file that should be a part is not one, or is damaged."""

    code = ExitCode.STREAM


def section(head: Struct, tag: bytes, sizes: Sequence[int], spans: Sequence[bytes]) -> Iterator[bytes]:
    """Encode a section of these stored bytes. `head`: of the tag, the sizes and the digest."""
    digest = blake3(tag)
    for span in spans:
        digest.update(span)
    yield head.pack(tag, *sizes, digest.digest())
    yield from spans


class SectionReader:
    """Reads one file, section by section."""

    def __init__(self, stream: BinaryIO, name: str, head: Struct, verb: str) -> None:
        """`name`: the file in messages. `verb`: what makes it again."""
        self.stream = stream
        self.name = name
        self.magic = stream.read(MAGIC_BYTES)
        self.at = len(self.magic)
        """The place of damage, for its message. The caller counts on."""
        self.head_bytes = head.size
        self.digest = b""
        """The digest of the section that was begun."""
        self._head = head
        self._verb = verb

    def begin(self) -> tuple[bytes, list[int]]:
        """Return the tag and the sizes of the next section. Raises PartError at the end of the file."""
        head = self.stream.read(self._head.size)
        if len(head) < self._head.size:
            raise self.damaged("more sections", "the end of the file")
        tag, *sizes, self.digest = self._head.unpack(head)
        return tag, sizes

    def stored(self, tag: bytes, size: int) -> bytes:
        """Return the stored bytes of the section that was begun. Raises PartError for others."""
        content = self.stream.read(size)
        if len(content) < size or blake3(tag + content).digest() != self.digest:
            raise self.damaged("a section that has its digest", "other bytes")
        return content

    def check_end(self) -> None:
        """Raise PartError unless the file ends here."""
        if self.stream.read(1):
            raise self.damaged("nothing behind the last section", "more bytes")

    def damaged(self, expected: str, found: str) -> PartError:
        """Return the error for damage."""
        return PartError(
            f"{self.name}: damaged at byte {self.at}: expected {expected}, found {found};"
            f" {self._verb} again on the machine it is from"
        )
