"""Texts of JSON lines in C; tests/reference/lines.py documents it."""

from _typeshed import ReadableBuffer

def json_texts(block: ReadableBuffer, field: ReadableBuffer, most: int, /) -> tuple[bytes, bytes, bytes]: ...
