"""scripts/soak exposure FIRST COUNT: random syncs, complete and killed, judged at every moment.

For each failure it prints the seed and what was open to whom. Exits with 1 if any run failed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.running.exposed_sync import ExposedSync
from tests.support.running.recorded_access import build_recorder
from tests.support.trees.unprivileged import NOBODY, place_of_nobody


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    moments = failed = 0
    with tempfile.TemporaryDirectory() as built:
        recorder = build_recorder(Path(built))
        Path(built).chmod(0o755)
        for seed in range(first, first + count):
            with place_of_nobody() as place:
                place.chmod(0o755)
                bound = seed % 4 == 3 and os.geteuid() == 0
                sync = ExposedSync(place, recorder, seed, uid=NOBODY if bound else os.geteuid())
                wrong: list[str] = []
                if seed % 3 == 0:
                    some, wrong = sync.run(kill=random.Random(seed).randrange(60))
                    moments += some
                some, more = sync.run()
                moments += some
                wrong += more
            if wrong:
                failed += 1
                print(f"seed {seed}:", *wrong[:3], sep="\n  ", flush=True)
    print(f"{count} scenes, {moments} moments, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
