"""`rdc sync` reads its options into the right request and refuses invalid ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.store import USER_CATALOG
from rdc.cli.verbs import sync
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits import FILTER_BYTES, FILTER_PATTERN_BYTES, FILTER_RULES, SIZE_LIMIT
from rdc.model.location import Location, RemoteShell
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from tests.cli.fake_syncer import FakeSyncer, asked
from tests.support.running.fake_environment import FakeProcess

EXCLUDE, INCLUDE = RuleAction.EXCLUDE, RuleAction.INCLUDE


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
        (["--no-owner", "-o"], SyncOptions(owner=None)),
        (["-o", "--no-o"], SyncOptions(owner=False)),
        (["--owner", "-o", "--fake-super"], SyncOptions(owner=True, fake_super=True)),
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
        (["--bwlimit=0.0"], SyncOptions()),
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
    big.write_bytes(b"a" * (FILTER_BYTES + 1))
    for path, words, code in (
        (tmp_path / "none", "cannot read patterns: No such file", ExitCode.FILE_IO),
        (tmp_path, "Is a directory", ExitCode.FILE_IO),
        (big, f"more than {FILTER_BYTES:,} bytes of patterns, which are the most", ExitCode.USAGE),
    ):
        with pytest.raises(RdcError) as caught:
            asked(f"--exclude-from={path}")
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert caught.value.code is code


def test_a_list_that_is_too_long_is_refused_with_its_option(tmp_path: Path) -> None:
    path = tmp_path / "list"
    for option, text, words in (
        ("exclude", b"a\n" * (FILTER_RULES + 1), f"{FILTER_RULES:,} filter rules are the most: exclude dir"),
        ("include", b"a" * (FILTER_PATTERN_BYTES + 3), "is this a list of patterns?"),
    ):
        path.write_bytes(text)
        with pytest.raises(UsageError) as caught:
            asked(f"--{option}-from={path}")
        assert str(caught.value).startswith(f"--{option}-from={path}: line ")
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "SRC and DST are needed, nothing was given (see rdc sync --help)"),
        (["-h"], "SRC and DST are needed, nothing was given (see rdc sync --help)"),
        ([":a", "b", "c"], ":a: no host name before ':'; a local path with a ':' is written ./:a"),
        (["a", ":b", "c"], ":b: there is no HOST:PATH before it; a file of this name is ./:b"),
        (["-0", "a", "b"], "--from0 needs --files-from; rule files have one rule a line"),
        (
            ["--no-implied-dirs", "a", "b"],
            "--no-implied-dirs needs --relative or --files-from",
        ),
        (
            ["--files-from=h:list", "a", "b"],
            "--files-from=h:list: neither SRC nor DST is there (a file named so is ./h:list)",
        ),
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
            ["-aN", "a", "b"],
            "rdc has no -N: Linux cannot set the time at which a file was made",
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
