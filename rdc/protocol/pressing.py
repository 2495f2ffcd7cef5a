"""How hard a direction's stream is compressed."""

from __future__ import annotations

from rdc.limits import WINDOW_LOG
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zstandard

__all__ = ["HARD", "MAX_LEVEL", "PLAIN", "QUICK", "QUICKEST", "RAW", "Pressing"]

MAX_LEVEL = 19
"""Above it zstd needs several hundred MB a stream."""


@dataclass(frozen=True, slots=True)
class Pressing:
    """Settings of the zstd frames that a stream consists of."""

    level: int
    """1 to MAX_LEVEL; 0: nothing is compressed."""
    far: bool = False
    """Matches far apart are looked for as well."""
    min_match: int = 0
    """Bytes of the shortest match that is looked for; 0: as the level has it."""
    hash_log: int = 0
    """log2 of the places that are remembered; 0: as the level has it."""
    frame_log: int = 0
    """log2 of the bytes after which a frame ends and the next begins, with an empty window; 0: none ends.

    zstd is faster while all that it looks back at lies in one piece of memory, as a frame's first window
    does, and finds a little more."""

    def ends(self, frame: int, piece: int) -> bool:
        """Whether a frame with `frame` bytes of content ends before `piece` further bytes."""
        return self.frame_log > 0 and frame + piece > 1 << self.frame_log

    def compressor(self) -> zstandard.ZstdCompressor:
        """What makes such frames, one at a time."""
        from rdc.protocol.zstd import zstandard

        changed = {}
        if self.min_match:
            changed["min_match"] = self.min_match
        if self.hash_log:
            changed["hash_log"] = self.hash_log
        parameters = zstandard.ZstdCompressionParameters.from_level(
            self.level, window_log=self.frame_log or WINDOW_LOG, enable_ldm=self.far, **changed
        )
        return zstandard.ZstdCompressor(compression_params=parameters)


RAW = Pressing(0)

PLAIN = Pressing(3, frame_log=24)
"""zstd's own default: 300-500 MB/s on text, and 3-4 GB/s on data that does not compress. First copies take
up to 8 % less time, both sides together, than in one frame, for 0.3 % more bytes of Django, 0.3 % fewer of
NumPy, and 1.7 % more of the graphics drivers of Linux, whose headers are alike; in frames of 8 MiB 3 % more
of Django and 10 % of the drivers (measured)."""

HARD = Pressing(6, far=True)
"""For what a descent could not find. Libraries of OpenCV, Arrow and LibreOffice, their code with absolute
targets, shrink by 7 % more than at level 3, in 2.7 times its time, at 100 MB/s. Level 7 takes a fourth longer
for a further 2 %, level 9 twice as long for 4 %; parameters set by hand lie on the same curve (measured).

Matches far apart are looked for as well: of literals of source maps, of which a release has several that are
alike, 14 % less is sent so, of JSON 2 %, of code 0.4 % more or less, for a tenth more time with code and a
third with JSON (measured)."""

QUICK = Pressing(2, min_match=5, frame_log=22)
"""For as much of code, where time counts for more: what is looked back at lies in the caches. The literals of
the same libraries take a fourth less time than at level 3, for 3.0, -0.1 and 2.2 % more bytes; with the
level's own least match of 6 up to a tenth less again, for 2.2, 0.0 and 0.4 % (measured). In one long frame
level 3 takes 40 % more time. Text needs its far matches."""

QUICKEST = Pressing(1, min_match=5, hash_log=14, frame_log=20)
"""For as much of code on links that hardly cost anything. A fourth to a third less of its time, for 8, 0.5
and 1.7 % more bytes of these literals. What is looked back at and the places that are remembered stay in the
second-level cache then, beside all else that a source does between two pieces: in frames of 4 MiB the same
takes 13 % longer, with 2^15 places 7 to 14 % (measured within a sync; by itself all take much the same)."""
