"""Catalogs over COUNT files, for tests: filled, checked against known roots, used by other processes."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rdc.catalog.catalog import Catalog
from rdc.catalog.database import FILE_NAME
from rdc.catalog.signer import FileSigner
from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from tests.support.children.catalog_child import later

COUNT = 300


def child(cache: Path, files: Path, names: str, every: int, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.support.children.catalog_child",
        str(cache),
        str(files),
        names,
        str(every),
        *more,
    ]


def check(cache: Path, files: Path, roots: list[bytes], **kwargs: Any) -> tuple[int, list[str]]:
    """Signs all files with this catalog. Returns how many it knew, and its notices."""
    known = 0
    root = Root.open(os.fsencode(files))
    catalog = Catalog(cache, clock=later, **kwargs)
    signer = FileSigner(catalog=catalog, workers=1)
    for i, expected in enumerate(roots):
        with root.open_read(b"%d" % i) as source:
            known += catalog.root(source, SYNC_PARAMS) is not None
            tree = signer.sign(source)
            assert tree.root == expected
            assert tree.size == source.size
    catalog.close()
    root.close()
    return known, catalog.take_notices()


def filled(cache: Path, contents: tuple[Path, list[bytes]]) -> Path:
    """Fills a catalog with all files and closes it. Returns its database file."""
    check(cache, *contents)
    assert check(cache, *contents) == (COUNT, [])
    return cache / FILE_NAME


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A directory of an unprivileged user, with this process running as that user."""
    directory = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(directory, 65534, 65534)
            os.seteuid(65534)
        yield directory
    finally:
        if root:
            os.seteuid(0)
        for name in (directory, *directory.iterdir()):
            name.chmod(0o700)
        shutil.rmtree(directory)


def copied(contents: tuple[Path, list[bytes]], directory: Path) -> tuple[Path, list[bytes]]:
    files = directory / "files"
    files.mkdir()
    rng = random.Random(1)
    for i in range(20):
        (files / str(i)).write_bytes(rng.randbytes(rng.choice((0, 100, 3000, 60_000))))
    return files, contents[1][:20]
