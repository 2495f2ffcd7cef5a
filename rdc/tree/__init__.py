"""Trees of entries: filters and the walk that sync and scan share."""
