"""Alternate directories of a sync, and the use that it makes of them."""

from __future__ import annotations

from enum import Enum

from rdc.checks import check_fields
from rdc.records import dataclass

__all__ = ["AlternateUse", "Alternates"]


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

    @property
    def option(self) -> str:
        """The name of the option, such as "--link-dest"."""
        return f"--{self.use.value}-dest"

    @property
    def changes_existing(self) -> bool:
        """Whether they also decide about files that the destination has already."""
        return self.use is not AlternateUse.COPY
