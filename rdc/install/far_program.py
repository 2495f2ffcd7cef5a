"""The program that the far Python runs from its stdin. It needs the standard library of Python 3.11 only.

One line of JSON follows the program: the order. The bytes of the wheels that it names come last. Everything
that this program writes lies in one directory of mode 0700. A version is unpacked beside the others, made
durable and renamed. The launcher is replaced last, after the new version has answered. Whatever stops it
before leaves the old version as it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, NoReturn

MARK = "rdc-install.json"
"""Lies in each unpacked version. A directory without it is not ours and is not removed."""

MADE = os.path.join("bin", ".made")
"""Names the directories above the private one that an installation had to make, one a line."""

NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]*-[0-9a-f]{16}")
UNFINISHED = ".new-"

START = """import sys
sys.path.insert(0, {path!r})
from rdc.__main__ import main

main()
"""


def fail(message: str) -> NoReturn:
    """End the program with one line."""
    sys.exit(f"rdc install: {message}")


def private_directory(home: str) -> str:
    """Return the private directory below the home."""
    return os.path.join(home, ".local", "share", "rdc")


def run(stream: BinaryIO, home: str) -> str:
    """Obey one order. Returns the line to print."""
    order = json.loads(stream.readline())
    private = private_directory(home)
    if order["action"] == "install":
        wheels = received(stream, order["wheels"])
        made = make_directories(private)
        with locked(private):
            try:
                answer = install(private, order["name"], wheels)
            except BaseException:
                if not versions(private):
                    remove_directories(private, made)
                raise
            note_made(private, made)
            return answer
    if not os.path.lexists(private):
        return "rdc is not installed there"
    with locked(private):
        if order["action"] == "list":
            current = current_name(private)
            return "\n".join(f"{name}{' (in use)' * (name == current)}" for name in versions(private))
        return remove(private)


@contextlib.contextmanager
def locked(private: str) -> Iterator[None]:
    """Hold the lock of the directory, which must be the user's own and no symbolic link."""
    try:
        descriptor = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        fail(f"{private}: {error.strerror}")
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            fail(f"{private} belongs to another user")
        os.fchmod(descriptor, 0o700)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def link_of(private: str) -> str:
    """Return the path in ~/.local/bin that leads to the launcher, since shells often look there."""
    local = os.path.dirname(os.path.dirname(private))
    return os.path.join(local, "bin", "rdc")


def above(private: str) -> list[str]:
    """Return the directories beside and above the private one that an installation may make, the deepest
    first."""
    share = os.path.dirname(private)
    return [share, os.path.dirname(link_of(private)), os.path.dirname(share)]


def make_directories(private: str) -> list[str]:
    """Make the private directory. Returns those above it that were missing, the deepest first."""
    missing = [path for path in above(private) if not os.path.lexists(path)]
    os.makedirs(private, 0o700, exist_ok=True)
    return missing


def note_made(private: str, made: list[str]) -> None:
    """Store what `remove` has to remove above the private directory."""
    if made:
        path = os.path.join(private, MADE)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        write(path, "".join(f"{os.path.basename(one)}\n" for one in made).encode())


def take_made(private: str) -> list[str]:
    """Forget what `note_made` stored, and return it."""
    path = os.path.join(private, MADE)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            names = file.read().splitlines()
    except OSError:
        return []
    os.unlink(path)
    return [one for one in above(private) if os.path.basename(one) in names]


def remove_directories(private: str, made: list[str]) -> None:
    """Remove the private directory and those above it that rdc made, as far as they are empty."""
    for path in (os.path.join(private, "bin"), private, *made):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def received(stream: BinaryIO, expected: Any) -> list[bytes]:
    """Return the bytes of all wheels, each compared with its digest before anything is written."""
    wheels = []
    for each in expected:
        data = stream.read(each["size"])
        if len(data) != each["size"]:
            fail(f"{each['name']}: the connection ended early")
        if hashlib.sha256(data).hexdigest() != each["sha256"]:
            fail(f"{each['name']}: the SHA-256 differs from that of the manifest; nothing was unpacked")
        wheels.append(data)
    return wheels


def install(private: str, name: str, wheels: list[bytes]) -> str:
    """Unpack one version, let it answer, and make it the one that the launcher starts."""
    if not NAME.fullmatch(name):
        fail("the name of the version is not valid")
    for left in os.listdir(private):
        if left.startswith(UNFINISHED):
            shutil.rmtree(os.path.join(private, left))
    final, previous = os.path.join(private, name), current_name(private)
    if not os.path.lexists(final):
        unpack(private, final, wheels)
    start = os.path.join(final, "start.py")
    answer = subprocess.run(
        [sys.executable, "-I", start, "--version"], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        if name != previous:
            shutil.rmtree(final)
        fail(f"the new version does not start: {(answer.stderr.strip() or 'no message').splitlines()[-1]}")
    write_launcher(private, start)
    for old in versions(private):
        # A session that runs from the version before may still load modules of it.
        if old not in (name, previous):
            shutil.rmtree(os.path.join(private, old))
    launcher = os.path.join(private, "bin", "rdc")
    return f"{answer.stdout.strip()}, {launcher}, {link(private, launcher)}"


def link(private: str, launcher: str) -> str:
    """Link ~/.local/bin/rdc to the launcher, unless another file is there. Return the words that say so."""
    path = link_of(private)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(launcher, path)
    except OSError as error:
        return f"not linked from {path}: {error.strerror}"
    if is_own_link(path, launcher):
        return f"linked from {path}"
    return f"not linked from {path}, which is another file"


def is_own_link(path: str, launcher: str) -> bool:
    """Return whether a symbolic link to the launcher is at `path`."""
    try:
        return os.readlink(path) == launcher
    except OSError:
        return False


def unpack(private: str, final: str, wheels: list[bytes]) -> None:
    """Make `final` of the wheels: whole and durable, or not at all."""
    temporary = tempfile.mkdtemp(prefix=UNFINISHED, dir=private)
    try:
        for data in wheels:
            with zipfile.ZipFile(io.BytesIO(data)) as wheel:
                for item in wheel.infolist():
                    unpack_item(wheel, item, temporary)
        write(os.path.join(temporary, "start.py"), START.format(path=final).encode())
        write(os.path.join(temporary, MARK), b"{}\n")
        for directory, _, _ in os.walk(temporary, topdown=False):
            sync_directory(directory)
        os.rename(temporary, final)
        sync_directory(private)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def unpack_item(wheel: zipfile.ZipFile, item: zipfile.ZipInfo, temporary: str) -> None:
    """Write one member. Scripts and other data of a wheel are left out: the launcher replaces them."""
    parts = item.filename.split("/")
    if item.is_dir():
        return
    if parts[0].endswith(".data"):
        if len(parts) < 3 or parts[1] not in ("purelib", "platlib"):
            return
        parts = parts[2:]
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        fail(f"a wheel holds a file that would leave its directory: {item.filename!r}")
    path = os.path.join(temporary, *parts)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    write(path, wheel.read(item))


def write(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write one new file durably."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: str) -> None:
    """Make the names in one directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_launcher(private: str, start: str) -> None:
    """Replace the launcher in one step."""
    directory = os.path.join(private, "bin")
    os.makedirs(directory, 0o700, exist_ok=True)
    temporary, launcher = os.path.join(directory, ".rdc-new"), os.path.join(directory, "rdc")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    line = f'exec {shlex.quote(sys.executable)} -I {shlex.quote(start)} "$@"'
    write(temporary, f"#!/bin/sh\n{line}\n".encode(), 0o700)
    os.rename(temporary, launcher)
    sync_directory(directory)
    sync_directory(private)


def versions(private: str) -> list[str]:
    """Return the names of the unpacked versions."""
    return sorted(
        name
        for name in os.listdir(private)
        if NAME.fullmatch(name) and os.path.isfile(os.path.join(private, name, MARK))
    )


def current_name(private: str) -> str:
    """Return the version that the launcher starts, "" for none."""
    try:
        with open(os.path.join(private, "bin", "rdc"), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return ""
    return next((name for name in versions(private) if f"/{name}/start.py" in text), "")


def remove(private: str) -> str:
    """Remove what install made. Other people's files in the directory stay, and then so does it."""
    launcher = os.path.join(private, "bin", "rdc")
    if is_own_link(link_of(private), launcher):
        os.unlink(link_of(private))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(launcher)
    for name in os.listdir(private):
        if name.startswith(UNFINISHED) or name in versions(private):
            shutil.rmtree(os.path.join(private, name))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(private, "bin", ".rdc-new"))
    remove_directories(private, take_made(private))
    return "removed" if not os.path.lexists(private) else f"removed; other files stay in {private}"


if __name__ == "__main__":
    os.umask(0o077)
    try:
        print(run(sys.stdin.buffer, os.path.expanduser("~")))
    except (OSError, zipfile.BadZipFile) as trouble:
        fail(str(trouble))
