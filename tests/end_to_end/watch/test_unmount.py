"""Real file systems that are unmounted under a watch, and mounted again: nothing is deleted meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.running.watching import DaemonLine, Watching, eventually

IMAGE_BYTES = 16 << 20


def call(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"these tests need root and mounts: {words}: {done.stderr}"


def take_away(point: Path, *options: str) -> None:
    """Busy only until the turn is over that was told of, if nothing is kept open there."""
    busy = ""

    def done() -> bool:
        nonlocal busy
        run = subprocess.run(["umount", *options, point], capture_output=True, text=True, check=False)
        busy = run.stderr
        return run.returncode == 0

    eventually(done, lambda: busy)


def unmount(point: Path) -> None:
    """If it is mounted."""
    subprocess.run(["umount", "-ql", point], capture_output=True, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as ends:
        for name in ("src", "src/sub", "kept"):
            ends.callback(unmount, tmp_path / name)
        for name in ("src", "kept"):
            (tmp_path / name).mkdir()
        yield tmp_path


def image(place: Path) -> Callable[[Path], None]:
    """A file system in a file; a loop device, and so a device number, of its own at each mount."""
    file = place / "image"
    with file.open("wb") as image:
        image.truncate(IMAGE_BYTES)
    call("mkfs.ext4", "-q", file)
    return lambda point: call("mount", "-o", "loop", file, point)


def bind(place: Path) -> Callable[[Path], None]:
    """A directory that stays where it is: no event tells that it is not to be seen here any more."""
    return lambda point: call("mount", "--bind", place / "kept", point)


KINDS = {"image": image, "bind": bind}


def fill(source: Path) -> None:
    (source / "d").mkdir()
    for number in range(10):
        (source / "d" / f"f{number}").write_bytes(b"%d" % number * 500)


def names(tree: Path) -> list[str]:
    return sorted(path.name for path in tree.rglob("*"))


def watching_of(place: Path) -> Watching:
    return Watching(place / "src", place / "dst", "--delete", "--exclude=/lost+found", place=place)


@pytest.mark.needs("ext4")
@pytest.mark.parametrize(("kind", "lazily"), [("image", ()), ("bind", ()), ("bind", ("-l",))])
def test_a_source_that_is_unmounted_halts(place: Path, kind: str, lazily: tuple[str, ...]) -> None:
    source, mount = place / "src", KINDS[kind](place)
    mount(source)
    fill(source)
    watching = watching_of(place)
    with watching.running():
        held = names(watching.destination)
        take_away(source, *lazily)
        watching.wait("halted")
        assert "another directory" in watching.named("halted")[-1]["message"]
        (source / "stray").touch()
        time.sleep(0.8)
        assert names(watching.destination) == held
        (source / "stray").unlink()
        mount(source)
        watching.wait("resumed")
        (source / "d" / "after").write_bytes(b"after")
        (source / "d" / "f0").unlink()
        watching.wait_gone(watching.destination / "d" / "f0")
        assert (watching.destination / "d" / "after").exists()
        assert watching.named("disconnected") == []


@pytest.mark.needs("mount")
def test_a_mount_below_the_source_halts(place: Path) -> None:
    source, mount = place / "src", bind(place)
    fill(source)
    (source / "sub").mkdir()
    mount(source / "sub")
    (source / "sub" / "kept").write_bytes(b"kept")
    watching = watching_of(place)
    with watching.running():
        held = names(watching.destination)
        take_away(source / "sub")
        watching.wait("halted")
        assert "sub in" in watching.named("halted")[-1]["message"]
        (source / "sub").touch()
        time.sleep(0.5)
        assert names(watching.destination) == held
        mount(source / "sub")
        watching.wait("resumed")
        (source / "sub" / "kept").unlink()
        watching.wait_equal()


@pytest.mark.needs("mount")
def test_a_far_source_that_is_unmounted_halts_and_says_so(place: Path) -> None:
    source, mount = place / "src", bind(place)
    mount(source)
    fill(source)
    line = DaemonLine(place, place)
    watching = Watching(source, place / "dst", "--delete", place=place, line=line, far_source=True)
    try:
        with watching.running():
            held = names(watching.destination)
            take_away(source)
            watching.wait("halted")
            assert "data/src/ is another directory" in watching.named("halted")[-1]["message"]
            watching.kill_far()
            watching.wait("disconnected")
            watching.wait("halted", 1)
            assert names(watching.destination) == held
            mount(source)
            watching.wait("resumed")
            (source / "d" / "f0").unlink()
            watching.wait_equal()
    finally:
        line.close()


@pytest.mark.needs("ext4")
def test_a_module_that_is_unmounted_is_not_written_to(place: Path) -> None:
    module, mount = place / "src", image(place)
    mount(module)
    (module / "dst").mkdir()
    source = place / "here"
    source.mkdir()
    fill(source)
    line = DaemonLine(place, module)
    watching = Watching(source, module / "dst", "--delete", place=place, line=line)
    try:
        with watching.running():
            take_away(module)
            (source / "d" / "while-away").write_bytes(b"new")
            watching.wait("disconnected")
            time.sleep(0.6)
            assert names(module) == []
            mount(module)
            watching.wait_equal()
    finally:
        line.close()
