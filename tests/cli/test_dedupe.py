"""`rdc dedupe` on the command line: options, protected directories, caps and skipped pairs."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.duplicates.dedupe_command import parse_dedupe, read_dedupe
from rdc.errors import RdcError
from rdc.library.duplicate_groups import open_operands
from tests.support.running.deduping import TIME, Run, blob, dedupe, linked, messages, seen, write_duplicates
from tests.support.trees.descriptors import open_descriptors


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with groups of three equal files below a/ and b/, which any file system can hard-link."""
    top = tmp_path / "tree"
    write_duplicates(top)
    return top


def link(tree: Path, *words: str | Path) -> Run:
    journal = tree.parent / f"journal{len(list(tree.parent.glob('journal*')))}"
    return dedupe("--hardlink", "--apply", "--journal", journal, *words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "rdc dedupe needs a PATH"),
        (["--undo=j", "x"], "--undo takes no PATH"),
        (["--undo=j", "--hardlink"], "--hardlink makes no sense with --undo"),
        (["--undo="], "--undo needs a file"),
        (["--chunks", "--hardlink", "x"], "--chunks makes no sense with --hardlink"),
        (["--chunks", "--from=r", "x"], "--chunks makes no sense with --from"),
        (["--journal=j", "x"], "add --hardlink"),
        (["--max-files=-1", "x"], "a number of files is expected"),
        (["--max-bytes=1X", "x"], "a size such as"),
        (["--min-size=9999999999999999999999", "x"], "a size such as"),
        ([""], "a PATH is empty"),
        (["--no-such", "x"], "unknown option --no-such"),
    ],
)
def test_what_makes_no_sense(words: list[str], text: str) -> None:
    run = dedupe("--text", *words)
    assert run.code == 1
    assert text in run.err
    (event,) = dedupe(*words).events
    assert (event["event"], event["code"]) == ("error", 1)


def test_options_become_a_request() -> None:
    words = [
        "--apply",
        "--max-files=3",
        "--max-bytes=2k",
        "--min-size=1M",
        "--keep-in=a",
        "--keep-in=b",
        "p",
        "q",
    ]
    request = read_dedupe(parse_dedupe(words), lambda _: b"")
    options = request.options
    assert (options.apply, options.max_files, options.max_bytes) == (True, 3, 2048)
    assert (options.min_size, options.keep, request.paths) == (1 << 20, (b"a", b"b"), (b"p", b"q"))
    assert not read_dedupe(parse_dedupe(["p"]), lambda _: b"").options.apply
    assert not read_dedupe(parse_dedupe(["--apply", "-n", "p"]), lambda _: b"").options.apply
    assert read_dedupe(parse_dedupe(["--undo=j"]), lambda _: b"").options.apply
    assert not read_dedupe(parse_dedupe(["--undo=j", "-n"]), lambda _: b"").options.apply


def test_lines_for_people(tree: Path) -> None:
    run = dedupe("--text", "--hardlink", tree)
    assert re.fullmatch(rf"(?: +[0-9.]+ KB +\d files?  {tree}\S*/\n)+", run.out)
    run = dedupe("--text", "--hardlink", "-v", tree)
    assert run.code == 0
    first, *_ = run.out.splitlines()
    assert re.fullmatch(rf"link     {tree}/\S+ to {tree}/\S+: [0-9.]+ KB", first)
    assert re.search(
        r"^6 files in 3 groups: \d+\.\d KB to reclaim \(dry run: nothing was changed; --apply acts\)$",
        run.err,
        re.MULTILINE,
    )
    run = dedupe("--text", "--hardlink", "--apply", "--journal", tree.parent / "j", tree)
    assert f"to undo it: rdc dedupe --undo {tree.parent}/j" in run.err
    run = dedupe("--text", "-n", "--undo", tree.parent / "j")
    assert "6 files of 204.6 KB would be separate (dry run: nothing was changed)" in run.err
    run = dedupe("--text", "-q", "--undo", tree.parent / "j")
    assert (run.code, run.out, run.err) == (0, "", "")


def test_nothing_is_left_open_or_written_by_a_dry_run(tree: Path) -> None:
    before = {path: os.stat(path) for path in tree.rglob("*")}
    fds = len(open_descriptors())
    assert dedupe("--hardlink", tree).code == 0
    assert len(open_descriptors()) == fds
    assert {path: os.stat(path) for path in tree.rglob("*")}.keys() == before.keys()
    for path, then in before.items():
        assert os.stat(path).st_ctime_ns == then.st_ctime_ns


# Protection and limits


def test_protected_files_are_kept(tree: Path) -> None:
    """Other names become links to the protected files. The protected files stay unchanged."""
    before = {name: os.stat(tree / "b" / name).st_ino for name in os.listdir(tree / "b")}
    wanted = seen(tree)
    run = link(tree, "--keep-in", tree / "b", tree / "a")
    assert (run.code, run.summary["files"]) == (0, 3)
    assert {name: os.stat(tree / "b" / name).st_ino for name in before} == before
    for group in range(3):
        assert os.stat(tree / f"a/group{group}-copy1").st_ino in before.values()
    assert seen(tree) == wanted
    # Also if the protected directory is inside the searched one and spelled differently.
    run = link(tree, "--keep-in", f"{tree}/a/../b/", tree)
    assert run.summary["files"] == 0


def test_keep_through_a_link(tree: Path) -> None:
    (tree.parent / "alias").symlink_to(tree / "b")
    before = {name: os.stat(tree / "b" / name).st_ino for name in os.listdir(tree / "b")}
    assert link(tree, "--keep-in", tree.parent / "alias", tree).code == 0
    assert {name: os.stat(tree / "b" / name).st_ino for name in before} == before


def test_links_are_not_followed(tree: Path) -> None:
    outside = tree.parent / "outside"
    outside.mkdir()
    content = (tree / "a" / "group0-copy1").read_bytes()
    (outside / "file").write_bytes(content)
    (tree / "link").symlink_to(outside)
    (tree / "file").symlink_to(outside / "file")
    run = link(tree, tree)
    assert run.code == 0
    assert os.stat(outside / "file").st_nlink == 1
    assert os.readlink(tree / "file") == str(outside / "file")


def test_overlapping_paths_are_one(tree: Path) -> None:
    run = dedupe("--hardlink", tree, tree / "a", f"{tree}/./b/..", tree / "a" / "group0-copy1")
    assert (run.code, run.summary["files"]) == (0, 6)


def test_single_files_are_paths_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    run = link(tree, "a/group0-copy1", "b/group0-copy0")
    assert (run.code, run.summary["files"]) == (0, 1)
    (item,) = run.of("item")
    assert {item["path"], item["source"]} == {"a/group0-copy1", "b/group0-copy0"}
    assert linked(tree, "a/group0-copy1", "b/group0-copy0", "b/group0-copy2") == 2
    monkeypatch.chdir(tree / "a")
    run = dedupe("--hardlink", "group1-copy1", "../b/group1-copy0")
    assert {run.of("item")[0]["path"], run.of("item")[0]["source"]} == {"./group1-copy1", "../b/group1-copy0"}


def test_filters_and_sizes(tree: Path) -> None:
    assert dedupe("--hardlink", "--exclude=/b/", tree).summary["files"] == 0
    assert dedupe("--hardlink", "--exclude=group0*", tree).summary["files"] == 4
    assert dedupe("--hardlink", "--min-size=30001", tree).summary["files"] == 4
    assert dedupe("--hardlink", tree / "nothing").code == 23


@pytest.mark.parametrize(
    ("cap", "files"), [("--max-files=2", 2), ("--max-bytes=80k", 2), ("--max-files=0", 0)]
)
def test_caps(tree: Path, cap: str, files: int) -> None:
    promised = dedupe("--hardlink", cap, tree)
    assert (promised.code, promised.summary["files"], promised.summary["capped"]) == (25, files, True)
    run = link(tree, cap, tree)
    assert (run.code, run.summary["files"], run.summary["capped"]) == (25, files, True)
    assert run.won == promised.won
    # Repeated runs finish the work.
    for _ in range(6):
        run = link(tree, "--max-files=2", tree)
    assert (run.code, run.summary["files"]) == (0, 0)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("mode", lambda path: path.chmod(0o600)),
        ("owner", lambda path: os.chown(path, 1, 0)),
        ("group", lambda path: os.chown(path, 0, 1)),
        ("mtime", lambda path: os.utime(path, ns=(TIME, TIME + 1))),
        ("extended attribute", lambda path: os.setxattr(path, "user.x", b"x")),
    ],
)
def test_pairs_that_differ_are_skipped_and_named(
    tmp_path: Path, what: str, change: Callable[[Path], object]
) -> None:
    write_duplicates(tmp_path, groups=1)
    change(tmp_path / "b" / "group0-copy2")
    before = seen(tmp_path)
    run = dedupe("--hardlink", "--apply", "--journal", tmp_path / "journal", tmp_path)
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (0, 1, 1)
    (error,) = run.of("error")
    assert error["code"] == 0
    assert f"skipped: has another {what} than" in error["message"]
    (tmp_path / "journal").unlink()
    assert seen(tmp_path) == before


def test_names_that_were_not_given(tree: Path) -> None:
    """A file with names outside the tree frees no space if replaced, but other names can link to it."""
    os.link(tree / "a" / "group0-copy1", tree.parent / "elsewhere1")
    run = link(tree, tree)
    assert run.code == 0
    assert linked(tree, "a/group0-copy1", "b/group0-copy0", "b/group0-copy2", "../elsewhere1") == 1
    os.link(tree / "a" / "group1-copy1", tree.parent / "elsewhere2")
    (tree / "a" / "late").write_bytes((tree / "a" / "group1-copy1").read_bytes())
    os.link(tree / "a" / "late", tree.parent / "elsewhere3")
    os.utime(tree / "a" / "late", ns=(TIME + 1, TIME + 1))
    (tree / "a" / "late").chmod(0o640)
    os.setxattr(tree / "a" / "late", "user.group", b"1")
    run = link(tree, tree)
    assert "has names outside of what was given" in messages(run)
    assert linked(tree, "a/late", "a/group1-copy1") == 2


def test_all_names_of_a_file_move_together(tmp_path: Path) -> None:
    write_duplicates(tmp_path, groups=1, copies=2)
    os.link(tmp_path / "b" / "group0-copy0", tmp_path / "b" / "second")
    os.link(tmp_path / "a" / "group0-copy1", tmp_path / "a" / "third")
    os.link(tmp_path / "a" / "group0-copy1", tmp_path / "a" / "fourth")
    run = dedupe("--hardlink", "--apply", "--journal", tmp_path / "journal", tmp_path)
    assert (run.code, run.summary["files"], len(run.of("item"))) == (0, 1, 2)
    assert os.stat(tmp_path / "b" / "second").st_nlink == 5


def test_files_in_use_are_named(tree: Path) -> None:
    with (tree / "a" / "group0-copy1").open("r+b"):
        run = link(tree, tree)
    assert run.code == 23
    assert "group0-copy1: cannot hold it still: expected a file at rest" in messages(run)
    assert "open for writing" in messages(run)
    assert os.stat(tree / "a" / "group0-copy1").st_nlink == 1


def test_hostile_names(tmp_path: Path) -> None:
    names = [b"new\nline", b"\x1b[31mred", b"not utf-8 \xff", b"--apply", b"-"]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(blob(1, 5000))
        os.utime(os.path.join(os.fsencode(tmp_path), name), ns=(TIME, TIME))
    run = dedupe("--text", "--hardlink", tmp_path)
    assert run.out.isprintable() or set(run.out) - {"\n"} <= {ch for ch in run.out if ch.isprintable()} | {
        "\n"
    }
    run = dedupe("--hardlink", "--apply", "--journal", tmp_path / "journal", tmp_path)
    assert (run.code, run.summary["files"]) == (0, 4)
    found = {base64.b64decode(item["path_b64"]) for item in run.of("item") if "path_b64" in item} | {
        base64.b64decode(item["source_b64"]) for item in run.of("item") if "source_b64" in item
    }
    assert found == {os.path.join(os.fsencode(tmp_path), b"not utf-8 \xff")}
    assert dedupe("--undo", tmp_path / "journal").summary["files"] == 4


def test_the_journal_has_a_place_of_its_own(tree: Path, tmp_path: Path) -> None:
    """Runs a real process with an empty home directory."""
    home = tmp_path / "home"
    home.mkdir()
    words = [
        sys.executable,
        "-m",
        "rdc",
        "dedupe",
        "--no-catalog",
        "--json",
        "--hardlink",
        "--apply",
        str(tree),
    ]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    journal = Path(json.loads(done.stdout.splitlines()[-1])["journal"])
    assert journal.parent == home / ".local" / "state" / "rdc"
    assert journal.stat().st_mode & 0o777 == 0o600
    assert dedupe("--undo", journal).summary["files"] == 6


def test_a_journal_is_never_written_over(tree: Path) -> None:
    journal = tree.parent / "journal"
    journal.write_text("precious")
    run = dedupe("--hardlink", "--apply", "--journal", journal, tree)
    assert run.code == 23
    assert journal.read_text() == "precious"
    assert linked(tree, *seen(tree)) == len(seen(tree))
    run = dedupe("--hardlink", "--apply", "--journal", tree / "a" / "group0-copy1" / "j", tree)
    assert run.code == 23
    assert linked(tree, *seen(tree)) == len(seen(tree))


def test_events_have_the_fields_that_are_promised(tree: Path) -> None:
    fields = {
        "start": {"dry_run"},
        "item": {"action", "path", "source", "bytes", "won", "perhaps", "compressed", "held"},
        "progress": {"phase", "done", "total"},
        "error": {"code", "path", "message"},
        "summary": {"groups", "files", "bytes", "won", "perhaps", "already", "skipped", "errors", "capped"}
        | {"compressed", "held", "journal", "seconds", "exit"},
    }
    (tree / "a" / "group2-copy1").chmod(0o600)
    run = link(tree, tree)
    assert {event["event"] for event in run.events} == set(fields)
    for event in run.events:
        # The first progress events have no total.
        assert set(event) | {"total"} == fields[event["event"]] | {"v", "event", "total"}
    assert {event["phase"] for event in run.of("progress")} == {"compare", "share"}


def test_no_error_is_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(RdcError):
        open_operands([os.fsencode(tmp_path / "none")], [])
    (tmp_path / "fifo").touch()
    (tmp_path / "fifo").unlink()
    os.mkfifo(tmp_path / "fifo")
    assert dedupe(tmp_path / "fifo").code == 23
    assert dedupe("a\\0b").code == 23


def test_a_file_to_read_that_is_none_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.library.duplicate_groups.REPORT_BYTES", 100)
    monkeypatch.setattr("rdc.duplicates.journal.JOURNAL_BYTES", 100)
    large = tree / "large"
    large.write_bytes(bytes(101))
    for path, text in (
        (tree / "missing", "expected a file, found nothing; check the path"),
        (tree, "expected a file, found a directory; check the path"),
        (large, "expected at most 100 bytes, found more"),
    ):
        assert text in messages(dedupe("--undo", path))
        assert text in messages(dedupe(f"--from={path}", tree))
    assert "at most 100 bytes" in messages(dedupe("--from=-", tree, stdin=bytes(101)))


def test_hard_links_across_separate_trees_are_warned_about(tree: Path) -> None:
    """One file in a tree and its backup is no backup."""
    (tree.parent / "backup").mkdir()
    said = "makes one file of names below"
    assert said in dedupe("--text", "--hardlink", tree, tree.parent / "backup").err
    assert said not in dedupe("--text", "--hardlink", tree, tree / "a").err
    assert said not in dedupe("--text", tree, tree.parent / "backup").err
    here = os.stat(tree).st_dev
    places = ("/dev/shm", "/var/tmp")  # noqa: S108 - a directory of random name is made there
    other = next(place for place in places if os.stat(place).st_dev != here)
    with tempfile.TemporaryDirectory(dir=other) as elsewhere:  # no link leads there
        assert said not in dedupe("--text", "--hardlink", tree, elsewhere).err
