"""Messages that open a session: greetings, its subject, and the kind of description."""

from __future__ import annotations

from rdc.lean.records import replace
from rdc.lean.typed import Annotated
from rdc.limits.wire import (
    FEATURES_BYTES,
    HELLO_BYTES,
    RULES_BYTES,
    SELECTED_MESSAGE_BYTES,
    SELECTED_PER_MESSAGE,
    SOFTWARE_BYTES,
)
from rdc.model.filter_rules import DirectoryRules, FilterRule
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.messages.field_types import Failure, Line
from rdc.protocol.wire.codec import (
    ASKING,
    CLOSED,
    DESTINATION,
    EITHER,
    GREETING,
    LISTING,
    OPENING,
    SERVING,
    UNTIL_CLOSED,
    WORKING,
    Message,
    Role,
    message,
)
from rdc.protocol.wire.fields import Blob, Flag, Integer, Member, Path, Strings, Text
from rdc.protocol.wire.options import (
    DISPENSABLE,
    RULE_PARTS,
    SELECTION,
    AddedOptions,
    NamedValues,
    Options,
    RulePart,
    added_values,
    rule_bytes,
    with_added,
)
from rdc.protocol.wire.record_fields import PreservedCode

PARAMETER_ID_BYTES = 32
SECRET_BYTES = 16


@message(0, by=EITHER, when=GREETING, then=OPENING, keys=("v", "s", "p", "o", "f"), longest=HELLO_BYTES)
class Hello(Message):
    """Both sides, first, in the preamble's raw block. Unknown keys are ignored."""

    version: Annotated[int, Integer(0, 65_535)]
    """The newest version of the protocol that the sender speaks."""
    software: Annotated[str, Text(SOFTWARE_BYTES)]
    """Name and version of the program, only for display."""
    params: Annotated[bytes, Blob(PARAMETER_ID_BYTES, PARAMETER_ID_BYTES)]
    """Id of all parameters of chunking and signatures. Roots and records are comparable only under the same
    parameters."""
    oldest: Annotated[int | None, Integer(0, 65_535, optional=True)] = None
    """The oldest version that the sender speaks; None: only `version`."""
    features: Annotated[str | None, Text(FEATURES_BYTES, optional=True)] = None
    """Names of features that the sender has, separated by single spaces; None for none."""

    def check(self) -> str | None:
        if self.oldest is not None and self.oldest > self.version:
            return f"oldest: {self.oldest} is newer than {self.version}"
        return None


@message(1, by=EITHER, when=OPENING, then=WORKING, grows=True)
class Open(Message):
    """Dialler, right after its Hello without a wait: the session's subject. Further items are ignored."""

    role: Annotated[Role, Member(Role)]
    """The role that the answerer takes."""
    path: Annotated[bytes, Path()]
    """The answerer's root, as its user would write it; b'' is its working directory."""
    secret: Annotated[bytes, Blob(SECRET_BYTES, SECRET_BYTES)]
    """Key of the short references in this session."""
    options: Annotated[SyncOptions, Options()]
    needs: Annotated[str | None, Text(FEATURES_BYTES, optional=True)] = None
    """Names of features and added options without which the dialler does not want the session, separated by
    single spaces."""
    added: Annotated[NamedValues | None, AddedOptions()] = None
    """The added options that differ from their defaults."""

    @staticmethod
    def asking(
        role: Role, path: bytes, secret: bytes, options: SyncOptions, *, selects: bool = False
    ) -> Open:
        """An Open that asks for all of `options`. `selects`: Selected messages follow. Rules that have no
        room in it follow, too (`rules_follow`)."""
        names = []
        if options.rules and sum(map(rule_bytes, options.rules)) > RULES_BYTES:
            options = replace(options, rules=())
            names.append(RULE_PARTS)
        added = added_values(options)
        if added is not None:
            names += [name for name, _ in added.items if name not in DISPENSABLE]
        if selects:
            names.append(SELECTION)
        return Open(role, path, secret, options, " ".join(names) or None, added)

    @property
    def selects(self) -> bool:
        """Whether Selected messages follow."""
        return SELECTION in (self.needs or "").split(" ")

    @property
    def rules_follow(self) -> bool:
        """Whether Rules messages follow, before anything else."""
        return RULE_PARTS in (self.needs or "").split(" ")

    @property
    def asked(self) -> SyncOptions:
        """All options that the dialler asks for."""
        return with_added(self.options, self.added)


@message(66, by=EITHER, when=(LISTING, ASKING))
class Rules(Message):
    """Dialler, right after an Open that needs `rule_parts`: filter rules, in their order."""

    rules: Annotated[tuple[FilterRule | DirectoryRules, ...], RulePart()]
    last: Annotated[bool, Flag()]
    """Whether no other Rules follow."""


@message(60, by=EITHER, when=(OPENING, LISTING, ASKING))
class Selected(Message):
    """Dialler, right after an Open that needs `selection`: paths of the source that take part."""

    origin: Annotated[bytes, Path()]
    """The directory that they are below, as the answerer's user would write it; b'' if the dialler is S."""
    names: Annotated[tuple[bytes, ...], Strings(SELECTED_PER_MESSAGE, SELECTED_MESSAGE_BYTES)]
    """As in rdc.model.selection."""
    last: Annotated[bool, Flag()]
    """Whether no other Selected follows."""

    def check(self) -> str | None:
        from rdc.model.selection import check_name

        for name in self.names:
            try:
                check_name(name)
            except ValueError as error:
                return f"names: {error}"
        return None


@message(2, by=EITHER, when=OPENING, then=WORKING)
class Opened(Message):
    """Answerer, after its Hello: accepts the role."""


@message(3, by=EITHER, when=UNTIL_CLOSED, then=CLOSED)
class Refused(Message):
    """Either side, at any time: ends the session, with a reason."""

    code: Failure
    message: Line


@message(24, by=DESTINATION, when=ASKING, moves=(SERVING, LISTING))
class Describe(Message):
    """D: the kind of description that S is to send. It is D's first request; it may come again for a listing
    if a manifest does not pay."""

    whole: Annotated[bool, Flag()]
    """Whether S lists every directory as it walks. Otherwise S sends a Manifest, about which D asks."""
    kept: Annotated[Preserved, PreservedCode()]
    """The metadata that D preserves. The manifest's digests cover it, without what S's Start excludes."""
