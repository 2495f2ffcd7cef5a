"""scripts/soak confined [--minutes N] [--seed S] [--requests N]: hostile requests to one served directory.

After each request nothing outside the directory has changed, and nothing inside that its rules forbid. The
seed determines the request.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.support.wire.hostile_requests import HostileRequests


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first request; the next has the next one")
    parser.add_argument("--requests", type=int, help="how many, instead of --minutes")
    given = parser.parse_args()
    os.environ["RDC_CATALOG"] = "off"
    end, seed = time.monotonic() + 60 * given.minutes, given.seed
    with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
        requests = HostileRequests(Path(top, "place"))
        while seed < given.seed + given.requests if given.requests else time.monotonic() < end:
            requests.request(seed)  # raises with the seed if the request did what it must not
            seed += 1
    print(f"{seed - given.seed} requests, {requests.changed} changed the directory")
    print(dict(requests.done.most_common()), dict(requests.ends.most_common()))


if __name__ == "__main__":
    main()
