"""Extended attributes of a directory's entries, on Linux. rdc.files.facts.directory_xattrs calls this and
says what for.

On other systems the module is empty. All but `go_by_name` release the interpreter's lock, and raise OSError.
No link is followed.
"""

def go_by_name() -> bool:
    """Whether the kernel has calls with a directory's descriptor and a name (Linux 6.13), and lets this
    process use them."""

def list_xattrs(
    directory: int, path: bytes, entries: bytes, row: int, offset: int, by_name: bool, /
) -> tuple[int, int, list[tuple[int, bytes | int]]]:
    """The next row, the offset of its name, and the rows before that which have attributes: the names of
    these, each followed by NUL, or the errno for which they cannot be listed.

    `entries`: names in the directory at `path` (b"": itself) below `directory`, each followed by NUL; the one
    at `offset` is row `row`. Stops before their end once it holds 256 KiB. Where a file system keeps no
    attributes, nothing has any. `by_name`: where `go_by_name`; else through /proc.
    """

def get_xattr(directory: int, entry: bytes, attribute: bytes, /) -> bytes:
    """The value, where `go_by_name`."""
