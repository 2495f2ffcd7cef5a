"""One scan: files are found, read, counted and summarized. `rdc scan` and rdc.scan run it."""
