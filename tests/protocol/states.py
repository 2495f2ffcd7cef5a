"""A connection in a state."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.model.entries import Kind
from rdc.model.preserved import EVERYTHING
from rdc.model.selection import FilterRule, RuleAction
from rdc.protocol import messages
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages.uniting import Subject
from tests.support.wire.dialogues import (
    BY_DIGEST,
    CLAIMS,
    END,
    LISTED,
    LOOKS,
    OFFER,
    RESULT,
    START,
    WHOLE,
)
from tests.support.wire.wire_script import HELLO, NAMED, PREAMBLE, listing, opening, raw

SAMPLES: dict[type[messages.Message], messages.Message] = {
    type(sample): sample
    for sample in (
        HELLO,
        opening(),
        messages.Rules((FilterRule(RuleAction.EXCLUDE, b"*.o"),), True),
        messages.Selected(b"", (b"sub",), True),
        messages.Opened(),
        messages.Refused(ExitCode.FILE_IO, "disk full"),
        WHOLE,
        START,
        OFFER,
        messages.MountPoints((b"mnt",)),
        messages.HardLinks((7,), (0,)),
        messages.EntryAttributes((7,), (0,), (b"\0",)),
        messages.Owners((0,), (b"root",), (7,), (b"",)),
        messages.TopTier(0, bytes(8)),
        messages.TierRequest(0, (), 7),
        messages.TierAnswer(0, (0,), (2,), bytes(28)),
        messages.RowsRequest(0, (3,), 7),
        messages.RowsPart((3,), True, NAMED),
        LISTED[0],
        END[0],
        messages.RootRequest((0, 1)),
        messages.RootAnswer((1,), (5,), bytes(32)),
        messages.DigestRequest((1,)),
        messages.DigestAnswer(bytes(32)),
        messages.TraitsRequest((0, 1)),
        messages.Landed((0,), bytes(16)),
        messages.Removed(1),
        messages.TraitsAnswer((1,), (5,), bytes(8), bytes(9)),
        messages.TreeRequest((1,), 8),
        messages.TreeAnswer(1, 5, bytes(32), 0, None, b""),
        messages.LikelyRequest(5, 8, 1024),
        messages.LikelyAnswer((1,)),
        messages.LikelyBlocks((0, 1), bytes(6)),
        messages.BundleRequest(2, (0, 1), 256),
        messages.BundleAnswer(2, (1,), bytes(32), b""),
        messages.NodeRequest(0, 1, (3, 5), 4),
        messages.NodeAnswer(0, 1, (3,), (b"",)),
        messages.RangeRequest(1, (3,), (4,)),
        messages.Code(1, b"code"),
        messages.Correction(1, (0,), b"right"),
        messages.Targets(1, b"there"),
        messages.Table(1, 8, b"rows"),
        messages.Literals(1, b"packed"),
        messages.BlockRequest(1, (3,), (40,), 16, 4),
        messages.BlockAnswer(1, bytes(12)),
        messages.FileRequest((0, 1)),
        messages.Holes(1, 3, (1,), (2,)),
        messages.Resized(1, 3),
        messages.Data(1, b"abc"),
        messages.FileBatch((1,), (3,), bytes(32), b"abc"),
        messages.FileEnd(1, 0, bytes(32)),
        messages.FileFailed(1, ExitCode.PARTIAL, "no"),
        messages.Notice(ExitCode.OK, b"", "hm"),
        messages.Items("." * 11, (b"a",)),
        messages.Progress("delete", 1, 2),
        messages.Plan(0, 0, 0),
        RESULT[0],
        messages.Watch(False, bytes(16)),
        messages.Follow(600, b""),
        messages.Condition(messages.SourceState.HALTED, "gone", 0),
        messages.Meet(bytes(16), b"", (bytes(24),), (), 0, None, 7, 0, b"here", b"", EVERYTHING),
        messages.Met(bytes(16), (), (), 0, bytes(16), 0, 0, None, None, b"there", b"", EVERYTHING),
        messages.Page(Subject.TELL, b"", True),
        messages.Exchange(messages.Role.SOURCE),
        messages.Turn(False),
        messages.Renamed(b"a", b"b", Kind.FILE, 1, START.metadata),
        messages.Changed(b"", START.metadata, 0, b"gone\0", listing(b"a"), ()),
        messages.TurnEnd(2, 2, 0),
    )
}
# What must be unanswered for an answer to be one.
ASKED: dict[type[messages.Message], messages.Message] = {
    messages.RootAnswer: messages.RootRequest((1,)),
    messages.DigestAnswer: messages.DigestRequest((0, 1)),
    messages.TraitsAnswer: messages.TraitsRequest((1,)),
    messages.TreeAnswer: messages.TreeRequest((1,), 8),
    messages.LikelyAnswer: messages.LikelyRequest(5, 8, 1024),
    messages.LikelyBlocks: messages.LikelyRequest(5, 8, 1024),
    messages.BundleAnswer: messages.BundleRequest(2, (0, 1), 256),
    messages.BlockAnswer: messages.BlockRequest(1, (3,), (40,), 16, 4),
    messages.Removed: messages.Landed((0,), bytes(16)),
    messages.NodeAnswer: messages.NodeRequest(0, 1, (3, 5), 4),
    messages.Holes: messages.FileRequest((0, 1)),
    messages.Resized: messages.FileRequest((0, 1)),
    messages.Data: messages.FileRequest((0, 1)),
    messages.FileBatch: messages.FileRequest((0, 1)),
    messages.FileEnd: messages.FileRequest((0, 1)),
    messages.FileFailed: messages.TreeRequest((1,), 8),
    messages.Code: messages.RangeRequest(1, (3,), (4,)),
    messages.Correction: messages.RangeRequest(1, (3,), (4,), False, CLAIMS),
    messages.Table: messages.RangeRequest(1, (3,), (4,)),
    messages.Targets: messages.RangeRequest(1, (3,), (4,), False, CLAIMS, True),
    messages.Literals: messages.RangeRequest(1, (3,), (4,), True),
    messages.TierAnswer: messages.TierRequest(0, (), 7),
    messages.RowsPart: messages.RowsRequest(0, (3,), 7),
}
TOLD = {messages.Renamed, messages.Changed, messages.TurnEnd}
"""What belongs to a turn that tells of changes."""
UNITES = {messages.Met, messages.Page, messages.Exchange}
"""What belongs to a session that began with Meet."""
LATE = {
    kind for kind in SAMPLES if kind.place.answers and messages.State.LISTING not in kind.place.when
} | LOOKS
"""What nobody asks for while a listing goes on."""


def in_state(
    sender: messages.Role, state: messages.State, dials: bool, sample: type[messages.Message]
) -> Connection:
    """A connection whose remote side has role `sender` and is in `state`; `dials`: the remote side dialled.

    The near side is as far ahead as it can be, so that only the remote side's state decides about `sample`.
    """
    end = Connection(not dials, HELLO)
    lines: list[tuple[bool, messages.Message, int]] = []  # (from the remote side, message, round)
    if state is not messages.State.GREETING:
        lines.append((True, HELLO, 0))
    if state is messages.State.OPENING and not dials:
        lines.append((False, opening(sender), 1))
    if sample in UNITES and state in {messages.State.LISTING, messages.State.WATCHING, messages.State.DONE}:
        lines += _meeting(sender, state, dials)
    elif state not in {messages.State.GREETING, messages.State.OPENING}:
        lines.append((dials, opening(sender.other if dials else sender), 1))
        lines.append((not dials, messages.Opened(), 1))
        if sample is messages.Condition and sender is messages.Role.SOURCE:
            lines.append((False, SAMPLES[messages.Follow], 1))
        far_is_source = sender is messages.Role.SOURCE
        in_turn = far_is_source and state is messages.State.LISTING and sample in TOLD
        if state is messages.State.WATCHING or in_turn:
            lines.append((True, SAMPLES[messages.Watch], 1))
        if (
            far_is_source
            or sample not in {messages.Describe, messages.Follow, messages.Selected, messages.Meet}
            or state is not messages.State.ASKING
        ):
            lines += _described(far_is_source, messages.State.SERVING if in_turn else state, sample)
        if state is messages.State.WATCHING or in_turn:
            lines.append((False, *RESULT))
            lines += [(True, messages.Turn(False), 0)] if in_turn else []
        elif far_is_source and sample in ASKED and not (sample in LATE and state is messages.State.LISTING):
            lines.append((False, ASKED[sample], 1))
        elif state is messages.State.DONE:
            lines.append((True, *RESULT))
    if state is messages.State.CLOSED:
        lines.append((True, SAMPLES[messages.Refused], 1))
    end.receive_data(PREAMBLE)
    for far, message, number in lines:
        if far:
            end.receive_data(raw(message, number))
            assert end.next() == Received(message, number)
        else:
            end.send(message, number)
    assert end._rules.them.state is state
    return end


def _meeting(
    sender: messages.Role, state: messages.State, dials: bool
) -> list[tuple[bool, messages.Message, int]]:
    """A session that began with Meet, up to the state."""
    dialler_is_source = dials == (sender is messages.Role.SOURCE)
    if dialler_is_source and state is messages.State.LISTING:
        return [(dials, opening(sender.other if dials else sender), 1), (not dials, messages.Opened(), 1)]
    lines: list[tuple[bool, messages.Message, int]] = [
        (dials, opening(messages.Role.SOURCE), 1),
        (not dials, messages.Opened(), 1),
        (dials, SAMPLES[messages.Meet], 1),
    ]
    if state is messages.State.LISTING:
        return lines
    lines.append((not dials, SAMPLES[messages.Met], 1))
    if dialler_is_source:
        lines.append((dials, messages.Exchange(messages.Role.DESTINATION), 1))
        lines.append((dials, messages.TurnEnd(0, 0, 0), 1))
        lines.append((not dials, RESULT[0], 1))
    return lines


def _described(
    far_is_source: bool, state: messages.State, sample: type[messages.Message]
) -> list[tuple[bool, messages.Message, int]]:
    """As much of the tree's description as `state` and `sample` leave room for."""
    listing_state = far_is_source and state is messages.State.LISTING
    if sample is messages.Selected and listing_state:
        return []
    if sample is messages.TopTier and far_is_source:
        offered: list[tuple[bool, messages.Message, int]] = [
            (False, BY_DIGEST, 1),
            (True, START, 1),
            (True, OFFER, 1),
        ]
        return [*offered, (False, WHOLE, 1)] if listing_state else offered
    digest = sample is messages.Manifest or (sample in LOOKS and not listing_state)
    lines: list[tuple[bool, messages.Message, int]] = [(not far_is_source, BY_DIGEST if digest else WHOLE, 1)]
    if sample in {messages.Start, messages.Watch} and listing_state:
        return lines
    lines.append((far_is_source, START, 1))
    if digest:
        return lines if listing_state else [*lines, (far_is_source, OFFER, 1)]
    if sample is not messages.ListingPart or not listing_state:
        lines.append((far_is_source, *LISTED))
    if not listing_state:
        lines.append((far_is_source, *END))
    return lines
