"""Where the catalog is: the user's cache directory, or where RDC_CATALOG or --catalog says."""

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
"""As a `catalog` argument: the one of whoever runs this process."""

VARIABLE = "RDC_CATALOG"
"""Environment variable: a directory, or `off`."""


def catalog_directory(environ: Mapping[str, str]) -> str | None:
    """The directory of the user's catalog; None where the environment says `off` or names no home."""
    chosen = environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return chosen
    return cache_directory(environ)


def chosen_catalog(environ: Mapping[str, str]) -> Catalog | None:
    """The catalog where `catalog_directory` says. What is named there is made, a home that is not there is
    not: services run under names whose home is nowhere."""
    from rdc.catalog.catalog import Catalog

    directory = catalog_directory(environ)
    return None if directory is None else Catalog(directory, parents=bool(environ.get(VARIABLE)))


def user_catalog(environ: Mapping[str, str]) -> SignatureStore:
    """The catalog of whoever runs this process. Nothing is opened or made before it is used."""
    return chosen_catalog(environ) or NoCatalog()


@contextlib.contextmanager
def opened_catalog(
    choice: SignatureStore | UserCatalog | None, reporter: Reporter
) -> Iterator[SignatureStore]:
    """The chosen store for the time of one job; what it has to say goes to `reporter`.

    A store that the caller made is flushed and left open, the user's own is closed.
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
