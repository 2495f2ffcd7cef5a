"""Signature trees: a stream of (digest, length) records is grouped into nodes and a root. FORMAT.md defines
them."""
