"""Messages of a session that brings two trees together: both sides meet, then each turn gives them roles.

The session begins with the answerer as the source. Met ends that without a description: both sides are idle,
as between the turns of a session that stays open. The dialler then sends pages, which the answerer answers by
pages, and begins turns of files (Changed, TurnEnd, requests, Done), each with the roles that Exchange names.
rdc/uniting/UNITE.md says what the pages are for; rdc.uniting.exchanged has their forms.
"""

from __future__ import annotations

from rdc import limits
from rdc.lean.enums import IntEnum
from rdc.lean.records import Record
from rdc.lean.typed import Annotated
from rdc.model.preserved import Preserved
from rdc.model.runs import Purpose
from rdc.protocol.messages.field_types import Count
from rdc.protocol.wire.codec import (
    ASKING,
    DESTINATION,
    DONE,
    EITHER,
    LISTING,
    SOURCE,
    WATCHING,
    Message,
    Role,
    message,
)
from rdc.protocol.wire.fields import Blob, Flag, Integer, Member, Parts, Path, Total
from rdc.protocol.wire.options import PreservedCode

FEATURE = "unite"
ROOT_ID_BYTES = 16
GENERATION_BYTES = 8
MARK_BYTES = GENERATION_BYTES + 16
"""A generation, and the first half of the digest of what both sides had in common then."""

MARKS = 2
"""Ancestors that a side keeps of a pair."""

IDLE = (WATCHING, DONE)
"""The states of a side between two turns: of the source of the last one, and of its destination."""


class Asked(IntEnum):
    """Flags of Meet, to be added up."""

    DRY = 1
    """Nothing is written at either side."""
    CHECKSUM = 2
    NO_FSYNC = 4
    FORCE_EMPTY = 8
    RULES = 16
    """The rules were given for this run. Otherwise they are those that the dialler kept."""
    LEFT = 32
    """The answerer's directory is the left one."""
    LOST_JOURNAL = 64
    """The journal of an interrupted run is damaged."""
    DAMAGED = 128
    """Something else that was kept of the pair is damaged."""


class Told(IntEnum):
    """Flags of Met, to be added up."""

    UNCHANGED = 1
    """The tree is as the common ancestor. No page ROWS follows."""
    ROWS = 2
    """The page ROWS with all differences from the common ancestor follows."""
    KEEPS_INODES = 4
    """Its inode numbers last, so that they show what was renamed."""
    LOST_JOURNAL = 8
    """The journal of an interrupted run is damaged."""
    DAMAGED = 16
    """Something else that was kept of the pair is damaged."""
    NO_DELETIONS = 32
    """Nothing may be deleted here."""
    NO_CHANGES = 64
    """Nothing that is here may be replaced, renamed or deleted."""


class Subject(IntEnum):
    """The subject of a page."""

    TELL = 0
    """Dialler: asks for ROWS of the whole tree."""
    ROWS = 1
    """Answerer: its tree."""
    CONTENTS = 2
    """Dialler: files whose contents decide something."""
    DIGESTS = 3
    """Answerer: the digests of these files."""
    STEPS = 4
    """Dialler: what the run is about to do at the answerer."""
    OUTCOME = 5
    """Answerer: which of that was not done, and why."""
    AGREE = 6
    """Dialler: what both sides have in common now."""
    AGREED = 7
    """Answerer: it keeps that."""
    CLOSE = 8
    """Dialler: it keeps that, too, so that no journal is needed any more."""
    TRY = 9
    """Dialler: asks whether the other file system renames an entry without replacing another one."""
    TRIED = 10
    """Answerer: one byte, 1 if it does."""
    MEET = 11
    """Dialler, after a run: a further meeting in the same session. The payload of a Meet."""
    MET = 12
    """Answerer: the payload of a Met, which answers that."""
    WATCH = 13
    """Dialler, after a run: asks to be told when the tree is other than that run left it."""
    STIRRED = 14
    """Answerer, once after WATCH: it is. With a text, before that: why not all of it is watched."""
    EDGES = 15
    """Dialler, in a first meeting: the pairs that its directory knows, and a question for the other's."""
    KNOWN = 16
    """Answerer: the pairs that its directory knows."""
    READ = 17
    """Dialler: texts whose content it needs for a merge."""
    TEXTS = 18
    """Answerer: these texts."""
    SETS = 19
    """Answerer, right after ROWS where extended attributes take part: those of its tree."""
    GIVE = 20
    """Dialler, right before STEPS: the extended attributes that the answerer sets."""
    UNSET = 21
    """Answerer, after GIVE and right after OUTCOME: which of them it did not set."""
    HAVE = 22
    """Dialler, right before AGREE where extended attributes take part: those that both sides have."""
    LINKS = 23
    """Answerer, after ROWS and SETS where hard links may take part: those of its tree."""
    TIED = 24
    """Dialler, right before AGREE where hard links take part: those that both sides have."""


BY_DIALLER = frozenset(
    {
        *(Subject.TELL, Subject.CONTENTS, Subject.STEPS, Subject.AGREE, Subject.CLOSE, Subject.TRY),
        *(Subject.MEET, Subject.WATCH, Subject.EDGES, Subject.READ, Subject.GIVE, Subject.HAVE),
        Subject.TIED,
    }
)


@message(80, by=DESTINATION, when=ASKING, feature=FEATURE)
class Meet(Message, Record):
    """Dialler, right after Open: the directory that it is to be united with, and how."""

    root: Annotated[bytes, Blob(0, ROOT_ID_BYTES)]
    """The id of the dialler's directory; empty if it has none."""
    other: Annotated[bytes, Blob(0, ROOT_ID_BYTES)]
    """The id that the answerer's directory is expected to have; empty for any."""
    marks: Annotated[tuple[bytes, ...], Parts(MARKS, MARK_BYTES)]
    """The ancestors that the dialler keeps of the two, the latest first."""
    plans: Annotated[tuple[bytes, ...], Parts(limits.UNITE_PLANS, GENERATION_BYTES)]
    """The generations with which plans in its journal began."""
    asked: Annotated[int, Integer(0, 255)]
    """Flags of Asked."""
    keep_bytes: Annotated[int | None, Total(optional=True)]
    """The bound of the data kept for an undo, in bytes; None for no bound in bytes."""
    keep_days: Annotated[int | None, Integer(1, limits.UNDO_DAYS, optional=True)]
    """The bound in days. Nothing is kept if both are None."""
    known: Count
    """Entries that the dialler's directory had in common with one at this place. Then an empty one is no
    directory to fill."""
    location: Annotated[bytes, Path()]
    """The place of the dialler's directory, for texts alone."""
    rules: Annotated[bytes, Blob(0, limits.UNITE_RULES_BYTES)]
    """The rules of the pair, as a line of the file `rules`; empty for none."""
    keeps: Annotated[Preserved, PreservedCode()]
    """The metadata that the dialler's file system keeps, as far as known."""

    def check(self) -> str | None:
        for name in ("root", "other"):
            if len(getattr(self, name)) not in (0, ROOT_ID_BYTES):
                return f"{name}: {len(getattr(self, name))} bytes"
        return _wrong_length(self.marks, self.plans)


@message(81, by=SOURCE, when=LISTING, then=WATCHING, moves=(ASKING, DONE), feature=FEATURE)
class Met(Message, Record):
    """Answerer: its directory, and whether that changed since both had the common ancestor."""

    root: Annotated[bytes, Blob(0, ROOT_ID_BYTES)]
    """The id of its directory; empty if it has none yet."""
    marks: Annotated[tuple[bytes, ...], Parts(MARKS, MARK_BYTES)]
    plans: Annotated[tuple[bytes, ...], Parts(limits.UNITE_PLANS, GENERATION_BYTES)]
    told: Annotated[int, Integer(0, 127)]
    """Flags of Told."""
    tree: Annotated[bytes, Blob(0, 16)]
    """The digest of its tree, if there is no common ancestor."""
    entries: Count
    known: Count
    """The known entries, as in Meet."""
    free_bytes: Annotated[int | None, Total(optional=True)]
    """Room on its file system; None if it cannot be told."""
    free_entries: Annotated[int | None, Total(optional=True)]
    location: Annotated[bytes, Path()]
    rules: Annotated[bytes, Blob(0, limits.UNITE_RULES_BYTES)]
    """The rules that it keeps, if they are others, and later ones; otherwise empty. Nothing was listed then.
    """
    keeps: Annotated[Preserved, PreservedCode()]
    """The metadata that its file system keeps, as far as known."""

    def check(self) -> str | None:
        if len(self.root) not in (0, ROOT_ID_BYTES):
            return f"root: {len(self.root)} bytes"
        if len(self.tree) not in (0, 16):
            return f"tree: {len(self.tree)} bytes"
        return _wrong_length(self.marks, self.plans)


def _wrong_length(marks: tuple[bytes, ...], plans: tuple[bytes, ...]) -> str | None:
    if any(len(mark) != MARK_BYTES for mark in marks):
        return "marks: one is too short"
    if any(len(plan) != GENERATION_BYTES for plan in plans):
        return "plans: one is too short"
    return None


@message(82, by=EITHER, when=IDLE, feature=FEATURE, purpose=Purpose.MANIFEST)
class Page(Message, Record):
    """Either side between two turns: a part of something that has no form of its own on the wire."""

    subject: Annotated[Subject, Member(Subject)]
    part: Annotated[bytes, Blob(0, limits.UNITE_PAGE_BYTES)]
    last: Annotated[bool, Flag()]


@message(83, by=EITHER, when=IDLE, feature=FEATURE)
class Exchange(Message, Record):
    """Dialler, when both sides are idle: begins a turn of files. Ordinals start again from 0."""

    role: Annotated[Role, Member(Role)]
    """The role that the answerer takes."""
