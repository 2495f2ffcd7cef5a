"""ACLs of two sides, on one machine or two: they go over with the modes that they give, and what one side has
not granted is granted by nobody else."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import msgpack
import pytest

import rdc
from rdc.errors import ExitCode, RdcError
from rdc.files.facts.xattrs import attribute_kinds_of
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.preserved import ACCESS_ACL, ALL_KEPT, DEFAULT_ACL, AttributeKinds, pack_attributes
from rdc.protocol.messages.uniting import Subject
from rdc.uniting import attributes
from rdc.uniting.attributes import AttributeSets, asked_kinds, told_kinds
from rdc.uniting.exchanged import packed_columns
from rdc.uniting.exchanged_sets import Given, pack_given
from rdc.uniting.rows import LEFT, RIGHT
from tests.support.trees.unprivileged import as_nobody, place_of_nobody
from tests.uniting.acls import access, acl
from tests.uniting.pairs import Machines, Pair
from tests.uniting.remote_runs import lying, unite_in_turns


@pytest.fixture(params=[None, LEFT, RIGHT], ids=["here", "left dials", "right dials"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    if request.param is None:
        return Pair(tmp_path)
    found = Machines(tmp_path)
    found.near = request.param
    return found


def both_have(pair: Pair, name: str) -> tuple[int, dict[str, bytes]]:
    left, right = access(pair.left / name), access(pair.right / name)
    assert left == right
    return left


def test_acls_go_over_with_the_modes_that_they_give(pair: Pair) -> None:
    first, second = acl(6, 4, 0, 6, [(77, 6)]), acl(6, 0, 4, 4, [(77, 4)])
    pair.both("d/f", "text")
    (pair.left / "d/plain").write_text("plain")
    (pair.left / "d/plain").chmod(0o640)
    os.setxattr(pair.left / "d/f", ACCESS_ACL, first)
    os.setxattr(pair.right / "d", DEFAULT_ACL, acl(7, 7, 7, 7, [(78, 7)]))
    os.chmod(pair.right / "d/f", 0o660)
    pair.unite(acls=True)
    assert both_have(pair, "d/f") == (0o660, {ACCESS_ACL.decode(): first})
    assert both_have(pair, "d/plain") == (0o640, {})
    assert os.getxattr(pair.left / "d", DEFAULT_ACL) == acl(7, 7, 7, 7, [(78, 7)])
    os.setxattr(pair.right / "d/f", ACCESS_ACL, second)
    assert pair.unite(acls=True).exit is ExitCode.OK
    assert both_have(pair, "d/f") == (0o644, {ACCESS_ACL.decode(): second})
    os.removexattr(pair.left / "d/f", ACCESS_ACL)
    (pair.left / "d/f").chmod(0o600)
    pair.unite(acls=True)
    assert both_have(pair, "d/f") == (0o600, {})
    assert pair.unite(acls=True).right == 0
    assert pair.items() == []


def test_a_mode_and_an_acl_changed_apart_are_one_conflict(pair: Pair) -> None:
    pair.both("f", "text")
    pair.unite(acls=True)
    (pair.left / "f").chmod(0o600)
    os.setxattr(pair.right / "f", ACCESS_ACL, acl(6, 4, 4, 6, [(77, 6)]))
    for _ in range(3):
        assert pair.unite(acls=True).exit is ExitCode.CONFLICTS
        assert [event.about for event in pair.events if isinstance(event, rdc.UniteConflict)] == ["mode"]
        assert access(pair.left / "f") == (0o600, {})
        assert access(pair.right / "f")[0] == 0o664
    pair.unite(acls=True, prefer=rdc.Prefer.LEFT)
    assert both_have(pair, "f") == (0o600, {})
    assert pair.unite(acls=True).exit is ExitCode.OK


def test_an_unknown_past_grants_nobody_more(pair: Pair) -> None:
    pair.both("f", "text")
    (pair.left / "f").chmod(0o600)
    os.setxattr(pair.right / "f", ACCESS_ACL, acl(6, 4, 4, 6, [(77, 6)]))
    for _ in range(2):
        assert pair.unite(acls=True).conflicts == 1
        assert access(pair.left / "f") == (0o600, {})
    pair.unite(acls=True, prefer=rdc.Prefer.RIGHT)
    assert both_have(pair, "f")[0] == 0o664


def test_an_open_conflict_about_an_acl_is_no_agreed_mode(pair: Pair) -> None:
    """A directory that returns has the mode of the side that kept it."""
    for name in ("d/f", "other"):
        pair.both(name, "text")
    os.setxattr(pair.right / "d", ACCESS_ACL, acl(7, 0, 0, 0, [(77, 5)]))
    assert pair.unite(acls=True).conflicts == 1
    shutil.rmtree(pair.right / "d")
    (pair.left / "d/f").write_text("edited here")
    pair.unite(acls=True)
    assert both_have(pair, "d") == (0o755, {})


def test_each_new_entry_has_its_own_acl_and_none_that_it_inherits(pair: Pair) -> None:
    for name in ("edited", "renamed", "d/stays"):
        pair.both(name, f"text of {name}")
    pair.unite(acls=True)
    mine, others = acl(7, 0, 0, 7, [(77, 7)]), acl(6, 4, 0, 6, [(78, 6)])
    os.setxattr(pair.right / "d", DEFAULT_ACL, acl(7, 7, 7, 7, [(79, 7)]))
    (pair.left / "d/new").write_text("new")
    (pair.left / "d/listed").write_text("new")
    os.setxattr(pair.left / "d/listed", ACCESS_ACL, others)
    (pair.left / "d/below").mkdir(mode=0o700)
    os.setxattr(pair.left / "d/below", ACCESS_ACL, mine)
    (pair.left / "d/below/closed").mkdir(mode=0o555)
    os.setxattr(pair.left / "d/below/closed", ACCESS_ACL, acl(5, 5, 0, 5, [(77, 5)]))
    (pair.left / "into").mkdir(mode=0o700)
    os.setxattr(pair.left / "into", ACCESS_ACL, mine)
    (pair.left / "renamed").rename(pair.left / "into/renamed")
    (pair.left / "edited").write_text("edited")
    os.setxattr(pair.right / "edited", ACCESS_ACL, others)
    assert pair.unite(acls=True).exit is ExitCode.OK
    assert both_have(pair, "d/new") == (0o644, {})
    assert both_have(pair, "d/listed")[0] == 0o660
    assert both_have(pair, "d/below") == (0o770, {ACCESS_ACL.decode(): mine})
    assert both_have(pair, "d/below/closed")[0] == 0o550
    assert both_have(pair, "into") == (0o770, {ACCESS_ACL.decode(): mine})
    assert both_have(pair, "into/renamed") == (0o644, {})
    assert both_have(pair, "edited") == (0o660, {ACCESS_ACL.decode(): others})
    assert pair.texts("edited") == ["edited"] * 2
    assert os.getxattr(pair.left / "d", DEFAULT_ACL) == acl(7, 7, 7, 7, [(79, 7)])
    pair.unite(acls=True)
    assert pair.items() == []


@pytest.mark.parametrize("near", [None, LEFT, RIGHT], ids=["here", "left dials", "right dials"])
def test_a_directory_whose_acl_excludes_its_owner_is_filled_first(near: int | None) -> None:
    """Root may write into it all the same."""

    def work(place: Path) -> tuple[int, list[bool], list[str | None]]:
        pair = Pair(place) if near is None else Machines(place)
        if isinstance(pair, Machines):
            pair.near = near or LEFT
        pair.both("f", "text")
        pair.unite(acls=True)
        for name in ("d", "d/e"):
            (pair.left / name).mkdir()
            (pair.left / name / "f").write_text("text")
        for name in ("d/e", "d"):
            os.setxattr(pair.left / name, ACCESS_ACL, acl(5, 5, 0, 5, [(77, 5)]))
        report = pair.unite(acls=True)
        equal = [access(pair.left / name) == access(pair.right / name) for name in ("d", "d/e", "d/e/f")]
        texts = pair.texts("d/e/f")
        for top in (pair.left, pair.right):
            for name in ("d", "d/e"):
                (top / name).chmod(0o755)  # whoever removes the place is no root
        return int(report.exit), equal, texts

    with place_of_nobody() as place:
        code, equal, texts = as_nobody(lambda: work(place))
    assert (code, equal, texts) == (ExitCode.OK, [True] * 3, ["text"] * 2)


@pytest.mark.parametrize("keep", [None, rdc.KeepUndo(days=7)])
def test_a_renamed_entry_keeps_its_acl(pair: Pair, keep: rdc.KeepUndo | None) -> None:
    pair.both("f", "text")
    pair.both("d/f", "below")
    for side in (pair.left, pair.right):
        os.setxattr(side / "f", ACCESS_ACL, acl(6, 4, 4, 6, [(77, 6)]))
        os.setxattr(side / "d", ACCESS_ACL, acl(7, 5, 0, 7, [(77, 7)]))
    before = access(pair.left / "f"), access(pair.left / "d")
    pair.unite(acls=True, keep_undo=keep)
    (pair.left / "f").rename(pair.left / "g")
    (pair.right / "d").rename(pair.right / "e")
    pair.unite(acls=True, keep_undo=keep)
    assert sorted(action for _, action, _ in pair.items()) == ["renamed", "renamed"]
    assert (both_have(pair, "g"), both_have(pair, "e")) == before
    pair.unite(acls=True, keep_undo=keep)
    assert pair.items() == []


@pytest.mark.parametrize("can_rename", [True, False])
def test_both_versions_keep_their_acls(pair: Pair, can_rename: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.uniting.state.RootState.can_rename", lambda _: can_rename)
    pair.both("f.txt", "text")
    pair.unite(acls=True)
    for side, rights in ((pair.left, 6), (pair.right, 4)):
        (side / "f.txt").write_text(f"edited at the {side.name}")
        os.setxattr(side / "f.txt", ACCESS_ACL, acl(6, 0, 0, rights, [(77, rights)]))
    os.utime(pair.left / "f.txt", ns=(6_000_000_123, 6_000_000_123))
    pair.unite(acls=True, keep_both=True)
    (copy,) = [path.name for path in pair.left.iterdir() if "conflict" in path.name]
    assert pair.texts("f.txt") == ["edited at the right"] * 2
    assert pair.texts(copy) == ["edited at the left"] * 2
    assert both_have(pair, "f.txt")[0] == 0o640
    assert both_have(pair, copy)[0] == 0o660
    pair.unite(acls=True)
    assert pair.items() == []


def test_a_first_run_gives_what_a_sync_gives(pair: Pair, tmp_path: Path) -> None:
    for name, rights in (("d/f", 6), ("d/e/f", 4), ("g", 0)):
        path = pair.left / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.setxattr(path, ACCESS_ACL, acl(6, 4, 0, rights, [(77, 6), (78, 4)]))
    os.setxattr(pair.left / "d", DEFAULT_ACL, acl(7, 5, 0, 7, [(77, 7)]))
    pair.unite(acls=True)
    synced = tmp_path / "synced"
    rdc.sync(f"{pair.left}/", f"{synced}/", acls=True, exclude="/.rdc-unite/")
    for name in ("d", "d/f", "d/e", "d/e/f", "g"):
        assert both_have(pair, name) == access(synced / name)


def test_a_pair_without_acls_so_far_takes_those_of_one_side(pair: Pair) -> None:
    for name in ("one", "both", "apart"):
        pair.both(name, "text")
    listed = acl(6, 4, 4, 4, [(77, 4)])  # of mode 0644
    os.setxattr(pair.left / "one", ACCESS_ACL, listed)
    for side, rights in ((pair.left, 0), (pair.right, 4)):
        os.setxattr(side / "both", ACCESS_ACL, listed)
        os.setxattr(side / "apart", ACCESS_ACL, acl(6, 4, 4, 4, [(77, rights)]))
    assert pair.unite().exit is ExitCode.OK
    assert pair.unite(acls=True).conflicts == 1
    assert pair.conflicts() == [b"apart"]
    assert both_have(pair, "one") == both_have(pair, "both") == (0o644, {ACCESS_ACL.decode(): listed})


def test_a_side_without_acls_is_named_and_takes_none_away(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.both("f", "text")
    listed = acl(6, 4, 4, 6, [(77, 6)])
    for side in (pair.left, pair.right):
        os.setxattr(side / "f", ACCESS_ACL, listed)
    pair.unite(acls=True)
    kinds = attribute_kinds_of

    def without(root: Root) -> AttributeKinds:
        is_right = os.fstat(root.fileno()).st_ino == pair.right.stat().st_ino
        return kinds(root) & ~AttributeKinds.ACL if is_right else kinds(root)

    with monkeypatch.context() as patch:
        patch.setattr(attributes, "attribute_kinds_of", without)
        os.removexattr(pair.right / "f", ACCESS_ACL)
        pair.unite(acls=True, xattrs=True)
        assert "ACLs take no part: the file system of one side keeps none" in pair.notices()
    assert access(pair.left / "f") == (0o664, {ACCESS_ACL.decode(): listed})


def test_acls_need_modes() -> None:
    asked = asked_kinds(xattrs=True, acls=True)
    assert told_kinds(asked, ALL_KEPT, ALL_KEPT) == asked
    modeless = replace(ALL_KEPT, modes=0)
    for one, other in ((modeless, ALL_KEPT), (ALL_KEPT, modeless)):
        assert told_kinds(asked, one, other) == AttributeKinds.USER
    assert told_kinds(asked, replace(ALL_KEPT, attributes=AttributeKinds.ACL), ALL_KEPT) == AttributeKinds.ACL
    assert asked_kinds(xattrs=False, acls=False) == AttributeKinds.NONE


# Two machines


def test_an_older_rdc_refuses_before_anything_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Machines(tmp_path)
    (pair.left / "f").write_text("text")
    monkeypatch.setattr("rdc.protocol.connection.UNITED_ACLS", "unknown")
    with pytest.raises(RdcError, match="lacks what the session needs: united_acls; update rdc"):
        pair.unite(acls=True)
    assert [*pair.right.iterdir()] == []
    pair.unite(xattrs=True)
    assert pair.texts("f") == ["text"] * 2


def test_pages_without_acls_have_no_modes() -> None:
    for kinds, columns in ((AttributeKinds.USER, 5), (AttributeKinds.ACL, 6)):
        page = pack_given([Given(b"f", True, b"", 0)], AttributeSets(kinds))
        assert len(msgpack.unpackb(page)) == columns


def test_runs_without_acls_cost_what_they_did(tmp_path: Path) -> None:
    """An ACL on either side changes no byte of a run without the option."""
    costs = []
    for listed in (False, True):
        place = tmp_path / str(listed)
        place.mkdir()
        pair = Machines(place)
        pair.both("f", "text")
        if listed:
            os.setxattr(pair.left / "f", ACCESS_ACL, acl(6, 4, 4, 4, [(77, 4)]))
        pair.unite()
        (pair.left / "f").write_text("edited here")
        pair.unite()
        costs.append(pair.trips)
        assert access(pair.right / "f") == (0o644, {})
    assert costs[0] == costs[1]


def _sets(path: bytes, *attributes: tuple[bytes, bytes]) -> bytes:
    """A page that gives one entry a set."""
    packed = pack_attributes(attributes)
    one = struct.pack("<I", 1)
    return packed_columns(path + b"\0", one, struct.pack("<I", len(packed)), packed)


def _given(path: bytes, *, is_new: bool, mode: int) -> bytes:
    """A page that gives one entry no set."""
    none = struct.pack("<I", 0)
    return packed_columns(path + b"\0", bytes([is_new]), none, b"", b"", struct.pack("<H", mode))


LIES: dict[str, tuple[int, Subject, bytes]] = {
    "an attribute among ACLs": (1, Subject.SETS, _sets(b"g", (b"user.a", b"1"))),
    "an ACL of a symlink": (1, Subject.SETS, _sets(b"link", (ACCESS_ACL, acl(6, 4, 4, 4, [(77, 4)])))),
    "an ACL of nothing": (1, Subject.SETS, _sets(b"none", (ACCESS_ACL, acl(6, 4, 4, 4, [(77, 4)])))),
    "a set that no step makes": (0, Subject.GIVE, _given(b"g", is_new=True, mode=0o644)),
    "a set of nothing": (0, Subject.GIVE, _given(b"none", is_new=False, mode=0o644)),
    "a set of a symlink": (0, Subject.GIVE, _given(b"link", is_new=False, mode=0o644)),
    "a mode with special bits": (0, Subject.GIVE, _given(b"g", is_new=False, mode=0o4755)),
    "modes that are missing": (0, Subject.GIVE, pack_given([], AttributeSets(AttributeKinds.USER))),
    "an outcome of garbage": (1, Subject.UNSET, b"\x91\xc4\0"),
    "agreed sets of garbage": (0, Subject.HAVE, b"\xc4"),
    "other agreed sets": (0, Subject.HAVE, packed_columns(bytes(4), b"")),
}


@pytest.fixture
def torn(tmp_path: Path) -> Pair:
    """Each side gave an ACL to a file since the last run."""
    pair = Machines(tmp_path)
    for name in ("f", "g"):
        pair.both(name, "text")
    for side in (pair.left, pair.right):
        (side / "link").symlink_to("to")
    pair.unite(acls=True)
    os.setxattr(pair.left / "f", ACCESS_ACL, acl(6, 4, 4, 4, [(77, 4)]))
    os.setxattr(pair.right / "g", ACCESS_ACL, acl(6, 4, 4, 4, [(78, 4)]))
    return pair


def run_with(pair: Pair, lie: tuple[int, Subject, bytes]) -> rdc.UniteReport:
    options = rdc.UniteOptions(fsync=False, acls=True)
    pair.events = []
    wrap = lying(*lie)
    return unite_in_turns(pair.left, pair.right, options, pair.events.append, wrap=wrap).report


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_acls_ends_the_session_and_takes_none_away(lie: str, torn: Pair) -> None:
    with pytest.raises(RdcError) as caught:
        run_with(torn, LIES[lie])
    assert "\n" not in str(caught.value)
    assert access(torn.left / "f")[1] == {ACCESS_ACL.decode(): acl(6, 4, 4, 4, [(77, 4)])}
    assert access(torn.right / "g")[1] == {ACCESS_ACL.decode(): acl(6, 4, 4, 4, [(78, 4)])}
    assert torn.unite(acls=True).exit is ExitCode.OK
    for name in ("f", "g"):
        assert len(both_have(torn, name)[1]) == 1


@pytest.mark.parametrize("attribute", [(ACCESS_ACL, b"none"), (DEFAULT_ACL, acl(6, 4, 4, 4, [(77, 4)]))])
def test_an_acl_that_no_file_can_have_is_named_and_changes_nothing(
    attribute: tuple[bytes, bytes], torn: Pair
) -> None:
    report = run_with(torn, (1, Subject.SETS, _sets(b"g", attribute)))
    assert report.exit is ExitCode.PARTIAL
    assert len(torn.problems()) == 1
    assert access(torn.left / "g") == (0o644, {})
    assert torn.unite(acls=True).exit is ExitCode.OK
    for name in ("f", "g"):
        assert len(both_have(torn, name)[1]) == 1
