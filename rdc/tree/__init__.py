"""Trees of entries: filters, walks, manifests and their digests. rdc.session, rdc.plan and rdc.survey use
it. `filter_list` makes the filters of a walk."""

from __future__ import annotations

from rdc.model.selection import DirectoryRules, FilterRule, are_plain
from rdc.tree.filters import FilterList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def filter_list(rules: Sequence[FilterRule | DirectoryRules]) -> FilterList:
    """Return the filters for rules of any kind. Raises UsageError if a bound of rdc.limits is exceeded."""
    if are_plain(rules):
        return FilterList(rules)
    from rdc.tree.directory_filters import UnboundFilters

    return UnboundFilters(rules)
