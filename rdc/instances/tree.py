"""A tree that contains duplicates: its Root and its real path."""

from __future__ import annotations

from rdc.files.base.relative_path import join
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["Tree", "is_below"]


@dataclass(frozen=True, slots=True)
class Tree:
    root: Root
    real: bytes
    """Its absolute path without symlinks, for comparing paths of several trees."""

    def real_path(self, path: bytes) -> bytes:
        return join(self.real.rstrip(b"/"), path) if self.real != b"/" else b"/" + path


def is_below(path: bytes, top: bytes) -> bool:
    """Whether the real path `path` is `top` or lies below it."""
    return path == top or path.startswith(top.rstrip(b"/") + b"/")
