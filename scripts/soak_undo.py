"""scripts/soak undo [--syncs N] [--seed S] [--in DIR]: random syncs with --keep-undo, and their undos.

Some syncs are killed, and some undos. After the undos the tree is as it was, to the byte, and newer work
stays. A case that fails prints its seed. Needs root, for owners and attributes of every kind.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from tests.support.undo.undone_sync import Tally, UndoneSyncs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--syncs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in", dest="place", help="a directory of the file system to work on")
    given = parser.parse_args()
    total, seed = Tally(), given.seed
    while total.syncs < given.syncs:
        with tempfile.TemporaryDirectory(prefix="rdc-soak-", dir=given.place) as top:
            os.environ["RDC_CATALOG"] = f"{top}/catalog"
            syncs = UndoneSyncs(Path(top), seed)
            try:
                syncs.case()
            except BaseException:
                print(f"seed {seed} failed", flush=True)
                raise
            total.add(syncs.tally)
        seed += 1
    print(total)


if __name__ == "__main__":
    main()
