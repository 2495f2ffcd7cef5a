"""Stores that a web server publishes, as SRC of a sync."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import random
import ssl
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rdc
from rdc.cli.environment import process_environment
from rdc.cli.main import run as run_command
from rdc.daemon.keys import make_identity, own_certificate, trust
from rdc.errors import ExitCode, FileError, RdcError, TrustError, UsageError
from rdc.progress import Problem
from rdc.store.command import parse_store, read_range
from rdc.store.index_file import decode_index
from rdc.store.pack_file import pack_path
from rdc.store.published import _Ranges
from tests.store.web_server import BAD_SERVERS, WebServer
from tests.support.share import examples
from tests.support.store.stores import Problems, put_tree, state_of

NOISE = random.Random(47)
PUBLISHED = rdc.StoreOptions(name="tree", publish=True)
UNSIGNED = rdc.SyncOptions(unsigned=True, delete=True, fewest_bytes=True, timeout=1)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RDC_CATALOG", str(tmp_path / "catalog"))
    monkeypatch.setenv("RDC_KEYS", str(tmp_path / "keys"))
    for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "docs").mkdir(parents=True)
    for number in range(60):
        (top / "docs" / f"{number}.txt").write_bytes(NOISE.randbytes(4_000))
    (top / "large").write_bytes(NOISE.randbytes(2_000_000))
    (top / "empty").write_bytes(b"")
    (top / "link").symlink_to("docs")
    return top


@pytest.fixture
def store(tree: Path, tmp_path: Path) -> Path:
    put_tree(tree, tmp_path / "st", PUBLISHED)
    return tmp_path / "st"


def edited(tree: Path, store: Path) -> None:
    """Change some of the tree, and put it."""
    content = bytearray((tree / "large").read_bytes())
    content[700_000:700_000] = b"inserted"
    (tree / "large").write_bytes(content)
    (tree / "docs" / "3.txt").write_bytes((tree / "docs" / "3.txt").read_bytes() + b"more")
    (tree / "docs" / "4.txt").rename(tree / "four")
    (tree / "docs" / "5.txt").unlink()
    put_tree(tree, store)


def sync(source: str, destination: Path, options: rdc.SyncOptions = UNSIGNED) -> list[str]:
    """Sync, and return the problems that were reported."""
    told: list[str] = []
    report = rdc.sync(
        source,
        f"{destination}/",
        options,
        reporter=lambda event: told.append(event.message) if isinstance(event, Problem) else None,
    )
    assert report.exit is ExitCode.OK, told
    return told


def test_an_update_costs_what_the_put_added(tree: Path, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with WebServer(tmp_path) as server:
        assert sync(f"{server.url}/st/@latest/", out) == []
        assert state_of(out) == state_of(tree)
        stored = sum(path.stat().st_size for path in (store / "packs").rglob("*.pack"))
        assert server.sent < stored + 10_000
        assert len(server.requests) <= 7
        edited(tree, store)
        added = sum(path.stat().st_size for path in (store / "packs").rglob("*.pack")) - stored
        server.requests.clear()
        server.sent = 0
        assert sync(f"{server.url}/st/@latest/", out) == []
        assert state_of(out) == state_of(tree)
        assert len(server.requests) == 3  # the index, the snapshot, its pack
        assert server.sent < added + 2_000 < 12_000


def test_a_file_that_changes_every_time_costs_its_changes(tree: Path, store: Path, tmp_path: Path) -> None:
    for number in (2, 3, 4):
        content = bytearray((tree / "large").read_bytes())
        content[900_000:900_000] = b"version %d" % number
        (tree / "large").write_bytes(content)
        put_tree(tree, store)
    with WebServer(tmp_path) as server:
        for steps in ((1, 2, 3, 4), (1, 4)):
            for number in steps:
                server.sent = 0
                sync(f"{server.url}/st/@{number}/", tmp_path / f"out{len(steps)}")
                assert number == 1 or server.sent < 12_000
            assert state_of(tmp_path / f"out{len(steps)}") == state_of(tree)


def test_a_tree_that_came_otherwise_is_used_too(tree: Path, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rdc.sync(f"{tree}/", f"{out}/", catalog=None)
    (out / "large").rename(out / "moved")
    os.utime(out / "docs" / "7.txt", (1, 1))
    edited(tree, store)
    with WebServer(tmp_path) as server:
        sync(f"{server.url}/st/@2/", out)
        assert state_of(out) == state_of(tree)
        # The whole tree, in a frame with some files, and nothing of the large one.
        assert server.sent < 300_000


def test_older_snapshots_and_parts_of_them_are_read(tree: Path, store: Path, tmp_path: Path) -> None:
    before = state_of(tree / "docs")
    edited(tree, store)
    with WebServer(tmp_path) as server:
        sync(f"{server.url}/st/@1/docs/", tmp_path / "docs")
        assert state_of(tmp_path / "docs") == before
        sync(f"{server.url}/st/@tree/latest/four", tmp_path / "one")
        assert (tmp_path / "one" / "four").read_bytes() == (tree / "four").read_bytes()
        assert [path.name for path in (tmp_path / "one").iterdir()] == ["four"]


def test_a_server_without_ranges_sends_packs_whole(tree: Path, store: Path, tmp_path: Path) -> None:
    with WebServer.without_ranges(tmp_path) as server:
        (told,) = sync(f"{server.url}/st/@latest/", tmp_path / "out")
        assert "sends no parts of files, so packs come whole" in told
        assert state_of(tmp_path / "out") == state_of(tree)


@pytest.mark.parametrize("kind", BAD_SERVERS)
def test_a_bad_server_is_one_line(kind: str, store: Path, tmp_path: Path) -> None:
    answer, expected = BAD_SERVERS[kind]
    with WebServer(tmp_path, answer) as server:
        with pytest.raises(RdcError) as caught:
            sync(f"{server.url}/st/@latest/", tmp_path / "out")
        told = str(caught.value)
        assert expected in told
        assert "\n" not in told
        assert "\x1b" not in told
        assert told.startswith(server.url)
    assert caught.value.code in (ExitCode.STREAM, ExitCode.TIMEOUT, ExitCode.UNREACHABLE)


def test_a_host_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with WebServer(tmp_path) as server:
        url = server.url
    with pytest.raises(RdcError, match=r"cannot read it: .*refused") as caught:
        sync(f"{url}/st/@latest/", tmp_path / "out")
    assert caught.value.code is ExitCode.UNREACHABLE


def test_files_of_another_time_are_named(tree: Path, store: Path, tmp_path: Path) -> None:
    edited(tree, store)
    (pack,) = [path for path in (store / "packs").rglob("*.pack") if path.stat().st_size < 100_000]
    with WebServer(tmp_path) as server:
        server.replaced["2"] = store / "snapshots" / "1"
        with pytest.raises(FileError, match="snapshots/2: damaged: expected the snapshot that the index"):
            sync(f"{server.url}/st/@2/", tmp_path / "out")
        server.replaced["2"] = tmp_path / "missing"
        with pytest.raises(RdcError, match=r"expected a file of the store, found none \(404\)"):
            sync(f"{server.url}/st/@2/", tmp_path / "out")
        del server.replaced["2"]
        (tmp_path / "zeros").write_bytes(bytes(pack.stat().st_size))
        server.replaced[pack.name] = tmp_path / "zeros"
        with pytest.raises(FileError, match=r"the directory that its digest says.*tell who publishes"):
            sync(f"{server.url}/st/@2/", tmp_path / "out")
        with pytest.raises(RdcError, match=r"expected the index of a published store, found none \(404\)"):
            sync(f"{server.url}/elsewhere/@2/", tmp_path / "out")


def test_a_copy_whose_index_names_a_pack_to_come_says_so_in_one_line(
    tree: Path, store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As after a copy that was made during a put: its packs were listed before the put, its index read after
    it."""
    packs = set((store / "packs").rglob("*.pack"))
    edited(tree, store)
    (pack,) = set((store / "packs").rglob("*.pack")) - packs
    pack.rename(tmp_path / "to come")
    with WebServer(tmp_path) as server:
        words = ["sync", "--unsigned", "-q", f"{server.url}/st/@latest/", f"{tmp_path / 'out'}/"]
        assert run_command(words, process_environment()) == ExitCode.STREAM
        told = capfd.readouterr().err
        assert told.count("\n") == 1
        assert f"{pack.name}: expected a file of the store, found none (404); the index is of another" in told
        assert not list((tmp_path / "out").glob("*"))
        (tmp_path / "to come").rename(pack)
        assert run_command(words, process_environment()) == ExitCode.OK
    assert state_of(tmp_path / "out") == state_of(tree)


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    for text, expected in (
        ("https://host/st/", "such as https://host/st/@latest/"),
        ("https://me:secret@host/st/@latest/", "sends no password"),
        ("https://host/st?x/@latest/", "without . and #"),
        ("https://host:99999/st/@latest/", "no address of a store"),
        ("https:///st/@latest/", "expected https://HOST"),
    ):
        with pytest.raises(UsageError, match=expected) as caught:
            sync(text, tmp_path / "out")
        assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="only rdc sync reads a store from the web, as SRC"):
        rdc.sync(f"{tmp_path}/", "https://host/st/@latest/")
    assert run_command(["check", "https://host/st/@1/", str(tmp_path)], process_environment()) == 64
    assert not list(tmp_path.glob("https*"))


# Trust.


def test_a_store_is_read_if_a_trusted_key_signed_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, theirs, out = tmp_path / "st", tmp_path / "theirs", tmp_path / "out"
    monkeypatch.setenv("RDC_KEYS", str(theirs))
    make_identity(theirs, "publisher")
    put_tree(tree, store, PUBLISHED)
    with WebServer(tmp_path) as server:
        source = f"{server.url}/st/@latest/"
        plain = rdc.SyncOptions(timeout=1)
        sync(source, out, plain)  # the publisher's own
        monkeypatch.setenv("RDC_KEYS", str(tmp_path / "keys"))
        with pytest.raises(TrustError, match="expected a store that a trusted key signed, found SHA256:"):
            sync(source, out, plain)
        trust(tmp_path / "keys", "elsewhere.example.org", own_certificate(theirs))
        with pytest.raises(TrustError, match="trusted key signed"):
            sync(source, out, plain)
        trust(tmp_path / "keys", f"127.0.0.1:{server.port}", own_certificate(theirs))
        sync(source, out, plain)
        assert state_of(out) == state_of(tree)

        data = bytearray((store / "index").read_bytes())
        data[82] ^= 1
        (tmp_path / "forged").write_bytes(data)
        server.replaced["index"] = tmp_path / "forged"
        with pytest.raises(TrustError, match=r"expected the signature of SHA256:.*found other bytes"):
            sync(source, out, plain)


def test_who_publishes_without_a_key_is_told(tree: Path, tmp_path: Path) -> None:
    told = Problems()
    put_tree(tree, tmp_path / "st", PUBLISHED, told)
    assert ["published without a signature, so readers need --unsigned" in text for text in told.texts] == [
        True
    ]
    make_identity(tmp_path / "keys", "publisher")
    told = Problems()
    put_tree(tree, tmp_path / "st", PUBLISHED, told)
    put_tree(tree, tmp_path / "st", None, told)
    assert not told.found


def test_an_unsigned_store_is_refused(store: Path, tmp_path: Path) -> None:
    with (
        WebServer(tmp_path) as server,
        pytest.raises(TrustError, match="found one without a signature; with --unsigned"),
    ):
        sync(f"{server.url}/st/@latest/", tmp_path / "out", rdc.SyncOptions())
    assert not (tmp_path / "out").exists()


def test_an_index_older_than_the_last_one_is_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "st"
    make_identity(tmp_path / "keys", "own")
    put_tree(tree, store, PUBLISHED)
    old = tmp_path / "old"
    old.write_bytes((store / "index").read_bytes())
    edited(tree, store)
    plain = rdc.SyncOptions(timeout=1)
    with WebServer(tmp_path) as server:
        sync(f"{server.url}/st/@latest/", tmp_path / "out", plain)
        server.replaced["index"] = old
        with pytest.raises(TrustError, match=r"or a later one, found .*a cache or the server has old files"):
            sync(f"{server.url}/st/@latest/", tmp_path / "out", plain)


def test_tls_is_checked(tree: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate_of_loopback(tmp_path / "server.pem"))
    with WebServer(tmp_path, tls=context) as server:
        with pytest.raises(RdcError, match="certificate or TLS is not accepted") as caught:
            sync(f"{server.url}/st/@latest/", tmp_path / "out")
        assert caught.value.code is ExitCode.UNREACHABLE
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        sync(f"{server.url}/st/@latest/", tmp_path / "out")
    assert state_of(tmp_path / "out") == state_of(tree)


# Proxies, which the environment names.


def test_a_server_is_reached_by_a_proxy(
    tree: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WebServer(tmp_path) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:se%40cret@127.0.0.1:{proxy.port}")
        sync("http://store.invalid/st/@latest/", tmp_path / "out")
    assert state_of(tmp_path / "out") == state_of(tree)
    assert {path.rpartition("/st/")[0] for path, _ in proxy.requests} == {"http://store.invalid"}
    assert set(proxy.proxy_users) == {"Basic " + base64.b64encode(b"me:se@cret").decode()}


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy"])
def test_tls_goes_through_a_proxy(
    name: str, tree: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate_of_loopback(tmp_path / "server.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with WebServer(tmp_path, tls=context) as server, WebServer(tmp_path) as proxy:
        monkeypatch.setenv(name, f"127.0.0.1:{proxy.port}")
        sync(f"{server.url}/st/@latest/", tmp_path / "out")
        assert state_of(tmp_path / "out") == state_of(tree)
        assert proxy.requests == [(f"127.0.0.1:{server.port}", None)]
        assert server.proxy_users == [None] * len(server.requests)
        monkeypatch.setenv("no_proxy", "example.org,127.0.0.1")
        sync(f"{server.url}/st/@latest/", tmp_path / "again")
    assert len(proxy.requests) == 1


def test_a_proxy_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer(tmp_path) as proxy:
        port = proxy.port
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
    with pytest.raises(
        RdcError, match=rf"store\.invalid/st/index: .*by proxy 127\.0\.0\.1:{port}: .*refused"
    ):
        sync("http://store.invalid/st/@latest/", tmp_path / "out")


def test_a_proxy_of_another_kind_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for said, expected in (
        (
            "socks5://me:secret@host:1",
            "found socks5://; rdc speaks to proxies of http://HOST:PORT; no_proxy=",
        ),
        ("https://host:1", "found https://"),
        ("http://host:x", "no address of a proxy"),
        ("http://", "expected a proxy"),
    ):
        monkeypatch.setenv("https_proxy", said)
        with pytest.raises(UsageError, match="https_proxy: ") as caught:
            sync("https://store.invalid/st/@latest/", tmp_path / "out")
        assert expected in str(caught.value)
        assert "secret" not in str(caught.value)


def _certificate_of_loopback(path: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


# The index.


def named(store: Path) -> tuple[set[int], set[str]]:
    """Return the snapshots and packs that the index names."""
    index = decode_index((store / "index").read_bytes()).index
    return {one.number for one in index.snapshots}, {os.fsdecode(pack_path(name)) for name in index.packs}


def there(store: Path) -> tuple[set[int], set[str]]:
    return (
        {int(name) for name in os.listdir(store / "snapshots")},
        {str(path.relative_to(store)) for path in (store / "packs").rglob("*.pack")},
    )


def test_all_that_changes_a_published_store_writes_its_index(tree: Path, store: Path) -> None:
    numbers = []
    for change in (
        lambda: None,
        lambda: edited(tree, store),
        lambda: rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True)),
        lambda: os.utime(store / "forgotten" / "1", (1, 1)),
        lambda: rdc.clean_store(store),
    ):
        change()
        assert named(store) == there(store)
        numbers.append(decode_index((store / "index").read_bytes()).index.number)
    assert numbers[0] < numbers[1] < numbers[2] == numbers[3] < numbers[4]
    for path in (store, *store.rglob("*")):
        if path.name not in ("lock", "forgotten") and path.parent.name != "forgotten":
            assert path.stat().st_mode & 0o444 == 0o444, path


def test_a_store_that_nobody_published_has_no_index(tree: Path, tmp_path: Path) -> None:
    put_tree(tree, tmp_path / "private")
    assert not (tmp_path / "private" / "index").exists()
    assert (tmp_path / "private").stat().st_mode & 0o077 == 0


@given(data=st.data())
@settings(max_examples=examples(60))
def test_damaged_indexes_are_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    good = _small_index(tmp_path_factory)
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(changed[: data.draw(st.integers(0, len(good)))])
    try:
        found = decode_index(cut)
    except ValueError:
        return
    assert found.size <= len(cut)


_INDEX: list[bytes] = []


def _small_index(factory: pytest.TempPathFactory) -> bytes:
    if not _INDEX:
        top = factory.mktemp("index")
        (top / "tree").mkdir()
        (top / "tree" / "file").write_bytes(b"content")
        put_tree(top / "tree", top / "st", PUBLISHED)
        _INDEX.append((top / "st" / "index").read_bytes())
    return _INDEX[0]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=12), st.integers(0, 40))
@settings(max_examples=examples(100))
def test_ranges_are_a_set_of_numbers(given_: list[tuple[int, int]], probe: int) -> None:
    ranges, model = _Ranges(), set[int]()
    for start, length in given_:
        ranges.add(start, start + length)
        model.update(range(start, start + length))
    for stop in range(probe + 1, 60):
        wanted = set(range(probe, stop))
        assert ranges.has(probe, stop) == (wanted <= model)
        if not wanted <= model:
            first, last = ranges.missing(probe, stop)
            assert wanted - model <= set(range(first, last)) <= wanted


# One file to carry.


def test_one_file_carries_what_an_older_snapshot_lacks(tree: Path, store: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "update"
    sync_plain(tree, out)
    edited(tree, store)
    report = rdc.store_pack(store, 2, file, base=1)
    assert report.bytes == file.stat().st_size < 60_000  # the tree, and a chunk that the insertion moved
    assert sync(f"{file}/@2/", out) == []
    assert state_of(out) == state_of(tree)
    assert rdc.store_pack(store, 2, file).bytes > 2_000_000
    sync(f"{file}/@latest/docs/", tmp_path / "docs")
    assert state_of(tmp_path / "docs") == state_of(tree / "docs")


def test_what_is_packed_whole_brings_no_contents_along(tmp_path: Path) -> None:
    """The tree and the lists of keys of long files lie in frames without contents."""
    tree, store, file = tmp_path / "tree", tmp_path / "st", tmp_path / "update"
    tree.mkdir()
    for name in ("one", "two", "three"):
        (tree / name).write_bytes(NOISE.randbytes(6_000_000))
    put_tree(tree, store, PUBLISHED)
    sync_plain(tree, tmp_path / "out")
    with (tree / "one").open("r+b") as opened:
        opened.seek(3_000_000)
        opened.write(b"written")
    put_tree(tree, store)
    assert rdc.store_pack(store, 2, file, base=1).bytes < 30_000
    assert sync(f"{file}/@2/", tmp_path / "out") == []
    assert state_of(tmp_path / "out") == state_of(tree)


def test_a_packed_update_brings_no_bases_that_are_older_than_its_reader(tmp_path: Path) -> None:
    """Deltas of a store that is not published skip the snapshot before."""
    tree, store, file, out = tmp_path / "tree", tmp_path / "st", tmp_path / "update", tmp_path / "out"
    tree.mkdir()
    (tree / "large").write_bytes(NOISE.randbytes(6_000_000))
    put_tree(tree, store)
    for number in range(2, 7):
        sync_plain(tree, out)
        with (tree / "large").open("r+b") as opened:
            for at in range(500_000, 6_000_000, 1_500_000):
                opened.seek(at)
                opened.write(NOISE.randbytes(20))
        put_tree(tree, store)
        report = rdc.store_pack(store, number, file, base=number - 1)
        assert report.bytes < 20_000
        assert sync(f"{file}/@{number}/", out) == []
        assert state_of(out) == state_of(tree)


def sync_plain(source: Path, destination: Path) -> None:
    rdc.sync(f"{source}/", f"{destination}/", catalog=None)


def test_a_file_without_its_base_says_what_it_needs(tree: Path, store: Path, tmp_path: Path) -> None:
    edited(tree, store)
    rdc.store_pack(store, 2, tmp_path / "update", base=1)
    told: list[str] = []
    report = rdc.sync(
        f"{tmp_path / 'update'}/@2/",
        f"{tmp_path / 'out'}/",
        UNSIGNED,
        reporter=lambda event: told.append(event.message) if isinstance(event, Problem) else None,
    )
    assert report.exit is ExitCode.PARTIAL
    assert any("large: cannot be restored: " in text for text in told)
    assert all("the file has only what an older snapshot lacks" in text for text in told)


def test_a_damaged_file_is_refused(tree: Path, store: Path, tmp_path: Path) -> None:
    file, problems = tmp_path / "all", Problems()
    rdc.store_pack(store, 1, file)
    good = file.read_bytes()
    for content, expected in (
        (good[:-100], "it may be cut off"),
        (good[:30], "expected the index of a store"),
        (good[:8] + bytes([good[8] ^ 1]) + good[9:], "expected the index of a store"),
    ):
        file.write_bytes(content)
        with pytest.raises(FileError, match=expected):
            sync(f"{file}/@1/", tmp_path / "out")
    at = good.rindex(b"RDCPACK1") + 1000
    file.write_bytes(good[:at] + bytes(8) + good[at + 8 :])
    report = rdc.sync(f"{file}/@1/", f"{tmp_path / 'out'}/", UNSIGNED, reporter=problems)
    assert report.exit is ExitCode.PARTIAL
    assert "found other bytes; carry the file again" in problems.found[0].message
    with pytest.raises(UsageError, match="expected two snapshots, found one"):
        rdc.store_pack(store, 1, tmp_path / "same", base=1)
    with pytest.raises(FileError, match="there is no such snapshot"):
        rdc.store_pack(store, 9, tmp_path / "none")
    with pytest.raises(UsageError, match="expected a snapshot such as @18"):
        parse("pack", str(store), "17..18", "-o", "x")


def parse(*words: str) -> None:
    read_range(parse_store(words))


def test_a_file_is_signed_as_a_store_is(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, file = tmp_path / "theirs", tmp_path / "all"
    put_tree(tree, tmp_path / "st")
    monkeypatch.setenv("RDC_KEYS", str(theirs))
    make_identity(theirs, "publisher")
    assert (
        run_command(["store", "pack", str(tmp_path / "st"), "@1", "-o", str(file)], process_environment())
        == 0
    )
    monkeypatch.setenv("RDC_KEYS", str(tmp_path / "keys"))
    with pytest.raises(TrustError, match="expected a store that a trusted key signed"):
        sync(f"{file}/@1/", tmp_path / "out", rdc.SyncOptions())
    trust(tmp_path / "keys", "somebody", own_certificate(theirs))
    sync(f"{file}/@1/", tmp_path / "out", rdc.SyncOptions())
    assert state_of(tmp_path / "out") == state_of(tree)
