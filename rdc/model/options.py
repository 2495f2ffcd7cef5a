"""What an option of a sync is. Each one is declared once, at its field of SyncOptions in rdc.model.sync:

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

Every start loads the declarations, so they are plain tuples of constants: 0.3 ms in all.
"""

from __future__ import annotations

from enum import Enum

from rdc.errors import UsageError
from rdc.lean.records import dataclass, field, field_metadata
from rdc.lean.typed import TypeVar
from rdc.limits.wire import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

T = TypeVar("T")

ALWAYS = object()
"""What a flag sets that says what holds anyway."""


@dataclass(frozen=True, slots=True)
class Option:
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
    """What the manual adds to `help`."""
    example: str = ""
    """The words behind `rdc sync` of an example in the manual, where `metavar` cannot give one."""
    rsync: str = ""
    """How it differs from the option of this name in rsync."""
    watch: bool = True
    """An option without a field: whether `rdc watch` has it. At a field, the field says so."""

    @property
    def key(self) -> str:
        """The first long name, or the only name. Verbs look options up by it."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


class Carrier(Enum):
    """Where an Open has an option. PROTOCOL.md has the form; only NAMED and SPARED take new ones."""

    ITEM = "item"
    """An item of the list, always there."""
    BIT = "bit"
    """A bit of an integer in the list, which says that the option differs from its default."""
    BOUND = "bound"
    """An item at the end of the list, where one of them differs from its default."""
    NAMED = "named"
    """Its name and value, if it differs from its default. Both sides have to know it."""
    SPARED = "spared"
    """The same; a side that does not know it does without."""
    HERE = "here"
    """Nowhere: it is about this machine's end."""
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Wire:
    """How an option travels."""

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
    """What an option needs of the directory that it is carried out in. A key or module may deny it."""

    COMPARING = "nothing in it is compared"
    """It tells of what was there before, which no write-only directory does."""
    DELETING = "nothing may be deleted in it"
    REPLACING = "nothing in it is replaced"
    OVERWRITING = "nothing in it is written into"
    OWNERS = "no owners are kept"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Options that an option goes without."""

    others: tuple[str, ...]
    """Their fields. A field counts if it differs from its default."""
    sentence: str
    """The error, with two {} for both options."""
    when: Callable[[Any], bool] | None = None
    """Which values of `others` are excluded; None: all."""


def excludes(others: str, why: str, *, when: Callable[[Any], bool] | None = None) -> Exclusion:
    """Exclude the fields named in `others`, with spaces between. `why` ends the error."""
    return Exclusion(tuple(others.split()), f"{{}} and {{}} exclude each other: {why}", when)


def goes_without(others: str, sentence: str, *, when: Callable[[Any], bool] | None = None) -> Exclusion:
    """The same with an error of its own."""
    return Exclusion(tuple(others.split()), sentence, when)


@dataclass(frozen=True, slots=True)
class Declared:
    """What is declared of a field of SyncOptions besides its name and type."""

    default: Any
    group: str
    """The title that its options stand below in the help text."""
    options: tuple[Option, ...]
    """How it is written on a command line; empty: something else implies it."""
    least: int
    most: int
    """Of a number: the range. Of a text: the most bytes."""
    valid: Callable[[Any], object] | None
    """Raises ValueError for a value of the right type that means nothing."""
    parse: Callable[[str], object] | None
    """Reads the text of a command line. Raises ValueError with what is expected."""
    excludes: tuple[Exclusion, ...]
    wire: Wire
    needs: tuple[Need, ...]
    watch: bool
    """Whether a watch takes it. One that does not would cost much in each turn, or keep the trees
    different."""
    check: bool
    """Whether a check takes it. One that does not says what a sync writes, or which files it leaves."""
    alias: str
    """An option that stands for one of `options`, as errors name it, too."""
    pair: bool
    """Whether two trees that need nothing under one value of it may need something under another."""

    def check_value(self, value: Any) -> None:
        """Raise ValueError for a value of the right type that is out of range or means nothing."""
        if type(value) is int and not self.least <= value <= self.most:
            raise ValueError(f"{value} is not in {self.least}..{self.most}")
        if isinstance(value, bytes | str) and len(value) > self.most:
            raise ValueError(f"{len(value)} bytes, the limit is {self.most}")
        if self.valid is not None:
            self.valid(value)

    def spelling(self, value: Any) -> str:
        """The option that gives the field this value; "" for one that no option gives by itself."""
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
    most: int = SIZE_LIMIT,
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
    """What `option` declared of each field, in their order."""
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
