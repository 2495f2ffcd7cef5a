"""python -m scripts.record_transcripts [NAME...]: records sessions again, all or those of these names.

They are those of tests/support/wire/recorded_scenes.py, and go to fixtures/transcripts/VERSION, for the
newest version of the protocol. Sessions of an older version stay as they are: no rdc writes them any more.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rdc.protocol.connection import DIALECT
from tests.support.project_paths import TOP
from tests.support.wire.recorded_scenes import SCENES, play
from tests.support.wire.transcripts import write_transcript


def main() -> None:
    os.environ["RDC_CATALOG"] = "off"
    place = TOP / "fixtures" / "transcripts" / str(DIALECT.newest)
    place.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SCENES:
        for dialler in SCENES[name].diallers:
            with tempfile.TemporaryDirectory(prefix="rdc-transcript-") as scratch:
                lines = play(SCENES[name], dialler, Path(scratch))
            path = place / f"{name}-{dialler.name.lower()}.txt"
            write_transcript(path, lines)
            print(f"{path.relative_to(TOP)}: {sum(len(line.data) for line in lines)} bytes")


if __name__ == "__main__":
    main()
