"""Contents that the source sent whole: a later file with equal content refers to the first one."""

from __future__ import annotations

from blake3 import blake3

from rdc.lean.records import dataclass
from rdc.limits.sessions import EQUAL_FILES
from rdc.session.source.holes import digest_of, has_holes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.source_file import SourceFile

__all__ = ["SentContents", "SentFile", "sample_of"]

EQUAL_BYTES = 64 << 10
"""Smaller files are sent again: the compressed stream remembers much of the first transfer."""

SAMPLE_BYTES = 4096
"""Bytes of a sample at a file's head, middle and tail. Files of one size with equal samples are nearly always
equal, so hardly any is read twice in vain."""

SAMPLE_DIGEST_BYTES = 16

EQUAL_SAMPLES = 4
"""The number of files remembered per sample, all with different content."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that was sent."""

    file: int
    digest: bytes
    """BLAKE3 of its content, or its HollowDigest, 32 bytes."""
    hollow: bool
    """It was sent with Holes."""


class SentContents:
    """The first EQUAL_FILES files that were sent in messages of their own."""

    def __init__(self) -> None:
        self._sent: dict[bytes, list[SentFile]] = {}
        self._ended = 0
        self._named: set[int] = set()
        """Files that were answered by a reference. If one is requested again, the copy failed: it is sent."""

    def find(self, file: int, source: SourceFile, sample: bytes) -> SentFile | None:
        """Returns a sent file with the content of this one, or None. Reads all of this one if samples agree.

        Raises FileError if the file cannot be read.
        """
        known = self._sent.get(sample, []) if sample and file not in self._named else []
        if not known or len(self._named) >= EQUAL_FILES:
            return None
        hollow = has_holes(source)
        known = [one for one in known if one.hollow == hollow]
        if not known:
            return None
        digest = digest_of(source, hollow=hollow)
        found = next((one for one in known if one.digest == digest and one.file != file), None)
        if found is not None:
            self._named.add(file)
        return found

    def add(self, sample: bytes, sent: SentFile) -> None:
        """Notes that a file's end was sent. The destination counts the same ends, up to the same number."""
        self._ended += 1
        if self._ended <= EQUAL_FILES and sample:
            known = self._sent.setdefault(sample, [])
            if len(known) < EQUAL_SAMPLES:
                known.append(sent)


def sample_of(source: SourceFile) -> bytes:
    """Returns a digest that is equal for equal files, or b"" if the file is too small."""
    if source.size < EQUAL_BYTES:
        return b""
    hasher = blake3(source.size.to_bytes(8, "little"))
    for offset in (0, source.size // 2, source.size - SAMPLE_BYTES):
        hasher.update(source.pread(offset, SAMPLE_BYTES))
    return hasher.digest(SAMPLE_DIGEST_BYTES)
