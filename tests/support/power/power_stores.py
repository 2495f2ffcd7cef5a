"""Files that rdc keeps for itself or writes for its user, recorded for tests/support/power/power_cut.py."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

from rdc.catalog.catalog import Catalog
from rdc.catalog.signer import FileSigner
from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from rdc.signature.tree import sign
from tests.support.children.catalog_child import later
from tests.support.power.power_checks import Scene, check_landed, check_versions
from tests.support.power.power_cut import State
from tests.support.power.power_log import snapshot
from tests.support.power.recorded_writes import Call, record
from tests.support.running.syncing import command
from tests.support.trees.trees import File, Tree, read_tree

__all__ = ["catalogued", "keys", "outputs"]

CATALOGUED = 16

INDEX = b"cache/catalog.sqlite-shm"
"""SQLite's index of its log: stores into a mapping, which mean nothing once nobody has the database open."""


def catalogued(place: Path, library: Path) -> Scene:
    """Signatures stored in batches: after any cut the catalog knows the right one of a file, or none."""
    files, top = place / "files", place / "top"
    files.mkdir()
    top.mkdir()
    contents = [random.Random(number).randbytes(100 + 4_000 * number) for number in range(CATALOGUED)]
    for number, content in enumerate(contents):
        (files / str(number)).write_bytes(content)
    roots = [sign(content, SYNC_PARAMS).root for content in contents]
    before = snapshot(top)
    child = (sys.executable, "-m", "tests.support.children.catalog_child")
    words = (top / "cache", files, f"0-{CATALOGUED}", "4")
    calls = record(library, top, place / "log", *words, argv=child)

    def look(at: Path, state: State, *, sign_too: bool = False) -> tuple[int, list[str]]:
        """Return how many roots the catalog knows, and its messages."""
        found = {path: File(b"nothing" * 999) if path == INDEX else node for path, node in state.tree.items()}
        State(found, state.files).write(at)
        root = Root.open(os.fsencode(files))
        known = 0
        with Catalog(at / "cache", clock=later) as catalog:
            signer = FileSigner(catalog=catalog, workers=1)
            for number, wanted in enumerate(roots):
                with root.open_read(b"%d" % number) as source:
                    if sign_too:
                        signer.sign(source)
                    kept = catalog.root(source, SYNC_PARAMS)
                assert kept in (None, wanted), (number, "a wrong root")
                known += kept is not None
            notices = catalog.take_notices()
        root.release()
        return known, notices

    def check(state: State) -> None:
        with tempfile.TemporaryDirectory(dir=place) as at:
            known, notices = look(Path(at), state)
        assert known <= CATALOGUED, known
        assert notices == [], notices

    def converges(at: Path, state: State) -> None:
        assert look(at, state, sign_too=True) == (CATALOGUED, [])

    return Scene("catalog", before, read_tree(top), calls, check, check, converges, untold=frozenset({INDEX}))


def outputs(place: Path, library: Path) -> Scene:
    """`rdc scan -o PART`, over a part that is there, and a report beside it."""
    files, top = place / "files", place / "top"
    files.mkdir()
    (files / "a").write_bytes(random.Random(1).randbytes(50_000))
    top.mkdir()
    (top / "part.rdcscan").write_bytes(b"RDCPART\x02 an old part")
    (top / "page.html").write_bytes(b"<title>rdc scan</title> of before")
    words = ("scan", "-o", top / "part.rdcscan", "--html", top / "page.html", files)
    return _replacing("scan -o", place, top, library, [words])


def keys(place: Path, library: Path) -> Scene:
    """Keys are made, replaced, trusted, and trusted no more."""
    top, other = place / "top", place / "other"
    top.mkdir()
    assert command("keys", "new", "--name", "other", "--keys", other).code == 0
    public = place / "other.pem"
    public.write_text(command("keys", "show", "--pem", "--keys", other).out)
    words: list[tuple[str | Path, ...]] = [
        ("keys", "new", "--name", "me", "--keys", top),
        ("keys", "trust", "other", public, "--keys", top),
        ("keys", "trust", "another", public, "--keys", top),
        ("keys", "distrust", "another", "--keys", top),
        ("keys", "new", "--force", "--name", "me", "--keys", top),
    ]
    return _replacing("keys", place, top, library, words)


def _replacing(
    name: str, place: Path, top: Path, library: Path, commands: list[tuple[str | Path, ...]]
) -> Scene:
    """Commands one after the other; each path is as before or after one of them, and in the end as after the
    last."""
    before = snapshot(top)
    versions = [before.tree]
    calls: list[Call] = []
    for words in commands:
        calls += record(library, top, place / "log", *words)
        versions.append(read_tree(top))

    def check(state: State) -> None:
        # The times are those of the writing, which the model does not keep.
        check_versions(_timeless(state), [_timeless(State(version, {})) for version in versions])

    def ended(state: State) -> None:
        check_landed(state.tree, versions[-1])
        assert {path for path, node in state.tree.items() if isinstance(node, File)} == {
            path for path, node in versions[-1].items() if isinstance(node, File)
        }

    def converges(at: Path, state: State) -> None:
        state.write(at)
        for words in commands:
            again = [_moved(word, top, at) for word in words]
            run = command(*again, *(["--force"] if words[:2] == ("keys", "new") else []))
            assert run.code == 0, run

    return Scene(name, before, versions[-1], calls, check, ended, converges)


def _timeless(state: State) -> Tree:
    """Files without the temporaries, which each writer of these names differently."""
    return {
        path: File(node.content, node.mode, 0)
        for path, node in state.tree.items()
        if isinstance(node, File) and not path.rpartition(b"/")[2].startswith(b".")
    }


def _moved(word: str | Path, top: Path, at: Path) -> str | Path:
    return at / word.relative_to(top) if isinstance(word, Path) and word.is_relative_to(top) else word
