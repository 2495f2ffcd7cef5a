"""The options of what a run takes of machines: --max-memory, --depth, --max-rate, --cluster and slices."""

from __future__ import annotations

import os

from rdc.cli.environment import Words, parsed_value
from rdc.errors import UsageError, printable
from rdc.lean.records import dataclass, replace
from rdc.limits import RATE_LEAST, SCAN_SLICES
from rdc.model.options import Option
from rdc.model.sync import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cluster.engines import EngineUrl
    from rdc.model.scan import ScanSlice


MAX_MEMORY = OPTIONS["max_memory"].options[0]

DEPTH = OPTIONS["depth"].options[0]

MAX_RATE = Option(("--max-rate",), "read at most this much a second, for storage that others need", "SIZE")

CLUSTER = Option(
    ("--cluster",),
    "work in slices, as tasks of an engine: processes:N here, dask://HOST:PORT, ray://HOST:PORT or ray:local;"
    " -o names the directory of their parts, which all machines see",
    "URL",
)

SLICES = Option(
    ("--slices",), "their number (default: four a worker thread, or as the parts that are there)", "N"
)

OVERWRITE = Option(("--overwrite",), "let results also replace files that are none; never one that is read")

SLICE = Option(("--slice",), "read slice I of N alone, 1/N to N/N, each in a job of its own; needs -o", "I/N")


@dataclass(frozen=True, slots=True)
class OneSlice:
    """A job of one slice."""

    slice: ScanSlice
    part: str
    """The file that gets what the job found."""


@dataclass(frozen=True, slots=True)
class OnCluster:
    """A job whose slices are the tasks of an engine."""

    engine: EngineUrl
    slices: int | None
    """Number of slices; None for a suitable one."""
    directory: str
    """The directory of the parts."""


def read_max_memory(words: Words) -> int | None:
    """Return the bytes of --max-memory, 0 for all of the machine's, or None if it is absent. Raises
    UsageError."""
    last = words.last("--max-memory")
    return None if last is None else parsed_value(last, OPTIONS["max_memory"])


def read_depth(words: Words) -> int:
    """Return the number of --depth, or 0 if it is absent. Raises UsageError."""
    last = words.last("--depth")
    return 0 if last is None else parsed_value(last, OPTIONS["depth"])


def read_max_rate(words: Words) -> int:
    """Return the bytes a second of --max-rate, or 0 if it is absent or 0. Raises UsageError."""
    rate = words.size("--max-rate") or 0
    if 0 < rate < RATE_LEAST:
        raise UsageError(
            f"--max-rate={words.value('--max-rate')}: {RATE_LEAST >> 20}M a second at least is expected,"
            " or 0 for no bound"
        )
    return rate


def read_slicing(words: Words, part: str | None, ending: str) -> OneSlice | OnCluster | None:
    """Read how a job is divided; None if it is whole. `part`: the value of -o. `ending`: of a part's name.
    Raises UsageError."""
    given, whole = words.value("--slice"), f"a whole number from 1 to {SCAN_SLICES} is expected"
    own = None if given is None else _slice(given)
    if own is not None and part is None:
        raise UsageError(
            f"--slice={own} needs -o, such as: -o {own.number}.{ending}; rdc merge adds slices up"
        )
    url = words.value("--cluster")
    if url is not None:
        cluster = _cluster(words, url, part)
        number = words.number("--slices", None, whole, least=1, most=SCAN_SLICES, digits=9)
        return replace(cluster, slices=number)
    if words.has("--slices"):
        raise UsageError("--slices needs --cluster; one slice of a job array is --slice=I/N")
    return None if own is None or part is None else OneSlice(own, part)


def _cluster(words: Words, url: str, part: str | None) -> OnCluster:
    from rdc.cluster.engines import parse_engine

    engine = parse_engine(url)
    if words.has("--slice"):
        raise UsageError("--cluster makes all slices; leave --slice out")
    if part is None:
        raise UsageError(
            "--cluster needs -o, a directory for the parts that all machines see, such as: -o parts"
        )
    from rdc.files.objects.object_store import is_url

    local = [path for path in words.operands if not is_url(os.fsencode(path))]
    relative = next((path for path in (*local, part) if not path.startswith("/")), None)
    if relative is not None and not engine.is_here:
        raise UsageError(
            f"{printable(relative)}: expected an absolute path, since workers have other working directories"
        )
    return OnCluster(engine, None, part)


def _slice(text: str) -> ScanSlice:
    import re  # a sync needs none

    from rdc.model.scan import ScanSlice

    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if found is None:
        raise UsageError(f"--slice={text}: a slice and their number are expected, such as 1/8 to 8/8")
    try:
        return ScanSlice(int(found[1]), int(found[2]))
    except UsageError as error:
        raise UsageError(f"--slice={text}: {error}") from error
