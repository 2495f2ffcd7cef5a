"""Where the catalog lies: the user's cache directory, or the directory that RDC_CATALOG or --catalog
names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from enum import Enum

from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode
from rdc.model.home import cache_directory
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from rdc.catalog.catalog import Catalog
    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter

__all__ = [
    "USER_CATALOG",
    "VARIABLE",
    "UserCatalog",
    "catalog_directory",
    "chosen_catalog",
    "opened_catalog",
    "user_catalog",
]


class UserCatalog(Enum):
    """Type of USER_CATALOG, for annotations."""

    USER_CATALOG = "user catalog"


USER_CATALOG: Final = UserCatalog.USER_CATALOG
"""A `catalog` argument: the catalog of the user who runs this process."""

VARIABLE = "RDC_CATALOG"
"""Environment variable: a directory, or `off`."""


def catalog_directory(environ: Mapping[str, str]) -> str | None:
    """The directory of the user's catalog. None if the environment says `off` or names no home directory."""
    chosen = environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return chosen
    return cache_directory(environ)


def chosen_catalog(environ: Mapping[str, str]) -> Catalog | None:
    """The catalog in `catalog_directory`. A directory named by RDC_CATALOG is created with its parents. A
    missing home directory is not created, since services run under users whose home does not exist."""
    from rdc.catalog.catalog import Catalog

    directory = catalog_directory(environ)
    return None if directory is None else Catalog(directory, parents=bool(environ.get(VARIABLE)))


def user_catalog(environ: Mapping[str, str]) -> SignatureStore:
    """The catalog of the user who runs this process. Nothing is opened or created before its first use."""
    return chosen_catalog(environ) or NoCatalog()


@contextlib.contextmanager
def opened_catalog(
    choice: SignatureStore | UserCatalog | None, reporter: Reporter
) -> Iterator[SignatureStore]:
    """The chosen store for the duration of one job. Its notices go to `reporter` at the end.

    A store made by the caller is flushed and left open; the user's own catalog is closed.
    """
    store: SignatureStore
    if isinstance(choice, UserCatalog):
        store = user_catalog(os.environ)
    else:
        store = NoCatalog() if choice is None else choice
    try:
        yield store
    finally:
        if isinstance(choice, UserCatalog):
            store.close()
        else:
            store.flush()
        for notice in store.take_notices():
            reporter(Problem(ExitCode.OK, b"", notice))
