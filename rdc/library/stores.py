"""The functions of `import rdc` that keep old states of directories in a store."""

from __future__ import annotations

import os

from rdc.catalog.catalog import USER_CATALOG, UserCatalog, opened_catalog
from rdc.lean.checks import check_argument, check_callable
from rdc.library import check_job
from rdc.progress import silent
from rdc.store.records import SnapshotInfo, StoreOptions, StoreReport, VerifyReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter, StopSignal


def store_put(
    source: str | os.PathLike[str],
    store: str | os.PathLike[str],
    options: StoreOptions | None = None,
    *,
    reporter: Reporter = silent,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    stop: StopSignal | None = None,
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
    check_argument("store_put", "source", source, str, os.PathLike)
    check_argument("store_put", "store", store, str, os.PathLike)
    check_argument("store_put", "options", options, StoreOptions, None)
    check_job("store_put", reporter, catalog, stop)
    from rdc.store.put import put

    with opened_catalog(catalog, reporter) as opened:
        return put(os.fsencode(source), os.fsencode(store), options or StoreOptions(), reporter, opened, stop)


def snapshots(store: str | os.PathLike[str]) -> tuple[SnapshotInfo, ...]:
    """The snapshots of a store, by their numbers. Raises RdcError if there is no store.

    >>> import os, rdc
    >>> os.mkdir("home")
    >>> _ = rdc.store_put("home", "states", rdc.StoreOptions(name="daily"), catalog=None)
    >>> rdc.snapshots("states")[0].series
    b'daily'
    """
    check_argument("snapshots", "store", store, str, os.PathLike)
    from rdc.store.place import PackStore

    with PackStore.open(os.fsencode(store)) as opened:
        found = [opened.snapshot(number) for number in opened.numbers()]
    return tuple(
        SnapshotInfo(
            one.number,
            one.seconds,
            one.series,
            one.host,
            one.path,
            one.entries,
            one.files,
            one.size,
            one.stored,
        )
        for one in found
    )


def verify_store(
    store: str | os.PathLike[str],
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
    check_argument("verify_store", "store", store, str, os.PathLike)
    check_argument("verify_store", "read", read, float, int, None)
    check_argument("verify_store", "notes", notes, str, os.PathLike, None)
    check_callable("verify_store", "reporter", reporter)
    from rdc.store.verify import verify

    return verify(os.fsencode(store), read, reporter, None if notes is None else os.fsencode(notes))
