"""The rules of a pair: which entries take part, and which directories are units. STATE.md defines the file.

They are kept at both sides, so that a run that names none goes by those of the last one that did. Rules
decide what is looked at and never what is deleted: an entry that takes no part any more stays at both sides.
"""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.files.own.record_log import RecordError, bytes_of, encoded, line_of, value_of
from rdc.lean.records import Record
from rdc.limits import NAME_BYTES, RULES_BYTES, UNITE_UNITS
from rdc.model.selection import FilterRule, RuleAction
from rdc.protocol.wire.options import RulePart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.uniting.records import UniteOptions

VERSION = 1


class PairRules(Record):
    """The rules of one pair."""

    filters: tuple[FilterRule, ...] = ()
    units: tuple[bytes, ...] = ()
    """Names of directories that are one unit, besides those that always are."""

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Each rule as a text for the user."""
        words = {RuleAction.EXCLUDE: b"exclude ", RuleAction.INCLUDE: b"include "}
        return (
            *(words[rule.action] + rule.pattern for rule in self.filters),
            *(b"unit " + name for name in self.units),
        )


NO_RULES = PairRules()


class KeptRules(Record):
    """The rules of a pair as one side keeps them."""

    rules: PairRules
    seconds: int
    """The time at which they were given, in seconds since 1970."""


def encode_rules(kept: KeptRules) -> bytes:
    """Return the bytes of the file. Raises UsageError if there are too many rules."""
    packed = RulePart().pack(kept.rules.filters)
    if not isinstance(packed, bytes) or len(packed) > RULES_BYTES:
        raise UsageError(f"too many filter rules for a pair: at most {RULES_BYTES:,} bytes are kept")
    if len(kept.rules.units) > UNITE_UNITS or any(len(name) > NAME_BYTES for name in kept.rules.units):
        raise UsageError(f"too many units, or too long ones: at most {UNITE_UNITS} names are kept")
    items = [
        "rdc unite rules",
        VERSION,
        kept.seconds,
        encoded(packed).decode(),
        [encoded(name).decode() for name in kept.rules.units],
    ]
    return line_of(items)


def decode_rules(data: bytes) -> KeptRules:
    """Read a file. Raises RecordError."""
    match value_of(data.removesuffix(b"\n")):
        case ["rdc unite rules", int(version), int(seconds), str(packed), list(units)] if (
            version == VERSION and len(units) <= UNITE_UNITS
        ):
            try:
                rules = RulePart().unpack(bytes_of(packed) if packed else b"")
            except ValueError as error:
                raise RecordError("filter rules") from error
            filters = tuple(rule for rule in rules if isinstance(rule, FilterRule))
            names = tuple(bytes_of(name) for name in units)
            if len(filters) == len(rules) and all(0 < len(name) <= NAME_BYTES for name in names):
                return KeptRules(PairRules(filters, names), seconds)
    raise RecordError(f"rules of version {VERSION}")


def chosen_rules(options: UniteOptions, kept: Sequence[KeptRules | None]) -> tuple[PairRules, PairRules]:
    """Return the rules of a run, and those that the pair had.

    What the options leave open is as it was. Where the sides differ, because one of them lost its file or a
    kill came in between, what was given last counts.
    """
    known = [each for each in kept if each is not None]
    before = max(known, key=lambda each: (each.seconds, encode_rules(each))).rules if known else NO_RULES
    return PairRules(
        before.filters if options.rules is None else options.rules,
        before.units if options.units is None else options.units,
    ), before
