"""Options and results of a check: how two trees are compared, and what differs."""

from __future__ import annotations

from rdc.errors import ExitCode, WithPath
from rdc.lean.checks import Checked
from rdc.lean.enums import IntFlag
from rdc.lean.records import Record, Report, field
from rdc.model.sync import SyncOptions


class Aspect(IntFlag):
    """The ways in which an entry of SRC and its counterpart at DST differ. The order is that of output."""

    NONE = 0
    MISSING = 1
    """DST has no entry of that path."""
    EXTRA = 2
    """SRC has no entry of that path."""
    KIND = 4
    """A file, a directory, a symlink or a special file is in the place of an entry of another kind."""
    CONTENT = 8
    """Other content of a regular file, by its size or by its root."""
    SYMLINK = 16
    """Another link target."""
    TIME = 32
    """Another mtime."""
    MODE = 64
    OWNER = 128
    GROUP = 256
    LINKS = 512
    """Other hard links among the entries that both trees have."""
    ACLS = 1024
    XATTRS = 2048

    @property
    def names(self) -> list[str]:
        """The names of all aspects in it, in order, as output shows them."""
        return [str(one.name).lower() for one in Aspect if one and one & self]


class EntryDiffers(WithPath, Record):
    """One entry that differs."""

    path_bytes: bytes
    """Relative to the compared directories. A directory ends in '/'; the compared directory itself is
    './'."""
    aspects: Aspect


class Sample(Checked, Record):
    """A choice of files whose content is read. Equal seeds choose equal paths, in every run.

    >>> import rdc
    >>> rdc.CheckOptions(sample=rdc.Sample(0.01)).sample.seed
    0
    """

    share: float
    """The expected share of files: above 0, at most 1."""
    seed: int = 0


class CheckOptions(Checked, Record):
    """The options of `rdc.check`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.CheckOptions(rdc.SyncOptions(xattrs=True), times=False).modes
    True
    """

    session: SyncOptions = field(default_factory=SyncOptions)
    """Filter rules, attributes, owners, and what concerns the connection. A check refuses the fields that
    say what a sync writes, or which files it leaves as they are."""
    times: bool = True
    """Compare mtimes."""
    modes: bool = True
    """Compare permissions."""
    trust_catalog: bool = False
    """Believe the catalogs of both ends, and read only files that they do not know."""
    sample: Sample | None = None
    """None: the content of every file is compared."""


class CheckReport(Report, Record):
    """The figures of a check."""

    entries: int
    """Entries that at least one tree has, after filters. The compared directories themselves do not
    count."""
    files: int
    """Regular files of equal size that both trees have."""
    total_bytes: int
    """Bytes of these files, at one end."""
    files_compared: int
    """Files among them whose contents were compared."""
    bytes_compared: int
    different: int
    """Entries that differ, missing and extra ones included."""
    missing: int
    extra: int
    bytes_sent: int
    """All bytes that this process wrote to the transport, with framing."""
    bytes_received: int
    round_trips: int
    errors: int
    exit: ExitCode
