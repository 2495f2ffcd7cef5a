"""What every test may rely on: nothing it runs sees or touches the catalog of whoever runs the tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from rdc.lean.records import replace
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.session import sync_run
from rdc.session.source.tree_description import Description, LikelyFiles
from rdc.transport.pipes import ChildTransport
from tests.support.children.far_process import FarServer
from tests.support.needs import check_needs, checked_programs, missing_needs, needs_of, running, told
from tests.support.share import examples, sampled_out
from tests.support.storage.forced_depth import force_depth
from tests.support.trees.loop_images import fresh_directory, image_directory, mounted

# A runner in the background ignores Ctrl-C, and whatever the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair. scripts/soak tests runs all of them.
settings.register_profile(
    "any machine", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


# RDC_DEPTH reaches command lines as a setting. Here it holds for what runs in this process, too.
if "RDC_DEPTH" in os.environ:
    force_depth(int(os.environ["RDC_DEPTH"]))


# What is loaded and collected stays: no look at it, again and again while it grows, finds garbage.
gc.disable()


LACKING = pytest.StashKey[tuple[int, tuple[str, ...]]]()
"""How many tests were left out for want of something, and of what."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-needs", action="store_true", help="fail tests whose needs are missing here")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is asked for by its name runs whole. What lacks something here is left out if it may be."""
    if not any("::" in word for word in config.args):
        left_out = dict.fromkeys(sampled_out(items))
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    missing = missing_needs()
    if missing and not config.getoption("--all-needs"):
        lacking = {item: words for item in items if (words := needs_of(item) & missing.keys())}
        config.hook.pytest_deselected(items=list(lacking))
        items[:] = [item for item in items if item not in lacking]
        config.stash[LACKING] = len(lacking), tuple(sorted(set[str]().union(*lacking.values())))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist hands what it left out to the one that it works for."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["lacking"] = session.config.stash.get(LACKING, (0, ()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process of pytest-xdist leaves out the same tests."""
    node.config.stash[LACKING] = getattr(node, "workeroutput", {}).get("lacking", (0, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count, lacking = config.stash.get(LACKING, (0, ()))
    if count:
        terminalreporter.section("left out")
        for line in told(lacking, count):
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a test starts, its fixtures included, must be what it is marked with."""
    with running(item):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    check_needs(item)


def pytest_collection_finish() -> None:
    """Tests that look for leaks collect garbage. A look at all that is loaded by now takes 0.3 s each time,
    and all of that stays."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_user_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that want a catalog name its directory."""
    monkeypatch.setenv("RDC_CATALOG", "off")


@pytest.fixture(autouse=True)
def same_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that are begun here have one key: short digests that meet by chance do so in no run, or in
    all."""
    monkeypatch.setattr(sync_run, "new_secret", lambda: b"sixteen bytes of")


@pytest.fixture(scope="session", autouse=True)
def no_user_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nor is anything written into their state directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def marked_programs() -> Iterator[None]:
    """Programs that not every machine has are started by marked tests alone."""
    with checked_programs():
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_far_sides() -> Iterator[None]:
    """Far sides behind the stand-in for ssh are forks of a loaded server: see FarServer."""
    with closing(FarServer()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildTransport, "start", staticmethod(server.start))
        yield


@pytest.fixture
def nothing_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source describes no file unasked, as where many changed: each comes the way that the destination
    asks for."""
    monkeypatch.setattr(Description, "likely", lambda *_, **__: LikelyFiles())


@pytest.fixture
def fewest_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs that are begun here look for the content of changed files, as with --fewest-bytes. Without it,
    the ways of this module would be taken only on slow lines."""
    begin = sync_run.SyncRun.__init__

    def beginning(
        self: sync_run.SyncRun,
        source: Location,
        destination: Location,
        options: SyncOptions,
        *rest: Any,
        **named: Any,
    ) -> None:
        fewest = not (options.whole_file or options.line)
        begin(self, source, destination, replace(options, fewest_bytes=fewest), *rest, **named)

    monkeypatch.setattr(sync_run.SyncRun, "__init__", beginning)


@pytest.fixture(scope="session")
def btrfs_image() -> Iterator[Path]:
    with image_directory() as place, mounted("btrfs", place) as point:
        yield point


@pytest.fixture(scope="session")
def xfs_image() -> Iterator[Path]:
    with image_directory() as place, mounted("xfs", place) as point:
        yield point


@pytest.fixture(scope="session")
def ext4_image() -> Iterator[Path]:
    with image_directory() as place, mounted("ext4", place) as point:
        yield point


@pytest.fixture(scope="session")
def seconds_image() -> Iterator[Path]:
    with image_directory() as place, mounted("ext4-seconds", place) as point:
        yield point


@pytest.fixture(scope="session")
def exfat_image() -> Iterator[Path]:
    with image_directory() as place, mounted("exfat", place) as point:
        yield point


@pytest.fixture
def exfat(exfat_image: Path) -> Iterator[Path]:
    """A directory on a file system that folds case."""
    yield from fresh_directory(exfat_image)


@pytest.fixture
def btrfs(btrfs_image: Path) -> Iterator[Path]:
    yield from fresh_directory(btrfs_image)


@pytest.fixture
def xfs(xfs_image: Path) -> Iterator[Path]:
    yield from fresh_directory(xfs_image)


@pytest.fixture
def ext4(ext4_image: Path) -> Iterator[Path]:
    yield from fresh_directory(ext4_image)


@pytest.fixture
def seconds(seconds_image: Path) -> Iterator[Path]:
    """A directory on a file system that keeps times in whole seconds."""
    yield from fresh_directory(seconds_image)


@pytest.fixture(params=["btrfs", "xfs"])
def sharing(request: pytest.FixtureRequest) -> Path:
    """A directory on each file system that can share blocks."""
    return cast(Path, request.getfixturevalue(request.param))


@pytest.fixture(params=["btrfs", "xfs", "ext4"])
def linking(request: pytest.FixtureRequest) -> Path:
    """A directory on each file system that hard links are made on."""
    return cast(Path, request.getfixturevalue(request.param))
