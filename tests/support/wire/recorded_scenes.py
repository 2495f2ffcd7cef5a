"""The sessions that fixtures/transcripts holds: small ones, in which each message and each role occurs.

Nothing in them depends on the machine, the time or chance. A scene never changes once it is recorded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.checking.records import CheckOptions
from rdc.checking.run import CheckRun, operands_of
from rdc.errors import RdcError, StreamError
from rdc.lean.records import replace
from rdc.model.location import Location
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import DIALECT, Connection
from rdc.protocol.messages import Open, Opened, Role
from rdc.session.far.far_host import Traffic
from rdc.session.runtime.commands import Conversation, EventRelay, Receive, Send
from rdc.session.runtime.driver import Runner
from rdc.session.serve import answer
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.filters import FilterList
from rdc.watching.events import TreeEvents
from rdc.watching.follower import Follower, following
from rdc.watching.listeners import NearUser
from rdc.watching.records import WatchOptions
from rdc.watching.watch import Receiver
from tests.support.running.followed import Followed
from tests.support.running.run_pair import End, run_ends
from tests.support.trees.trees import Directory, File, Link, Tree, tree, write_tree
from tests.support.wire.transcripts import Line, RecordedEnd, Recording

__all__ = ["NEW", "OLD", "SCENES", "Scene", "letters", "play"]

SECRET = b"a recorded key.."


def letters(seed: int, size: int) -> bytes:
    """Text that repeats nothing: the digits of a linear congruential sequence."""
    state, found = seed, bytearray()
    while len(found) < size:
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        found += b"%016x" % state
    return bytes(found[:size])


def _edited(content: bytes) -> bytes:
    return content[:9_000] + b"an edit" + content[9_000:20_000] + content[20_100:]


NEW = tree(
    {
        "long": File(_edited(letters(1, 40_000))),
        "short": File(b"new", 0o600, 1_234_567_890_000_000_001),
        "sub/deep/moved": File(letters(2, 6_000)),
        "sub/same": b"same",
        "sub/tool": File(b"tool", 0o755),
        "empty": Directory(0o700),
        "link": Link(b"sub/same"),
        "\xe9".encode("latin-1").decode("utf-8", "surrogateescape"): b"no UTF-8",
    }
)
OLD = tree(
    {
        "long": File(letters(1, 40_000), mtime_ns=5),
        "short": File(b"older", mtime_ns=7),
        "sub/moved from here": File(letters(2, 6_000)),
        "sub/same": b"same",
        "sub/tool": File(b"tool", 0o644),
        "gone/file": b"gone",
        "link": Link(b"elsewhere"),
    }
)
MANY = {f"d{number % 20:02}/f{number:03}": File(b"%d" % number) for number in range(220)}
USUAL = SyncOptions(fsync=False, delete=True, owner=False, compress=False)


@dataclass(frozen=True, slots=True)
class Scene:
    wanted: Tree = field(default_factory=lambda: NEW)
    held: Tree | None = field(default_factory=lambda: OLD)
    """None: there is no destination yet."""
    options: SyncOptions = USUAL
    check: bool = False
    watch: bool = False
    missing: bool = False
    """There is no source: the session ends with a refusal."""
    prepare: Callable[[Path], None] = lambda place: None
    """The changes made to the source besides writing `wanted`."""
    diallers: tuple[Role, ...] = (Role.SOURCE, Role.DESTINATION)

    @property
    def packed(self) -> bool:
        return self.options.compress is not False


def _link_and_mark(place: Path) -> None:
    os.link(place / "sub" / "same", place / "sub" / "twin")
    os.setxattr(place / "short", "user.mark", b"value")
    os.utime(place / "sub", ns=(10**18, 10**18))


SCENES = {
    "copy": Scene(held=None),
    "update": Scene(),
    "equal": Scene(held=NEW),
    "packed": Scene(options=replace(USUAL, compress=None)),
    "checksum": Scene(options=replace(USUAL, checksum=True)),
    "manifest": Scene(
        tree({**MANY, "d07/f007": File(b"changed"), "d09/new": File(b"new")}), tree({**MANY, "d03/gone": b""})
    ),
    "linked": Scene(
        options=replace(USUAL, hard_links=True, xattrs=True),
        prepare=_link_and_mark,
    ),
    "added": Scene(options=replace(USUAL, backup=Backup(b"~"), chmod="F640")),
    "bundle": Scene(
        tree({f"f{at}": _edited(letters(at, 30_000)) for at in range(9)}),
        tree({f"f{at}": File(letters(at, 30_000), mtime_ns=3) for at in range(9)}),
    ),
    "nodes": Scene(
        tree({"deep": _edited(letters(4, 3_000_000))}),
        tree({"deep": File(letters(4, 3_000_000), mtime_ns=3)}),
    ),
    "trial": Scene(options=replace(USUAL, dry_run=True)),
    "missing": Scene(missing=True, diallers=(Role.DESTINATION,)),
    "check": Scene(check=True),
    "watch": Scene(watch=True),
}
"""By name. The dialler of a check has its source or its destination, and is the session's destination."""


def play(
    scene: Scene, dialler: Role, place: Path, *, lines: list[Line] | None = None, live: bool | None = None
) -> list[Line]:
    """Play a scene in `place`, an empty directory. Return what both ends wrote.

    lines: of a recorded session, whose one end takes part. live: which end is today's then, True for the
    dialler. The destination is `place`/destination.
    """
    write_tree(place / "source", tree() if scene.missing else scene.wanted)
    scene.prepare(place / "source")
    if scene.held is not None:
        write_tree(place / "destination", scene.held)
    wrote: list[Line] = []
    recorded = None
    if lines is not None:
        recorded = RecordedEnd(lines, dialler=not live, packed=scene.packed)
    with contextlib.chdir(place), _fixed(), contextlib.ExitStack() as stack:
        if scene.watch:
            watched = _watch_here if dialler is Role.SOURCE else _watch_there
            watched(scene, wrote, stack, recorded, live=live)
        else:
            near = recorded if live is False and recorded else _near(scene, dialler, wrote, stack)
            far = recorded if live is True and recorded else _far(scene, wrote, stack)
            with contextlib.suppress(RdcError) if scene.missing else contextlib.nullcontext():
                run_ends(near, far)
    if recorded is not None:
        recorded.check_end()
    return wrote


@contextlib.contextmanager
def _fixed() -> Iterator[None]:
    """No clock has a say, and the key is a known one."""
    with (
        patch.object(EventRelay.__init__, "__defaults__", (lambda: 0.0,)),
        patch("rdc.session.sync_run.new_secret", lambda: SECRET),
        patch("rdc.watching.follower._mark", lambda tree: b"a recorded place"),
        patch("tests.support.running.followed.SECRET", SECRET),
        patch.dict(Follower.__init__.__kwdefaults__, clock=lambda: 0.0, make_events=_no_events),
    ):
        yield


def _no_events(start: bytes) -> TreeEvents:
    return TreeEvents(start, running=False)


def _connection(scene: Scene, wrote: list[Line], signer: FileSigner, *, dialler: bool) -> Connection:
    hello = DIALECT.hello("rdc", signer.params.id)
    return Recording(wrote, dialler, hello, compress=scene.packed)


def _near(scene: Scene, dialler: Role, wrote: list[Line], stack: contextlib.ExitStack) -> Runner[object]:
    source = b"missing/" if scene.missing else b"source/"
    places = Location(None, source), Location(None, b"destination/")
    signer = stack.enter_context(contextlib.closing(FileSigner()))
    connection = _connection(scene, wrote, signer, dialler=True)
    if scene.check:
        hosts = ("far", None) if dialler is Role.DESTINATION else (None, "far")
        operands = operands_of(*(Location(host, one.path) for host, one in zip(hosts, places, strict=True)))
        options = CheckOptions(scene.options)
        check = CheckRun(operands, options, lambda event: None, lambda found: None, NoCatalog())
        stack.callback(check.close)
        return Runner(check.fetch(), connection)
    run = SyncRun(*places, scene.options, lambda event: None, NoCatalog())
    stack.callback(run.close)
    if dialler is Role.DESTINATION:
        return Runner(run.fetch(), connection)
    opened = SourceTree.open(source, options=scene.options)
    stack.callback(opened.root.release)
    return Runner(run.send(opened), connection)


def _far(scene: Scene, wrote: list[Line], stack: contextlib.ExitStack) -> Runner[None]:
    signer = stack.enter_context(contextlib.closing(FileSigner()))
    return Runner(answer(signer), _connection(scene, wrote, signer, dialler=False))


def _watch_here(
    scene: Scene,
    wrote: list[Line],
    stack: contextlib.ExitStack,
    recorded: RecordedEnd | None,
    *,
    live: bool | None,
) -> None:
    """Three turns: the whole trees, some changes, and a change of names."""
    far = recorded if live is True and recorded else _far(scene, wrote, stack)
    if live is False and recorded:
        run_ends(recorded, far)
        return
    signer = stack.enter_context(contextlib.closing(FileSigner()))
    near = _connection(scene, wrote, signer, dialler=True)
    place = Path("source")
    with Followed(place, Path("destination"), scene.options, ends=(near, far)) as followed:
        followed.rest()
        (place / "short").write_bytes(b"newer")
        (place / "sub" / "tool").unlink()
        _age(place)
        followed.change(b"", b"sub")
        (place / "sub" / "deep" / "moved").rename(place / "moved again")
        (place / "more").mkdir()
        (place / "more" / "file").write_bytes(letters(3, 3_000))
        _age(place)
        followed.change(b"", b"sub/deep", b"more")


def _watch_there(
    scene: Scene,
    wrote: list[Line],
    stack: contextlib.ExitStack,
    recorded: RecordedEnd | None,
    *,
    live: bool | None,
) -> None:
    """One turn, since only events would bring another."""
    near: End | None = recorded if live is False else None
    far: End | None = recorded if live is True else None
    if near is None:
        signer = stack.enter_context(contextlib.closing(FileSigner()))
        receiver = Receiver(
            b"destination/",
            WatchOptions(scene.options),
            FilterList(()),
            SECRET,
            signer,
            NearUser(lambda event: None, lambda event: None),
            lambda: Traffic(0, 0),
            asked=b"",
            origin=b"",
            again=False,
        )
        near = Runner(receiver.run(_opening(scene)), _connection(scene, wrote, signer, dialler=True))
    if far is None:
        signer = stack.enter_context(contextlib.closing(FileSigner()))
        far = Runner(answer(signer, following=following), _connection(scene, wrote, signer, dialler=False))
    with contextlib.suppress(RuntimeError, StreamError):
        # In the end both wait. Where a recorded end takes part, it ends the stream then.
        run_ends(near, far)


def _opening(scene: Scene) -> Conversation[None]:
    yield Send(Open(Role.SOURCE, b"source/", SECRET, scene.options), 0)
    received = None
    while received is None or not isinstance(received.message, Opened):
        received = yield Receive()


def _age(place: Path) -> None:
    for top, _, names in os.walk(place, topdown=False):
        for name in names:
            os.utime(os.path.join(top, name), ns=(10**18, 10**18), follow_symlinks=False)
        os.utime(top, ns=(10**18, 10**18))
