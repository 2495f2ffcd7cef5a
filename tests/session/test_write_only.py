"""What a write-only session tells does not depend on the content of what is there.

Each trial is one conversation with two directories that are alike in names, kinds, sizes, times, modes and
links, and differ in content and extended attributes. What the served side says has to be the same, byte by
byte, whatever the source sends and asks for. In a directory that may be read it differs.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from blake3 import blake3

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.daemon.access import Access, admission, granted_options
from rdc.errors import RdcError, TrustError
from rdc.files.base.paths import temporary_name
from rdc.model.location import Location
from rdc.model.options import Alternates, AlternateUse, Backup
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Data, FileEnd, FileFailed, Message, Open, Role
from rdc.session.serve import answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from tests.support.running.run_pair import run_pair
from tests.support.share import share
from tests.support.wire.lying_source import answering
from tests.support.wire.tampered_session import Tampered

TRIALS = 150
TIMES = (10**18, 10**18 + 5 * 10**9)
SIZES = (0, 10, 900, 3_000, 30_000, 300_000)
NAMES = ("a", "b", "c", "d/one", "d/two", "d/three", "e/f/g", "h")
MODES = (0o644, 0o600, 0o755)


@dataclass
class World:
    """Two directories that are alike but for their content."""

    place: Path
    rng: random.Random
    contents: list[dict[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.rng
        files = {name: rng.choice(SIZES) for name in rng.sample(NAMES, rng.randrange(3, len(NAMES)))}
        facts = {name: (rng.choice(MODES), rng.choice(TIMES)) for name in files}
        for _ in (0, 1):
            self.contents.append({name: _text(rng, size) for name, size in files.items()})
        # What resembles: one content is the other with some bytes changed, or another file's.
        for name, size in files.items():
            match rng.randrange(4):
                case 0:
                    changed = bytearray(self.contents[0][name])
                    for _ in range(size // 5_000 + (size > 0)):
                        changed[rng.randrange(size)] ^= 1
                    self.contents[1][name] = bytes(changed)
                case 1:
                    self.contents[1][name] = self.contents[0][name]
        like = [name for name, size in files.items() if size == max(files.values())]
        self.contents[0][like[0]] = self.contents[0][like[-1]]
        partial = os.fsdecode(temporary_name(b"a"))
        part = rng.random() < 0.3
        twin = rng.choice(sorted(files)) if rng.random() < 0.3 else None
        for number in (0, 1):
            top = self.top(number)
            for name, content in self.contents[number].items():
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(facts[name][0])
                if number or rng.random() < 0.3:
                    os.setxattr(path, "user.secret", content[:20])
                os.utime(path, ns=(facts[name][1],) * 2)
            if part:
                (top / partial).write_bytes(_text(rng, 200_000))
            if twin is not None:
                os.link(top / twin, top / "twin")
            for below in (top / "d", top / "e", top / "e/f", top):
                if below.exists():
                    os.utime(below, ns=(TIMES[0],) * 2)
        self._write_source(facts)

    def _write_source(self, facts: dict[str, tuple[int, int]]) -> None:
        rng, source = self.rng, self.place / "source"
        source.mkdir()
        for name in rng.sample(NAMES, rng.randrange(3, len(NAMES))):
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            known = rng.choice(self.contents).get(rng.choice((name, rng.choice(NAMES))), b"")
            path.write_bytes(
                rng.choice((known, known, known[: len(known) // 2], _text(rng, rng.choice(SIZES))))
            )
            mode, mtime = facts.get(name, (0o644, TIMES[0]))
            path.chmod(rng.choice((mode, mode, 0o644)))
            if rng.random() < 0.3:
                os.setxattr(path, "user.secret", known[:20])
            os.utime(path, ns=(rng.choice((mtime, *TIMES)),) * 2)
        if rng.random() < 0.3:
            one = rng.choice([path for path in sorted(source.rglob("*")) if path.is_file()])
            os.link(one, source / "twin")
        for below in (source, *(path for path in sorted(source.rglob("*")) if path.is_dir())):
            os.utime(below, ns=(TIMES[0],) * 2)

    def top(self, number: int) -> Path:
        return self.place / str(number) / "top"


def _text(rng: random.Random, size: int) -> bytes:
    words = [rng.randbytes(rng.randrange(2, 9)).hex().encode() for _ in range(50)]
    return b" ".join(rng.choices(words, k=size // 4 + 1))[:size]


def _options(rng: random.Random) -> SyncOptions:
    def some(chance: float = 0.2) -> bool:
        return rng.random() < chance

    inplace = some(0.15)
    return SyncOptions(
        fsync=False,
        dry_run=some(0.1),
        ignore_times=some(),
        whole_file=some(0.3),
        hard_links=some(0.4),
        xattrs=some(0.4),
        acls=some(0.1),
        update=some(0.1) and not inplace,
        size_only=some(0.1) and not inplace,
        list_unchanged=some(),
        inplace=inplace,
        delay_updates=some(0.1) and not inplace,
        sparse=some(0.1),
        backup=Backup(b"~") if some(0.1) else None,
        existing=some(0.1),
        ignore_existing=some(0.1),
        modify_window=rng.choice((None, None, None, 1)),
        compress=False,
    )


def _told(
    source: Path, top: Path, options: SyncOptions, access: Access, tampered: random.Random | None
) -> bytes:
    """All bytes that the served side sends in one session."""
    told = bytearray()

    class Recording(Connection):
        def data_to_send(self) -> bytes:
            data = super().data_to_send()
            told.extend(data)
            return data

    signer = FileSigner(catalog=NoCatalog())
    near = Connection(True, greeting(signer.params))
    far = Recording(False, greeting(signer.params), compress=False)
    if tampered is not None:
        far._frames_in = Tampered(tampered, tampered.randrange(2, 10), tampered.choice((1, 1, 2, 5)), [])
    run = SyncRun(
        Location(None, os.fsencode(source) + b"/"), Location(None, b""), options, lambda _: None, NoCatalog()
    )
    run._secret = bytes(16)
    admit = admission(os.fsencode(top), access)
    found = SourceTree.open(os.fsencode(source) + b"/", options=options)
    try:
        with suppress(RdcError, RuntimeError):
            run_pair(run.send(found), near, answer(signer, admit), far)
    finally:
        found.release()
    return bytes(told)


ACCESSES = {
    "write-only": Access("it", write_only=True),
    "write-only append-only": Access("it", write_only=True, append_only=True),
}


def test_any_session_tells_the_same_of_any_content(tmp_path: Path) -> None:
    differing = Counter[bool]()
    seeds = share(range(TRIALS), of=3)
    for seed in seeds:
        rng = random.Random(seed)
        place = tmp_path / "place"
        world, options = World(place, rng), _options(rng)
        title = rng.choice(sorted(ACCESSES))
        tampered = rng.randrange(1 << 30) if rng.random() < 0.5 else None
        both = [place / "copies" / str(number) / "top" for number in (0, 1)]
        for allowed, access in ((False, ACCESSES[title]), (True, Access("it"))):
            for number in (0, 1):
                shutil.copytree(place / str(number), both[number].parent, symlinks=True)
                if (both[number] / "twin").exists():
                    _link_again(world.top(number), both[number])
            told = [
                _told(
                    place / "source",
                    top,
                    options,
                    access,
                    None if tampered is None else random.Random(tampered),
                )
                for top in both
            ]
            differing[allowed] += told[0] != told[1]
            assert allowed or told[0] == told[1], (seed, title, options, tampered)
            shutil.rmtree(place / "copies")
        shutil.rmtree(place)
    # They are no trials in vain: where content counts, it shows.
    assert differing[True] > len(seeds) // 6


def _link_again(old: Path, copy: Path) -> None:
    (copy / "twin").unlink()
    inode = (old / "twin").stat().st_ino
    (name,) = (
        path.relative_to(old)
        for path in old.rglob("*")
        if path.stat().st_ino == inode and path.name != "twin"
    )
    os.link(copy / name, copy / "twin")
    os.utime(copy, ns=(TIMES[0],) * 2)


SECRET, GUESS = b"s3cret" * 200, b"S3cret" * 200


@pytest.mark.parametrize("access", [Access("it"), *ACCESSES.values()], ids=["all", "write-only", "both"])
@pytest.mark.parametrize("content", [SECRET, GUESS])
def test_a_file_that_did_not_arrive_is_copied_to_no_other(
    content: bytes, access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source sends one file wrongly, so that its old version stays, and says that others are like it."""
    if access.append_only:
        pytest.skip("nothing is replaced there")
    source, top = tmp_path / "source", tmp_path / "top"
    for directory in (source, top):
        directory.mkdir()
    (top / "a").write_bytes(content)
    for name in ("a", "b", "c"):
        (source / name).write_bytes(os.urandom(len(SECRET)))
    sent: list[int] = []

    def lie(message: Message) -> Sequence[Message]:
        if not isinstance(message, (Data, FileEnd)):
            return (message,)
        if isinstance(message, Data):
            return (message,) if message.file == 0 else ()
        sent.append(message.file)
        if message.file == 0 or sent.count(message.file) > 1:
            return (
                (FileFailed(message.file, RdcError("x").code, "x"),)
                if sent.count(message.file) > 1
                else (FileEnd(message.file, message.size, bytes(32), None),)
            )
        return (FileEnd(message.file, len(SECRET), blake3(SECRET).digest(), None, 0),)

    monkeypatch.setattr("rdc.session.source.file_sender.SMALL_FILE_BYTES", 0)
    answering(monkeypatch, lie)
    _told(source, top, SyncOptions(fsync=False, whole_file=True, ignore_times=True), access, None)
    assert sent.count(0) > 1 and sent.count(1) > 1
    assert (top / "a").read_bytes() == content
    assert not (top / "b").exists() and not (top / "c").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (SyncOptions(checksum=True), "--checksum"),
        (SyncOptions(append=True), "--append"),
        (SyncOptions(alternates=Alternates(AlternateUse.LINK, (b"../x",))), "--link-dest"),
        (SyncOptions(alternates=Alternates(AlternateUse.COPY, (b"../x",))), "--copy-dest"),
        (SyncOptions(alternates=Alternates(AlternateUse.COMPARE, (b"../x",))), "--compare-dest"),
        (SyncOptions(partial_dir=b"p"), "--partial-dir"),
        (SyncOptions(guard=50), "--guard"),
    ],
)
def test_options_that_compare_are_refused_by_name(options: SyncOptions, word: str) -> None:
    opening = Open.asking(Role.DESTINATION, b"", bytes(16), options)
    with pytest.raises(TrustError, match=f"it is write-only: nothing in it is compared; leave out {word}"):
        granted_options(opening, Access("it", write_only=True))
