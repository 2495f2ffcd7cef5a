"""Wildcard patterns in C; tests/reference/patterns.py documents it."""

from collections.abc import Sequence

from _typeshed import ReadableBuffer

LITERAL: int
ANYWHERE: int
DIRECTORY: int
INSIDE: int
NEGATED: int
COMPONENTS: int
ABSOLUTE: int
TAIL: int

class PatternSet:
    def __init__(
        self, patterns: Sequence[bytes], kinds: ReadableBuffer, prefix: ReadableBuffer = ..., /
    ) -> None: ...
    def first(self, path: bytes, is_directory: bool, /) -> int: ...
    def __sizeof__(self) -> int: ...
