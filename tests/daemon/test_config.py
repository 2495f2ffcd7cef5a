"""A daemon's configuration: what is read, and each mistake as one line with a place and an exit code."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.daemon.config import Address, Limits, read_config
from rdc.daemon.serving import check_root, drop_privileges
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.transport.keys import KeyRing
from tests.support.daemon.daemons import WAIT_SECONDS, key_directory, root_option, running_daemon
from tests.support.running.syncing import command
from tests.support.trees.trees import tree, write_tree
from tests.support.trees.unprivileged import place_of_nobody


@pytest.fixture
def place(tmp_path: Path) -> Path:
    key_directory(tmp_path / "keys", "server", {"alice": "alice", "bob": "bob"})
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    return tmp_path


HEAD = 'keys = "keys"\n'
MODULE = '[modules.data]\npath = "{place}/data"\nallow = ["alice"]\n'


def written(place: Path, text: str) -> Path:
    path = place / "daemon.toml"
    path.write_text(text.replace("{place}", str(place)))
    return path


def test_all_settings(place: Path) -> None:
    text = """\
listen = ["[::1]:0", ":99", "host:1"]
keys = "keys"
user = "rdc"
group = "g"
log = "json"
catalog = "cache"
[limits]
connections = 3
connections-per-peer = 2
handshakes = 5
handshake-seconds = 4
idle-seconds = 7
session-seconds = 8
cpu-seconds = 9
memory = "100M"
threads = 1
open-seconds = 11
decompressed = "1G"
written = 4096
[modules.data]
path = "{place}/data"
allow = ["alice", "bob"]
read-only = false
no-delete = true
owners = true
limits.idle-seconds = 6
"""
    found = read_config(written(place, text), {})
    assert found.listen == (Address("::1", 0), Address("", 99), Address("host", 1))
    assert (found.user, found.group, found.json_log) == ("rdc", "g", True)
    assert found.catalog == str(place / "cache")
    assert found.limits == Limits(3, 2, 5, 4, 11, 7, 8, 9, 100 << 20, 1, 1 << 30, 4096)
    module = found.modules["data"]
    access = module.access
    assert module.path == str(place / "data")
    assert module.allow == {"alice", "bob"}
    assert (
        access.read_only,
        access.write_only,
        access.no_delete,
        access.owners,
    ) == (
        False,
        False,
        True,
        True,
    )
    assert module.limits.idle_seconds == 6
    assert module.limits.memory == 100 << 20


def test_little_is_needed_and_the_safe_is_what_is_not_said(place: Path) -> None:
    found = read_config(written(place, MODULE), {"RDC_KEYS": str(place / "keys")})
    assert found.limits == Limits()
    module = found.modules["data"]
    access = module.access
    assert (
        access.read_only,
        access.write_only,
        access.no_delete,
        access.owners,
    ) == (
        True,
        False,
        False,
        False,
    )
    writes = read_config(written(place, HEAD + MODULE + "write-only = true"), {}).modules["data"].access
    assert (writes.read_only, writes.write_only, writes.no_delete) == (False, True, True)
    appends = read_config(written(place, HEAD + MODULE + "append-only = true"), {}).modules["data"].access
    assert (appends.read_only, appends.append_only) == (False, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no module is defined"),
        (
            "modlues = 1\n" + MODULE,
            "daemon.toml: modlues: there is no such setting; did you mean 'modules'?",
        ),
        (
            MODULE + "readonly = true",
            "daemon.toml: modules.data.readonly: there is no such setting; did you",
        ),
        (
            MODULE + "[limits]\nconections = 1",
            "daemon.toml: limits.conections: there is no such setting; did",
        ),
        (MODULE + "limits.handshakes = 1", "daemon.toml: modules.data.limits.handshakes: there is no such"),
        (
            MODULE + "limits.idle-seconds = 301",
            "daemon.toml: modules.data.limits.idle-seconds: expected 1 to 300",
        ),
        (
            MODULE + "read-only = true\nwrite-only = true",
            "daemon.toml: modules.data.write-only: a module cannot",
        ),
        (
            MODULE + "read-only = true\nappend-only = true",
            "daemon.toml: modules.data.append-only: a module cannot",
        ),
        (
            MODULE.replace('"alice"', '"carol"'),
            "daemon.toml: modules.data.allow: no key is trusted as 'carol'",
        ),
        ("[modules.data]\nallow = []", "'path' is missing in [modules.data]"),
        ('[modules.data]\npath = "{place}/data"', "'allow' is missing in [modules.data]"),
        (MODULE.replace("{place}/", ""), "daemon.toml: modules.data.path: expected an absolute path"),
        (MODULE.replace("place}/data", "place}/none"), "expected a directory at"),
        (
            MODULE.replace("place}/data", "place}/link"),
            "/link goes through a symbolic link; write {place}/data",
        ),
        (MODULE.replace("place}/data", "place}/link/x"), "goes through a symbolic link"),
        (MODULE.replace("modules.data", 'modules."a/b"'), "cannot name a module"),
        ('listen = "8730"\n' + MODULE, "daemon.toml: listen: expected HOST:PORT"),
        ('listen = ":65536"\n' + MODULE, "expected HOST:PORT"),
        ("listen = []\n" + MODULE, "at least one address"),
        ('log = "xml"\n' + MODULE, "daemon.toml: log: expected logfmt or json"),
        ("[limits]\nmemory = 1\n" + MODULE, "daemon.toml: limits.memory: expected 100663296 to"),
        ("x = \n", "daemon.toml: not TOML"),
        # Types that are not those of the settings.
        (
            MODULE + "[limits]\nconnections = true",
            "daemon.toml: limits.connections: expected a whole number",
        ),
        (
            MODULE + "[limits]\nconnections = 1.5",
            "daemon.toml: limits.connections: expected a whole number",
        ),
        (MODULE + '[limits]\nthreads = "2"', "daemon.toml: limits.threads: expected a whole number"),
        (MODULE + "[limits]\nwritten = 0", "daemon.toml: limits.written: expected 1 to"),
        (MODULE + '[limits]\nwritten = "much"', "daemon.toml: limits.written: expected a size such as"),
        (MODULE + "limits = 5", "daemon.toml: modules.data.limits: expected a table"),
        (MODULE + 'read-only = "no"', "daemon.toml: modules.data.read-only: expected true or false"),
        (MODULE.replace('["alice"]', "7"), "daemon.toml: modules.data.allow: expected a list of texts"),
        (MODULE.replace('["alice"]', "[7]"), "daemon.toml: modules.data.allow: expected a list of texts"),
        (MODULE.replace('"{place}/data"', "3"), "daemon.toml: modules.data.path: expected text in quotes"),
        ("listen = 8730\n" + MODULE, "daemon.toml: listen: expected a list of texts in quotes"),
        ("modules = 3\n", "daemon.toml: modules: expected a table"),
        ("[modules]\ndata = 3\n", "daemon.toml: modules.data: expected a table"),
        ("[[modules]]\n", "daemon.toml: modules: expected a table"),
        # What is there twice.
        (MODULE + MODULE, "daemon.toml: not TOML: Cannot declare ('modules', 'data') twice"),
        (MODULE + 'allow = ["bob"]', "daemon.toml: not TOML: Cannot overwrite a value"),
        # Of a module no more than of the daemon.
        (MODULE + '[limits]\nwritten = "1K"\n[modules.data.limits]\nwritten = "2K"', "expected 1 to 1024"),
    ],
)
def test_mistakes(text: str, message: str, place: Path) -> None:
    """The command says so, with --check and without."""
    path = written(place, HEAD + text)
    for check in ([], ["--check"]):
        ended = command("serve", "--config", path, *check, *root_option())
        assert ended.code == ExitCode.USAGE
        assert len(ended.complaints) == 1
        assert message.replace("{place}", str(place)) in ended.complaints[0]


def test_no_file_no_keys(place: Path) -> None:
    ended = command("serve", "--config", place / "none")
    assert (ended.code, ended.complaints) == (ExitCode.USAGE, [f"rdc: {place}/none: there is no such file"])
    ended = command("serve", "--config", written(place, f'keys = "none"\n{MODULE}'))
    assert (ended.code, "rdc keys new" in ended.complaints[0]) == (ExitCode.REFUSED, True)


def test_modules_that_overlap_are_named(place: Path) -> None:
    """It may be meant, so it is said and served: at --check, at the start and at each reload."""
    (place / "data/in").mkdir()
    (place / "data2").mkdir()
    more = "".join(
        f'[modules.{name}]\npath = "{{place}}/{path}"\nallow = []\n'
        for name, path in (("same", "data"), ("inner", "data/in"), ("beside", "data2"))
    )
    path = written(place, HEAD + MODULE + more)
    ended = command("serve", "--check", "--config", path, *root_option())
    assert ended.code == 0
    assert [re.findall(r"'(\w+)'", line) for line in ended.complaints] == [
        ["same", "data"],
        ["inner", "data"],
        ["inner", "same"],
    ]
    with running_daemon(place / "d", (MODULE + more).replace("{place}", str(place))) as daemon:
        assert len(daemon.logged("overlap", level="warning")) == 3
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded")
        assert len(daemon.logged("overlap")) == 6


def test_check_says_that_it_is_right(place: Path) -> None:
    path = written(place, HEAD + MODULE)
    ended = command("serve", "--check", "--config", path, *root_option())
    assert (ended.code, ended.out) == (0, f"{path}: right; modules: data; trusted keys: 2\n")


def test_a_port_in_use(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = written(place, f'listen = "127.0.0.1:{port}"\n{HEAD}{MODULE}')
        ended = command("serve", "--config", path, *root_option(), process=True)
    assert ended.code == ExitCode.UNREACHABLE
    assert len(ended.complaints) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ended.complaints[0]


def test_root_has_to_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match='user = "NAME"'):
        check_root(None, allow_root=False)
    check_root(None, allow_root=True)
    check_root("nobody", allow_root=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_root(None, allow_root=False)
    with pytest.raises(UsageError, match="only root can become another user"):
        drop_privileges("root" if os.getuid() else "nobody", None)
    for user, group, words in (
        ("no-such-u", None, "no such user"),
        (None, "g", "needs user"),
        ("root", "no-g", "no such group"),
    ):
        with pytest.raises(UsageError, match=words):
            drop_privileges(user, group)


def test_privileges_are_dropped_for_good(place: Path, tmp_path: Path) -> None:
    """What a peer sends belongs to `user`, whose rights are all that the daemon has left."""
    if os.geteuid() != 0:
        ended = command("serve", "--config", written(place, f'user = "root"\n{HEAD}{MODULE}'), process=True)
        assert (ended.code, "only root can become another user" in ended.err) == (ExitCode.USAGE, True)
        return
    with place_of_nobody() as nobodys:
        data = nobodys / "data"
        data.mkdir()
        os.chown(data, 65534, 65534)
        source = write_tree(tmp_path / "source", tree({"f": b"f"}))
        modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\nread-only = false\n'
        with running_daemon(nobodys / "daemon", modules, top='user = "nobody"') as daemon:
            assert daemon.sync(f"{source}/", daemon.url("data/")).code == 0
            assert (data / "f").stat().st_uid == 65534
            status = Path(f"/proc/{daemon.process.pid}/status").read_text()
            (uids,) = [line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")]
            assert uids == ["65534"] * 4
            # The key is root's alone: what cannot be read again is told, and the old configuration goes on.
            daemon.signal(signal.SIGHUP)
            daemon.await_log("reload_failed", message="identity.pem")
            assert daemon.sync(f"{source}/", daemon.url("data/")).code == 0


def test_reload_keeps_what_was_right(place: Path) -> None:
    with running_daemon(place / "d", MODULE.replace("{place}", str(place))) as daemon:
        good = daemon.config.read_text()
        daemon.config.write_text(good + "bogus = 1\n")
        daemon.signal(signal.SIGHUP)
        assert "daemon.toml: modules.data.bogus" in daemon.await_log("reload_failed")["message"]
        assert daemon.sync(daemon.url("data/"), place / "one").code == 0
        moved = good.replace("127.0.0.1:0", "127.0.0.1:1").replace("modules.data", "modules.other")
        daemon.config.write_text(moved)
        daemon.signal(signal.SIGHUP)
        assert daemon.await_log("needs_restart")["setting"] == "listen"
        daemon.await_log("reloaded", modules="1")
        assert daemon.sync(daemon.url("data/"), place / "two").code == ExitCode.REFUSED
        assert daemon.sync(daemon.url("other/"), place / "two").code == 0
        assert daemon.end() == 0


@pytest.mark.parametrize(
    "damage",
    [
        "keys gone",
        "certificate damaged",
        "file gone",
        "not UTF-8",
        "no modules",
        "digits",
        "nested",
        "dotted",
    ],
)
def test_a_reload_that_fails_changes_nothing(damage: str, place: Path) -> None:
    with running_daemon(place / "d", MODULE.replace("{place}", str(place))) as daemon:
        keys = daemon.place / "keys"
        if damage == "keys gone":
            keys.rename(daemon.place / "away")
        elif damage == "certificate damaged":
            (keys / "trusted/bob.pem").write_text("rubbish")
        elif damage == "file gone":
            daemon.config.unlink()
        elif damage == "not UTF-8":
            daemon.config.write_bytes(b"\xff")
        elif damage == "no modules":
            daemon.config.write_text('keys = "keys"\n')
        else:
            rubbish = {"digits": "x = " + "9" * 5000, "nested": "x = " + "[" * 5000, "dotted": "x." * 5000}
            daemon.config.write_text(
                daemon.config.read_text().replace("[modules", f"{rubbish[damage]}\n[modules")
            )
        daemon.signal(signal.SIGHUP)
        line = daemon.await_log("reload_failed", message="the old configuration stays")
        assert str(daemon.place) in line["message"]
        assert daemon.logged("reloaded") == []
        near = key_directory(place / "near", "alice", {f"127.0.0.1:{daemon.port}": "server"})
        assert command("sync", "--keys", near, daemon.url("data/"), place / "one").code == 0
        assert daemon.end() == 0


def raised(error: Exception) -> Callable[..., KeyRing]:
    def read(_: object) -> KeyRing:
        raise error

    return read


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), ValueError("v"), OSError(5, "I/O")])
def test_whatever_is_raised_is_one_line(
    error: Exception, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what only the system or a library raises, here while keys are read."""
    monkeypatch.setattr(KeyRing, "read", raised(error))
    with pytest.raises(RdcError) as caught:
        read_config(written(place, HEAD + MODULE), {})
    assert str(caught.value).startswith(f"{place}/daemon.toml: cannot ")
    assert caught.value.code == (ExitCode.FILE_IO if isinstance(error, OSError) else ExitCode.USAGE)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1" + "0" * 5000, ExitCode.USAGE),
        ("x = " + "[" * 5000, ExitCode.USAGE),
        ("a" + ".a" * 5000 + " = 1", ExitCode.USAGE),
        ('user = "a\\u0000"\n' + HEAD + MODULE, ExitCode.USAGE),
        ('keys = "a\\u0000"\n' + MODULE, ExitCode.USAGE),
        (HEAD + MODULE.replace("place}/data", "place}/0"), ExitCode.USAGE),
        ('keys = "nowhere"\n' + MODULE, ExitCode.REFUSED),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_start_that_fails_is_one_line(text: str, code: ExitCode, check: bool, place: Path) -> None:
    """No traceback, no internal error. Links in a row, of which Python follows each by a call of its own, are
    no way round it."""
    for number in range(1500 if "/0" in text else 0):
        (place / str(number)).symlink_to(str(number + 1))
    ended = command("serve", "--config", written(place, text), *["--check"] * check, *root_option())
    assert (ended.code, len(ended.err.splitlines()), ended.out) == (code, 1, "")
    assert "internal error" not in ended.err and str(place) in ended.err


def test_a_name_that_no_resolver_knows_ends_the_start(place: Path) -> None:
    for host in ("x" * 70, "\u00e9" * 70):
        text = f'listen = "{host}:0"\n{HEAD}{MODULE}'
        ended = command("serve", "--config", written(place, text), *root_option(), process=True)
        assert ended.code == ExitCode.UNREACHABLE
        (line,) = ended.complaints
        assert "no address is known for this name" in line


def test_a_signal_ends_an_idle_daemon_at_once(place: Path) -> None:
    with running_daemon(place / "d", MODULE.replace("{place}", str(place))) as daemon:
        daemon.signal(signal.SIGTERM)
        assert daemon.process.wait(WAIT_SECONDS) == 0


# The log


# Who may write it


def _open_to(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(mode)


def _given_away(path: Path) -> None:
    os.chown(path, 4242, 4242)


def _in_an_open_directory(mode: int) -> Callable[[Path], None]:
    return lambda path: path.parent.chmod(mode)


def _in_another_s_directory(path: Path) -> None:
    os.chown(path.parent, 4242, 4242)


CHANGED_BY_OTHERS = [
    (_open_to(0o666), "daemon.toml: others can change it (mode 666)"),
    (_open_to(0o602), "daemon.toml: others can change it (mode 602)"),
    (_open_to(0o660), "daemon.toml: others can change it (mode 660)"),
    (_given_away, "daemon.toml: it belongs to another user (uid 4242)"),
    (_in_an_open_directory(0o777), ": others can change it (mode 777)"),
    (_in_an_open_directory(0o770), ": others can change it (mode 770)"),
    (_in_another_s_directory, ": it belongs to another user (uid 4242)"),
]


@pytest.mark.parametrize(("change", "words"), CHANGED_BY_OTHERS)
def test_a_file_that_others_may_write_is_refused(
    change: Callable[[Path], None], words: str, place: Path
) -> None:
    if os.geteuid() != 0 and change in (_given_away, _in_another_s_directory):
        pytest.skip("a file of another user needs root")
    path = written(place, HEAD + MODULE)
    assert read_config(path, {}).modules
    change(path)
    with pytest.raises(UsageError) as refused:
        read_config(path, {})
    assert words in str(refused.value) and str(place) in str(refused.value)
    ended = command("serve", f"--config={path}", "--check")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)


def test_a_sticky_directory_is_not(place: Path) -> None:
    path = written(place, HEAD + MODULE)
    place.chmod(0o1777)
    assert read_config(path, {}).modules


def test_a_link_counts_by_what_it_leads_to(place: Path) -> None:
    path = written(place, HEAD + MODULE)
    (place / "elsewhere").mkdir()
    (place / "elsewhere/daemon.toml").symlink_to(path)
    (place / "elsewhere/keys").symlink_to(place / "keys")
    (place / "elsewhere/data").symlink_to(place / "data")
    assert read_config(place / "elsewhere/daemon.toml", {}).modules
    path.chmod(0o666)
    with pytest.raises(UsageError, match="others can change it"):
        read_config(place / "elsewhere/daemon.toml", {})


def test_a_reload_refuses_one_too(place: Path) -> None:
    modules = '[modules.data]\npath = "{place}/data"\nallow = ["alice"]\n'.replace("{place}", str(place))
    with running_daemon(place / "daemon", modules) as daemon:
        daemon.config.chmod(0o666)
        daemon.signal(signal.SIGHUP)
        assert "others can change it" in daemon.await_log("reload_failed")["message"]
