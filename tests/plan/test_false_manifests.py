"""The manifest descent and answers that no honest source gives: an error, and no more than was offered."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings

from rdc.errors import ProtocolError
from rdc.model.preserved import Preserved
from rdc.plan import manifest_descent
from rdc.plan.manifest_descent import ManifestDescent
from rdc.protocol.messages import RowsPart, TierAnswer, TierRequest
from rdc.tree.manifest import GROUPS, Fold
from tests.support.trees.manifest_source import KEY, Answer, SourceModel, feed, request, start
from tests.support.trees.manifests import Rows, build, entry, flat_tree, in_order, randoms, touched

SLOW = settings(deadline=None)
"""A thousand entries an example, on machines of any load."""


def differing() -> tuple[Rows, Rows]:
    """Trees of three tiers that need all kinds of requests."""
    rng = random.Random(11)
    wanted = flat_tree(60, 80)
    existing = Rows(wanted)
    for path in rng.sample(sorted(existing), 40):
        existing[path] = touched(rng, existing[path])
    for i in range(5):
        del existing[b"directory-%05d/file-00010.txt" % (10 * i)]
    return wanted, existing


WANTED, EXISTING = differing()


def transcript() -> list[Answer]:
    """What an honest source answers, one by one."""
    source, descent = SourceModel(build(WANTED), owner=True, part=9), start(EXISTING, len(WANTED))
    announced: list[Answer] = []
    while questions := descent.questions():
        for ask in questions:
            for answer in source.answers(request(ask)):
                announced.append(answer)
                feed(descent, answer)
    return announced


HONEST = transcript()


def lies(answer: Answer) -> Iterator[Answer]:
    """An answer with one thing wrong."""
    if isinstance(answer, TierAnswer):
        firsts, counts = answer.firsts, answer.counts
        yield replace(answer, level=answer.level + 1)
        yield replace(answer, references=answer.references[:-1])
        yield replace(answer, references=answer.references + b"x")
        yield replace(answer, references=answer.references * 2)
        yield replace(answer, counts=(counts[0] + 1, *counts[1:]))
        yield replace(answer, firsts=(*firsts, firsts[-1]), counts=(*counts, 1))
        yield replace(answer, firsts=(*firsts[:-1], 1 << 31))
        if len(counts) > 1:
            yield replace(answer, firsts=firsts[:-1], counts=counts[:-1])
            yield replace(answer, firsts=firsts[::-1], counts=counts[::-1])
            yield replace(answer, firsts=(firsts[0],) * len(firsts))
            many = TierAnswer(answer.level, firsts, (27, *counts[1:]), b"")
            width = len(answer.references) // sum(counts)
            yield replace(many, references=bytes(width * sum(many.counts)))
            none = TierAnswer(answer.level, firsts, (0, *counts[1:]), b"")
            yield replace(none, references=bytes(width * sum(none.counts)))
        elif firsts == (0,):  # a whole tier
            yield replace(answer, firsts=(1,))
        yield RowsPart((HONEST_ROWS.count,), True, HONEST_ROWS)
        return
    rows = answer.rows
    yield replace(answer, counts=())
    yield replace(answer, counts=(*answer.counts, 1))
    yield replace(answer, counts=(rows.count + 1,))
    yield replace(answer, counts=(1,) * (rows.count - 1) if rows.count > 2 else (9,))
    if rows.kinds:
        yield replace(answer, rows=replace(rows, kinds=b"", segments=()))
    else:
        yield replace(answer, rows=replace(rows, kinds=bytes(rows.count)))
    if rows.modes:
        bare = replace(rows, modes=b"", sizes=b"", uids=b"", gids=b"")
        yield replace(answer, rows=bare)
        yield replace(answer, rows=replace(rows, uids=b"", gids=b""))
    else:
        yield replace(answer, rows=replace(rows, modes=bytes(2 * rows.count), sizes=bytes(8 * rows.count)))
        yield replace(answer, rows=replace(rows, uids=bytes(4 * rows.count), gids=bytes(4 * rows.count)))
    if rows.mtimes:
        yield replace(answer, rows=replace(rows, mtimes=b""))
    else:
        yield replace(answer, rows=replace(rows, mtimes=bytes(8 * rows.count)))
    yield TierAnswer(0, (0,), (7,), bytes(98))


HONEST_ROWS = next(a.rows for a in HONEST if isinstance(a, RowsPart) and a.rows.kinds)


def test_the_transcript_has_everything_to_lie_about() -> None:
    tiers = [a for a in HONEST if isinstance(a, TierAnswer)]
    rows = [a for a in HONEST if isinstance(a, RowsPart)]
    assert {a.level for a in tiers} == {0, 1}
    assert any(len(a.counts) > 1 for a in tiers)
    assert {(bool(a.rows.kinds), bool(a.rows.modes), bool(a.rows.mtimes)) for a in rows} >= {
        (True, True, True),
        (False, True, False),
        (False, False, True),
    }
    assert {a.last for a in rows} == {True, False}


@pytest.mark.parametrize("at", range(0, len(HONEST), max(1, len(HONEST) // 60)))
def test_a_lie_is_a_protocol_error(at: int) -> None:
    held = Fold(build(EXISTING), Preserved(True))  # which no descent changes
    for lie in lies(HONEST[at]):
        descent = ManifestDescent(held, len(WANTED), KEY, owner=True)
        for answer in HONEST[:at]:
            feed(descent, answer)
        with pytest.raises(ProtocolError):
            feed(descent, lie)


def test_answers_nobody_asked_for_are_refused() -> None:
    descent = start(EXISTING, len(WANTED))
    with pytest.raises(ProtocolError, match="not asked for"):
        feed(descent, RowsPart((HONEST_ROWS.count,), True, HONEST_ROWS))
    for answer in HONEST:
        feed(descent, answer)
    assert descent.complete
    for late in (HONEST[0], RowsPart((HONEST_ROWS.count,), True, HONEST_ROWS)):
        with pytest.raises(ProtocolError, match="not asked for"):
            feed(descent, late)


@SLOW
@given(randoms)
def test_any_answers_of_the_right_shape_end(rng: random.Random) -> None:
    """References drawn at random, node numbers in order but made up: an error, or an end within bounds."""
    descent = start(EXISTING, len(WANTED))
    taken = 0
    try:
        while questions := descent.questions():
            for ask in questions:
                if ask.rows:
                    spans = [range(node % 100, node % 100 + rng.randint(1, 26)) for node in ask.nodes]
                    taken += len(spans)
                    sizes = tuple(len(span) for span in spans)
                    feed(descent, RowsPart(sizes, True, SOURCE.rows(spans, ask.groups)))
                    continue
                counts = [rng.randint(1, 26) for _ in ask.nodes] or [rng.randint(1, 60)]
                firsts = [0] if not ask.nodes else [7 * node for node in ask.nodes]
                width = sum(group.width for group in GROUPS if group & ask.groups)
                taken += sum(counts)
                references = rng.randbytes(width * sum(counts))
                feed(descent, TierAnswer(ask.level, tuple(firsts), tuple(counts), references))
    except ProtocolError:
        pass
    assert taken <= 2 * len(WANTED)


SOURCE = SourceModel(build(WANTED), owner=True)


def test_a_flood_of_nodes_ends_within_what_the_offer_can_hold() -> None:
    """Every node with 26 children, all different: no more of them are taken than so many entries can have."""
    entries = 300_000
    tracemalloc.start()
    descent = start({b"a": entry(b"a")}, entries)
    nodes = 0
    with pytest.raises(ProtocolError, match=r"more nodes|out of order or past"):
        while questions := descent.questions():
            for ask in questions:
                counts = [26] * len(ask.nodes) or [entries // 7**3]
                firsts = [26 * i for i in range(len(counts))]
                nodes += sum(counts)
                feed(descent, TierAnswer(ask.level, tuple(firsts), tuple(counts), bytes(11 * sum(counts))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert nodes <= entries // 5
    assert peak < 200 * entries


def test_a_flood_of_rows_ends_within_what_the_offer_can_hold() -> None:
    descent = start(EXISTING, len(WANTED))
    announced = 0
    for answer in HONEST:
        if isinstance(answer, RowsPart):
            break
        feed(descent, answer)
    first = next(answer for answer in HONEST if isinstance(answer, RowsPart))
    first = replace(first, counts=(first.rows.count,))
    with pytest.raises(ProtocolError, match="more rows"):
        while True:
            feed(descent, replace(first, last=False))
            announced += first.rows.count
    assert announced <= len(WANTED)


def test_tier_requests_are_what_the_protocol_knows() -> None:
    assert manifest_descent.FIRST_NODES_MAX * 11 < 1 << 20
    ask = start(EXISTING, len(WANTED)).questions()[0]
    assert request(ask) == TierRequest(1, (), 7)
    assert [e.path for e in in_order({b"a": entry(b"a")})] == [b"a"]


def test_a_top_of_more_nodes_than_the_offer_can_hold_is_refused() -> None:
    for level, nodes in ((0, 3), (1, 2), (24, 2)):
        with pytest.raises(ProtocolError, match="manifest nodes in tier"):
            start(EXISTING, 14).take_top(level, bytes(4 * nodes))
