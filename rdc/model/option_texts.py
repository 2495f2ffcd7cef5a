"""What texts of option values mean: sizes and rates, changes of permissions, maps of users and groups.

A run that is given none of them does not load this module.
"""

from __future__ import annotations

import re

from rdc.lean.records import dataclass
from rdc.limits.wire import SIZE_LIMIT

_SIZE = re.compile(
    r"(\d{1,19}(?:\.\d{0,9})?|\.\d{1,9})(?: ?(?:(b)|([kmgtp])(b|ib)?))?", re.ASCII | re.IGNORECASE
)


def parse_size(text: str, *, unit: int = 1) -> int | None:
    """Bytes, rounded down and at most SIZE_LIMIT; None if `text` is no size.

    K, M, G, T, P (and KiB ...) are powers of 1024; KB, MB ... are powers of 1000; B is a byte; case does not
    matter. unit: the bytes that a number without a letter counts.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    number, byte, letter, ending = found.groups()
    whole, _, decimals = number.partition(".")
    if letter is not None:
        base = 1000 if (ending or "").lower() == "b" else 1024
        unit = base ** ("kmgtp".index(letter.lower()) + 1)
    elif byte is not None:
        unit = 1
    # In integers: a product of floats would lose bytes.
    size: int = int(whole + decimals) * unit // 10 ** len(decimals)
    return min(size, SIZE_LIMIT)


# --- changes of permissions, written as in chmod(1) with rsync's prefixes D and F ---------------------------

_ALL = 0o7777
_PERMISSIONS = {"r": 4, "w": 2, "x": 1, "X": 1}
_CLASSES = {"u": 0o100, "g": 0o010, "o": 0o001, "a": 0o111}
_SPECIAL = {"u": 0o4000, "g": 0o2000, "a": 0o6000}
_SPECIAL_OF_COPY = {"u": 0o4000, "g": 0o2000, "o": 0o1000, "a": 0o7000}
_SHIFTS = {"u": 6, "g": 3, "o": 0}


@dataclass(frozen=True, slots=True)
class ModeChange:
    """One item between commas."""

    directories: bool
    """Whether it applies to directories."""
    files: bool
    """Whether it applies to regular files."""
    keep: int
    """The bits of the old mode that stay."""
    add: int
    """The bits that are set."""
    add_executable: bool = True
    """Whether x is set too in files that have no x at all."""
    copy_from: int | None = None
    """The shift of the class whose permissions are copied; None: nothing is copied."""
    copy_to: int = 0
    """The classes that they are copied to: a sum of 0o100, 0o010 and 0o001."""
    copy_removes: bool = False
    """Whether the copied bits are taken away, not set."""
    copy_mask: int = _ALL
    """The copied bits that count: without a class, the umask's bits do not."""

    def applied(self, mode: int, *, directory: bool, executable: bool) -> int:
        """The mode after this item. `executable`: whether the mode had an x before the first item."""
        if not (self.directories if directory else self.files):
            return mode
        if self.copy_from is not None:
            bits = self.copy_to * (mode >> self.copy_from & 7) & self.copy_mask
            return mode & ~bits if self.copy_removes else mode & self.keep | bits
        add = self.add if self.add_executable or directory or executable else self.add & ~0o111
        return mode & self.keep | add


@dataclass(frozen=True, slots=True)
class ModeChanges:
    """A list of items, applied in order."""

    items: tuple[ModeChange, ...]

    def applied(self, mode: int, *, directory: bool) -> int:
        """The permissions of a file or directory whose permissions are `mode`."""
        executable = bool(mode & 0o111)
        for item in self.items:
            mode = item.applied(mode, directory=directory, executable=executable)
        return mode


def parse_mode_changes(text: str, umask: int = 0) -> ModeChanges:
    """Parses items separated by commas. `umask`: as chmod(1) uses it, for items that name no class.

    Raises ValueError that names the item.
    """
    return ModeChanges(tuple(_mode_change(item, umask) for item in text.split(",")))


def _mode_change(item: str, umask: int) -> ModeChange:
    at = 0
    while at < len(item) and item[at] in "DFugoa":
        at += 1
    prefix, operator, rest = item[:at], item[at : at + 1], item[at + 1 :]
    directories, files = "F" not in prefix, "D" not in prefix
    classes = prefix.replace("D", "").replace("F", "")
    if not (directories or files):
        raise ValueError(f"{item}: D and F exclude each other")
    octal = None if classes else _octal(item[at:])
    if octal is not None:
        return ModeChange(directories, files, 0, octal)
    if operator not in tuple("+-="):
        raise ValueError(f"{item}: expected a mode such as u+w, go=rX, D755 or F644")
    if len(rest) == 1 and rest in _SHIFTS:
        return _copy_item(directories, files, classes, operator, rest, umask)
    if not set(rest) <= {*_PERMISSIONS, "s", "t"}:
        raise ValueError(f"{item}: {rest} is not one of u, g and o, and not of the letters rwxXst")
    return _letter_item(directories, files, classes, operator, rest, umask)


def _octal(digits: str) -> int | None:
    """Returns the mode that `digits` write, or None if they write none."""
    if not 1 <= len(digits) <= 5 or not set(digits) <= set("01234567"):
        return None
    mode = int(digits, 8)
    return mode if mode <= _ALL else None


def _letter_item(
    directories: bool, files: bool, classes: str, operator: str, letters: str, umask: int
) -> ModeChange:
    where, special = _bits(classes, _CLASSES), _bits(classes, _SPECIAL)
    what = _bits(letters, _PERMISSIONS)
    bits = where * what if where else 0o111 * what & ~umask
    top = 0
    for letter in letters:
        if letter == "t":
            top |= 0o1000
        elif letter == "s":
            # As in rsync, s forgets an earlier t where no class has such a bit.
            top = top | special if special else 0o4000
    if operator == "-":
        return ModeChange(directories, files, _ALL & ~(bits | top), 0)
    keep = _ALL if operator == "+" else _ALL & ~((where or 0o111) * 7) & ~(special if top else 0)
    return ModeChange(directories, files, keep, bits | top, "X" not in letters)


def _copy_item(
    directories: bool, files: bool, classes: str, operator: str, source: str, umask: int
) -> ModeChange:
    where = _bits(classes, _CLASSES)
    keep = _ALL
    if operator == "=":
        keep &= ~((where or 0o111) * 7) & ~_bits(classes or "a", _SPECIAL_OF_COPY)
    return ModeChange(
        directories,
        files,
        keep,
        0,
        copy_from=_SHIFTS[source],
        copy_to=where or 0o111,
        copy_removes=operator == "-",
        copy_mask=_ALL if where else _ALL & ~umask,
    )


def _bits(letters: str, values: dict[str, int]) -> int:
    bits = 0
    for letter in letters:
        bits |= values.get(letter, 0)
    return bits


# --- maps of users or groups, written as in rsync: FROM:TO items between commas -----------------------------

ID_LIMIT = 0xFFFF_FFFE
"""The largest id. The next one means "leave it" to chown(2)."""


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """One item of a map."""

    item: bytes
    """As the user wrote it."""
    to: bytes
    """A name or a number at the destination."""
    name: bytes | None = None
    """The source's name, with wildcards if `wild`; b"" for ids without a name. None: the numbers count."""
    wild: bool = False
    lowest: int = 0
    highest: int = 0
    """The last of the source's ids that the item is about."""

    @property
    def number(self) -> int | None:
        """The id that `to` writes; None for a name."""
        return int(self.to) if self.to.isdigit() else None


def parse_owner_map(text: bytes) -> tuple[OwnerRule, ...]:
    """Parses a map such as b"0-99:nobody,wayne:admin,*:normal". Raises ValueError that names the item."""
    return tuple(map(_owner_rule, text.split(b",")))


def _owner_rule(item: bytes) -> OwnerRule:
    source, colon, to = item.partition(b":")
    shown = item.decode("utf-8", "backslashreplace")
    if not colon or not to:
        raise ValueError(f"{shown}: expected FROM:TO, such as 1000:nobody, 0-99:daemon or *:users")
    if b"\0" in item:
        raise ValueError(f"{shown!r}: a name has no NUL byte")
    if to[:1].isdigit():
        _id(to, shown)
    if not source[:1].isdigit():
        return OwnerRule(item, to, source, not {*b"*?["}.isdisjoint(source))
    first, dash, last = source.partition(b"-")
    lowest = _id(first, shown)
    highest = _id(last, shown) if dash else lowest
    if highest < lowest:
        raise ValueError(f"{shown}: the range ends before it begins")
    return OwnerRule(item, to, None, False, lowest, highest)


def _id(digits: bytes, shown: str) -> int:
    if not (digits.isdigit() and len(digits) <= 10 and int(digits) <= ID_LIMIT):
        raise ValueError(f"{shown}: an id is a number from 0 to {ID_LIMIT}")
    return int(digits)
