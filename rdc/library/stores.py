"""The functions of `import rdc` that keep old states of directories in a store."""

from __future__ import annotations

import os

from rdc.catalog.catalog import opened_catalog
from rdc.catalog.store import USER_CATALOG, UserCatalog
from rdc.lean.checks import check_argument, check_callable
from rdc.library import check_job, options_of, public, reporting
from rdc.progress import silent
from rdc.store.records import (
    ForgetOptions,
    ForgetReport,
    GcOptions,
    GcReport,
    PackReport,
    SnapshotInfo,
    StoreOptions,
    StoreReport,
    VerifyReport,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.progress import Progressed, Reporter, StopSignal


@public
def store_put(
    source: str | bytes | os.PathLike[str],
    store: str | bytes | os.PathLike[str],
    options: StoreOptions | None = None,
    *,
    reporter: Reporter = silent,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    stop: StopSignal | None = None,
    **keywords: object,
) -> StoreReport:
    """Add a snapshot of a local directory to a store, as `rdc store put` does. A missing store is made.

    Raises UsageError for a name that no series can have and for a directory in the store, and RdcError if no
    snapshot could be added. Once `stop` is set, the run ends with StoppedError.

        >>> import os, rdc
        >>> os.mkdir("home")
        >>> with open("home/file", "w") as file:
        ...     _ = file.write("data")
        >>> rdc.store_put("home", "states", catalog=None).number
        1
    """
    check_argument("store_put", "source", source, str, bytes, os.PathLike)
    check_argument("store_put", "store", store, str, bytes, os.PathLike)
    options = options_of("store_put", StoreOptions, options, keywords)
    reporter = reporting("store_put", reporter, progress)
    check_job("store_put", reporter, catalog, stop)
    from rdc.store.put import put

    with opened_catalog(catalog, reporter) as opened:
        return put(os.fsencode(source), os.fsencode(store), options, reporter, opened, stop)


@public
def snapshots(store: str | bytes | os.PathLike[str], *, alone: bool = False) -> tuple[SnapshotInfo, ...]:
    """Return the snapshots of a store, by their numbers. Raises RdcError if there is no store, or one of them
    cannot be read.

    `alone`: count what each one alone needs, for which all trees are read.

    >>> import os, rdc
    >>> os.mkdir("home")
    >>> _ = rdc.store_put("home", "states", rdc.StoreOptions(name="daily"), catalog=None)
    >>> rdc.snapshots("states")[0].series
    b'daily'
    """
    check_argument("snapshots", "store", store, str, bytes, os.PathLike)
    from rdc.store.listing import list_snapshots

    listed = list_snapshots(os.fsencode(store), alone=alone)
    if listed.errors:
        raise listed.errors[0]
    return listed.found


@public
def forget_snapshots(store: str | bytes | os.PathLike[str], options: ForgetOptions) -> ForgetReport:
    """Forget snapshots of a store, as `rdc store forget` does: only with `apply`.

    Forgotten ones stay in the trash of the store for 7 days. Raises UsageError for a retention that cannot be
    read and for a missing snapshot, and RdcError if they cannot be moved.

        >>> import os, rdc
        >>> os.mkdir("home")
        >>> for _ in range(2):
        ...     _ = rdc.store_put("home", "states", catalog=None)
        >>> rdc.forget_snapshots("states", rdc.ForgetOptions(retain="7d", apply=True)).forgotten
        (1,)
    """
    check_argument("forget_snapshots", "store", store, str, bytes, os.PathLike)
    check_argument("forget_snapshots", "options", options, ForgetOptions)
    from rdc.store.forget import forget

    return forget(os.fsencode(store), options)


@public
def clean_store(
    store: str | bytes | os.PathLike[str],
    options: GcOptions | None = None,
    *,
    reporter: Reporter = silent,
    stop: StopSignal | None = None,
) -> GcReport:
    """Remove what no snapshot of a store needs, as `rdc store gc` does.

    Raises RdcError if something that a snapshot needs is missing or damaged, or if the store is in use for
    too long; then nothing is removed that a snapshot needs.

        >>> import os, rdc
        >>> os.mkdir("home")
        >>> _ = rdc.store_put("home", "states", catalog=None)
        >>> rdc.clean_store("states").freed
        0
    """
    check_argument("clean_store", "store", store, str, bytes, os.PathLike)
    check_argument("clean_store", "options", options, GcOptions, None)
    check_callable("clean_store", "reporter", reporter)
    from rdc.store.gc import gc

    return gc(os.fsencode(store), options or GcOptions(), reporter, stop)


@public
def store_pack(
    store: str | bytes | os.PathLike[str],
    number: int,
    to: str | bytes | os.PathLike[str],
    *,
    base: int | None = None,
    stop: StopSignal | None = None,
) -> PackReport:
    """Write snapshot `number` of a store to one file, as `rdc store pack` does.

    `base`: without contents that this snapshot has, for readers with a copy of it. `rdc.sync` reads the file:
    `FILE/@NUMBER/`. Raises RdcError if there is no such snapshot, and FileError if it is damaged.

        >>> import os, rdc
        >>> os.mkdir("home")
        >>> _ = rdc.store_put("home", "states", catalog=None)
        >>> _ = rdc.store_pack("states", 1, "home.rdcst")
        >>> rdc.sync("home.rdcst/@1/", "copy/", unsigned=True, catalog=None).exit
        <ExitCode.OK: 0>
    """
    check_argument("store_pack", "store", store, str, bytes, os.PathLike)
    check_argument("store_pack", "number", number, int)
    check_argument("store_pack", "to", to, str, bytes, os.PathLike)
    check_argument("store_pack", "base", base, int, None)
    from rdc.progress import check_stop
    from rdc.store.carry import pack_snapshot

    return pack_snapshot(os.fsencode(store), number, base, os.fsencode(to), lambda: check_stop(stop))


@public
def verify_store(
    store: str | bytes | os.PathLike[str],
    read: float | None = None,
    *,
    reporter: Reporter = silent,
    notes: str | os.PathLike[str] | None = None,
) -> VerifyReport:
    """Check that every snapshot of a store can be restored, as `rdc store verify` does.

    `read`: the share of the store whose contents are read, 0.01 for a hundredth; None: no content is.
    `notes`: a directory that remembers which parts were read longest ago. Each damage goes to `reporter` as a
    Problem, with the snapshots and paths that it reaches.

        >>> import os, rdc
        >>> os.mkdir("home")
        >>> _ = rdc.store_put("home", "states", catalog=None)
        >>> rdc.verify_store("states", read=1.0).damaged
        0
    """
    check_argument("verify_store", "store", store, str, bytes, os.PathLike)
    check_argument("verify_store", "read", read, float, int, None)
    check_argument("verify_store", "notes", notes, str, os.PathLike, None)
    check_callable("verify_store", "reporter", reporter)
    from rdc.store.verify import verify

    return verify(os.fsencode(store), read, reporter, None if notes is None else os.fsencode(notes))
