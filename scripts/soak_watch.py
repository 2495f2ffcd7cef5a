"""Changes a tree at random under `rdc watch`; both trees must be equal in the end.

scripts/soak watch [--minutes N] [--seed N]

The watch runs in both directions, through a remote shell and a daemon. Either side is killed and restarted.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from tests.support.running.churn import Churn
from tests.support.running.watching import DaemonLine, ShellLine, Watching


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    rounds = 0
    print(f"seed {given.seed}", flush=True)
    while time.monotonic() < end:
        seed = given.seed + rounds
        with tempfile.TemporaryDirectory(prefix="rdc-watch-") as name:
            one(Path(name), seed)
        rounds += 1
    print(f"{rounds} rounds, all equal at the end")


def one(place: Path, seed: int) -> None:
    rng = random.Random(seed)
    source, destination = place / "far" / "src", place / "far" / "dst"
    (source / "d").mkdir(parents=True)
    for number in range(30):
        (source / "d" / f"f{number}").write_bytes(rng.randbytes(rng.choice([0, 100, 5_000, 200_000])))
    over_tls, far_source = rng.random() < 0.6, rng.random() < 0.5
    line = DaemonLine(place, place / "far") if over_tls else ShellLine(place)
    watching = Watching(source, destination, "--delete", place=place, line=line, far_source=far_source)
    churn = Churn(source, seed)
    try:
        for _ in range(rng.randint(1, 3)):
            with watching.running():
                for _ in range(rng.randint(1, 4)):
                    churn.run(rng.randint(10, 200), pause=rng.choice([0.0, 0.004, 0.1]))
                    if rng.random() < 0.3:
                        watching.kill_far()
                    elif rng.random() < 0.2 and isinstance(line, DaemonLine):
                        line.stop()
                        churn.run(10)
                        line.start()
                    if rng.random() < 0.5:
                        watching.wait_equal()
                if rng.random() < 0.3:
                    watching.kill()
            churn.run(20)
        with watching.running():
            watching.wait_equal()
            assert watching.stop() == 0
    except AssertionError as error:
        raise SystemExit(f"seed {seed}: {error}") from error
    finally:
        line.close()


if __name__ == "__main__":
    main()
