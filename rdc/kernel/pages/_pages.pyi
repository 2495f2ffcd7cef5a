"""The text of HTML pages in C. Only rdc.kernel.page_texts imports it; reference.py documents each name."""

from _typeshed import ReadableBuffer

def html_texts(text: ReadableBuffer, offsets: ReadableBuffer, /) -> tuple[bytes, bytes]: ...
