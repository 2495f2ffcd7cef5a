"""Other options of rdc sync, most of them in comparison with rsync."""
