"""Signature trees: any stream of (digest, length) records folded into nodes and a root; FORMAT.md."""
