"""RuleScope: the directories of a tree whose own rule files count."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.tree.filters import FilteredTree

__all__ = ["RuleScope"]


class RuleScope:
    """As in rsync, rule files count in what is synced, and below it.

    They do not count in the directory above SRC without a trailing slash.
    """

    def __init__(self, tree: FilteredTree) -> None:
        self._top = tree.top
        self._selection = tree.selection
        self._real = None if tree.selection is None else tree.root.real

    @property
    def real(self) -> Callable[[bytes], bytes] | None:
        """Returns where an entry is below the tree's root; None: at its own path."""
        return self._real

    def counts(self, directory: bytes) -> bool:
        """Whether the rule files of a directory count."""
        if self._selection is not None:
            return self._selection.has_rules(directory)
        return bool(directory) or not self._top

    def begins(self, directory: bytes) -> bool:
        """Whether a directory whose files count has none above it whose files count."""
        return not directory or not self.counts(directory.rpartition(b"/")[0])
