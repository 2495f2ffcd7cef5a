"""--chmod, beside rsync's."""

from __future__ import annotations

import os
import random
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.limits import MODE_CHANGES_BYTES, SMALL_MANIFEST
from rdc.model.options import parse_mode_changes
from rdc.model.sync import SyncOptions
from rdc.protocol.wire.options import ADDED_OPTIONS, added_values
from tests.support.running.beside_rsync import check, rsync
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

MODES = (0o644, 0o755, 0o600, 0o111, 0o4755, 0o2750, 0o1777, 0o7777, 0o4070, 0o3461)
SOURCE = tree(
    {
        "f": File(b"content", 0o600),
        "x": File(b"a program", 0o711),
        "d": Directory(0o755),
        "d/g": File(b"more", 0o666),
        "l": Link(b"f"),
    }
)

permission_items = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "D", "F"]),
    st.lists(st.sampled_from("ugoa"), max_size=2).map("".join),
    st.sampled_from("+-="),
    st.lists(st.sampled_from("rwxXst"), max_size=3).map("".join) | st.sampled_from("ugo"),
)
octal_items = st.builds("{}{:o}".format, st.sampled_from(["", "D", "F"]), st.integers(0, 0o7777))
odd_items = st.text("DFugoa+-=rwxXst0789", max_size=5)
changes = st.lists(permission_items | octal_items | odd_items, min_size=1, max_size=3).map(",".join)


def umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@pytest.mark.needs("rsync")
@settings(max_examples=examples(60), deadline=None)
@given(changes)
@example("Dg+s,ug+w,Fo-w,+X")
@example("g=u,o-g,+t,=s")
@example("a=ts")
@example("D10000")
@example("DF+x")
def test_each_item_means_what_it_means_to_rsync(text: str) -> None:
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        source, copy = Path(top, "source"), Path(top, "copy")
        source.mkdir()
        for mode in MODES:
            for path in (source / f"f{mode:o}", source / f"d{mode:o}"):
                if path.name[0] == "f":
                    path.touch()
                else:
                    path.mkdir()
                path.chmod(mode)
        code, _ = rsync(f"--chmod={text}", f"{source}/", copy)
        try:
            parsed = parse_mode_changes(text, umask())
        except ValueError:
            assert code == ExitCode.USAGE
            return
        assert code == 0
        for path in copy.iterdir():
            mode, directory = int(path.name[1:], 8), path.name[0] == "d"
            assert f"{parsed.applied(mode, directory=directory):o}" == f"{path.stat().st_mode & 0o7777:o}"


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("text", ["D2755,F640", "go-w", "u=rwX,go=", "+x", "Fg=u"])
@pytest.mark.parametrize("more", [(), ("-c",), ("--delete", "-H")], ids=["", "checksum", "delete"])
def test_a_whole_run_does_what_rsync_does(text: str, more: tuple[str, ...]) -> None:
    held = tree({"f": File(b"content", 0o640), "x": File(b"older", 0o755, 1), "gone": b"extraneous"})
    check(SOURCE, held, f"--chmod={text}", *more)
    check(SOURCE, tree(), f"--chmod={text}", *more)


@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_changed_permissions_are_no_difference_to_the_next_run(
    way: Way, many: bool, checksum: bool, tmp_path: Path
) -> None:
    more = {b"many/%03d" % n: File(b"%d" % n, 0o600) for n in range(SMALL_MANIFEST if many else 3)}
    wanted: Tree = {**SOURCE, b"many": Directory(0o700), **more}
    source, top = write_tree(tmp_path / "s", wanted), tmp_path / "d"
    source.chmod(0o700)
    before = read_tree(source)
    options = SyncOptions(chmod="D751,F-x,Fo+r", checksum=checksum, fsync=False)
    assert run_sync(source, top, options, way=way).done.exit == ExitCode.OK
    found = read_tree(top)
    modes = {path: node.mode for path, node in found.items() if not isinstance(node, Link)}
    assert top.stat().st_mode & 0o7777 == 0o751
    assert (modes[b"d"], modes[b"x"], modes[b"f"], modes[b"d/g"]) == (0o751, 0o604, 0o604, 0o666)
    assert modes[b"many/001"] == 0o604
    assert describe(before, read_tree(source)) == []
    again = run_sync(source, top, options, way=way)
    assert (again.done.changed, again.items, again.problems) == (0, [], [])
    plain = run_sync(source, top, SyncOptions(checksum=checksum, fsync=False, dry_run=True), way=way)
    assert ".d...p..... ./" in plain.items
    (top / "x").chmod(0o777)
    repaired = run_sync(source, top, options, way=way)
    assert repaired.items == [".f...p..... x"]


@pytest.mark.parametrize("way", Way)
def test_a_single_file(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", SOURCE)
    one = os.fsencode(source / "x")
    options = SyncOptions(chmod="D700,F640", fsync=False)
    for _ in range(2):
        run_sync(one, os.fsencode(tmp_path / "copy"), options, way=way)
        assert (tmp_path / "copy").stat().st_mode & 0o7777 == 0o640


def test_without_owners_no_set_id_bit_arrives(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", SOURCE), tmp_path / "d"
    run_sync(source, top, SyncOptions(chmod="Fug+s", owner=False, fsync=False))
    assert (top / "x").stat().st_mode & 0o7777 == 0o711
    run_sync(source, top, SyncOptions(chmod="Fug+s", owner=True, fsync=False))
    assert (top / "x").stat().st_mode & 0o7777 == 0o6711


def test_several_options_add_up(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", SOURCE), tmp_path / "d"
    assert command("sync", "--chmod=F600", "--chmod=Fg+r", "--no-fsync", f"{source}/", top).code == 0
    assert (top / "x").stat().st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("words", [["--chmod=u+z"], ["--chmod="], ["--chmod=DF+x"], ["--chmod=g+w", "-A"]])
def test_what_cannot_be_is_refused_before_anything_is_made(words: list[str], tmp_path: Path) -> None:
    ended = command("sync", *words, f"{tmp_path}/", tmp_path.parent / "none")
    assert ended.code == ExitCode.USAGE
    assert "--chmod" in ended.err
    assert not (tmp_path.parent / "none").exists()


def test_the_library_refuses_it_too() -> None:
    with pytest.raises(ValueError, match=r"^SyncOptions\.chmod: u\+z: z is not one of u, g and o"):
        SyncOptions(chmod="u+z")


def test_an_old_peer_hears_the_name() -> None:
    values = added_values(SyncOptions(chmod="go-w"))
    assert values is not None
    assert [name for name, _ in values.items] == ["chmod"]


@pytest.mark.parametrize("raw", ["", "u+z", "," * 3, "F644," * MODE_CHANGES_BYTES + "F644", b"F644", None])
def test_a_hostile_value_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ADDED_OPTIONS["chmod"].unpack(raw)


def test_random_text_is_parsed_or_refused() -> None:
    letters = random.Random(3)
    for _ in range(5000):
        text = "".join(letters.choice("DFugoa+-=rwxXst0789,é") for _ in range(letters.randrange(12)))
        try:
            parsed = parse_mode_changes(text)
        except ValueError:
            continue
        assert 0 <= parsed.applied(letters.randrange(0o10000), directory=False) <= 0o7777


def test_special_files_change_as_files_do(tmp_path: Path) -> None:
    """The F rules of rsync, too, are about all that is no directory."""
    source, destination = tmp_path / "s", tmp_path / "d"
    source.mkdir()
    os.mkfifo(source / "pipe", 0o644)
    os.chmod(source / "pipe", 0o644)
    assert command("sync", "--chmod=D700,F600", f"{source}/", f"{destination}/").code == 0
    assert stat.S_IMODE(os.lstat(destination / "pipe").st_mode) == 0o600
