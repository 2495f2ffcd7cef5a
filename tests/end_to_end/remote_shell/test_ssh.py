"""Through a real ssh, with real trees: what the stand-ins leave out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL
from tests.support.running.ssh_server import SshServer, ssh_server
from tests.support.running.syncing import RDC, command
from tests.support.trees.real_trees import copy_library, next_version
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.uniting.acls import access, acl

pytestmark = pytest.mark.needs("sshd")


@pytest.fixture(scope="module")
def server() -> Iterator[SshServer]:
    with ssh_server() as running:
        yield running


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("versions")
    old = copy_library(place / "old")
    return old, next_version(old, place / "new")


def far_program(place: Path, home: str = ".") -> str:
    """The far rdc as one word, since the far user's shell reads the words once more; `home` is where it
    starts."""
    script = place / "far-rdc"
    script.write_text(f'#!/bin/sh\ncd {home}\nexec {" ".join(RDC)} "$@"\n')
    script.chmod(0o755)
    return str(script)


def sync(server: SshServer, place: Path, *words: str | Path) -> dict[str, int]:
    """The summary of a sync that ends with 0 and complains of nothing."""
    ended = command(
        "sync", "--json", "-e", server.remote_shell, "--remote-path", far_program(place), *words, process=True
    )
    assert (ended.code, ended.err) == (ExitCode.OK, ""), ended
    summary: dict[str, int] = json.loads(ended.out.splitlines()[-1])
    return summary


def check_equal(one: Path, other: Path) -> None:
    subprocess.run(["diff", "-r", "--no-dereference", one, other], check=True)
    assert describe(read_tree(one), read_tree(other)) == []


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_from_version_to_version(
    pull: bool, server: SshServer, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    destination = tmp_path / "destination"
    costs = []
    for version in (*versions, versions[0]):
        ends = (
            (f"{server.host}:{version}/", destination)
            if pull
            else (f"{version}/", f"{server.host}:{destination}")
        )
        costs.append(sync(server, tmp_path, "--delete", *ends))
        check_equal(version, destination)
        again = sync(server, tmp_path, "--delete", *ends)
        assert (again["changed"], again["deleted"], again["literal_bytes"]) == (0, 0, 0)
        check_equal(version, destination)
    first, update, back = costs
    assert first["deleted"] == 0 and update["deleted"] > 10 and back["deleted"] > 10
    assert (
        update["bytes_sent"] + update["bytes_received"] < (first["bytes_sent"] + first["bytes_received"]) / 2
    )
    assert update["reused_bytes"] > 0 and back["reused_bytes"] > 0


def test_two_ways_with_acls(server: SshServer, tmp_path: Path) -> None:
    """Each side's change goes to the other one, and a third run has nothing to do."""
    left, right = tmp_path / "left", tmp_path / "right"
    for side in (left, right):
        write_tree(side, tree({"d/f": b"text", "g": b"text"}))
    words = ("--remote-path", far_program(tmp_path), left, f"{server.host}:{right}")

    def unite() -> tuple[int, int]:
        """The numbers of entries that were changed at the left and at the right."""
        ended = command("unite", "--json", "-A", "-e", server.remote_shell, *words, process=True)
        assert (ended.code, ended.err) == (ExitCode.OK, ""), ended
        summary = json.loads(ended.out.splitlines()[-1])
        return summary["left"], summary["right"]

    assert unite() == (0, 0)
    os.setxattr(left / "d/f", ACCESS_ACL, acl(6, 4, 0, 6, [(77, 6)]))
    os.setxattr(right / "d", DEFAULT_ACL, acl(7, 5, 0, 7, [(78, 7)]))
    for changes in ((1, 1), (0, 0)):
        assert unite() == changes
        assert access(left / "d/f") == access(right / "d/f")
        assert access(right / "d/f")[0] == 0o660
        assert os.getxattr(left / "d", DEFAULT_ACL) == acl(7, 5, 0, 7, [(78, 7)])


def test_a_path_relative_to_home(server: SshServer, tmp_path: Path) -> None:
    """HOST:PATH begins in the home directory there, with and without ~/."""
    source = write_tree(tmp_path / "source", tree({"f": b"f"}))
    program = far_program(tmp_path, home=str(tmp_path))
    for where, made in (("one", "one"), ("~/two/", "two"), ("", "f")):
        ended = command(
            "sync",
            "-e",
            server.remote_shell,
            "--remote-path",
            program,
            f"{source}/",
            f"{server.host}:{where}",
        )
        assert (ended.code, ended.complaints) == (ExitCode.OK, [])
        assert (tmp_path / made).exists()


def test_no_rdc_there_and_no_such_user(server: SshServer, tmp_path: Path) -> None:
    """ssh's own messages come through, and the one line of rdc's says what to do."""
    source = write_tree(tmp_path / "source", tree({"f": b"f"}))
    words = ("sync", "-e", server.remote_shell, f"{source}/")
    ended = command(*words, "--remote-path=/no/rdc", f"{server.host}:{tmp_path}/new", process=True)
    assert ended.code == ExitCode.COMMAND_MISSING
    assert f"no /no/rdc on {server.host}: install it there" in ended.complaints[-1]
    ended = command(*words, "nobody@127.0.0.1:new", process=True)
    assert ended.code == ExitCode.STREAM
    assert "ended with status 255 before rdc answered" in ended.complaints[-1]


def test_a_list_is_read_where_src_is(server: SshServer, tmp_path: Path) -> None:
    write_tree(tmp_path / "s", tree({"a/f": b"1", "b": b"2", "c": b"3"}))
    (tmp_path / "list").write_bytes(b"a/f\0c\0")
    words = ("-0", f"--files-from={server.host}:list", f"{server.host}:s/", tmp_path / "d")
    far = far_program(tmp_path, str(tmp_path))
    ended = command("sync", "-e", server.remote_shell, "--remote-path", far, *words, process=True)
    assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert set(read_tree(tmp_path / "d")) == {b"", b"a", b"a/f", b"c"}
