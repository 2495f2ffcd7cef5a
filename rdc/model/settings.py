"""A strict reader of TOML files: keys must be known, values have their type and range, and a mistake is one
line that names the file and the key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits.daemon import SETTINGS_BYTES, SETTINGS_KEY_PARTS
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.option_texts import parse_size
from rdc.typed import TypeVar

__all__ = ["Table", "read_settings"]

T = TypeVar("T")

_SHOWN = 200
"""Characters of a message, or of a name in it: a file may consist of one long value."""


class Table:
    """One table of a file. Methods take values by key; `finish` refuses all keys that nothing took.

    All methods raise UsageError, one line with file and key.
    """

    def __init__(self, file: str, path: tuple[str, ...], values: dict[str, object]) -> None:
        self._file = file
        self._path = path
        self._values = values
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """A text. default None: the key is required."""
        return self._whole(key, self._take(key, str, "text in quotes", default))

    def flag(self, key: str, default: bool) -> bool:
        return self._take(key, bool, "true or false", default)

    def number(self, key: str, default: int, *, least: int, most: int) -> int:
        return self._between(key, self._take(key, int, "a whole number", default), least, most)

    def size(self, key: str, default: int, *, least: int, most: int) -> int:
        """Bytes: a number, or text such as "512M", as in options."""
        text = self._values.get(key)
        if not isinstance(text, str):
            return self.number(key, default, least=least, most=most)
        self._known.add(key)
        found = parse_size(text)
        if found is None:
            raise self.error(key, f"expected a size such as \"512M\", found '{text}'")
        return self._between(key, found, least, most)

    def scalar(self, key: str) -> str:
        """A value that is needed as text but may be written as a number."""
        value = self._values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            self._known.add(key)
            return str(self._between(key, value, -SIZE_LIMIT, SIZE_LIMIT))
        return self.text(key)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts, or a single one."""
        if isinstance(self._values.get(key), str):
            return (self.text(key),)
        items = self._take(key, list, "a list of texts in quotes", None if default is None else [*default])
        if not all(isinstance(item, str) for item in items):
            raise self.error(key, "expected a list of texts in quotes")
        return tuple(self._whole(key, item) for item in items)

    def table(self, key: str) -> Table:
        """The table [key]; an empty one if the file has none."""
        return Table(self._file, (*self._path, key), self._take(key, dict, f"a table [{key}]", {}))

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables [key.NAME]."""
        outer = self.table(key)
        for name in outer._values:
            yield name, outer.table(name)

    def finish(self, hint: str = "", known: Collection[str] = ()) -> None:
        """Refuse keys that nothing took. `hint`: added if no known key is similar. `known`: keys that are
        optional, for a reader that takes only those that are there."""
        known = {*self._known, *known}
        for key in self._values:
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key[:_SHOWN], known, n=1, cutoff=0.7)
                raise self.error(
                    key, "there is no such setting" + (f"; did you mean '{near[0]}'?" if near else hint)
                )

    def error(self, key: str, message: str) -> UsageError:
        return UsageError(f"{self._file}: {_short('.'.join((*self._path, key)))}: {_short(message)}")

    def _take(self, key: str, kind: type[T], expected: str, default: T | None) -> T:
        self._known.add(key)
        if key not in self._values:
            if default is None:
                inside = f" in [{_short('.'.join(self._path))}]" if self._path else ""
                raise UsageError(f"{self._file}: '{key}' is missing{inside}; {expected} is expected")
            return default
        value = self._values[key]
        # bool is an int in Python, but `connections = true` is a mistake.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"expected {expected}")
        return value

    def _between(self, key: str, value: int, least: int, most: int) -> int:
        if not least <= value <= most:
            # Python refuses to format numbers with many digits, which no one could read.
            found = str(value) if value.bit_length() <= 63 else "a number with more than 19 digits"
            raise self.error(key, f"expected {least} to {most}, found {found}")
        return value

    def _whole(self, key: str, text: str) -> str:
        """The text. No system call takes a name with a NUL."""
        if "\0" in text:
            raise self.error(key, "expected text without the character U+0000")
        return text


def read_settings(path: str | os.PathLike[str]) -> Table | None:
    """The file's top table; None if there is no file at `path`.

    Settings name programs, directories and who may use them. So UsageError is raised for a file that another
    user than this one and root may write, and for one in such a directory. UsageError or RdcError (11) also
    for any mistake in it.
    """
    import tomllib

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path}: expected a file with settings, found something else")
            _check_writers(os.fspath(path), status)
            directory = os.path.dirname(os.fspath(path)) or "."
            _check_writers(directory, os.stat(directory))
            data = file.read(SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RdcError(f"{path}: cannot read it: {error.strerror}", code=ExitCode.FILE_IO) from error
    if len(data) > SETTINGS_BYTES:
        raise UsageError(f"{path}: more than {SETTINGS_BYTES} bytes of settings; rdc takes no more")
    try:
        text = data.decode()
        if _has_deep_key(text):
            raise UsageError(f"{path}: more than {SETTINGS_KEY_PARTS} parts in a key; no setting has so many")
        return Table(os.fspath(path), (), tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected UTF-8, found other bytes") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {_short(str(error))}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: values are nested too deeply; no setting needs more than three") from error
    except MemoryError as error:
        raise RdcError(f"{path}: not enough memory to read the settings", code=ExitCode.FILE_IO) from error
    except (ValueError, OverflowError) as error:
        # Python refuses some values that TOML allows, such as an integer of 5,000 digits.
        raise UsageError(
            f"{path}: expected settings, found a value beyond all: {_short(str(error))}"
        ) from error


def _check_writers(path: str, found: os.stat_result) -> None:
    """Raises UsageError if another user than this one and root may change what is at `path`. In a directory
    with the sticky bit nobody can take the place of another user's file."""
    if found.st_uid not in (0, os.geteuid()):
        raise UsageError(
            f"{path}: it belongs to another user (uid {found.st_uid}), who can change the settings; give it"
            " to the user that runs rdc, or run as that user"
        )
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        raise UsageError(
            f"{path}: others can change it (mode {found.st_mode & 0o7777:o}), and with it the settings; close"
            f" it with: chmod go-w {path}"
        )


def _has_deep_key(text: str) -> bool:
    """Whether a dotted key has more than SETTINGS_KEY_PARTS parts. It takes linear time: a run of letters is
    matched only from its first one, without backtracking."""
    if text.count(".") < SETTINGS_KEY_PARTS:
        return False
    part = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
    return re.search(f"(?<![\\w-])(?:{part}){{{SETTINGS_KEY_PARTS}}}", text, re.ASCII) is not None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
