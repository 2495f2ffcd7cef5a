"""File systems that share blocks: what was shared with snapshots and copies stays shared."""
