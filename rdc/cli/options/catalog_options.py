"""The options --catalog and --no-catalog of all verbs that sign files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.catalog import Catalog, UserCatalog
    from rdc.catalog.store import SignatureStore

__all__ = ["CATALOG_GROUP", "CATALOG_OPTION", "CatalogChoice", "read_choice"]

CATALOG_OPTION = Option(
    ("--catalog",),
    "keep it in DIR (default: RDC_CATALOG, or your cache directory)",
    "DIR",
    note="""A directory that you name is made, with those above it. `RDC_CATALOG` sets it for all
                runs, and `off` means none. See [The catalog](../../explanation/catalog.md).""",
)

CATALOG_GROUP = OptionGroup(
    "The catalog (signatures of files that were read before, on this side)",
    (CATALOG_OPTION, Option(("--no-catalog",), "read every file again and remember nothing")),
)


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """The catalog that a command line chose."""

    directory: str | None = None
    """The directory of --catalog, as typed. None means the user's own catalog."""
    off: bool = False

    @contextlib.contextmanager
    def store(self) -> Iterator[SignatureStore | UserCatalog | None]:
        """Open the chosen catalog for one job. Yields the `catalog` argument of rdc.sync."""
        from rdc.catalog.catalog import USER_CATALOG

        if self.off:
            yield None
        elif self.directory is None:
            yield USER_CATALOG
        else:
            from rdc.catalog.catalog import Catalog

            with Catalog(self.directory) as catalog:
                yield catalog

    def catalog(self, environ: Mapping[str, str]) -> Catalog:
        """Open the catalog for a verb that maintains it. Raises UsageError if no catalog is configured."""
        from rdc.catalog.catalog import VARIABLE, Catalog, chosen_catalog

        catalog = chosen_catalog(environ) if self.directory is None else Catalog(self.directory)
        if catalog is None:
            raise UsageError(
                f"there is no catalog ({VARIABLE} is {environ.get(VARIABLE) or 'not set, nor is HOME'});"
                " name its directory with --catalog=DIR"
            )
        return catalog


def read_choice(words: Words) -> CatalogChoice:
    """Read --catalog and --no-catalog; the last one decides. Raises UsageError for an empty directory."""
    last = words.last("--catalog", "--no-catalog")
    if last is None:
        return CatalogChoice()
    if last.key == "--no-catalog":
        return CatalogChoice(off=True)
    if not last.value:
        raise UsageError("--catalog needs a directory, such as: --catalog=/var/cache/rdc")
    return CatalogChoice(last.value)
