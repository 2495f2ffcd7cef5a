"""What a program speaks, and what two programs agree on: a version of the protocol, and features.

Each side's Hello names the oldest and the newest version that it speaks, and its features. Both sides come to
the same agreement without a further message: the newest version that both speak, and the features that both
have.
"""

from __future__ import annotations

from rdc.errors import IncompatiblePeerError
from rdc.lean.records import dataclass
from rdc.protocol.messages import Hello, Message, message_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Dialect:
    """The versions of the protocol that a program speaks.

    A message's form never changes: a changed form is a new message with a number of its own. So a version is
    a set of messages.
    """

    oldest: int
    newest: int
    features: Mapping[str, tuple[type[Message], ...]]
    """Name of each feature, and the messages that only sessions with it have. A side that lacks a feature
    neither sends nor accepts these messages."""
    since: Mapping[type[Message], int]
    """The first version of each message that is younger than `oldest`."""
    until: Mapping[type[Message], int]
    """The last version of each message that is older than `newest`."""

    def absent(self, version: int, features: frozenset[str]) -> frozenset[type[Message]]:
        """The messages that a session of this version with these features does not have."""
        gone = {message for message, first in self.since.items() if version < first}
        gone |= {message for message, last in self.until.items() if version > last}
        for name, messages in self.features.items():
            if name not in features:
                gone.update(messages)
        return frozenset(gone)

    def shared_with(self, hello: Hello) -> Dialect:
        """What a program speaks that passes on only what the sender of `hello` speaks, too.

        IncompatiblePeerError if that is no version at all.
        """
        oldest = max(self.oldest, hello.version if hello.oldest is None else hello.oldest)
        newest = min(self.newest, hello.version)
        if oldest > newest:
            spoken = _range(hello.version if hello.oldest is None else hello.oldest, hello.version)
            raise IncompatiblePeerError(
                f"{hello.software} speaks {spoken} of the protocol, the other side"
                f" {_range(self.oldest, self.newest)}; update the older one"
            )
        features = {name: messages for name, messages in self.features.items() if knows(hello, name)}
        never = {
            message: oldest - 1 for name in self.features.keys() - features for message in self.features[name]
        }
        return Dialect(oldest, newest, features, self.since, {**self.until, **never})

    def hello(self, software: str, params: bytes) -> Hello:
        """The Hello of a program that speaks this."""
        oldest = None if self.oldest == self.newest else self.oldest
        return Hello(self.newest, software, params, oldest, " ".join(sorted(self.features)) or None)


READS_ANEW = "check"
"""The feature of a source that answers an Open which needs it from what it reads in that session alone. It
neither asks nor fills a catalog then."""

SPECIALS = "specials"
"""The feature of a side that knows fifos, sockets and devices as kinds of entries. Without it on both sides
they are announced as SPECIAL, and left alone."""


def _features(*without_messages: str) -> dict[str, tuple[type[Message], ...]]:
    """The features that messages name, and those that have none."""
    found: dict[str, tuple[type[Message], ...]] = dict.fromkeys(without_messages, ())
    for kind in message_kinds().values():
        if kind.place.feature is not None:
            found[kind.place.feature] = (*found.get(kind.place.feature, ()), kind)
    return found


DIALECT = Dialect(
    oldest=9,
    newest=9,
    features=_features(READS_ANEW, SPECIALS),
    since={kind: kind.place.since for kind in message_kinds().values() if kind.place.since is not None},
    until={},
)
"""What this rdc speaks."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both sides of a session speak."""

    version: int
    features: frozenset[str]
    absent: frozenset[type[Message]]
    """Messages that this session does not have."""


def knows(hello: Hello | None, feature: str) -> bool:
    """Whether the far side has a feature. `hello`: what it sent; None in one process, where both are this
    program."""
    return hello is None or feature in (hello.features or "").split(" ")


def agree(dialect: Dialect, ours: Hello, peer: Hello) -> Agreement:
    """The agreement of two Hellos. IncompatiblePeerError names the side to update, or other parameters."""
    version = min(dialect.newest, peer.version)
    if version < dialect.oldest:
        raise IncompatiblePeerError(
            f"the far side ({peer.software}) speaks version {peer.version} of the protocol, this rdc"
            f" ({ours.software}) speaks {_range(dialect.oldest, dialect.newest)}; update rdc on the far side"
        )
    oldest = peer.version if peer.oldest is None else peer.oldest
    if version < oldest:
        raise IncompatiblePeerError(
            f"the far side ({peer.software}) speaks {_range(oldest, peer.version)} of the protocol, this"
            f" rdc ({ours.software}) only {_range(dialect.oldest, dialect.newest)}; update rdc on this side"
        )
    if peer.params != ours.params:
        raise IncompatiblePeerError(
            f"the far side ({peer.software}) cuts files with other parameters than this rdc"
            f" ({ours.software}); install the same version on both sides"
        )
    features = dialect.features.keys() & set((peer.features or "").split(" "))
    return Agreement(version, frozenset(features), dialect.absent(version, frozenset(features)))


def _range(oldest: int, newest: int) -> str:
    return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
