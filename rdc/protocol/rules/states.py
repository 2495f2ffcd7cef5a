"""The messages that each side may send in each state, as one table. A message that is not in it is illegal.

S is the source and D the destination. The table is the same whichever side dialled.
"""

from __future__ import annotations

from enum import Enum

from rdc.protocol.messages.registry import (
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
    Holes,
    Items,
    Landed,
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
    Owners,
    Plan,
    Progress,
    RangeRequest,
    Refused,
    Removed,
    Renamed,
    Resized,
    Role,
    RootAnswer,
    RootRequest,
    RowsPart,
    RowsRequest,
    Rules,
    Selected,
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
    """The sender must not send this message now; `str()` says why."""


class State(Enum):
    """The state of one side of a connection: it determines what that side may send next."""

    GREETING = "greeting"
    """Both: Hello is next."""
    OPENING = "opening"
    """Both: the dialler's Open or the answerer's Opened is next."""
    LISTING = "listing"
    """S describes its tree as requested, and may already answer requests."""
    SERVING = "serving"
    """S only answers requests."""
    ASKING = "asking"
    """D requests and reports."""
    DONE = "done"
    """D has everything it needs."""
    WATCHING = "watching"
    """S has announced everything and waits for changes."""
    CLOSED = "closed"
    """Nothing may follow."""


_VIEWS = (TierAnswer, RowsPart)
"""Answers about a manifest, which do not exist during a listing."""
_ANSWERS = (
    RootAnswer, DigestAnswer, TraitsAnswer, TreeAnswer, NodeAnswer, BlockAnswer, FileBatch, Data, FileEnd,
    FileFailed, Literals, Code, Correction, Targets, Table, Resized, Holes,
)  # fmt: skip
_REQUESTS = (
    TierRequest, RowsRequest, RootRequest, DigestRequest, TraitsRequest, TreeRequest, NodeRequest,
    BundleRequest, BlockRequest, RangeRequest, FileRequest, Landed,
)  # fmt: skip
_REPORTS = (Items, Progress, Plan)


def _begin(working: State) -> dict[State, dict[type[Message], State]]:
    return {
        State.GREETING: {Hello: State.OPENING, Refused: State.CLOSED},
        State.OPENING: {
            Open: working,
            Selected: State.OPENING,
            Opened: working,
            Refused: State.CLOSED,
        },
    }


TRANSITIONS: dict[Role, dict[State, dict[type[Message], State]]] = {
    Role.SOURCE: {
        **_begin(State.LISTING),
        State.LISTING: {
            Rules: State.LISTING,
            Selected: State.LISTING,
            Watch: State.LISTING,
            Condition: State.LISTING,
            Start: State.LISTING,
            ListingPart: State.LISTING,
            ListingEnd: State.SERVING,
            Manifest: State.SERVING,
            MountPoints: State.LISTING,
            HardLinks: State.LISTING,
            EntryAttributes: State.LISTING,
            Owners: State.LISTING,
            TopTier: State.LISTING,
            Renamed: State.LISTING,
            Changed: State.LISTING,
            TurnEnd: State.SERVING,
            **dict.fromkeys(_ANSWERS, State.LISTING),
            Notice: State.LISTING,
            Refused: State.CLOSED,
        },
        State.SERVING: {
            **dict.fromkeys((*_VIEWS, BundleAnswer, Removed, *_ANSWERS), State.SERVING),
            TopTier: State.SERVING,
            Notice: State.SERVING,
            Refused: State.CLOSED,
        },
        State.WATCHING: {
            Turn: State.LISTING,
            # S may have sent these before Done arrived: a D that finds the trees equal waits for neither.
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
            Rules: State.ASKING,
            Selected: State.ASKING,
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
"""Messages that also require a state of the OTHER side: D sends Done after the whole listing."""

RECALLS: dict[type[Message], tuple[State, State]] = {
    Describe: (State.SERVING, State.LISTING),
    Done: (State.SERVING, State.CLOSED),
    Turn: (State.DONE, State.ASKING),
}
"""Messages that also move the OTHER side from one state to another. Describe after a manifest makes S list
its tree. Done closes S without a further round trip. Turn makes D ask again. After Watch, Done moves S to
WATCHING instead of CLOSED."""
