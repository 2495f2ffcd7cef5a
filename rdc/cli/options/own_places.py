"""The options that say where rdc finds its own things: the catalog here, the remote side's rdc, and the keys.

They do not depend on the options of a sync: `rdc catalog` and `rdc signature` load only these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from rdc.cli.environment import RSH_EXAMPLE, OptionGroup, Words, read_command
from rdc.errors import UsageError
from rdc.lean.records import Record
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.catalog import Catalog
    from rdc.catalog.store import SignatureStore, UserCatalog
    from rdc.model.location import RemoteShell

CATALOG_OPTION = Option(
    ("--catalog",),
    "directory of the catalog (default: RDC_CATALOG, or your cache directory)",
    "DIR",
    note="""A directory that you name is made, with those above it. `RDC_CATALOG` sets it for all
                runs, and `off` means none. See [The catalog](../../explanation/catalog.md).""",
)

CATALOG_GROUP = OptionGroup(
    "Catalog (signatures of files that were read before, on this machine)",
    (CATALOG_OPTION, Option(("--no-catalog",), "read every file; do not use a catalog")),
)


class CatalogChoice(Record):
    """The catalog that a command line chose."""

    directory: str | None = None
    """The directory of --catalog, as typed. None means the user's own catalog."""
    off: bool = False

    @contextlib.contextmanager
    def store(self) -> Iterator[SignatureStore | UserCatalog | None]:
        """Open the chosen catalog for one job. Yields the `catalog` argument of rdc.sync."""
        from rdc.catalog.store import USER_CATALOG

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


# Options about the machine of a remote side.

RSH = Option(
    ("-e", "--rsh"),
    "the remote shell (default: ssh)",
    "CMD",
    common=True,
    example="-e 'ssh -p 2222' src/ host:backup/",
    note="The command is split into words. It is never given to a shell here.",
)

REMOTE_PATH = Option(
    ("--remote-path",),
    "the rdc program on the remote side (default: rdc)",
    "PROGRAM",
    example="--remote-path=/usr/local/bin/rdc src/ host:backup/",
    note="Use it where the remote shell does not find rdc.",
)

KEYS = Option(
    ("--keys",),
    "for rdc://: the key directory (default: RDC_KEYS, ~/.config/rdc/keys)",
    "DIR",
    example="--keys=/etc/rdc/keys src/ rdc://host/data/",
)

FAR_OPTIONS = (RSH, REMOTE_PATH, KEYS)


def read_keys(words: Words) -> str | None:
    """Return the key directory that --keys names. Raises UsageError."""
    given = words.last("--keys")
    if given is None:
        return None
    if not given.value:
        raise UsageError("--keys needs a directory, such as: --keys=/etc/rdc/keys")
    return given.value


def read_shell(words: Words) -> RemoteShell:
    """Return the remote shell that the options name. Raises UsageError."""
    from rdc.model.location import RemoteShell

    command, program = words.value("--rsh"), words.last("--remote-path")
    shell = RemoteShell()
    argv = shell.command if command is None else read_command(command, f"-e {command}", RSH_EXAMPLE)
    if program is not None and not program.value:
        raise UsageError("--remote-path needs a program, such as: --remote-path=/usr/local/bin/rdc")
    return RemoteShell(argv, shell.program if program is None else program.value)
