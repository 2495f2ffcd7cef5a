"""Texts of JSON lines in C. Only rdc.kernel.json_fields imports it; reference.py documents it."""

from _typeshed import ReadableBuffer

def json_texts(block: ReadableBuffer, field: ReadableBuffer, most: int, /) -> tuple[bytes, bytes, bytes]: ...
