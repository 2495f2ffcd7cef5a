"""`rdc serve --stdio --root=DIR` as the forced command of an ssh key, with hostile clients."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from rdc.cli.environment import SETTINGS
from rdc.cli.verbs import serve
from rdc.daemon.access import KEY_TITLE, Access, admission
from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Open, Role
from tests.support.running.forced_command import forced
from tests.support.running.ssh_server import ssh_server
from tests.support.running.syncing import RDC, Ended, command
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree
from tests.support.wire.hostile_requests import snapshot

SERVED: Tree = tree(
    {"a/file": b"held", "b": b"b", "out": Link(b"../outside"), "sec": Link(b"../outside/secret")}
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_tree(tmp_path / "outside", tree({"secret": b"secret", "keys": b"honest"}))
    write_tree(tmp_path / "top", SERVED)
    write_tree(tmp_path / "here", tree({"new": b"new"}))
    return tmp_path


def sync(place: Path, key: str, *words: str | Path) -> Ended:
    return command("sync", "--no-catalog", "-e", forced(place, *shlex.split(key)), *words)


REQUESTS = [
    # Options beside --root, SRC, DST ({} is the local directory), exit code, part of an error line.
    ("", "{}/here/", "h:new", 0, ""),
    ("", "{}/here/", "h:{}/outside", 11, "outside"),
    ("", "{}/here/", "h:../outside", 23, "expected a path inside the served directory, found '..'"),
    ("", "{}/here/", "h:out/", 11, "symbolic link"),
    ("", "{}/here/new", "h:sec", 0, ""),
    (
        "",
        "h:{}/outside/secret",
        "{}/got",
        23,
        "/outside: cannot open it: expected a directory, found nothing",
    ),
    ("", "h:../outside/secret", "{}/got", 23, "found '..'"),
    ("", "h:out/secret", "{}/got", 23, "/out: cannot open the directory: found a symbolic link"),
    ("", "{}/here/ --owner", "h:", 5, "the served directory keeps no owners"),
    ("--read-only", "h:a/", "{}/got", 0, ""),
    ("--read-only", "{}/here/", "h:", 5, "the served directory is read-only"),
    ("--read-only", "{}/here/ -n", "h:new", 5, "the served directory is read-only"),
    ("--write-only", "{}/here/", "h:", 0, ""),
    ("--write-only", "h:a/", "{}/got", 5, "is write-only: nothing can be fetched"),
    ("--write-only", "{}/here/ --delete", "h:", 5, "nothing may be deleted in the served directory"),
    ("--no-delete", "{}/here/ --delete -n", "h:", 5, "nothing may be deleted"),
    ("--no-delete", "h:a/", "{}/got", 0, ""),
    ("--append-only", "{}/here/ --delete", "h:", 5, "is append-only and nothing may be deleted"),
    ("--append-only", "{}/here/", "h:", 0, ""),
    ("--append-only", "{}/here/new", "h:b", 23, "/b: cannot change it: expected a new entry"),
]


@pytest.mark.parametrize(("key", "source", "target", "code", "words"), REQUESTS)
def test_what_a_key_may(key: str, source: str, target: str, code: int, words: str, place: Path) -> None:
    outside, top = snapshot(place / "outside"), snapshot(place / "top")
    texts = f"{source} {target}".format(*[place] * 2).split()
    ended = sync(place, f"--root={place}/top {key}", *texts)
    assert (ended.code, bool(ended.complaints)) == (code, bool(code)), ended
    assert any(words in line for line in ended.complaints) or not words, ended
    # Errors show no path of the server, except what the client sent.
    assert not any(f"{place}/top" in line for line in ended.complaints), ended
    assert snapshot(place / "outside") == outside
    assert not (place / "catalog").exists()
    if code:
        assert {path: found.content for path, found in snapshot(place / "top").items()} == {
            path: found.content for path, found in top.items()
        }


def test_an_absolute_path_begins_at_the_root(place: Path) -> None:
    (place / "top/deep").mkdir()
    assert sync(place, f"--root={place}/top --write-only", f"{place}/here/", "h:/deep/er").code == 0
    assert (place / "top/deep/er/new").read_bytes() == b"new"
    # The command starts beside the root, and --root is relative to that.
    assert sync(place, "--root=../top --write-only", f"{place}/here/", "h:deep/too").code == 0
    assert (place / "top/deep/too/new").read_bytes() == b"new"


def test_backups_of_days_append_only(place: Path) -> None:
    """New entries arrive. Changed entries are named in each run and stay. Directory times are no error."""
    key = f"--root={place}/top --write-only --append-only"
    here = place / "days"
    shown: Tree = tree({"d/one": b"1", "d/two": b"2", "e/f/three": File(b"3", 0o600), "e": Directory(0o700)})
    write_tree(here, shown)
    os.link(here / "d/one", here / "e/one")
    assert sync(place, key, "-HX", f"{here}/", "h:host").code == 0
    copy = place / "top/host"
    assert describe(read_tree(here), read_tree(copy)) == []
    assert sync(place, key, "-HX", f"{here}/", "h:host").complaints == []

    (here / "d/new").write_bytes(b"new")
    (here / "new/dir").mkdir(parents=True)
    os.setxattr(here / "d/new", "user.x", b"1")
    os.link(here / "d/one", here / "d/other")
    for _ in range(2):
        ended = sync(place, key, "-HX", f"{here}/", "h:host")
        assert (ended.code, ended.complaints) == (0, []), ended
    assert os.getxattr(copy / "d/new", "user.x") == b"1"
    assert (copy / "d/other").samefile(copy / "e/one") and (copy / "new/dir").is_dir()

    before = snapshot(copy)
    (here / "d/two").write_bytes(b"another")
    (here / "e/f/three").chmod(0o644)
    (here / "e").chmod(0o755)
    (here / "d/link").symlink_to("two")
    (here / "d/newer").write_bytes(b"newer")
    for again in (False, True):
        ended = sync(place, key, "-HX", f"{here}/", "h:host")
        named = [line.split(":")[1].strip() for line in ended.complaints]
        assert (ended.code, sorted(named)) == (23, ["/host/d/two", "/host/e", "/host/e/f/three"]), (
            again,
            ended,
        )
    after = snapshot(copy)
    assert after.keys() - before.keys() == {"d/link", "d/newer"}
    assert all(after[path] == before[path] for path in before if path not in ("", "d"))
    ended = sync(place, key, "-HXc", f"{here}/", "h:host")
    assert ended.code == 5 and "leave out --checksum" in ended.err
    ended = sync(place, f"--root={place}/top --append-only", "-HXc", f"{here}/", "h:host")
    assert ended.code == 23 and len(ended.complaints) == 3
    (here / "d/two").unlink()
    (here / "e/f/three").chmod(0o600)
    (here / "e").chmod(0o700)
    assert sync(place, key, f"{here}/", "h:host").code == 0


WRONG = [
    (["--config=x", "--root=top"], "--root goes with --stdio"),
    (["--stdio", "--read-only"], "--read-only needs --root=DIR"),
    (["--stdio", "--append-only"], "--append-only needs --root=DIR"),
    (["--stdio", "--root=."], ""),
    (["--stdio", "--root="], "--root needs the path of a directory"),
    (["--stdio", "--root=x", "--read-only", "--write-only"], "--read-only and --write-only together"),
    (["--stdio", "--root=x", "--read-only", "--append-only"], "--read-only and --append-only together"),
    (["--stdio", "--root=link"], "link goes through a symbolic link; write"),
    (["--stdio", "--root=link/a"], "goes through a symbolic link"),
]


@pytest.mark.parametrize(("words", "line"), WRONG)
def test_options(words: list[str], line: str, place: Path) -> None:
    (place / "link").symlink_to("top")
    ended = command("serve", *words, process=True, cwd=place)
    assert len(ended.err.splitlines()) == bool(line) and line in ended.err, ended
    assert ended.code == (ExitCode.USAGE if line else ExitCode.STREAM), ended


def test_no_setting_is_an_option_of_serve() -> None:
    """sshd may pass variables of the client, so no setting may be an option of serve."""
    options = {name for group in serve.OPTIONS for option in group.options for name in option.names}
    assert not options & {f"--{setting.key}" for setting in SETTINGS}


def test_a_root_that_is_missing(place: Path) -> None:
    ended = sync(place, f"--root={place}/none", f"{place}/here/", "h:")
    assert ended.code == ExitCode.FILE_IO
    assert ended.complaints == [
        "rdc: the remote side: the served directory is not available: its directory is missing, or a link"
        " took its place"
    ]


def test_the_directory_is_kept(place: Path) -> None:
    """The session keeps its directory even if another one takes its path."""
    admitted = admission(os.fsencode(place / "top"), Access(KEY_TITLE))(
        Open(Role.DESTINATION, b"", bytes(16), SyncOptions())
    )
    (place / "top").rename(place / "moved")
    (place / "top").symlink_to("outside")
    root = admitted.site.open(b"new", create=True, writable=True)
    root.make_directory(b"below")
    root.release()
    assert (place / "moved/new/below").is_dir()
    assert not (place / "outside/new").exists()


@pytest.mark.needs("sshd")
def test_a_key_of_sshd(place: Path) -> None:
    """Uses the example line of --help, restrict,command="..."."""
    key = shlex.join([*RDC, "serve", "--stdio", f"--root={place}/top", "--write-only"])
    example = f'restrict,command="{key}" '
    assert (
        '  restrict,command="rdc serve --stdio --root=/srv/backup --write-only" ssh-ed25519'
        in serve.help_text()
    )
    with ssh_server(options=example) as server:

        def sync(*words: str) -> Ended:
            return command("sync", "--no-catalog", "-e", server.remote_shell, *words, process=True)

        assert sync(f"{place}/here/", f"{server.host}:new").code == 0
        assert (place / "top/new/new").read_bytes() == b"new"
        stolen = sync(f"{server.host}:{place}/outside/secret", f"{place}/stolen")
        assert (stolen.code, (place / "stolen").exists()) == (ExitCode.REFUSED, False)
        # The client asks for another program, with words that a shell would expand.
        ended = sync(
            "--remote-path", f"touch {place}/touched; rdc", f"{place}/here/", f"{server.host}:../outside"
        )
        assert ended.code == ExitCode.PARTIAL and "found '..'" in ended.complaints[-1]
        assert not (place / "touched").exists()
        assert sorted(os.listdir(place / "outside")) == ["keys", "secret"]
