"""Values of sync options that are more than a number or a text, and how the command line's texts are read.

A reader raises ValueError with what is expected; the command line puts the option in front of it.
"""

from __future__ import annotations

import os
from enum import Enum

from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.limits.paths import NAME_BYTES, PATH_BYTES
from rdc.limits.sessions import (
    ALTERNATE_DIRECTORIES,
    BANDWIDTH_LEAST,
    DEPTH_LIMIT,
    ENTRIES_MEMORY_LEAST,
    TIMEOUT_SECONDS,
    WINDOW_SECONDS,
)
from rdc.limits.wire import SIZE_LIMIT, UNDO_DAYS

__all__ = ["AlternateUse", "Alternates", "Backup", "FileList", "KeepUndo"]


@dataclass(frozen=True, slots=True)
class Backup:
    """Where a sync keeps old versions: at the entry's path below `directory`, with `suffix` behind its name.

    >>> import rdc
    >>> rdc.SyncOptions(backup=rdc.Backup(b"~")).backup.suffix
    b'~'
    """

    suffix: bytes
    """Not empty unless `directory` is given. It has no slash."""
    directory: bytes | None = None
    """Relative to the destination, or absolute; None: beside the entry."""

    def __post_init__(self) -> None:
        check_fields(self)
        if b"/" in self.suffix or len(self.suffix) > NAME_BYTES or not (self.suffix or self.directory):
            raise ValueError("Backup.suffix: the end of a name is expected, and needed without a directory")
        if self.directory is not None:
            check_path("Backup.directory", self.directory)
        if b"\0" in self.suffix:
            raise ValueError("Backup.suffix: a name has no NUL byte")

    @property
    def option(self) -> str:
        """The option that asks for it."""
        return "--backup" if self.directory is None else "--backup-dir"


class AlternateUse(Enum):
    """What a sync does with a file that it finds unchanged in an alternate directory.

    >>> import rdc
    >>> rdc.AlternateUse("link")
    <AlternateUse.LINK: 'link'>
    """

    LINK = "link"
    """It becomes a hard link, or a copy if its metadata differ."""
    COMPARE = "compare"
    """It is left out, or copied if its metadata differ."""
    COPY = "copy"
    """It is copied."""


@dataclass(frozen=True, slots=True)
class Alternates:
    """Alternate directories: trees like the destination, such as older backups, that may have its files.

    >>> import rdc
    >>> rdc.Alternates(rdc.AlternateUse.LINK, (b"../yesterday",)).directories
    (b'../yesterday',)
    """

    use: AlternateUse
    directories: tuple[bytes, ...]
    """1 to 20, the preferred one first. Each is relative to the destination, or absolute."""

    def __post_init__(self) -> None:
        check_fields(self)
        number = len(self.directories)
        if not 1 <= number <= ALTERNATE_DIRECTORIES:
            raise ValueError(f"Alternates: {number} directories, the limit is {ALTERNATE_DIRECTORIES}")
        for directory in self.directories:
            check_path("Alternates.directories", directory)

    @property
    def option(self) -> str:
        """The name of the option, such as "--link-dest"."""
        return f"--{self.use.value}-dest"

    @property
    def changes_existing(self) -> bool:
        """Whether they also decide about files that the destination has already."""
        return self.use is not AlternateUse.COPY


@dataclass(frozen=True, slots=True)
class KeepUndo:
    """How much a sync keeps, so that `rdc.undo` can take it back: a size or a number of days.

    >>> import rdc
    >>> rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30)).keep_undo.days
    30
    """

    size: int | None = None
    """Bytes that all syncs of the destination together may keep."""
    days: int | None = None
    """Days for which each sync is kept."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.size is None) == (self.days is None):
            raise ValueError("KeepUndo: expected bytes or days")
        for name, value, most in (("size", self.size, SIZE_LIMIT), ("days", self.days, UNDO_DAYS)):
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"KeepUndo.{name}: {value} is not in 1..{most}")


@dataclass(frozen=True, slots=True)
class FileList:
    """Paths below the source, as `--files-from` lists them.

    >>> import rdc
    >>> rdc.SyncOptions(files=rdc.FileList((b"docs/index.md", b"src"))).files.names[1]
    b'src'
    """

    names: tuple[bytes, ...]
    """A path may have "/./" in it, as in rsync: what is in front of it is not kept."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class LinkChoice:
    """The symlinks that a source takes for what they lead to."""

    every: bool = False
    """All of them."""
    directories: bool = False
    """Those that lead to a directory."""
    unsafe: bool = False
    """Those that lead out of the tree."""


def leads_outside(target: bytes, path: bytes) -> bool:
    """Whether the symlink at `path`, with the text `target`, leads out of the tree, by rsync's rule.

    The text decides, and nothing is looked up: an absolute target leads outside, and so does one that goes up
    further than `path` is deep. One that goes up after it went down may pass another link, so it counts too,
    as does any that ends by going up.
    """
    if not target or target.startswith(b"/") or target.endswith(b"/.."):
        return True
    names = [name for name in target.split(b"/") if name]
    ups = 0
    while ups < len(names) and names[ups] == b"..":
        ups += 1
    return b".." in names[ups:] or ups > path.count(b"/")


def check_path(name: str, path: bytes) -> None:
    """Raise ValueError for what is no path of a user. `name` is that of the field."""
    if not 1 <= len(path) <= PATH_BYTES:
        raise ValueError(f"{name}: {len(path)} bytes are not in 1..{PATH_BYTES}")
    if b"\0" in path:
        raise ValueError(f"{name}: a path has no NUL byte")


def no_nul(path: bytes) -> None:
    """Raise ValueError for a path with a NUL byte."""
    if b"\0" in path:
        raise ValueError("a path has no NUL byte")


def check_mode_changes(text: str) -> None:
    """Raise ValueError unless `text` changes permissions as --chmod does."""
    from rdc.model.option_texts import parse_mode_changes

    parse_mode_changes(text)


def check_owner_map(text: bytes) -> None:
    """Raise ValueError unless `text` is a map as of --usermap."""
    from rdc.model.option_texts import parse_owner_map

    parse_owner_map(text)


def _is_number(text: str, digits: int = 18) -> bool:
    """Whether `text` is a whole number that int() reads in no time. isascii() excludes the digits of other
    scripts."""
    return text.isascii() and text.isdigit() and len(text) <= digits


def parse_number(text: str) -> int:
    """A number of entries."""
    if not _is_number(text):
        raise ValueError("a number of entries, 0 or more, is expected")
    return int(text)


def parse_share(text: str) -> int:
    """The per cent of a share such as 50%."""
    number = text.removesuffix("%")
    if number == text or not _is_number(number, 3) or int(number) > 100:
        raise ValueError("a share from 0% to 100% is expected")
    return int(number)


def parse_size_of(text: str) -> int:
    """A size such as 500M."""
    from rdc.model.option_texts import parse_size

    size = parse_size(text)
    if size is None:
        raise ValueError("a size such as 500M or 2G is expected")
    return size


def parse_size_bound(text: str) -> int:
    """A size; a suffix +1 or -1 adds, as in rsync."""
    plain, more = text, 0
    if len(plain) > 2 and plain.endswith(("+1", "-1")):
        plain, more = plain[:-2], int(plain[-2:])
    size = parse_size_of(plain) + more
    if size < 0:
        raise ValueError("no file is smaller than nothing; a size such as 500M is expected")
    return min(size, SIZE_LIMIT)


def parse_memory(text: str) -> int:
    """Bytes of memory; 0 for all of the machine's."""
    size = parse_size_of(text)
    if 0 < size < ENTRIES_MEMORY_LEAST:
        raise ValueError(f"{ENTRIES_MEMORY_LEAST >> 20}M at least is expected, or 0 for all there is")
    return size


def parse_rate(text: str) -> int:
    """Bytes per second, 0 for no limit. A number without a letter counts KiB, as in rsync."""
    from rdc.model.option_texts import parse_size

    rate = parse_size(text, unit=1024)
    if rate is None:
        raise ValueError("a rate is expected, such as 500 (KiB a second), 1.5m or 2MB")
    # A rate such as 0.0001 must not round to 0, which means no limit.
    if rate < BANDWIDTH_LEAST and any(digit in "123456789" for digit in text):
        raise ValueError(f"{BANDWIDTH_LEAST} bytes a second at least are expected")
    return rate


def parse_depth(text: str) -> int:
    if not _is_number(text) or int(text) > DEPTH_LIMIT:
        raise ValueError(f"a number up to {DEPTH_LIMIT} is expected, 0 for as many as help")
    return int(text)


def parse_timeout(text: str) -> int:
    if not _is_number(text, 9):
        raise ValueError("a number of seconds is expected, 0 for none")
    return min(int(text), TIMEOUT_SECONDS)


def parse_window(text: str) -> int | None:
    """Seconds; None for times to the nanosecond, which rsync writes as a negative number."""
    if not _is_number(text.removeprefix("-")):
        raise ValueError("a number of seconds is expected, such as 1")
    return None if text.startswith("-") else min(int(text), WINDOW_SECONDS)


def parse_directory(text: str) -> bytes:
    """A directory without a slash at its end."""
    return os.fsencode(text.rstrip("/") or "/")


def parse_keep_undo(text: str) -> KeepUndo:
    """Reads "10G" or "30d"."""
    number = text[:-1]
    if text.endswith("d") and _is_number(number, 5):
        if not 1 <= int(number) <= UNDO_DAYS:
            raise ValueError(f"1d to {UNDO_DAYS}d is expected")
        return KeepUndo(days=int(number))
    from rdc.model.option_texts import parse_size

    size = parse_size(text)
    if not size:
        raise ValueError("a size or a number of days is expected, such as 10G or 30d")
    return KeepUndo(size=size)
