"""A scan at rest, and several added up. `rdc scan -o` writes parts, `rdc merge` reads them."""
