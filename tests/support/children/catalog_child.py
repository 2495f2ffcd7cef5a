"""A process of its own that signs files into a catalog; run as `python -m
tests.support.children.catalog_child`.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from rdc.catalog.catalog import Catalog
from rdc.catalog.file_state import LOCAL_MARGIN_NS
from rdc.catalog.signer import FileSigner
from rdc.files.base.metadata import file_clock
from rdc.files.root.root import Root


def later() -> int:
    return file_clock() + 10 * LOCAL_MARGIN_NS


def main(cache: str, files: str, names: str, every: str, file_size_limit: str = "") -> None:
    """Sign `names` (FIRST-STOP) in `files`, flushing `every` so many; print when it begins, each time it has
    flushed, and how many were not kept."""
    if file_size_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_size_limit), int(file_size_limit)))
    first, stop = map(int, names.split("-"))
    root = Root.open(os.fsencode(files))
    with Catalog(Path(cache), clock=later) as catalog:
        signer = FileSigner(catalog=catalog, workers=1)
        print("ready", flush=True)
        for i in range(first, stop):
            with root.open_read(b"%d" % i) as source:
                signer.read(source)
            if i % int(every) == 0:
                catalog.flush()
                print("flushed", flush=True)
        catalog.flush()
        print(catalog.lost, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
