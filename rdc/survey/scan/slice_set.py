"""SliceSet: the slices of a scan that an outcome holds, and what they must have in common."""

from __future__ import annotations

from blake3 import blake3

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanOptions

__all__ = ["SliceSet", "WalkTotals", "are_options", "shared_options"]


@dataclass(frozen=True, slots=True)
class WalkTotals:
    """What one slice found on its walk over everything. All slices find the same, unless the tree changes."""

    files: int
    """Names of regular files."""
    bytes: int
    directories: int
    slice: int
    """The number of the slice."""

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Orders totals: the fewest files come first."""
        return self.files, self.bytes, self.directories, self.slice


@dataclass(frozen=True, slots=True)
class SliceSet:
    """Slices of one scan."""

    of: int
    numbers: tuple[int, ...]
    """From 1 to `of`, increasing."""
    options: str
    """As shared_options writes them."""
    roots: tuple[int, ...]
    """Inode number of each path of the scan; 0 if it could not be looked at."""
    fewest: WalkTotals
    most: WalkTotals


def are_options(text: str) -> bool:
    """Whether each line is a name, a space and a value."""
    lines = text.splitlines()
    return all(name and mark and value for name, mark, value in (line.partition(" ") for line in lines))


def shared_options(options: ScanOptions) -> str:
    """The options in which slices of one scan must agree, one line each: a name, a space, a value."""
    rules = blake3(repr(options.rules).encode()).hexdigest()[:16] if options.rules else "none"
    return "".join(
        f"{name} {value}\n"
        for name, value in (
            ("filters", rules),
            ("-x", "on" if options.one_file_system else "off"),
            ("--time", options.seconds),
            ("--sample", options.sample),
            ("--seed", options.seed),
            ("--shift", options.shift),
        )
    )
