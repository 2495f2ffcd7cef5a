"""What a source sent whole, by content: an equal file later is named, not sent again."""

from __future__ import annotations

from blake3 import blake3

from rdc.limits import EQUAL_FILES
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.source import SourceFile

__all__ = ["SentContents", "SentFile", "sample_of"]

EQUAL_BYTES = 64 << 10
"""Below, a second transfer costs less than telling of it saves: the stream remembers much of the first."""

SAMPLE_BYTES = 4096
"""Looked at of a file's head, middle and tail: files of one size that agree there are nearly always equal, so
hardly one is read in vain."""

SAMPLE_DIGEST_BYTES = 16

EQUAL_SAMPLES = 4
"""Files of equal samples and different contents that are remembered."""


@dataclass(frozen=True, slots=True)
class SentFile:
    file: int
    digest: bytes
    """BLAKE3 of its content."""


class SentContents:
    """Of the first EQUAL_FILES files that were sent in messages of their own."""

    def __init__(self) -> None:
        self._sent: dict[bytes, list[SentFile]] = {}
        self._ended = 0
        self._named: set[int] = set()
        """Files that were named after another one: whoever asks again did not get them from there."""

    def find(self, file: int, source: SourceFile, sample: bytes) -> SentFile | None:
        """A file that was sent and has the content of this one, of which all is read to know."""
        known = self._sent.get(sample) if sample and file not in self._named else None
        if not known or len(self._named) >= EQUAL_FILES:
            return None
        hasher = blake3()
        for span in source.spans():
            hasher.update(span)
        digest = hasher.digest()
        found = next((one for one in known if one.digest == digest and one.file != file), None)
        if found is not None:
            self._named.add(file)
        return found

    def add(self, sample: bytes, sent: SentFile) -> None:
        """A file's end was sent. The other side counts the same ends, up to the same number."""
        self._ended += 1
        if self._ended <= EQUAL_FILES and sample:
            known = self._sent.setdefault(sample, [])
            if len(known) < EQUAL_SAMPLES:
                known.append(sent)


def sample_of(source: SourceFile) -> bytes:
    """Equal for equal files; b"" for one that is too small."""
    if source.size < EQUAL_BYTES:
        return b""
    hasher = blake3(source.size.to_bytes(8, "little"))
    for offset in (0, source.size // 2, source.size - SAMPLE_BYTES):
        hasher.update(source.pread(offset, SAMPLE_BYTES))
    return hasher.digest(SAMPLE_DIGEST_BYTES)
