"""What takes no part: excluded entries, special files, links, what cannot be read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Problem
from rdc.uniting.describe import Listing
from rdc.uniting.rows import LEFT, RIGHT
from tests.support.trees.unprivileged import as_nobody, place_of_nobody
from tests.uniting.pairs import QUICK, Pair
from tests.uniting.real_world import every_stat, snapshot
from tests.uniting.remote_runs import unite_in_turns


def test_excluded_entries_stay_where_they_are(pair: Pair) -> None:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.log"),)
    pair.both("a.log", "both")
    pair.both("d/b.log", "both")
    pair.both("d/f", "f")
    pair.both("stays", "text")
    pair.unite()
    (pair.left / "a.log").unlink()
    (pair.right / "new.log").write_text("new")
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.texts("a.log") == [None, "both"]
    assert pair.texts("new.log") == [None, "new"]
    shutil.rmtree(pair.left / "d")
    assert pair.unite(rules=rules).exit is ExitCode.PARTIAL
    assert pair.texts("d/b.log") == [None, "both"]
    assert pair.texts("d/f") == [None, None]
    # While it was excluded no ancestor knew it: nothing is deleted.
    assert pair.unite(rules=()).exit is ExitCode.OK
    assert pair.texts("a.log") == ["both", "both"]


LOGS = (FilterRule(RuleAction.EXCLUDE, b"*.log"),)


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
@pytest.mark.parametrize("excluded", [["x.o"], ["x.o", "y.o", "z.o"]])
def test_an_excluded_entry_is_named_that_keeps_its_directory(
    near: int | None, excluded: list[str], pair: Pair
) -> None:
    """Another run alone would not remove the directory."""
    pair.both("d/a", "text")
    pair.both("kept", "text")
    options = replace(QUICK, rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),))
    rdc.unite(pair.left, pair.right, options)
    for name in excluded:
        (pair.right / "d" / name).write_text("object")
    shutil.rmtree(pair.left / "d")
    rest = " and 2 more" if len(excluded) > 1 else ""
    for _ in range(2):
        events: list[object] = []
        if near is None:
            report = rdc.unite(pair.left, pair.right, QUICK, reporter=events.append)
        else:
            report = unite_in_turns(pair.left, pair.right, QUICK, events.append, near=near).report
        assert (report.exit, report.held) == (ExitCode.PARTIAL, 1)
        (problem,) = [event.message for event in events if isinstance(event, Problem) and event.code]
        assert f"found x.o{rest}; if the pair's rules exclude that, delete it there" in problem
    assert sorted(os.listdir(pair.right / "d")) == excluded
    shutil.rmtree(pair.right / "d")
    assert rdc.unite(pair.left, pair.right, QUICK).exit is ExitCode.OK


def test_a_run_without_rules_goes_by_those_of_the_last_one(pair: Pair) -> None:
    pair.both("a", "a")
    (pair.left / "a.log").write_text("log")
    (pair.left / "old").mkdir()
    pair.unite(rules=LOGS, units=(b"old",))
    (pair.left / "b.log").write_text("log")
    (pair.right / "a").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("a") == ["edited", "edited"]
    assert (pair.texts("a.log"), pair.texts("b.log")) == (["log", None], ["log", None])
    status = rdc.unite_status(pair.left, pair.right)
    assert status is not None
    assert status.rules == (b"exclude *.log", b"unit old")
    before = every_stat(pair.left), every_stat(pair.right)
    assert pair.unite(dry_run=True, rules=()).right == 2
    pair.unite()
    assert (every_stat(pair.left), every_stat(pair.right)) == before
    assert pair.unite(rules=()).right == 2
    assert "other rules" in pair.notices()[0]
    assert pair.texts("a.log") == ["log", "log"]
    status = rdc.unite_status(pair.left, pair.right)
    assert status is not None
    assert status.rules == (b"unit old",)


def test_a_new_rule_deletes_nothing(pair: Pair) -> None:
    for name in ("a.log", "d/b.log", "c"):
        pair.both(name, "both")
    pair.unite()
    (pair.left / "a.log").unlink()
    assert pair.unite(rules=LOGS).exit is ExitCode.OK
    pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"c"),))
    assert pair.texts("a.log") == ["both", "both"]
    assert pair.texts("d/b.log") == pair.texts("c") == ["both", "both"]


@pytest.mark.parametrize("what", ["lost", "damaged", "writable"])
@pytest.mark.parametrize("sides", [1, 2])
def test_lost_rules_are_those_of_the_other_side(pair: Pair, what: str, sides: int) -> None:
    pair.both("a", "a")
    pair.unite(rules=LOGS)
    (pair.left / "a.log").write_text("log")
    for side in (pair.left, pair.right)[:sides]:
        (rules,) = side.glob(".rdc-unite/*/rules")
        if what == "lost":
            rules.unlink()
        elif what == "damaged":
            rules.write_bytes(rules.read_bytes()[:-12] + b"00000000000\n")
        else:
            rules.chmod(0o666)
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("a.log") == ["log", None if sides == 1 else "log"]
    if sides == 1:
        (one,), (other,) = (side.glob(".rdc-unite/*/rules") for side in (pair.left, pair.right))
        assert one.read_bytes() == other.read_bytes()


def test_more_rules_than_are_kept_are_refused_before_anything(pair: Pair) -> None:
    pair.both("a", "a")
    (pair.left / "b").write_text("b")
    rules = tuple(FilterRule(RuleAction.EXCLUDE, b"x%06d" % number * 30) for number in range(2_000))
    with pytest.raises(UsageError, match="too many filter rules"):
        pair.unite(rules=rules)
    with pytest.raises(UsageError, match="too many units"):
        pair.unite(units=(b"x" * 256,))
    assert not (pair.right / "b").exists()


def test_a_special_file_in_the_place_of_a_file_is_left_alone(pair: Pair) -> None:
    pair.both("f", "text")
    pair.both("g", "text")
    pair.unite()
    (pair.left / "f").unlink()
    os.mkfifo(pair.left / "f")
    report = pair.unite()
    assert (report.exit, report.held) == (ExitCode.PARTIAL, 1)
    assert (pair.right / "f").read_text() == "text"


def test_links_are_entries_and_are_never_followed(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (pair.left / "l").symlink_to("../outside")
    (pair.left / "loop").symlink_to("loop")
    pair.unite()
    assert os.readlink(pair.right / "l") == "../outside"
    (pair.right / "l").unlink()
    pair.unite()
    assert not os.path.lexists(pair.left / "l")
    assert (tmp_path / "outside").read_text() == "secret"


def test_a_rule_for_the_top_is_about_the_top(pair: Pair) -> None:
    (pair.left / "name").write_text("1")
    (pair.left / "s").mkdir()
    (pair.left / "s/name").write_text("2")
    (pair.right / "name").write_text("3")
    assert pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"/name"),)).exit is ExitCode.OK
    assert pair.texts("s/name") == ["2", "2"]
    assert pair.texts("name") == ["1", "3"]


def test_rules_are_about_paths_as_they_are(pair: Pair) -> None:
    """A rule names a path, so an entry takes part once its directory has another name."""
    rules = (FilterRule(RuleAction.EXCLUDE, b"/p/s"),)
    pair.both("p/f", "f")
    (pair.left / "p/s").write_text("here alone")
    pair.unite(rules=rules)
    (pair.right / "p").rename(pair.right / "q")
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.texts("q/s") == ["here alone", "here alone"]


def test_nothing_behind_a_link_is_deleted(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target/f").write_text("outside")
    pair.both("link/f", "text")
    pair.both("stays", "text")
    pair.unite()
    (pair.left / "link/f").unlink()
    shutil.rmtree(pair.right / "link")
    (pair.right / "link").symlink_to(tmp_path / "target")
    pair.unite()
    assert (tmp_path / "target/f").read_text() == "outside"


def test_hard_links_prove_no_rename(pair: Pair) -> None:
    pair.both("a", "text")
    pair.unite()
    os.link(pair.left / "a", pair.left / "b")
    (pair.left / "a").unlink()
    os.link(pair.left / "b", pair.left / "c")
    (pair.right / "a").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)
    assert pair.texts("a") == ["edited", "edited"]


def test_temporaries_take_no_part(pair: Pair) -> None:
    (pair.left / ".rdc-0123456789abcdef.tmp").write_text("mine")
    (pair.left / "f.swp").write_text("an editor's")
    pair.unite()
    assert sorted(os.listdir(pair.right)) == [".rdc-undo", ".rdc-unite", "f.swp"]


def test_a_file_that_cannot_be_read_stays(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run as root, who can read all: the call fails by itself."""
    pair.both("f", "text")
    pair.both("g", "text")
    pair.unite()
    (pair.left / "f").write_text("edited")
    (pair.left / "g").write_text("edited")
    whole = Root.open_read

    def refuse(self: Root, path: bytes) -> object:
        if path == b"f":
            raise self.failure(PermissionError(13, "Permission denied"), path, "open it for reading")
        return whole(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "open_read", refuse)
        assert pair.unite().exit is ExitCode.PARTIAL
    assert (pair.texts("f"), pair.texts("g")) == (["edited", "text"], ["edited", "edited"])
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("f") == ["edited", "edited"]


@pytest.mark.parametrize("near", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize("what", ["cannot be listed", "cannot be written", "the top cannot be written"])
def test_what_a_user_has_no_rights_for_is_named_and_the_rest_goes_on(what: str, near: int | None) -> None:
    def work(place: Path) -> tuple[int, str, list[list[str | None]], int]:
        pair = Pair(place)

        def unite() -> rdc.UniteReport:
            if near is None:
                return pair.unite(keep_undo=None)
            pair.events = []
            chosen = replace(QUICK, keep_undo=None)
            return unite_in_turns(pair.left, pair.right, chosen, pair.events.append, near=near).report

        for name in ("closed/old", "closed/in/deep", "open/f"):
            pair.both(name, "text")
        unite()
        (pair.right / "open/f").write_text("edited")
        (pair.left / "open/f2").write_text("new")
        for name in ("closed/new", "closed/er/new", "made/new"):
            (pair.left / name).parent.mkdir(exist_ok=True)
            (pair.left / name).write_text("new")
        at = pair.right if what.startswith("the top") else pair.right / "closed"
        at.chmod(0o000 if what == "cannot be listed" else 0o500)
        report = unite()
        named = " ".join(pair.problems())
        texts = [pair.texts(name) for name in ("open/f", "open/f2")]
        at.chmod(0o755)
        unite()
        return int(report.exit), named, [*texts, pair.texts("closed/er/new")], int(unite().exit)

    with place_of_nobody() as place:
        code, named, texts, later = as_nobody(lambda: work(place))
    assert (code, later) == (ExitCode.PARTIAL, ExitCode.OK)
    assert ("made" if what.startswith("the top") else "closed") in named
    assert texts == [["edited"] * 2, ["new"] * 2, ["new"] * 2]


@pytest.mark.parametrize("near", [None, 0, 1], ids=["local", "left dials", "right dials"])
def test_a_directory_that_nobody_may_list_stops_the_run(near: int | None) -> None:
    def work(place: Path) -> tuple[int, str]:
        pair = Pair(place)
        pair.both("f", "text")
        pair.left.chmod(0)
        try:
            if near is None:
                pair.unite()
            else:
                unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=near)
        except RdcError as error:
            return int(error.code), str(error)
        finally:
            pair.left.chmod(0o755)
        return 0, ""

    with place_of_nobody() as place:
        code, message = as_nobody(lambda: work(place))
    assert code == ExitCode.FILE_IO
    assert "run as its owner" in message


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
def test_the_first_run_counts_entries_that_take_no_part(near: int | None, pair: Pair) -> None:
    own = pair.left if near != RIGHT else pair.right

    def unite() -> list[str]:
        pair.events = []
        if near is None:
            rdc.unite(pair.left, pair.right, QUICK, reporter=pair.events.append)
        else:
            unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=near)
        return [text for text in pair.notices() if "first time" not in text]

    os.mkfifo(own / "queue")
    assert unite() == [f"1 special file takes no part, such as {own}/queue"]
    os.mkfifo(own / "more")
    (own / "file").touch()
    assert unite() == []
    rdc.forget_united(pair.left, pair.right)
    assert unite() == [f"2 special files take no part, such as {own}/more"]


def test_the_first_run_counts_mounts(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    (pair.left / "m").mkdir()
    (pair.left / "f").write_text("f")
    whole = Listing._list

    def mounted(listing: Listing) -> None:
        if listing.root.label == os.fsencode(pair.left):
            # As if the side lay elsewhere, the entries of its top are on another file system.
            listing.device += 1
        whole(listing)

    monkeypatch.setattr(Listing, "_list", mounted)
    assert pair.unite().exit is ExitCode.OK
    (text,) = (text for text in pair.notices() if "first time" not in text)
    assert text == f"2 mounts or subvolumes take no part, such as {pair.left}/f"
    assert os.listdir(pair.right) == [".rdc-unite"]
