"""Whatever a file system keeps: content arrives, a second run is idle, and a copy that comes back changes
nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import rdc
from rdc.catalog.catalog import Catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.daemon.access import Access, admission
from rdc.errors import ExitCode
from rdc.model.location import Location
from rdc.progress import ItemChanged, Problem
from rdc.protocol.connection import Connection
from rdc.session.serve import answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from tests.support.running.run_pair import run_pair
from tests.support.storage.limited_cases import CASES, MOST_LINES, SECOND, WHEN, contents, state, write_source
from tests.support.storage.limited_mount import PLAIN, Oddities, OddMount, odd_mounted

pytestmark = pytest.mark.needs("fuse")


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OddMount]:
    place = tmp_path_factory.mktemp("odd")
    with odd_mounted(place / "mount", place / "behind") as found:
        yield found


class Runs:
    """Syncs of one test, which remember in one catalog, or in none."""

    def __init__(self, catalog: Catalog | None) -> None:
        self._catalog = catalog
        self.items: list[ItemChanged] = []
        self.problems: list[Problem] = []

    def sync(self, source: Path, destination: Path, options: rdc.SyncOptions | None = None) -> None:
        """Syncs the contents. It may end with 23 and a line for each kind."""
        self.items, self.problems = [], []

        def report(event: rdc.Event) -> None:
            if isinstance(event, ItemChanged):
                self.items.append(event)
            elif isinstance(event, Problem):
                self.problems.append(event)

        asked = options or rdc.SyncOptions()
        done = rdc.sync(f"{source}/", f"{destination}/", asked, reporter=report, catalog=self._catalog)
        assert done.exit in (ExitCode.OK, ExitCode.PARTIAL)
        assert len(self.problems) <= MOST_LINES, self.problems

    def assert_idle(self, mount: OddMount, source: Path, destination: Path, oddities: Oddities) -> None:
        """A run changes nothing and makes no call that does. What cannot exist is tried, and refused."""
        before = mount.count()
        self.sync(source, destination)
        assert self.items == []
        if self._catalog is not None:
            assert mount.count() == before

    def assert_agreed(self, source: Path, destination: Path) -> None:
        """A check finds no difference but what could not be made, whichever side is far."""
        absent = {str(path.relative_to(source)) for path in source.rglob("*")} - {
            str(path.relative_to(destination)) for path in destination.rglob("*")
        }
        for one, other in ((source, destination), (destination, source)):
            found: list[rdc.EntryDiffers] = []
            report = rdc.check(f"{one}/", f"{other}/", on_difference=found.append, catalog=self._catalog)
            assert {entry.path for entry in found} == absent
            assert report.errors == 0


def changed(source: Path) -> None:
    """An edit, a new file, a smaller one, a rename, and permissions alone."""
    big = (source / "big").read_bytes()
    (source / "big").write_bytes(big[:1000] + b"new" + big[1000:])
    (source / "a").write_bytes(b"aab")
    (source / "d/in").rename(source / "moved")
    (source / "new").write_bytes(b"n")
    (source / "b").chmod(0o640)


def assert_copied(source: Path, copy: Path) -> None:
    assert contents(copy) == contents(source)
    assert not list(copy.rglob(".rdc-*"))


def there_and_back(mount: OddMount, tmp_path: Path, oddities: Oddities, catalog: Catalog | None) -> None:
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    original = state(source)
    runs = Runs(catalog)
    mount.become(oddities)
    runs.sync(source, copy)
    assert_copied(source, copy)
    runs.assert_idle(mount, source, copy, oddities)
    if catalog is not None:
        runs.assert_agreed(source, copy)
        runs.sync(copy, source)
        assert runs.items == []
        assert state(source) == original
    changed(source)
    original = state(source)
    runs.sync(source, copy, rdc.SyncOptions(delete=True))
    assert_copied(source, copy)
    runs.assert_idle(mount, source, copy, oddities)
    if catalog is not None:
        runs.sync(copy, source, rdc.SyncOptions(delete=True))
        assert runs.items == []
        assert state(source) == original


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name: str, mount: OddMount, tmp_path: Path) -> None:
    there_and_back(mount, tmp_path, CASES[name], Catalog(tmp_path / "catalog"))


@pytest.mark.parametrize("name", ["0777", "FAT", "an object store", "all of it", "times EPERM"])
def test_without_a_memory(name: str, mount: OddMount, tmp_path: Path) -> None:
    """Each run that is about to write finds out what the file system keeps, and then has nothing to do."""
    there_and_back(mount, tmp_path, CASES[name], None)


@pytest.mark.parametrize("name", ["0777", "2 s", "FAT"])
def test_a_write_only_session_remembers(name: str, mount: OddMount, tmp_path: Path) -> None:
    """It believes no signature, but what was learned of the file system tells of no content."""
    source, top = write_source(tmp_path / "source"), mount.point / tmp_path.name
    top.mkdir()
    mount.become(CASES[name])
    catalog = Catalog(tmp_path / "catalog")

    def run() -> int:
        signer = FileSigner(catalog=catalog)
        near, far = Connection(True, greeting(signer.params)), Connection(False, greeting(signer.params))
        place = Location(None, os.fsencode(source) + b"/")
        sync = SyncRun(place, Location(None, b""), rdc.SyncOptions(), lambda _: None, NoCatalog())
        tree = SourceTree.open(place.path, options=rdc.SyncOptions())
        admit = admission(os.fsencode(top), Access("it", write_only=True))
        with contextlib.closing(signer):
            run_pair(sync.send(tree), near, answer(signer, admit), far)
        tree.release()
        return mount.count()

    changes = run()
    assert contents(top) == contents(source)
    assert run() == changes


LINKLESS = ["nothing odd", "no links, EPERM", "one link", "no link", "other inodes", "inodes by name", "FAT"]


@pytest.mark.parametrize("name", LINKLESS)
def test_hard_links_where_they_do_not_show(name: str, mount: OddMount, tmp_path: Path) -> None:
    """What does not show as one file is copied. Otherwise each run would link it again."""
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    (source / "d/name").hardlink_to(source / "big")
    (source / "z").hardlink_to(source / "a")
    runs = Runs(Catalog(tmp_path / "catalog"))
    mount.become(CASES[name])
    options = rdc.SyncOptions(hard_links=True)
    runs.sync(source, copy, options)
    assert_copied(source, copy)
    before = mount.count()
    runs.sync(source, copy, options)
    assert runs.items == []
    assert mount.count() == before
    changed(source)
    runs.sync(source, copy, options)
    assert contents(source).items() <= contents(copy).items()
    runs.sync(source, copy, options)
    assert runs.items == []


FAKED = [
    "nothing odd",
    "2 s",
    "100 ns",
    "1 s, up",
    "floating point",
    "time at close",
    "time at rename",
    "0777",
]
FAKED += [
    "read-only bits",
    "owner ignored",
    "chown",
    "no symlinks",
    "fifos of another kind",
    "an object store",
]


@pytest.mark.parametrize("name", FAKED)
def test_what_attributes_stand_for_is_in_step_after_one_run(
    name: str, mount: OddMount, tmp_path: Path
) -> None:
    """With --fake-super, an attribute has modes and owners where chmod has no effect; files stand for links
    and special files."""
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    runs, options = Runs(Catalog(tmp_path / "catalog")), rdc.SyncOptions(fake_super=True)
    mount.become(CASES[name])
    runs.sync(source, copy, options)
    assert [problem for problem in runs.problems if problem.code] == []
    assert contents(source).items() <= contents(copy).items()
    before = mount.count()
    runs.sync(source, copy, options)
    assert runs.items == [] and runs.problems == []
    assert mount.count() == before
    runs.sync(source, mount.point / f"{tmp_path.name} plain")
    runs.assert_idle(mount, source, mount.point / f"{tmp_path.name} plain", CASES[name])


def test_content_arrives_where_no_attribute_can_be_kept(mount: OddMount, tmp_path: Path) -> None:
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    runs = Runs(Catalog(tmp_path / "catalog"))
    mount.become(CASES["xattrs"])
    runs.sync(source, copy, rdc.SyncOptions(fake_super=True))
    assert contents(source).items() <= contents(copy).items()
    assert any("permissions of" in problem.message and problem.code for problem in runs.problems)


FEW = settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
"""An example takes a second, so none is made smaller."""

ERRORS = st.sampled_from(["", "", "", "EPERM", "EINVAL", "EIO", "ENOSYS", "EOPNOTSUPP", "EACCES"])

any_oddities = st.builds(
    Oddities,
    step=st.sampled_from([1, 1, 100, 10**6, SECOND, 2 * SECOND, 86_400 * SECOND]),
    rounding=st.sampled_from(["down", "near", "up"]),
    times=st.sampled_from(["kept", "kept", "kept", "ignored", "EPERM"]),
    directory_times=st.sampled_from(["kept", "kept", "ignored", "now", "EIO"]),
    link_times=st.sampled_from(["kept", "kept", "ignored", "ENOSYS"]),
    time_at_close=st.booleans(),
    time_at_rename=st.booleans(),
    ctime=st.sampled_from(["kept", "now"]),
    modes=st.sampled_from([0o7777, 0o7777, 0o777, 0o7755, 0o7555, 0]),
    chmod=ERRORS,
    owner=st.sampled_from([-1, -1, 0, 1234]),
    chown=ERRORS | st.just("ignored"),
    link=ERRORS,
    symlink=ERRORS,
    mknod=ERRORS | st.just("another kind"),
    flags=st.sampled_from(["", "", "EINVAL", "EPERM", "ignored"]),
    rename_over=st.sampled_from(["", "", "EEXIST", "EPERM"]),
    rename_open=st.sampled_from(["", "", "EBUSY", "ETXTBSY"]),
    change_open=st.sampled_from(["", "", "EBUSY", "EPERM"]),
    exclusive=st.sampled_from(["", "", "EINVAL"]),
    fallocate=st.sampled_from(["EOPNOTSUPP", "EIO", "EPERM"]),
    grow=ERRORS,
    seek=st.sampled_from(["", "", "EINVAL"]),
    fsync=st.sampled_from(["", "", "EINVAL"]),
    xattrs=st.sampled_from(["", "EOPNOTSUPP", "EPERM"]),
    inodes=st.sampled_from(["kept", "random", "same", "by name"]),
    links=st.sampled_from([0, 0, 1, -1]),
)


@FEW
@given(oddities=any_oddities)
def test_any_of_them_together(
    oddities: Oddities, mount: OddMount, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("any")
    there_and_back(mount, place, oddities, Catalog(place / "catalog"))


# What was remembered may be wrong


@FEW
@given(before=any_oddities, after=any_oddities)
def test_a_wrong_memory_costs_one_run(
    before: Oddities, after: Oddities, mount: OddMount, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Another server answers under the same name. The next run that writes has right content, and the one
    after it nothing to do."""
    place = tmp_path_factory.mktemp("server")
    source, copy = write_source(place / "source"), mount.point / place.name
    runs = Runs(Catalog(place / "catalog"))
    mount.become(before)
    runs.sync(source, copy)
    mount.become(after)
    changed(source)
    runs.sync(source, copy, rdc.SyncOptions(delete=True))
    assert_copied(source, copy)
    runs.sync(source, copy)
    runs.assert_idle(mount, source, copy, after)


def test_times_that_nobody_set_prove_nothing(mount: OddMount, tmp_path: Path) -> None:
    """Here a file has the time of its copy, and its source that of an edit within the same step."""
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    runs = Runs(Catalog(tmp_path / "catalog"))
    mount.become(Oddities(times="ignored"))
    runs.sync(source, copy)
    mount.become(Oddities(step=2 * SECOND))
    for name, content in (("a", b"AAA"), ("d/in", b"IN")):
        (source / name).write_bytes(content)
        os.utime(source / name, ns=(WHEN, (copy / name).stat().st_mtime_ns + 5))
    (source / "new").touch()
    runs.sync(source, copy)
    assert_copied(source, copy)


@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_wrong_memory_of_coarse_times_hides_no_change(back: bool, mount: OddMount, tmp_path: Path) -> None:
    """Times that are no multiples of the step that is remembered show that it is none."""
    one, other = write_source(tmp_path / "source"), mount.point / tmp_path.name
    runs = Runs(Catalog(tmp_path / "catalog"))
    mount.become(PLAIN)
    runs.sync(one, other)
    mount.become(Oddities(step=2 * SECOND))
    runs.sync(write_source(tmp_path / "another"), mount.point / f"{tmp_path.name}-another")
    mount.become(PLAIN)
    source, destination = (other, one) if back else (one, other)
    (source / "a").write_bytes(b"AAA")
    os.utime(source / "a", ns=(WHEN, WHEN + 6))
    runs.sync(source, destination)
    assert (destination / "a").read_bytes() == b"AAA"


# What is the same whatever the file system keeps


def test_a_new_file_is_never_open_to_more_than_its_owner_where_modes_fail(
    mount: OddMount, tmp_path: Path
) -> None:
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    mount.become(replace(PLAIN, chmod="EPERM"))
    Runs(None).sync(source, copy)
    for path in copy.rglob("*"):
        assert path.is_symlink() or not path.lstat().st_mode & 0o077, path


def test_no_file_is_set_id_for_another_owner(mount: OddMount, tmp_path: Path) -> None:
    source, copy = write_source(tmp_path / "source"), mount.point / tmp_path.name
    for oddities in (Oddities(chown="EPERM"), Oddities(chown="ignored", owner=0)):
        mount.become(oddities)
        Runs(None).sync(source, copy)
        assert not (copy / "d/e/deep").stat().st_mode & 0o6000
