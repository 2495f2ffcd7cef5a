"""Files of a scan: what it counted, as a part, several parts added up, and lists of what slices have to read.
`rdc scan -o` writes parts, `rdc merge` reads them."""
