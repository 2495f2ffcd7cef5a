"""`rdc store`: old states of a directory, in a directory of immutable packs. PACKS.md has the format.

`frames`, `directory`, `pack_file` and `tree_rows` turn values into bytes and back. `place` is the store's
directory, `reader` finds chunks in its packs, `writer` and `put` add a snapshot, `snapshot_root` shows one as
the source of a sync, and `verify` looks for damage.
"""
