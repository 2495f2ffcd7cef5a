"""Older and newer versions of rdc at the other end, and recorded sessions of them."""
