"""The declaration of an option of a sync. Each one is declared once, at its field of SyncOptions in
rdc.model.sync:

    depth: int = option(0, CONNECTION,
        Option(("--depth",), "have N calls to storage in flight ...", "N", note="...", rsync="..."),
        most=DEPTH_LIMIT, parse=parse_depth, wire=SPARED, check=True)
    \"\"\"Calls to storage in flight at a time, on each side.\"\"\"

Name, type and default stand where a type checker reads them. The call adds what else is to be known, and
everything that needs an option derives from it:

- the checks of the record: range, form, and which options exclude each other (`check_options`);
- the command line of `rdc sync`, `rdc watch` and partly of `rdc check`, their help, man pages and completions
  (rdc.cli.options.sync_options; values that several options make have a reader there);
- Open on the wire (rdc.protocol.wire.options), where a new option travels by its name;
- what a daemon's module or a confined key refuses (rdc.daemon.access);
- what `rdc watch` refuses and `rdc check` takes, and whether a pair of trees in sync depends on it;
- its paragraph in the manual and its row in the comparison with rsync (scripts/manual).

Every start loads the declarations, so they are plain tuples of constants: 0.3 ms in total.
"""

from __future__ import annotations

import os

from rdc import limits
from rdc.errors import UsageError
from rdc.lean.enums import Enum
from rdc.lean.records import Record, field, field_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")

ALWAYS = object()
"""The mark of a flag that says what holds anyway."""


class Option(Record):
    """One option of a command line: its names, its explanation and its value, if it takes one."""

    names: tuple[str, ...]
    """All spellings, `-x` or `--word`. Abbreviations are not accepted."""
    help: str
    metavar: str | None = None
    """The name of the value in the help text. None means a flag."""
    sets: object = True
    """A flag at a field: what it makes of the field. The last flag on a command line counts."""
    also: tuple[tuple[str, object], ...] = ()
    """A flag at a field: further fields, and what it makes of them."""
    group: str | None = None
    """The title that it stands below, if it is not that of its field."""
    note: str = ""
    """The text that the manual adds to `help`."""
    example: str = ""
    """The words behind `rdc sync` of an example in the manual, where `metavar` cannot give one."""
    rsync: str = ""
    """Its difference from rsync's option of this name."""
    watch: bool = True
    """An option without a field: whether `rdc watch` has it. At a field, the field says so."""
    common: bool = False
    """True if most runs can use it: the short help of `rdc sync` and `rdc watch` lists only such options."""
    values: tuple[str, ...] = ()
    """The texts that a value may be, where they are few, for completions. A flag with values takes one after
    `=`, or none."""

    @property
    def key(self) -> str:
        """The first long name, or the only name. Verbs look options up by it."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


class Carrier(Enum):
    """The place of an option in an Open. PROTOCOL.md has the form; only NAMED and SPARED take new ones."""

    ITEM = "item"
    """An item of the list, always there."""
    BIT = "bit"
    """A bit of an integer in the list, which says that the option differs from its default."""
    BOUND = "bound"
    """An item at the end of the list, where one of them differs from its default."""
    NAMED = "named"
    """Its name and value, if it differs from its default. Both sides have to know it."""
    SPARED = "spared"
    """An item of the list that a side without the option ignores."""
    HERE = "here"
    """Nowhere: it is about this machine's end."""
    NOWHERE = "nowhere"


class Wire(Record):
    """The form in which an option travels."""

    carrier: Carrier
    at: int = 0
    """Its position among those of an ITEM, BIT or BOUND."""


def item(at: int) -> Wire:
    return Wire(Carrier.ITEM, at)


def bit(at: int) -> Wire:
    return Wire(Carrier.BIT, at)


def bound(at: int) -> Wire:
    return Wire(Carrier.BOUND, at)


NAMED, SPARED, HERE, NOWHERE = map(Wire, (Carrier.NAMED, Carrier.SPARED, Carrier.HERE, Carrier.NOWHERE))


class Need(Enum):
    """The rights that an option needs in the directory that it is carried out in. A key or module may deny
    it."""

    COMPARING = "nothing in it is compared"
    """It tells of what was there before, which no write-only directory does."""
    DELETING = "nothing may be deleted in it"
    REPLACING = "nothing in it is replaced"
    OVERWRITING = "nothing in it is written into"
    OWNERS = "no owners are kept"


class Exclusion(Record):
    """Options that an option goes without."""

    others: tuple[str, ...]
    """Their fields. A field counts if it differs from its default."""
    sentence: str
    """The error, with two {} for both options."""
    when: Callable[[Any], bool] | None = None
    """The excluded values of `others`; None: all."""


def excludes(others: str, why: str, *, when: Callable[[Any], bool] | None = None) -> Exclusion:
    """Exclude the fields named in `others`, with spaces between. `why` ends the error."""
    return Exclusion(tuple(others.split()), f"{{}} and {{}} exclude each other: {why}", when)


def goes_without(others: str, sentence: str, *, when: Callable[[Any], bool] | None = None) -> Exclusion:
    """Return the declaration with an error of its own."""
    return Exclusion(tuple(others.split()), sentence, when)


class Declared(Record):
    """The declaration of a field of SyncOptions, besides its name and type."""

    default: Any
    group: str
    """The title that its options stand below in the help text."""
    options: tuple[Option, ...]
    """Its spelling on a command line; empty: something else implies it."""
    least: int
    most: int
    """The range of a number; the greatest length of a text, in bytes."""
    valid: Callable[[Any], object] | None
    """Raises ValueError for a value of the right type that means nothing."""
    parse: Callable[[str], object] | None
    """Reads the text of a command line. Raises ValueError with what is expected."""
    excludes: tuple[Exclusion, ...]
    wire: Wire
    needs: tuple[Need, ...]
    watch: bool
    """True if a watch takes it. One that does not would cost much in each turn, or keep the trees
    different."""
    check: bool
    """True if a check takes it. One that does not says what a sync writes, or which files it leaves."""
    alias: str
    """An option that stands for one of `options`, as errors name it, too."""
    pair: bool
    """True if two trees that need nothing under one value of it may need something under another."""

    def check_value(self, value: Any) -> None:
        """Raise ValueError for a value of the right type that is out of range or means nothing."""
        if type(value) is int and not self.least <= value <= self.most:
            raise ValueError(f"{value} is not in {self.least}..{self.most}")
        if isinstance(value, bytes | str) and len(value) > self.most:
            raise ValueError(f"{len(value)} bytes, the limit is {self.most}")
        if self.valid is not None:
            self.valid(value)

    def spelling(self, value: Any) -> str:
        """Return the option that gives the field this value; "" for one that no option gives by itself."""
        own: str | None = getattr(value, "option", None)
        if own is not None:
            return own
        fitting = (each.key for each in self.options if each.metavar is not None or each.sets == value)
        return next(fitting, "") + (f" (or {self.alias})" if self.alias else "")


def option(
    default: T,
    group: str = "",
    *options: Option,
    least: int = 0,
    most: int = limits.SIZE_LIMIT,
    valid: Callable[[Any], object] | None = None,
    parse: Callable[[str], object] | None = None,
    excludes: tuple[Exclusion, ...] = (),
    wire: Wire = NAMED,
    needs: tuple[Need, ...] = (),
    watch: bool = True,
    check: bool = False,
    alias: str = "",
    pair: bool = False,
) -> T:
    """Declare a field with a default, as Declared says."""
    declared = Declared(
        default, group, options, least, most, valid, parse, excludes, wire, needs, watch, check, alias, pair
    )
    return field(default=default, metadata={"declared": declared})


def declared_options(record_class: type) -> dict[str, Declared]:
    """Return what `option` declared of each field, in their order."""
    return {name: metadata["declared"] for name, metadata in field_metadata(record_class).items()}


def check_options(record: object, declared: Mapping[str, Declared]) -> None:
    """Raise ValueError for a value that its field cannot have, UsageError for fields that exclude each
    other."""
    given = {}
    for name, each in declared.items():
        value = getattr(record, name)
        if value != each.default:
            given[name] = value
    for name, value in given.items():
        try:
            declared[name].check_value(value)
        except ValueError as error:
            raise ValueError(f"{type(record).__name__}.{name}: {error}") from None
    for name, value in given.items():
        for exclusion in declared[name].excludes:
            for other in exclusion.others:
                if other in given and (exclusion.when is None or exclusion.when(given[other])):
                    names = declared[name].spelling(value), declared[other].spelling(given[other])
                    raise UsageError(exclusion.sentence.format(*names))


# The meaning of texts of option values: sizes and rates, changes of permissions, maps of users and groups.


def parse_size(text: str, *, unit: int = 1) -> int | None:
    """Return the bytes, rounded down and at most SIZE_LIMIT; None if `text` is no size.

    K, M, G, T, P (and KiB ...) are powers of 1024; KB, MB ... are powers of 1000; B is a byte; case does not
    matter. unit: the bytes that a number without a letter counts.
    """
    import re  # most syncs are given no size

    pattern = re.compile(
        r"(\d{1,19}(?:\.\d{0,9})?|\.\d{1,9})(?: ?(?:(b)|([kmgtp])(b|ib)?))?", re.ASCII | re.IGNORECASE
    )
    found = pattern.fullmatch(text)
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
    return min(size, limits.SIZE_LIMIT)


# --- changes of permissions, written as in chmod(1) with rsync's prefixes D and F ---------------------------

_ALL = 0o7777
_PERMISSIONS = {"r": 4, "w": 2, "x": 1, "X": 1}
_CLASSES = {"u": 0o100, "g": 0o010, "o": 0o001, "a": 0o111}
_SPECIAL = {"u": 0o4000, "g": 0o2000, "a": 0o6000}
_SPECIAL_OF_COPY = {"u": 0o4000, "g": 0o2000, "o": 0o1000, "a": 0o7000}
_SHIFTS = {"u": 6, "g": 3, "o": 0}


class ModeChange(Record):
    """One item between commas."""

    directories: bool
    """True if it applies to directories."""
    files: bool
    """True if it applies to regular files."""
    keep: int
    """The bits of the old mode that stay."""
    add: int
    """The bits that are set."""
    add_executable: bool = True
    """True if x is set too in files that have no x at all."""
    copy_from: int | None = None
    """The shift of the class whose permissions are copied; None: nothing is copied."""
    copy_to: int = 0
    """The classes that they are copied to: a sum of 0o100, 0o010 and 0o001."""
    copy_removes: bool = False
    """True if the copied bits are taken away, not set."""
    copy_mask: int = _ALL
    """The copied bits that count: without a class, the umask's bits do not."""

    def applied(self, mode: int, *, directory: bool, executable: bool) -> int:
        """Return the mode after this item. `executable`: whether the mode had an x before the first item."""
        if not (self.directories if directory else self.files):
            return mode
        if self.copy_from is not None:
            bits = self.copy_to * (mode >> self.copy_from & 7) & self.copy_mask
            return mode & ~bits if self.copy_removes else mode & self.keep | bits
        add = self.add if self.add_executable or directory or executable else self.add & ~0o111
        return mode & self.keep | add


class ModeChanges(Record):
    """A list of items, applied in order."""

    items: tuple[ModeChange, ...]

    def applied(self, mode: int, *, directory: bool) -> int:
        """Return the permissions of a file or directory whose permissions are `mode`."""
        executable = bool(mode & 0o111)
        for item in self.items:
            mode = item.applied(mode, directory=directory, executable=executable)
        return mode


def parse_mode_changes(text: str, umask: int = 0) -> ModeChanges:
    """Parse items separated by commas. `umask`: as chmod(1) uses it, for items that name no class.

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
    """Return the mode that `digits` write, or None if they write none."""
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
            # s forgets an earlier t where no class has such a bit, as in rsync.
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


class OwnerRule(Record):
    """One item of a map."""

    item: bytes
    """The text as the user wrote it."""
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
    """Parse a map such as b"0-99:nobody,wayne:admin,*:normal". Raises ValueError that names the item."""
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


# Values of sync options that are more than a number or a text, and how the command line's texts are read.
#
# A reader raises ValueError with what is expected; the command line puts the option in front of it.


def check_types(record: object) -> None:
    """Check the types of a record's fields, as check_fields does."""
    # Most starts need the declarations of options and make no such value.
    from rdc.lean.checks import check_fields

    check_fields(record)


class Backup(Record):
    """The place where a sync keeps old versions: at the entry's path below `directory`, with `suffix` behind
    its name.

    >>> import rdc
    >>> rdc.SyncOptions(backup=rdc.Backup(b"~")).backup.suffix
    b'~'
    """

    suffix: bytes
    """Not empty unless `directory` is given. It has no slash."""
    directory: bytes | None = None
    """Relative to the destination, or absolute; None: beside the entry."""

    def __post_init__(self) -> None:
        check_types(self)
        if b"/" in self.suffix or len(self.suffix) > limits.NAME_BYTES or not (self.suffix or self.directory):
            raise ValueError("Backup.suffix: the end of a name is expected, and needed without a directory")
        if self.directory is not None:
            check_path("Backup.directory", self.directory)
        if b"\0" in self.suffix:
            raise ValueError("Backup.suffix: a name has no NUL byte")

    @property
    def option(self) -> str:
        """The option that asks for it."""
        return "--backup" if self.directory is None else "--backup-dir"


class AlternateUse(Enum):
    """The use of a file that is unchanged in an alternate directory.

    >>> import rdc
    >>> rdc.AlternateUse("link")
    <AlternateUse.LINK: 'link'>
    """

    LINK = "link"
    """It becomes a hard link, or a copy if its metadata differ."""
    COMPARE = "compare"
    """It is left out, or copied if its metadata differ."""
    COPY = "copy"
    """It is copied."""


class Alternates(Record):
    """Alternate directories: trees like the destination, such as older backups, that may have its files.

    >>> import rdc
    >>> rdc.Alternates(rdc.AlternateUse.LINK, (b"../yesterday",)).directories
    (b'../yesterday',)
    """

    use: AlternateUse
    directories: tuple[bytes, ...]
    """1 to 20, the preferred one first. Each is relative to the destination, or absolute."""

    def __post_init__(self) -> None:
        check_types(self)
        number = len(self.directories)
        if not 1 <= number <= limits.ALTERNATE_DIRECTORIES:
            raise ValueError(f"Alternates: {number} directories, the limit is {limits.ALTERNATE_DIRECTORIES}")
        for directory in self.directories:
            check_path("Alternates.directories", directory)

    @property
    def option(self) -> str:
        """The name of the option, such as "--link-dest"."""
        return f"--{self.use.value}-dest"

    @property
    def changes_existing(self) -> bool:
        """Return whether they also decide about files that the destination has already."""
        return self.use is not AlternateUse.COPY


class KeepUndo(Record):
    """The amount of old data that a sync keeps for `rdc.undo`: a size or a number of days.

    >>> import rdc
    >>> rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30)).keep_undo.days
    30
    """

    size: int | None = None
    """Bytes that all syncs of the destination together may keep."""
    days: int | None = None
    """Days for which each sync is kept."""

    def __post_init__(self) -> None:
        check_types(self)
        if (self.size is None) == (self.days is None):
            raise ValueError("KeepUndo: expected bytes or days")
        for name, value, most in (
            ("size", self.size, limits.SIZE_LIMIT),
            ("days", self.days, limits.UNDO_DAYS),
        ):
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"KeepUndo.{name}: {value} is not in 1..{most}")


class FileList(Record):
    """Paths below the source, as `--files-from` lists them.

    >>> import rdc
    >>> rdc.SyncOptions(files=rdc.FileList((b"docs/index.md", b"src"))).files.names[1]
    b'src'
    """

    names: tuple[bytes, ...]
    """A path may have "/./" in it, as in rsync: what is in front of it is not kept."""

    def __post_init__(self) -> None:
        check_types(self)


class LinkChoice(Record):
    """The symlinks that a source takes for what they lead to."""

    every: bool = False
    """All of them."""
    directories: bool = False
    """The links that lead to a directory."""
    unsafe: bool = False
    """The links that lead out of the tree."""


def leads_outside(target: bytes, path: bytes) -> bool:
    """Return whether the symlink at `path`, with the text `target`, leads out of the tree, by rsync's rule.

    The text decides, and nothing is looked up: an absolute target leads outside, and so does one that goes up
    further than `path` is deep. One that goes up after it went down may pass another link, so it counts too,
    as does any that ends by going up.
    """
    if not target or target.startswith(b"/") or target.endswith(b"/.."):
        return True
    names = [name for name in target.split(b"/") if name]
    ups = 0
    while ups < len(names) and names[ups] == b"..":
        ups += 1
    return b".." in names[ups:] or ups > path.count(b"/")


def check_path(name: str, path: bytes) -> None:
    """Raise ValueError for what is no path of a user. `name` is that of the field."""
    if not 1 <= len(path) <= limits.PATH_BYTES:
        raise ValueError(f"{name}: {len(path)} bytes are not in 1..{limits.PATH_BYTES}")
    if b"\0" in path:
        raise ValueError(f"{name}: a path has no NUL byte")


def no_nul(path: bytes) -> None:
    """Raise ValueError for a path with a NUL byte."""
    if b"\0" in path:
        raise ValueError("a path has no NUL byte")


def _is_number(text: str, digits: int = 18) -> bool:
    """Return whether `text` is a whole number that int() reads in no time. isascii() excludes the digits of
    other scripts."""
    return text.isascii() and text.isdigit() and len(text) <= digits


def parse_number(text: str) -> int:
    """Return a number of entries."""
    if not _is_number(text):
        raise ValueError("a number of entries, 0 or more, is expected")
    return int(text)


def parse_share(text: str) -> int:
    """Return the per cent of a share such as 50%."""
    number = text.removesuffix("%")
    if number == text or not _is_number(number, 3) or int(number) > 100:
        raise ValueError("a share from 0% to 100% is expected")
    return int(number)


def parse_size_of(text: str) -> int:
    """Return a size such as 500M."""
    size = parse_size(text)
    if size is None:
        raise ValueError("a size such as 500M or 2G is expected")
    return size


def parse_size_bound(text: str) -> int:
    """Return a size; a suffix +1 or -1 adds, as in rsync."""
    plain, more = text, 0
    if len(plain) > 2 and plain.endswith(("+1", "-1")):
        plain, more = plain[:-2], int(plain[-2:])
    size = parse_size_of(plain) + more
    if size < 0:
        raise ValueError("no file is smaller than 0 bytes; a size such as 500M is expected")
    return min(size, limits.SIZE_LIMIT)


def parse_memory(text: str) -> int:
    """Return the bytes of memory; 0 for all of the machine's."""
    size = parse_size_of(text)
    if 0 < size < limits.ENTRIES_MEMORY_LEAST:
        raise ValueError(f"{limits.ENTRIES_MEMORY_LEAST >> 20}M at least is expected, or 0 for all there is")
    return size


def parse_rate(text: str) -> int:
    """Return the bytes per second, 0 for no limit. A number without a letter counts KiB, as in rsync."""
    rate = parse_size(text, unit=1024)
    if rate is None:
        raise ValueError("a rate is expected, such as 500 (KiB a second), 1.5m or 2MB")
    # A rate such as 0.0001 must not round to 0, which means no limit.
    if rate < limits.BANDWIDTH_LEAST and any(digit in "123456789" for digit in text):
        raise ValueError(f"{limits.BANDWIDTH_LEAST} bytes a second at least are expected")
    return rate


def parse_depth(text: str) -> int:
    if not _is_number(text) or int(text) > limits.DEPTH_LIMIT:
        raise ValueError(f"a number up to {limits.DEPTH_LIMIT} is expected, 0 for as many as help")
    return int(text)


def parse_timeout(text: str) -> int:
    if not _is_number(text, 9):
        raise ValueError("a number of seconds is expected, 0 for none")
    return min(int(text), limits.TIMEOUT_SECONDS)


def parse_window(text: str) -> int | None:
    """Return the seconds; None for times to the nanosecond, which rsync writes as a negative number."""
    if not _is_number(text.removeprefix("-")):
        raise ValueError("a number of seconds is expected, such as 1")
    return None if text.startswith("-") else min(int(text), limits.WINDOW_SECONDS)


def parse_directory(text: str) -> bytes:
    """Return a directory without a slash at its end."""
    return os.fsencode(text.rstrip("/") or "/")


def parse_keep_undo(text: str) -> KeepUndo:
    """Read "10G" or "30d"."""
    number = text[:-1]
    if text.endswith("d") and _is_number(number, 5):
        if not 1 <= int(number) <= limits.UNDO_DAYS:
            raise ValueError(f"1d to {limits.UNDO_DAYS}d is expected")
        return KeepUndo(days=int(number))
    size = parse_size(text)
    if not size:
        raise ValueError("a size or a number of days is expected, such as 10G or 30d")
    return KeepUndo(size=size)
