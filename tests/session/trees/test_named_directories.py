"""Directories that options, paths and links name: none leads to what rdc keeps for itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.files.base.paths import is_reserved
from rdc.model.options import Alternates, AlternateUse, Backup
from rdc.model.sync import SyncOptions
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.wire.hostile_requests import Snapshot, snapshot

SECRET = b"removed, and kept to be undone"
STORES = {".rdc-undo/1/kept/0": SECRET, "sub/.rdc-undo/2/kept/0": SECRET, ".rdc-unite/state": SECRET}
KEYS = ("", "--no-delete", "--append-only", "--read-only", "--write-only")
WORDS = (
    ".rdc-undo", ".rdc-undo/1/kept", "/.rdc-undo/1/kept", "/sub/.rdc-undo", ".RDC-undo", "/.Rdc-Unite",
    "new/.rdc-undo", ".rdc-un\u200ddo", "RDC-UN~1/1",
)  # fmt: skip
OTHERS = (
    "--partial-dir=dir", "--partial-dir=/dir", "--partial-dir=/dir/deep", "--partial-dir=empty",
    "--temp-dir=dir", "--temp-dir=/dir/deep", "--compare-dest=/dir", "--copy-dest=/dir",
)  # fmt: skip
OPTIONS = ("--partial-dir", "--temp-dir", "--backup-dir", "--link-dest", "--copy-dest", "--compare-dest")


def put(top: Path, files: dict[str, bytes]) -> Path:
    """Write files, whatever is there already."""
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return top


@pytest.fixture
def place(tmp_path: Path) -> Path:
    put(tmp_path / "top", STORES)
    put(tmp_path / "top", {"own": b"mine", "sub/own": b"mine"})
    for name in ("outside", "got"):
        (tmp_path / name).mkdir()
    (tmp_path / "top/lead").symlink_to(".rdc-undo")
    (tmp_path / "top/deeper").symlink_to("sub/.rdc-undo/2/kept")
    (tmp_path / "top/file").symlink_to(".rdc-undo/1/kept/0")
    put(tmp_path / "here", {"0": b"sent" * 20_000, "new": b"sent"})
    return tmp_path


def stores(place: Path) -> Snapshot:
    found = snapshot(place / "top")
    return {
        path: entry
        for path, entry in found.items()
        if any(path.startswith(name[:9]) for name in STORES) or ".rdc-" in path
    }


@pytest.mark.parametrize("key", KEYS)
def test_no_option_names_what_rdc_keeps(key: str, place: Path) -> None:
    before = stores(place)
    served = forced(place, f"--root={place}/top", *key.split())
    for option in OPTIONS:
        for word in WORDS:
            ended = command(
                "sync", "--no-catalog", "-I", "-e", served, f"{option}={word}", f"{place}/here/", "h:"
            )
            assert ended.code in (ExitCode.USAGE, ExitCode.REFUSED, ExitCode.FILE_IO, ExitCode.PARTIAL), (
                option,
                word,
            )
            assert len(ended.complaints) == 1, ended
            assert stores(place) == before, (option, word)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "path", ["h:.rdc-undo/1/kept/", "h:.RDC-undo/1/kept/", "h:lead/", "h:sub/.rdc-undo", "h:.rdc-un\u200ddo/"]
)
def test_no_path_names_what_rdc_keeps(path: str, key: str, place: Path) -> None:
    before = stores(place)
    served = forced(place, f"--root={place}/top", *key.split())
    for ends in ((path, f"{place}/got/"), (f"{place}/here/", path), (f"{place}/here/0", path)):
        ended = command("sync", "--no-catalog", "-e", served, *ends)
        assert ended.code, ends
        assert stores(place) == before
    assert not any(
        SECRET in found.content for found in snapshot(place / "got").values() if (place / "got").exists()
    )


@pytest.mark.parametrize("key", ["", "--no-delete", "--append-only", "--read-only"])
@pytest.mark.parametrize("options", [["-L"], ["-k"], ["--copy-unsafe-links"], ["-L", "-R"]])
def test_no_link_leads_a_source_there(options: list[str], key: str, place: Path) -> None:
    served = forced(place, f"--root={place}/top", *key.split())
    (place / "list").write_text("lead\nlead/1/kept/0\n.rdc-undo/1/kept/0\n.RDC-UNDO/1\ndeeper/\nfile\n")
    sources: list[list[str]] = [
        ["h:"],
        ["h:lead"],
        ["h:deeper"],
        ["h:file"],
        [f"--files-from={place}/list", "h:"],
    ]
    for number, words in enumerate(sources):
        got = place / f"got{number}"
        got.mkdir()
        command("sync", "--no-catalog", "-e", served, *options, *words, f"{got}/")
        assert not any(SECRET in found.content for found in snapshot(got).values()), words
        if words == ["h:"]:
            assert (got / "own").read_bytes() == b"mine"


@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_no_link_leads_a_destination_there(way: Way, place: Path) -> None:
    before = stores(place)
    source = put(
        place / "source",
        {"lead/1/kept/0": b"evil", "deeper/0": b"evil", "lead/9/journal": b"evil", "x": b"x"},
    )
    run = run_sync(
        source, place / "top", SyncOptions(keep_dirlinks=True, ignore_times=True, fsync=False), way=way
    )
    assert {problem.path_bytes for problem in run.problems} >= {b"lead", b"deeper"}
    assert stores(place) == before
    assert (place / "top/lead").is_symlink() and (place / "top/x").read_bytes() == b"x"


@pytest.mark.parametrize(
    "options",
    [
        lambda word: SyncOptions(partial_dir=word),
        lambda word: SyncOptions(temp_dir=word),
        lambda word: SyncOptions(backup=Backup(b"~", word)),
        lambda word: SyncOptions(alternates=Alternates(AlternateUse.COPY, (word,))),
    ],
)
def test_also_where_nothing_is_served(options: Callable[[bytes], SyncOptions], place: Path) -> None:
    """A link that somebody planted below DST leads nobody there, whatever name it has."""
    before = stores(place)
    for word in (b".rdc-undo", os.fsencode(place / "top/.rdc-undo/1"), os.fsencode(place / "top/lead/1")):
        try:
            run = run_sync(place / "here", place / "top", options(word))
        except RdcError as error:
            assert "keeps for itself" in str(error) or "one name" in str(error), error
        else:
            assert any("keeps for itself" in str(event) for event in run.events)
        assert stores(place) == before


def test_no_backup_takes_a_reserved_name(place: Path) -> None:
    names = {".rdc-": b"undo", ".RDC-": b"unite", ".rdc-0123456789abcdef": b".tmp", ".rdc-u": b"NITE"}
    for number, (name, suffix) in enumerate(names.items()):
        for directory in (None, b"kept"):
            source = put(place / f"source{number}", {name: b"newer", "a": b"newer"})
            top = put(place / f"{number} {directory is None}", {name: b"old", "a": b"old"})
            run = run_sync(source, top, SyncOptions(backup=Backup(suffix, directory), fsync=False))
            assert [problem.path_bytes for problem in run.problems] == [name.encode()]
            assert "a name that rdc keeps for itself" in run.problems[0].message
            assert (top / name).read_bytes() == b"old" and (top / "a").read_bytes() == b"newer"
            assert not any(is_reserved(path.name.lower().encode()) for path in top.rglob("*"))


def test_a_right_to_change_is_no_right_to_remove(place: Path) -> None:
    """Through each option that names a directory: what is in it is there afterwards, as it was."""
    user = {"dir/0": b"mine" * 20_000, "dir/deep/0": b"mine", "dir/new": b"mine"}
    put(place / "top", user)
    (place / "top/empty").mkdir()
    for key in ("--no-delete", "--append-only", "--write-only", ""):
        served = forced(place, f"--root={place}/top", *key.split())
        for option in OTHERS:
            put(place / "here", {"0": os.urandom(90_000), "new": os.urandom(500)})
            for name in ("0", "new"):
                (place / "top" / name).unlink(missing_ok=True)
            command("sync", "--no-catalog", "-I", "-e", served, option, f"{place}/here/", "h:")
            for name, content in user.items():
                assert (place / "top" / name).read_bytes() == content, (key, option)
            assert (place / "top/empty").is_dir()
