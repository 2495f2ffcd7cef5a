"""What each side may send when: one table, ignorant of who dialled; what it does not list is illegal."""

from __future__ import annotations

from enum import Enum

from rdc.protocol.messages import (
    BlockAnswer,
    BlockRequest,
    BundleAnswer,
    BundleRequest,
    Changed,
    Code,
    Condition,
    Correction,
    Data,
    Describe,
    DigestAnswer,
    DigestRequest,
    Done,
    EntryAttributes,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Follow,
    HardLinks,
    Hello,
    Items,
    ListingEnd,
    ListingPart,
    Literals,
    Manifest,
    Message,
    MountPoints,
    NodeAnswer,
    NodeRequest,
    Notice,
    Open,
    Opened,
    Plan,
    Progress,
    RangeRequest,
    Refused,
    Renamed,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Start,
    Table,
    Targets,
    TierAnswer,
    TierRequest,
    TopTier,
    TraitsAnswer,
    TraitsRequest,
    TreeAnswer,
    TreeRequest,
    Turn,
    TurnEnd,
    Watch,
)

__all__ = ["NEEDS", "RECALLS", "TRANSITIONS", "Illegal", "State"]


class Illegal(Exception):  # noqa: N818 - not an error until the connection knows whose fault it is
    """A message that the sending side must not send now; `str()` says why."""


class State(Enum):
    """What one side may send next; each side of a connection is in one."""

    GREETING = "greeting"
    """Hello first."""
    OPENING = "opening"
    """The dialler's Open, the answerer's Opened."""
    LISTING = "listing"
    """S: its tree as it was asked to describe it, and answers already."""
    SERVING = "serving"
    """S: answers only."""
    ASKING = "asking"
    """D: requests and reports."""
    DONE = "done"
    """D: has all it wanted."""
    WATCHING = "watching"
    """S: has told everything, and goes on when something changes."""
    CLOSED = "closed"
    """Nothing more."""


_VIEWS = (TierAnswer, RowsPart)
"""Answers about a manifest: there is none while a listing goes on."""
_ANSWERS = (
    RootAnswer, DigestAnswer, TraitsAnswer, TreeAnswer, NodeAnswer, BlockAnswer, FileBatch, Data, FileEnd,
    FileFailed, Literals, Code, Correction, Targets, Table,
)  # fmt: skip
_REQUESTS = (
    TierRequest, RowsRequest, RootRequest, DigestRequest, TraitsRequest, TreeRequest, NodeRequest,
    BundleRequest, BlockRequest, RangeRequest, FileRequest,
)  # fmt: skip
_REPORTS = (Items, Progress, Plan)


def _begin(working: State) -> dict[State, dict[type[Message], State]]:
    return {
        State.GREETING: {Hello: State.OPENING, Refused: State.CLOSED},
        State.OPENING: {Open: working, Opened: working, Refused: State.CLOSED},
    }


TRANSITIONS: dict[Role, dict[State, dict[type[Message], State]]] = {
    Role.SOURCE: {
        **_begin(State.LISTING),
        State.LISTING: {
            Watch: State.LISTING,
            Condition: State.LISTING,
            Start: State.LISTING,
            ListingPart: State.LISTING,
            ListingEnd: State.SERVING,
            Manifest: State.SERVING,
            MountPoints: State.LISTING,
            HardLinks: State.LISTING,
            EntryAttributes: State.LISTING,
            TopTier: State.LISTING,
            Renamed: State.LISTING,
            Changed: State.LISTING,
            TurnEnd: State.SERVING,
            **dict.fromkeys(_ANSWERS, State.LISTING),
            Notice: State.LISTING,
            Refused: State.CLOSED,
        },
        State.SERVING: {
            **dict.fromkeys((*_VIEWS, BundleAnswer, *_ANSWERS), State.SERVING),
            TopTier: State.SERVING,
            Notice: State.SERVING,
            Refused: State.CLOSED,
        },
        State.WATCHING: {
            Turn: State.LISTING,
            # Sent before Done came: a D that finds the trees equal waits for neither.
            Condition: State.WATCHING,
            TopTier: State.WATCHING,
            Notice: State.WATCHING,
            Refused: State.CLOSED,
        },
        State.CLOSED: {},
    },
    Role.DESTINATION: {
        **_begin(State.ASKING),
        State.ASKING: {
            Follow: State.ASKING,
            Describe: State.ASKING,
            **dict.fromkeys(_REQUESTS, State.ASKING),
            **dict.fromkeys(_REPORTS, State.ASKING),
            Notice: State.ASKING,
            Done: State.DONE,
            Refused: State.CLOSED,
        },
        State.DONE: {Refused: State.CLOSED},
        State.CLOSED: {},
    },
}

NEEDS: dict[type[Message], State] = {Done: State.SERVING}
"""Messages that also need the OTHER side to be in a state: D has seen the whole listing when it is done."""

RECALLS: dict[type[Message], tuple[State, State]] = {
    Describe: (State.SERVING, State.LISTING),
    Done: (State.SERVING, State.CLOSED),
    Turn: (State.DONE, State.ASKING),
}
"""Messages that also take the OTHER side from a state to another: after a manifest S is to list its tree;
after Done nobody waits for S any more, so that the end of a session costs no round trip. A Turn has D ask
again. (Where S said Watch, Done takes it to WATCHING instead.)"""
