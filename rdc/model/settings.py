"""TOML files read strictly: every key is known, every value has its type, and a mistake is named with its
line."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits import SETTINGS_BYTES
from rdc.records import dataclass
from rdc.typed import TypeVar

__all__ = ["Table", "read_settings", "read_size"]

T = TypeVar("T")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Table:
    """One table of a file. A value is taken by its key; `finish` refuses whatever nobody asked for.

    All methods raise UsageError, one line that names file, line and key.
    """

    def __init__(self, file: _File, path: tuple[str, ...], values: dict[str, object]) -> None:
        self._file = file
        self._path = path
        self._values = values
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """`default` None: the key must be there."""
        return self._take(key, str, "text in quotes", default)

    def flag(self, key: str, default: bool) -> bool:
        return self._take(key, bool, "true or false", default)

    def number(self, key: str, default: int, *, least: int, most: int) -> int:
        return self._between(key, self._take(key, int, "a whole number", default), least, most)

    def size(self, key: str, default: int, *, least: int, most: int) -> int:
        """Bytes: a number, or text such as "512M"."""
        text = self._values.get(key)
        if not isinstance(text, str):
            return self.number(key, default, least=least, most=most)
        self._known.add(key)
        found = read_size(text)
        if found is None:
            raise self.error(key, f"expected a size such as \"512M\", found '{text}'")
        return self._between(key, found, least, most)

    def scalar(self, key: str) -> str:
        """What is needed as text but may be written as a number."""
        value = self._values.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            self._known.add(key)
            return str(value)
        return self.text(key)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts, or a single one."""
        if isinstance(self._values.get(key), str):
            return (self.text(key),)
        items = self._take(key, list, "a list of texts in quotes", None if default is None else [*default])
        if not all(isinstance(item, str) for item in items):
            raise self.error(key, "expected a list of texts in quotes")
        return tuple(items)

    def table(self, key: str) -> Table:
        """[key], an empty one where the file has none."""
        return Table(self._file, (*self._path, key), self._take(key, dict, f"a table [{key}]", {}))

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables [key.NAME]."""
        outer = self.table(key)
        for name in outer._values:
            yield name, outer.table(name)

    def finish(self, hint: str = "") -> None:
        """Refuses keys that nobody took; `hint` says more where none of the known ones is alike."""
        for key in self._values:
            if key not in self._known:
                import difflib

                near = difflib.get_close_matches(key, self._known, n=1, cutoff=0.7)
                raise self.error(
                    key, "there is no such setting" + (f"; did you mean '{near[0]}'?" if near else hint)
                )

    def error(self, key: str, message: str) -> UsageError:
        path = (*self._path, key)
        return UsageError(f"{self._file.name}:{self._file.line_of(path)}: {'.'.join(path)}: {message}")

    def _take(self, key: str, kind: type[T], expected: str, default: T | None) -> T:
        self._known.add(key)
        if key not in self._values:
            if default is None:
                inside = f" in [{'.'.join(self._path)}]" if self._path else ""
                raise UsageError(f"{self._file.name}: '{key}' is missing{inside}; {expected} is expected")
            return default
        value = self._values[key]
        # bool is an int to Python, not to whoever writes `connections = true`.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"expected {expected}")
        return value

    def _between(self, key: str, value: int, least: int, most: int) -> int:
        if not least <= value <= most:
            raise self.error(key, f"expected {least} to {most}, found {value}")
        return value


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    text: str

    def line_of(self, path: tuple[str, ...]) -> int:
        """The line on which the statement begins that gives `path` its value.

        tomllib keeps no lines. But what it reads are statements on whole lines, so the key is there from some
        prefix of the file on: the statement begins after the longest prefix that can be read without it.
        """
        import tomllib

        lines = self.text.split("\n")

        def holds(count: int) -> bool | None:
            """Whether the first `count` lines give `path` a value; None: they end inside a statement."""
            try:
                values: object = tomllib.loads("\n".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                return None
            for key in path:
                if not isinstance(values, dict) or key not in values:
                    return False
                values = values[key]
            return True

        # `without` can be read and does not hold it; of what lies from `bound` on, nothing is sought.
        without, bound = 0, len(lines)
        while without + 1 < bound:
            middle = (without + bound) // 2
            count, held = middle, holds(middle)
            while held is None and count + 1 < bound:
                count += 1
                held = holds(count)
            if held is False:
                without = count
            else:
                bound = middle
        return without + 1


def read_settings(path: str | os.PathLike[str]) -> Table | None:
    """The file's top table; None where nothing is at `path`. Raises UsageError or RdcError (11)."""
    import tomllib

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"{path}: expected a file with settings, found something else")
            data = file.read(SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RdcError(f"{path}: cannot read it: {error.strerror}", code=ExitCode.FILE_IO) from error
    if len(data) > SETTINGS_BYTES:
        raise UsageError(f"{path}: more than {SETTINGS_BYTES} bytes of settings; rdc takes no more")
    try:
        text = data.decode().replace("\r\n", "\n")
        return Table(_File(os.fspath(path), text), (), tomllib.loads(text))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: expected UTF-8, found other bytes") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        if found is None:
            raise UsageError(f"{path}:{text.count(chr(10)) + 1}: not TOML: {error}") from error
        message = str(error).replace(found[0], "")
        raise UsageError(f"{path}:{found[1]}: not TOML: {message}") from error


def read_size(text: str) -> int | None:
    """Bytes of "4096", "512M", "2 G" (powers of 1024); None for anything else."""
    found = re.fullmatch(r"(\d{1,15}) ?([KMGT]?)(?:i?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    return None if found is None else int(found[1]) * _UNITS[found[2].upper()]
