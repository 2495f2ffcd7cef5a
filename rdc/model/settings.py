"""A strict reader of TOML files: the keys of a table are declared with type and range, and a mistake is one
line that names the file and the key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.lean.enums import Enum
from rdc.lean.records import Record, field, field_metadata
from rdc.limits import SETTINGS_BYTES, SETTINGS_KEY_PARTS, SIZE_LIMIT
from rdc.model.options import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Settings: TypeAlias = Mapping[str, "Setting"]
    """The settings of one table by key."""

_SHOWN = 200
"""Characters of a message, or of a name in it: a file may consist of one long value."""


class SettingKind(Enum):
    """The kind of a value, as an error says it."""

    TEXT = "text in quotes"
    TEXTS = "a list of texts in quotes"
    """One text alone is a list of it."""
    FLAG = "true or false"
    NUMBER = "a whole number"
    SIZE = "a whole number of bytes, or a size in quotes"
    """Bytes: a number, or text such as "512M", as in options."""
    SCALAR = "text in quotes, or a whole number"
    """A value that is needed as text but may be written as a number."""


class Setting(Record):
    """The declaration of one key of a file."""

    kind: SettingKind
    least: int = -SIZE_LIMIT
    most: int = SIZE_LIMIT
    module: bool = True
    """A limit of the daemon: whether a module may have its own."""
    required: bool = False


def setting(kind: SettingKind, default: object = None, **declared: Any) -> Any:
    """Return a field of a record that a table is read into. `default`: of a key that the file lacks;
    `declared`: as in Setting."""
    return field(default=default, metadata={"setting": Setting(kind, **declared)})


def settings_of(record: type) -> Settings:
    """Return the settings that a record declares. A key is the field's name with hyphens."""
    return {name.replace("_", "-"): each["setting"] for name, each in field_metadata(record).items()}


class Table:
    """One table of a file. All methods raise UsageError, one line with file and key."""

    def __init__(self, file: str, path: tuple[str, ...], values: dict[str, object]) -> None:
        self._file = file
        self._path = path
        self._values = values

    def read(self, settings: Settings, *, tables: Collection[str] = (), hint: str = "") -> dict[str, Any]:
        """Return the values that the file has, by field name. All other keys but `tables` are refused; `hint`
        is added if no known key is similar."""
        known = {*settings, *tables}
        for key in self._values:
            if key not in known:
                import difflib

                near = difflib.get_close_matches(key[:_SHOWN], known, n=1, cutoff=0.7)
                raise self.error(
                    key, "there is no such setting" + (f"; did you mean '{near[0]}'?" if near else hint)
                )
        for key, declared in settings.items():
            if declared.required and key not in self._values:
                inside = f" in [{_short('.'.join(self._path))}]" if self._path else ""
                raise UsageError(
                    f"{self._file}: '{key}' is missing{inside}; {declared.kind.value} is expected"
                )
        return {
            key.replace("-", "_"): self._checked(key, self._values[key], declared)
            for key, declared in settings.items()
            if key in self._values
        }

    def table(self, key: str) -> Table:
        """Return the table [key]; an empty one if the file has none."""
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"expected a table [{key}]")
        return Table(self._file, (*self._path, key), value)

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Yield the tables [key.NAME]."""
        outer = self.table(key)
        for name in outer._values:
            yield name, outer.table(name)

    def error(self, key: str, message: str) -> UsageError:
        return UsageError(f"{self._file}: {_short('.'.join((*self._path, key)))}: {_short(message)}")

    def _checked(self, key: str, value: object, declared: Setting) -> object:
        kind = declared.kind
        if isinstance(value, bool):  # an int in Python, but `connections = true` is a mistake
            if kind is SettingKind.FLAG:
                return value
        elif isinstance(value, int):
            if kind in (SettingKind.NUMBER, SettingKind.SIZE):
                return self._between(key, value, declared)
            if kind is SettingKind.SCALAR:
                return str(self._between(key, value, declared))
        elif isinstance(value, str):
            if kind is SettingKind.SIZE:
                found = parse_size(value)
                if found is None:
                    raise self.error(key, f"expected a size such as \"512M\", found '{value}'")
                return self._between(key, found, declared)
            if kind in (SettingKind.TEXT, SettingKind.SCALAR):
                return self._whole(key, value)
            if kind is SettingKind.TEXTS:
                return (self._whole(key, value),)
        elif kind is SettingKind.TEXTS and isinstance(value, list):
            texts = [self._whole(key, item) for item in value if isinstance(item, str)]
            if len(texts) == len(value):
                return tuple(texts)
        raise self.error(key, f"expected {kind.value}")

    def _between(self, key: str, value: int, declared: Setting) -> int:
        if not declared.least <= value <= declared.most:
            # Python refuses to format numbers with many digits, which no one could read.
            found = str(value) if value.bit_length() <= 63 else "a number with more than 19 digits"
            raise self.error(key, f"expected {declared.least} to {declared.most}, found {found}")
        return value

    def _whole(self, key: str, text: str) -> str:
        """Return the text. No system call takes a name with a NUL."""
        if "\0" in text:
            raise self.error(key, "expected text without the character U+0000")
        return text


def read_settings(path: str | os.PathLike[str]) -> Table | None:
    """Return the file's top table; None if there is no file at `path`.

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
            raise UsageError(
                f"{path}: more than {SETTINGS_KEY_PARTS} parts in a key; no setting has that many"
            )
        return Table(os.fspath(path), (), tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected UTF-8, found other bytes") from error
    except tomllib.TOMLDecodeError as error:
        hint = "; put text in quotes" if str(error).startswith("Invalid value") else ""
        raise UsageError(f"{path}: not TOML: {_short(str(error))}{hint}") from error
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
    """Raise UsageError if another user than this one and root may change what is at `path`. In a directory
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
    """Return whether a dotted key has more than SETTINGS_KEY_PARTS parts. It takes linear time: a run of
    letters is matched only from its first one, without backtracking."""
    if text.count(".") < SETTINGS_KEY_PARTS:
        return False
    part = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
    return re.search(f"(?<![\\w-])(?:{part}){{{SETTINGS_KEY_PARTS}}}", text, re.ASCII) is not None


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
