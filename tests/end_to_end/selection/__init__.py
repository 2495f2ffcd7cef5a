"""Which entries take part: several SRC, --files-from, filters, and options that skip files."""
