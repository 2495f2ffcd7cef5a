"""`rdc sync` hands the right request to whoever performs it, and tells each reader of its end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.location import USER_CATALOG, UserCatalog
from rdc.catalog.store import SignatureStore
from rdc.cli import sync
from rdc.errors import ExitCode, FileError, OutOfSpaceError, RdcError, UsageError
from rdc.limits import FILTER_BYTES, SIZE_LIMIT
from rdc.model.location import Location, RemoteShell
from rdc.model.sync import FilterRule, RuleAction, SyncOptions, SyncReport
from rdc.progress import ItemChanged, PlanKnown, Problem, Progressed, Reporter
from tests.fake_environment import FakeProcess
from tests.test_report_json import check_event

EXCLUDE, INCLUDE = RuleAction.EXCLUDE, RuleAction.INCLUDE

REPORT = SyncReport(
    files=1,
    total_bytes=10,
    changed=1,
    deleted=0,
    bytes_sent=500,
    bytes_received=1_200,
    literal_bytes=10,
    reused_bytes=0,
    round_trips=4,
    errors=0,
    exit=ExitCode.OK,
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich asks the process, not the environment handed in, whether its terminal is a dumb one."""
    monkeypatch.setenv("TERM", "xterm")


class FakeSyncer:
    """Remembers what it was asked, reports one change, and ends as told."""

    def __init__(
        self,
        report: SyncReport = REPORT,
        end: BaseException | None = None,
        act: Callable[[], None] | None = None,
    ) -> None:
        self.report = report
        self.end = end
        self.act = act
        self.source = self.destination = Location(None, b"?")
        self.options = SyncOptions()
        self.shell = RemoteShell()
        self.catalog: SignatureStore | UserCatalog | None = None
        self.keys: str | os.PathLike[str] | None = None
        self.calls = 0

    def __call__(
        self,
        source: Location,
        destination: Location,
        options: SyncOptions,
        *,
        shell: RemoteShell,
        reporter: Reporter,
        catalog: SignatureStore | UserCatalog | None,
        keys: str | os.PathLike[str] | None,
    ) -> SyncReport:
        self.source, self.destination, self.options, self.shell = source, destination, options, shell
        self.catalog, self.keys = catalog, keys
        self.calls += 1
        reporter(PlanKnown(1, 10, 0))
        reporter(ItemChanged(">f+++++++++", b"a"))
        if self.act is not None:
            self.act()
        if self.end is not None:
            raise self.end
        reporter(Progressed("transfer", 10, 10))
        return self.report


def asked(*words: str, process: FakeProcess | None = None) -> FakeSyncer:
    """What `rdc sync WORDS src/ dst` asks for."""
    syncer = FakeSyncer()
    environment = (process or FakeProcess()).environment
    assert sync.run([*words, "src/", "dst"], environment, syncer=syncer) is ExitCode.OK
    assert syncer.calls == 1
    return syncer


def test_no_options() -> None:
    syncer = asked()
    assert syncer.source == Location(None, b"src/")
    assert syncer.destination == Location(None, b"dst")
    assert syncer.options == SyncOptions(items=False)
    assert syncer.shell == RemoteShell()
    assert syncer.catalog is USER_CATALOG


def test_the_catalog_is_chosen_beside_the_options(tmp_path: Path) -> None:
    assert asked("--catalog=x", "--no-catalog").catalog is None
    chosen = asked("--no-catalog", "--catalog", str(tmp_path)).catalog
    assert isinstance(chosen, Catalog)
    assert chosen.database.directory == str(tmp_path)
    with pytest.raises(UsageError, match="--catalog needs a directory"):
        asked("--catalog=")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-a"], SyncOptions()),
        (["-rlptgo", "--recursive", "--links", "--perms", "--times", "--group"], SyncOptions()),
        (["-avn"], SyncOptions(dry_run=True)),
        (["-anc"], SyncOptions(dry_run=True, checksum=True)),
        (["-z"], SyncOptions(compress=True)),
        (["--no-compress"], SyncOptions(compress=False)),
        (["-z", "--no-z"], SyncOptions(compress=False)),
        (["--no-compress", "-z"], SyncOptions(compress=True)),
        (["--owner"], SyncOptions(owner=True)),
        (["--no-owner"], SyncOptions(owner=False)),
        (["--no-o", "--owner"], SyncOptions(owner=True)),
        (["--no-owner", "-a"], SyncOptions(owner=False)),
        (["--no-fsync"], SyncOptions(fsync=False)),
        (["--no-fsync", "--fsync"], SyncOptions()),
        (
            ["--delete", "--max-delete=0", "--force-empty"],
            SyncOptions(delete=True, max_delete=0, force_empty=True),
        ),
        (["--max-delete", "7", "--max-delete=12"], SyncOptions(max_delete=12)),
        (["--partial", "-P"], SyncOptions()),
        (["--bwlimit=0"], SyncOptions()),
        (["--bwlimit=100"], SyncOptions(bandwidth=100 * 1024)),
        (["--bwlimit", "1.5"], SyncOptions(bandwidth=1536)),
        (["--bwlimit=1.5M"], SyncOptions(bandwidth=3 << 19)),
        (["--bwlimit=2mb"], SyncOptions(bandwidth=2_000_000)),
        (["--bwlimit=1GiB"], SyncOptions(bandwidth=1 << 30)),
        (["--bwlimit=512b"], SyncOptions(bandwidth=512)),
        (["--bwlimit=.5"], SyncOptions(bandwidth=512)),
        (["--bwlimit=7", "--bwlimit=1k"], SyncOptions(bandwidth=1024)),
        (["--timeout=30"], SyncOptions(timeout=30)),
        (["--timeout", "0"], SyncOptions()),
        (["-x"], SyncOptions(one_file_system=True)),
        (["-u"], SyncOptions(update=True)),
        (["--existing"], SyncOptions(existing=True)),
        (["-S"], SyncOptions(sparse=True)),
        (["-aH"], SyncOptions(hard_links=True)),
        (["--max-size=1.5m", "--min-size", "2KB"], SyncOptions(min_size=2000, max_size=3 << 19)),
        (["--max-size=0", "--min-size=10b-1"], SyncOptions(min_size=9, max_size=0)),
        (["--max-size=1K+1"], SyncOptions(max_size=1025)),
        (["--max-size=9999p"], SyncOptions(max_size=SIZE_LIMIT)),
        (["--min-size=0"], SyncOptions()),
        (["--del"], SyncOptions(delete=True)),
        (["-a", "--numeric-ids", "--delete-delay"], SyncOptions(delete=True)),
        (["--delete-excluded"], SyncOptions(delete=True, delete_excluded=True)),
        (["-aAX"], SyncOptions(acls=True, xattrs=True)),
        (["--ignore-existing", "--size-only"], SyncOptions(ignore_existing=True, size_only=True)),
    ],
)
def test_options(words: list[str], options: SyncOptions) -> None:
    assert replace(asked(*words).options, items=True) == options


@pytest.mark.parametrize("words", [["-v"], ["-i"], ["--json"], ["-ain"]])
def test_changed_entries_are_told_only_to_who_reads_of_them(words: list[str]) -> None:
    assert asked(*words).options.items
    assert not asked("-a", "--stats", "--progress").options.items


@pytest.mark.parametrize(
    ("words", "shell"),
    [
        (["-e", "ssh -p 2222 -o 'A B'"], RemoteShell(("ssh", "-p", "2222", "-o", "A B"))),
        (["-ave", "rsh"], RemoteShell(("rsh",))),
        (["--rsh=ssh ; rm -rf $HOME"], RemoteShell(("ssh", ";", "rm", "-rf", "$HOME"))),
        (["--remote-path=/opt/rdc"], RemoteShell(program="/opt/rdc")),
    ],
)
def test_remote_shell_is_words_and_never_a_shell(words: list[str], shell: RemoteShell) -> None:
    assert asked(*words).shell == shell


def test_all_filter_options_make_one_list_in_order(tmp_path: Path) -> None:
    out, take = tmp_path / "out", tmp_path / "take"
    out.write_bytes(b"# no\nb\n+ c\n")
    take.write_bytes(b"e\n- f\xff\n")
    words = [
        "--include=a",
        f"--exclude-from={out}",
        "--filter",
        "- d",
        "--include-from",
        str(take),
        "--exclude",
        "*",
    ]
    assert asked(*words).options.rules == (
        FilterRule(INCLUDE, b"a"),
        FilterRule(EXCLUDE, b"b"),
        FilterRule(INCLUDE, b"c"),
        FilterRule(EXCLUDE, b"d"),
        FilterRule(INCLUDE, b"e"),
        FilterRule(EXCLUDE, b"f\xff"),
        FilterRule(EXCLUDE, b"*"),
    )


def test_rules_from_stdin() -> None:
    process = FakeProcess(stdin=b"x\ny\n")
    rules = asked("--exclude-from=-", process=process).options.rules
    assert rules == (FilterRule(EXCLUDE, b"x"), FilterRule(EXCLUDE, b"y"))


def test_rule_files_that_cannot_be_read(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"a\n" * (FILTER_BYTES // 2 + 1))
    for path, words, code in (
        (tmp_path / "none", "cannot read patterns: No such file", ExitCode.FILE_IO),
        (tmp_path, "Is a directory", ExitCode.FILE_IO),
        (big, "takes no more", ExitCode.USAGE),
    ):
        with pytest.raises(RdcError) as caught:
            asked(f"--exclude-from={path}")
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert caught.value.code is code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "SRC and DST are needed, nothing was given (see rdc sync --help)"),
        (["-h"], "SRC and DST are needed, nothing was given (see rdc sync --help)"),
        (["a"], "SRC and DST are needed, one was given (see rdc sync --help)"),
        (
            ["a", "b", "c"],
            "one SRC and one DST are expected, 3 were given; name their directory as SRC and choose with "
            "--include and --exclude (see rdc sync --help)",
        ),
        (["a:b", "c:d"], "SRC and DST are both on other hosts; one must be here (see rdc sync --help)"),
        (["--max-delete=-1", "a", "b"], "--max-delete=-1: a number of entries, 0 or more, is expected"),
        (["--max-delete=", "a", "b"], "--max-delete=: a number of entries, 0 or more, is expected"),
        (
            ["--max-delete=\u0663", "a", "b"],
            "--max-delete=\u0663: a number of entries, 0 or more, is expected",
        ),
        (["-e", "'", "a", "b"], "-e ': No closing quotation; quote it as for a shell"),
        (["-e", " ", "a", "b"], "-e needs a command, such as: -e 'ssh -p 2222'"),
        (
            ["--remote-path=", "a", "b"],
            "--remote-path needs a program, such as: --remote-path=/usr/local/bin/rdc",
        ),
        (
            ["-aU", "a", "b"],
            "rdc has no -U: modification times are kept, no others",
        ),
        (["--arch", "a", "b"], "unknown option --arch; did you mean --archive? (see rdc sync --help)"),
    ],
)
def test_usage_errors_are_one_line_and_nothing_is_done(words: list[str], message: str) -> None:
    syncer = FakeSyncer()
    with pytest.raises(UsageError) as caught:
        sync.run(words, FakeProcess().environment, syncer=syncer)
    assert str(caught.value) == message
    assert caught.value.code is ExitCode.USAGE
    assert syncer.calls == 0


def test_help_opens_with_examples() -> None:
    process = FakeProcess()
    assert sync.run(["--help", "--json"], process.environment, syncer=FakeSyncer()) is ExitCode.OK
    assert process.out.splitlines()[2] == "Examples:"
    assert process.err == ""
    assert all(len(line) <= 110 for line in process.out.splitlines())


def outcome(words: Sequence[str], syncer: FakeSyncer, process: FakeProcess) -> ExitCode:
    return sync.run([*words, "src", "dst"], process.environment, syncer=syncer)


def test_what_is_shown() -> None:
    process = FakeProcess()
    assert outcome(["-i", "-v"], FakeSyncer(), process) is ExitCode.OK
    assert process.out == ">f+++++++++ a\n"
    assert process.err == "sent 500 B, received 1.2 KB, reused 0 B in 4 round trips\n"
    quiet = FakeProcess()
    outcome(["-qiv", "--stats"], FakeSyncer(), quiet)
    assert (quiet.out, quiet.err) == ("", "")
    human = FakeProcess()
    outcome(["-h", "--stats"], FakeSyncer(), human)
    assert "Bytes received:       1.2 KB\n" in human.out


def test_exit_code_is_the_reports() -> None:
    report = replace(REPORT, errors=2, exit=ExitCode.PARTIAL)
    process = FakeProcess()
    assert outcome([], FakeSyncer(report), process) is ExitCode.PARTIAL
    assert process.err.endswith("; 2 problems, exit code 23\n")


def events(process: FakeProcess) -> list[dict[str, object]]:
    return [json.loads(line) for line in process.out.splitlines()]


def test_json_ends_with_a_summary() -> None:
    process = FakeProcess()
    # Other options for people change nothing for programs.
    outcome(["--json", "-qvi", "--stats"], FakeSyncer(replace(REPORT, exit=ExitCode.VANISHED)), process)
    assert [event["event"] for event in events(process)] == ["start", "plan", "item", "progress", "summary"]
    assert events(process)[-1]["exit"] == 24
    assert process.err == ""


@pytest.mark.parametrize(
    ("end", "code", "path"),
    [
        (OutOfSpaceError("disk full"), 11, ""),
        (FileError(b"x", "x: not readable"), 23, "x"),
        (KeyboardInterrupt(), 20, ""),
        (ZeroDivisionError("bug"), 1, ""),
    ],
)
def test_json_tells_fatal_errors(end: BaseException, code: int, path: str) -> None:
    process = FakeProcess()
    with pytest.raises(type(end)):
        outcome(["--json"], FakeSyncer(end=end), process)
    assert [event["event"] for event in events(process)] == ["start", "plan", "item", "error"]
    assert events(process)[-1]["code"] == code
    assert events(process)[-1]["path"] == path


def test_json_tells_usage_errors_too() -> None:
    process = FakeProcess()
    with pytest.raises(UsageError):
        sync.run(["--json", "--link-dest=x", "a", "b"], process.environment, syncer=FakeSyncer())
    (event,) = events(process)
    assert event["event"] == "error"
    assert event["code"] == 1
    assert str(event["message"]).startswith("rdc has no --link-dest")


def bar_shown(
    words: Sequence[str], *, terminal: bool = True, both: bool = False, term: str = "xterm"
) -> bool:
    process = FakeProcess(terminal=terminal, out_is_terminal=both, environ={"TERM": term})
    process.clock.step = 1.0
    outcome(words, FakeSyncer(), process)
    return "\x1b[2K" in process.err


def test_a_bar_only_on_a_terminal_that_no_names_scroll_over() -> None:
    assert bar_shown([])
    assert bar_shown(["-v"])
    assert bar_shown([], both=True)
    assert not bar_shown(["-v"], both=True)
    assert not bar_shown(["-i"], both=True)
    assert not bar_shown(["-q"])
    assert not bar_shown(["--json"])
    assert not bar_shown([], terminal=False)
    assert not bar_shown([], term="dumb")


@pytest.mark.parametrize("environ", [{"TERM": "xterm-256color"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}])
def test_no_color_is_honoured(environ: dict[str, str]) -> None:
    process = FakeProcess(terminal=True, environ=environ)
    process.clock.step = 1.0
    outcome([], FakeSyncer(), process)
    assert ("\x1b[36m" in process.err) == ("NO_COLOR" not in environ)


def test_trouble_is_told_above_the_bar() -> None:
    process = FakeProcess(terminal=True, environ={"TERM": "xterm", "NO_COLOR": "1"})
    process.clock.step = 1.0

    class Troubled(FakeSyncer):
        def __call__(
            self,
            source: Location,
            destination: Location,
            options: SyncOptions,
            *,
            shell: RemoteShell,
            reporter: Reporter,
            catalog: SignatureStore | UserCatalog | None,
            keys: str | os.PathLike[str] | None,
        ) -> SyncReport:
            reporter(PlanKnown(1, 10, 0))
            reporter(Problem(ExitCode.PARTIAL, b"x", "x: cannot be read"))
            return self.report

    outcome([], Troubled(), process)
    assert "rdc: x: cannot be read\n" in process.err
    assert process.err.endswith("in 4 round trips\n")


# --- the real thing -----------------------------------------------------------------------------------------


def grow(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "data").write_bytes(b"0123456789" * 20_000)
    (root / "d" / "e" / "skipped.o").write_bytes(b"x")
    (root / "link").symlink_to("d/data")


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


FAR = ["-e", "sh -c 'shift; exec \"$@\"' far", "--remote-path", f"{sys.executable} -m rdc"]
"""A stand-in for ssh: forgets the host's name and runs the command here."""


@pytest.mark.parametrize("host", ["", "host:"])
def test_a_whole_run_ends_equal_and_tells_so(host: str, tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    source.mkdir()
    grow(source)
    words = [
        "--json",
        "--exclude=*.o",
        "--delete",
        *(FAR if host else []),
        f"{source}/",
        f"{host}{destination}",
    ]
    first, second = FakeProcess(), FakeProcess()
    assert sync.run(words, first.environment) is ExitCode.OK
    wanted = contents(source)
    del wanted["d/e/skipped.o"]
    assert contents(destination) == wanted
    for line in first.stdout.getvalue().splitlines(keepends=True):
        check_event(line)
    assert [event["event"] for event in events(first)][0 :: len(events(first)) - 1] == ["start", "summary"]
    assert {event["path"] for event in events(first) if event["event"] == "item"} >= {"d/", "d/data", "link"}
    assert events(first)[-1]["literal_bytes"] == 200_000
    (destination / "extra").write_bytes(b"")
    assert sync.run(words, second.environment) is ExitCode.OK
    items = [(event["change"], event["path"]) for event in events(second) if event["event"] == "item"]
    assert ("*deleting  ", "extra") in items
    assert events(second)[-1]["literal_bytes"] == 0
    assert contents(destination) == wanted


@pytest.mark.parametrize(
    "word",
    [
        "--bwlimit=fast",
        "--bwlimit=",
        "--bwlimit=-1",
        "--bwlimit=1e9",
        "--bwlimit=0.4",
        "--bwlimit=511b",
        "--bwlimit=.000000001b",
        "--timeout=-1",
        "--timeout=1.5",
        "--timeout=",
    ],
)
def test_limits_that_make_no_sense(word: str) -> None:
    with pytest.raises(UsageError, match=word.partition("=")[0]):
        asked(word)


@pytest.mark.parametrize(("word", "lines"), [("-P", True), ("--progress", True), ("--partial", False)])
def test_progress_is_shown_without_a_terminal_where_it_is_asked_for(word: str, lines: bool) -> None:
    process = FakeProcess()
    asked(word, process=process)
    assert ("transferring: 10 B of 10 B" in process.err) == lines
    quiet = FakeProcess()
    asked(word, "-q", process=quiet)
    assert quiet.err == ""
