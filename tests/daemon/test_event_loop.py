"""The daemon's loop: whatever comes, in every order within one batch, it lives, counts right, and serves."""

from __future__ import annotations

import errno
import gc
import itertools
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from rdc.daemon.config import DaemonConfig, Limits
from rdc.errors import TrustError, UsageError
from tests.daemon.driven_daemon import Batch, DrivenDaemon, Peer, every_fault, settings
from tests.support.share import examples

HANDSHAKES = 3
LIMITS = Limits(
    connections=4, connections_per_peer=3, handshakes=HANDSHAKES, handshake_seconds=8, session_seconds=1 << 31
)
FAULTS = list(every_fault())
RELOADS: list[DaemonConfig | Exception] = [
    settings(LIMITS, "alice", "bob"),
    settings(replace(LIMITS, handshakes=1, connections=2), "alice"),
    settings(replace(LIMITS, handshakes=6, connections_per_peer=1), "alice", "bob"),
    UsageError("wrong"),
    TrustError("nobody"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "reason"),
    *FAULTS,
]
STATUSES = (0, 40 << 8, 70 << 8, signal.SIGKILL, signal.SIGSEGV, signal.SIGRTMIN + 3, signal.SIGRTMAX)
"""With which a session ends: exit codes, and signals of which Python has no name for every one."""


@pytest.fixture(scope="module", autouse=True)
def _without_garbage() -> None:
    """Garbage of other tests would close its descriptors while these tests count theirs."""
    gc.collect()


class Loop(RuleBasedStateMachine):
    """DrivenDaemon.check is the model, and holds after every turn."""

    def __init__(self) -> None:
        super().__init__()
        self.daemon = DrivenDaemon(settings(LIMITS, "alice", "bob"))

    def teardown(self) -> None:
        self.daemon.__exit__(None)

    def peer(self, number: int) -> Peer:
        return self.daemon.peers[number % len(self.daemon.peers)]

    @rule(
        who=st.sampled_from(("", "", "alice", "bob", "carol")),
        listener=st.integers(0, 1),
        host=st.integers(1, 3),
        count=st.integers(1, 4),
    )
    def knock(self, who: str, listener: int, host: int, count: int) -> None:
        for _ in range(count):
            self.daemon.knock(who, listener=listener, host=host)

    @precondition(lambda self: self.daemon.peers)
    @rule(
        numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=4),
        act=st.sampled_from(
            (
                Peer.shake,
                Peer.shake,
                Peer.leave,
                Peer.reset,
                Peer.finish_sending,
                lambda peer: peer.say(b"\x16"),
                lambda peer: peer.say(b"GET / HTTP/1.1\r\n\r\n"),
                lambda peer: peer.say(bytes(100_000)),
            )
        ),
    )
    def act(self, numbers: list[int], act: Callable[[Peer], None]) -> None:
        for number in numbers:
            act(self.peer(number))

    @rule(seed=st.integers(0, 1 << 32))
    def turn(self, seed: int) -> None:
        def arrange(batch: Batch) -> Batch:
            random.Random(seed).shuffle(batch)
            return batch

        self.daemon.turn(arrange)

    @rule(
        speak=st.lists(st.integers(0, HANDSHAKES - 1)),
        newcomers=st.lists(st.integers(0, 1), max_size=HANDSHAKES),
        late=st.booleans(),
        seed=st.integers(0, 1 << 32),
    )
    def flood(self, speak: list[int], newcomers: list[int], late: bool, seed: int) -> None:
        """Silent strangers take all slots, and speak, or some of them, while others knock."""
        strangers = [self.daemon.knock() for _ in range(HANDSHAKES)]
        self.turn(seed)
        self.daemon.pass_time(0.6 if late else 0.1)
        for number in speak:
            strangers[number].say(b"\x16")
        for listener in newcomers:
            self.daemon.knock(listener=listener)
        self.turn(seed)

    @rule(seconds=st.sampled_from((0.06, 0.6, 2.5, 9.0, 1e6)))
    def time_passes(self, seconds: float) -> None:
        self.daemon.pass_time(seconds)

    @rule(found=st.sampled_from(RELOADS))
    def reload(self, found: DaemonConfig | Exception) -> None:
        self.daemon.reload(found)

    @precondition(lambda self: self.daemon.processes.running)
    @rule(number=st.integers(0, 100), status=st.sampled_from(STATUSES), told=st.booleans())
    def session_ends(self, number: int, status: int, told: bool) -> None:
        running = sorted(self.daemon.processes.running)
        self.daemon.processes.end(running[number % len(running)], status)
        if told:
            self.daemon.server.notice(signal.SIGCHLD)

    @rule(fault=st.sampled_from(FAULTS), where=st.integers(0, 4))
    def fault(self, fault: Exception, where: int) -> None:
        daemon = self.daemon
        if where < 2 and isinstance(fault, OSError):
            daemon.listeners[where].faults.append(fault)
        elif where == 2 and isinstance(fault, OSError | MemoryError):
            daemon.processes.faults.append(fault)
        elif where == 3:
            daemon.selector.faults.append(fault)
        else:
            daemon.arrival_faults.append(fault)

    @rule()
    def a_trusted_peer_is_served(self) -> None:
        """With all that was before it still there, but with a free slot for a session and no more faults."""
        daemon = self.daemon
        daemon.clear_faults()
        for pid in list(daemon.processes.running):
            daemon.processes.end(pid, 0)
        daemon.server.notice(signal.SIGCHLD)
        assert daemon.serve("alice"), daemon.lines[-20:]


TestLoop = Loop.TestCase
TestLoop.settings = hypothesis_settings(max_examples=examples(40), stateful_step_count=30, deadline=None)


@pytest.fixture
def daemon() -> Iterator[DrivenDaemon]:
    with DrivenDaemon(settings(LIMITS, "alice", "bob")) as driven:
        yield driven


# What one of two peers, who take the last slots, may do; and who knocks meanwhile.
ACTS: tuple[Callable[[Peer], None], ...] = (
    lambda peer: peer.say(b"\x16"),
    lambda peer: peer.say(b"rubbish that is no TLS"),
    Peer.reset,
    Peer.finish_sending,
    Peer.shake,
)


def test_every_order_of_one_batch() -> None:
    """Two that wait do one of five things each (the last: end their handshakes). Newcomers come to no, one or
    both listeners, and each takes a slot and with it a descriptor's number. Every order of their events is
    tried, at once and half a second later; a reload fails after every third batch."""
    batches = events = 0
    limits = replace(LIMITS, handshakes=2, connections=64)
    with DrivenDaemon(settings(limits, "alice")) as daemon:
        for acts in itertools.product(ACTS, repeat=2):
            for doors, late in itertools.product(((), (0,), (0, 1), (0, 0, 1)), (False, True)):
                if len(doors) > 2 and ACTS.index(acts[0]) > ACTS.index(acts[1]):
                    continue  # the other way round: only the order in which the two came differs
                orders: Iterator[tuple[int, ...] | None] = iter((None,))
                while (order := next(orders, ())) != ():
                    if batches % 3 == 0:
                        daemon.reload(RecursionError("deep"))
                    size = one_batch(daemon, acts, doors, late, order)
                    batches, events = batches + 1, events + size
                    if order is None:
                        orders = itertools.chain(itertools.permutations(range(size)))
                        next(orders)  # that in which the system gave them
        assert batches > 500 and daemon.serve()
        assert not any(b"event=internal" in line for line in daemon.lines)
    print(f"{batches} batches of {events} events")


def one_batch(
    daemon: DrivenDaemon,
    acts: tuple[Callable[[Peer], None], ...],
    doors: tuple[int, ...],
    late: bool,
    order: tuple[int, ...] | None,
) -> int:
    """How many events it had; afterwards nobody is there any more."""
    peers = [daemon.knock("alice" if act is Peer.shake else "") for act in acts]
    for _ in range(2):
        daemon.turn()
    daemon.pass_time(0.6 if late else 0.1)
    for peer, act in zip(peers, acts, strict=True):
        act(peer)
    for door in doors:
        daemon.knock(listener=door)
    daemon.turn(lambda batch: [batch[place] for place in order] if order is not None else batch)
    size = daemon.selector.batch
    for peer in daemon.peers:
        peer.leave()
    daemon.peers.clear()
    for pid in list(daemon.processes.running):
        daemon.processes.end(pid, 0)
    daemon.server.notice(signal.SIGCHLD)
    for _ in range(4):
        daemon.pass_time(9)
        daemon.turn()
    assert len(daemon.server._arrivals) == len(daemon.server._processes) == 0
    return size


@pytest.mark.parametrize("handshakes", [1, 2, 3, 6])
def test_a_newcomer_waits_for_those_that_came_before_and_no_longer(handshakes: int) -> None:
    """A history in which a bound of one handshake, nine begun ones and a lack of descriptors made a trusted
    peer wait for 6.5 seconds: as long as each of the nine may take, and a pause."""
    history = Loop()
    history.fault(FAULTS[0], 0)
    history.reload(settings(replace(LIMITS, handshakes=handshakes, connections=2), "alice"))
    for count in (2, 4):
        history.knock("alice", 0, 1, count)
    history.flood([0, 1, 2], [], False, 0)
    history.a_trusted_peer_is_served()
    history.teardown()


def settle(daemon: DrivenDaemon, peer: Peer, turns: int = 20) -> None:
    for _ in range(turns):
        daemon.turn()
        peer.shake()


def test_no_process_for_a_session_is_told_to_the_peer(daemon: DrivenDaemon) -> None:
    daemon.processes.faults += [OSError(errno.EAGAIN, "none to be had"), MemoryError()]
    for _ in range(2):
        peer = daemon.knock("alice")
        settle(daemon, peer)
        assert peer.tls is not None and peer.shaken
        said = peer.tls.exchange(memoryview(b""), True, 0)
        assert b"the system is short of them; try again later" in said.received
        peer.leave()
        daemon.turn()
    assert sum(b"event=fork_failed" in line for line in daemon.lines) == 2
    assert daemon.serve()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
def test_for_want_of_descriptors_one_that_waits_makes_room(number: int, daemon: DrivenDaemon) -> None:
    """Else strangers who hold them would keep everybody else out for as long as a handshake may take."""
    stranger = daemon.knock()
    daemon.turn()
    daemon.listeners[0].faults.append(OSError(number, "short"))
    assert daemon.serve() and not [line for line in daemon.lines if b"accept_failed" in line]
    assert sum(b"crowded_out" in line for line in daemon.lines) == 1
    assert stranger.ended
    # Where nobody waits, accepting does, for a moment.
    daemon.pass_time(20)
    daemon.turn()
    daemon.listeners[0].faults.append(OSError(number, "short"))
    assert daemon.serve() and sum(b"accept_failed" in line for line in daemon.lines) == 1


def test_listening_goes_on_though_the_kernel_refuses_at_first(daemon: DrivenDaemon) -> None:
    daemon.listeners[0].faults.append(OSError(errno.EMFILE, "short"))
    daemon.knock()
    daemon.turn()
    daemon.pass_time(2)
    with patch.object(daemon.selector, "register", side_effect=OSError(errno.ENOSPC, "no watches")):
        daemon.turn()
    assert daemon.server._listeners.due is not None
    assert daemon.serve()


def test_a_bound_that_is_lowered_holds_from_the_next_arrival_on(daemon: DrivenDaemon) -> None:
    for _ in range(HANDSHAKES):
        daemon.knock()
    daemon.turn()
    daemon.reload(settings(replace(LIMITS, handshakes=1), "alice", "bob"))
    daemon.turn()
    assert len(daemon.server._arrivals) == HANDSHAKES
    daemon.knock()
    daemon.turn()
    assert len(daemon.server._arrivals) == 1


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH])
def test_a_connection_that_was_gone_before_it_was_accepted(number: int, daemon: DrivenDaemon) -> None:
    """Whoever comes next is accepted in the same turn."""
    peer = daemon.knock()
    daemon.listeners[0].faults.append(OSError(number, "gone"))
    daemon.turn()
    assert len(daemon.server._arrivals) == 1 and peer.open
    assert not any(b"accept_failed" in line for line in daemon.lines)


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_what_one_peer_s_handler_raises_ends_that_peer(fault: Exception, daemon: DrivenDaemon) -> None:
    """Whatever it is; in one line that names the peer."""
    other = daemon.knock()
    daemon.turn()
    peer = daemon.knock()
    daemon.turn()
    daemon.arrival_faults.append(fault)
    peer.say(b"\x16")
    daemon.turn()
    assert peer.ended
    assert len(daemon.server._arrivals) == 1
    (line,) = [line for line in daemon.lines if b"event=internal" in line]
    assert f"address=127.0.0.1:{peer_port(line)}" in line.decode() and type(fault).__name__ in line.decode()
    other.say(b"\x16")
    daemon.turn()
    assert not other.ended and len(daemon.server._arrivals) == 1
    assert daemon.serve()


def peer_port(line: bytes) -> int:
    return int(line.partition(b"address=127.0.0.1:")[2].split()[0])
