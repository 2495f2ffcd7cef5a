"""Named jobs of the settings file: syncs, two-way syncs and snapshots with hooks, a lock and a schedule."""
