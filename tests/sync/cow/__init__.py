"""Copy-on-write file systems: what is shared with snapshots and copies stays shared."""
