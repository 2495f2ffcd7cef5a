"""Options are parsed as in rsync, and rdc supports or refuses by name every option of rsync."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.cli.environment import Given, OptionGroup, Words, options_help, parse_words
from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS, SYNC_OPTIONS, parse_sync
from rdc.errors import ExitCode, UsageError
from rdc.model.options import Option
from tests.support.running.syncing import command

TABLE = (
    OptionGroup(
        "Some",
        (
            Option(("-a", "--all"), "everything"),
            Option(("-b",), "a letter"),
            Option(("-e", "--exec"), "run it", "CMD"),
            Option(("--list-of-all-that-there-is",), "a long one", "FILE"),
        ),
    ),
)


def read(*words: str) -> Words:
    return parse_words(words, TABLE, {"--old": "use --all", "-o": ""}, command="prog")


def test_every_way_to_write_an_option() -> None:
    for words in (["-abe", "x y"], ["-abex y"], ["-a", "-b", "--exec", "x y"], ["--all", "-b", "--exec=x y"]):
        assert read(*words).given == (Given("--all", ""), Given("-b", ""), Given("--exec", "x y"))
    assert read("-e=x").given == (Given("--exec", "x"),)
    assert read("--exec=").given == (Given("--exec", ""),)
    assert read("--exec=a=b").given == (Given("--exec", "a=b"),)


def test_a_value_is_the_next_word_whatever_it_begins_with() -> None:
    assert read("-e", "-b", "--exec", "--").given == (Given("--exec", "-b"), Given("--exec", "--"))


def test_operands_stand_anywhere() -> None:
    assert read("x", "-a", "-", "y", "--", "-b", "--").operands == ("x", "-", "y", "-b", "--")


def test_last_and_has() -> None:
    words = read("-e", "1", "-a", "-e", "2")
    assert words.last("--exec") == Given("--exec", "2")
    assert words.last("-b") is None
    assert words.has("-b", "--all")
    assert not words.has("-b")


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["--exec", "x"], "; --exec takes 'x' as its CMD"),
        (["a", "-e", "x", "-b"], "; -e takes 'x' as its CMD"),
        (["-e", "x\n"], r"; -e takes 'x\x0a' as its CMD"),
        (["--exec=x"], ""),
        (["-ex"], ""),
        (["-e", "x", "a"], ""),
        (["-b"], ""),
    ],
)
def test_a_missing_operand_that_an_option_took_is_found(words: list[str], taken: str) -> None:
    assert (
        str(read(*words).missing("prog needs a PATH", "prog"))
        == f"prog needs a PATH{taken} (see prog --help)"
    )


@pytest.mark.parametrize("verb", ["scan", "dupes", "similar"])
def test_a_page_without_a_path_is_one_line(verb: str, tmp_path: Path) -> None:
    page = tmp_path / "a"
    ended = command(verb, "--html", page)
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    assert f"--html takes '{page}' as its FILE" in ended.err
    assert not page.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--al"], "unknown option --al; did you mean --all? (see prog --help)"),
        (["-x"], "unknown option -x (see prog --help)"),
        (["-ax"], "unknown option -x (see prog --help)"),
        (["--all=1"], "--all takes no value (see prog --help)"),
        (["-e"], "-e needs a value: -e CMD (see prog --help)"),
        (["a", "--exec"], "--exec needs a value: --exec CMD (see prog --help)"),
        (["--old"], "prog has no --old: use --all"),
        (["--old=3"], "prog has no --old: use --all"),
        (["-ao"], "prog has no -o"),
        (["--no-old"], "prog has no --no-old: --old is never on, so it can be left out"),
        (["--no-all"], "prog has no --no-all: --all cannot be turned off"),
        (["--no-b"], "prog has no --no-b: -b cannot be turned off"),
        (["--no-"], "unknown option --no- (see prog --help)"),
        (["--\x1b[2J"], "unknown option --\\x1b[2J (see prog --help)"),
    ],
)
def test_refusals_name_the_option_on_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert str(caught.value) == message


@given(st.lists(st.text(st.sampled_from("-abeox=\n"), max_size=6), max_size=5))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        read(*words)
    except UsageError as error:
        assert "\n" not in str(error)


def test_help_lists_each_option_once() -> None:
    assert options_help(TABLE) == (
        "\nSome:\n"
        "  -a, --all                  everything\n"
        "  -b                         a letter\n"
        "  -e, --exec=CMD             run it\n"
        "  --list-of-all-that-there-is=FILE\n"
        "                             a long one\n"
    )


# --- rsync's options ----------------------------------------------------------------------------------------

# The options in rsync 3.5.0 --help, and the aliases that its parser accepts unlisted.
_RSYNC = """
--verbose -v --info --debug --stderr --quiet -q --no-motd --checksum -c --archive -a --recursive -r
--inc-recursive --i-r --no-inc-recursive --no-i-r --relative -R --no-implied-dirs --backup -b --backup-dir
--suffix --update -u --inplace --append --append-verify --dirs -d --old-dirs --old-d --mkpath --links -l
--copy-links -L --copy-unsafe-links --safe-links --insecure-links --confine-root --munge-links
--copy-dirlinks -k --keep-dirlinks -K --hard-links -H --perms -p --executability -E --chmod --acls -A --xattrs
-X --owner -o --group -g --devices --copy-devices --write-devices --specials --drop-D -D --times -t --atimes
-U --open-noatime --crtimes -N --omit-dir-times -O --omit-link-times -J --super --fake-super --sparse -S
--preallocate --dry-run -n --whole-file -W --no-whole-file --no-W --checksum-choice --one-file-system -x
--block-size -B --rsh -e --rsync-path --existing --ignore-non-existing --ignore-existing
--remove-source-files --del --delete --delete-before --delete-during --delete-delay --delete-after
--delete-excluded --ignore-missing-args --delete-missing-args --ignore-errors --force --max-delete --max-size
--min-size --max-alloc --partial --partial-dir --delay-updates --prune-empty-dirs -m --numeric-ids --usermap
--groupmap --chown --timeout --contimeout --ignore-times -I --size-only --modify-window -@ --temp-dir -T
--fuzzy -y --compare-dest --copy-dest --link-dest --compress -z --compress-choice --compress-level
--compress-threads --skip-compress --cvs-exclude -C --filter -f -F --exclude --exclude-from --include
--include-from --files-from --from0 -0 --old-args --secluded-args -s --trust-sender --copy-as --address --port
--sockopts --blocking-io --outbuf --stats --8-bit-output -8 --human-readable -h --progress -P
--itemize-changes -i --remote-option -M --out-format --log-file --log-file-format --password-file
--early-input --list-only --bwlimit --stop-after --stop-at --fsync --write-batch --only-write-batch
--read-batch --protocol --iconv --checksum-seed --ipv4 -4 --ipv6 -6 --help --cc --zc --zl --zt --protect-args
--time-limit --old-compress --new-compress --log-format --remove-sent-files --daemon --config --server
--sender --no-verbose --no-v --no-recursive --no-r --no-implied-dirs --no-i-d --no-dirs --no-d --no-perms
--no-p --no-links --no-l --no-owner --no-o --no-group --no-g --no-devices --no-specials --no-D --no-times
--no-t --no-atimes --no-U --no-omit-dir-times --no-O --no-omit-link-times --no-J --no-super --no-acls --no-A
--no-xattrs --no-X --no-hard-links --no-H --no-sparse --no-S --no-inplace --no-append --no-partial
--no-delay-updates --no-prune-empty-dirs --no-m --no-numeric-ids --no-timeout --no-contimeout --no-fuzzy
--no-y --no-compress --no-z --no-from0 --no-secluded-args --no-s --no-8-bit-output --no-8 --no-progress
--no-itemize-changes --no-i --no-bwlimit --no-fsync --no-iconv --no-human-readable --no-h --no-checksum --no-c
--no-relative --no-R --no-one-file-system --no-x --no-blocking-io --no-force --no-munge-links --no-mkpath
--version -V
"""
RSYNC_OPTIONS = _RSYNC.split()

# The options that rdc sync supports. The list is literal, so that the loss of one fails here.
_SUPPORTED = """
--temp-dir -T --delay-updates --partial-dir
--verbose -v --quiet -q --checksum -c --archive -a --recursive -r --links -l --perms -p --owner -o --group -g
--times -t --dry-run -n --rsh -e --delete --max-delete --compress -z --filter -f --exclude --exclude-from
--include --include-from --stats --human-readable -h --itemize-changes -i --fsync --help --no-owner --no-o
--no-compress --no-z --no-fsync --partial --progress -P --bwlimit --timeout
--one-file-system -x --update -u --existing --ignore-non-existing --ignore-existing --size-only
--sparse -S --hard-links -H --acls -A --xattrs -X --delete-excluded
--max-size --min-size --backup -b --backup-dir --suffix
--copy-links -L --copy-dirlinks -k --copy-unsafe-links --safe-links --omit-dir-times -O --omit-link-times -J
--executability -E --devices --specials -D --no-devices --no-specials --no-D
--cvs-exclude -C -F
--mkpath --chmod --ignore-times -I --modify-window -@ --whole-file -W --no-whole-file --no-W --ignore-errors
--secluded-args -s --protect-args --inc-recursive --i-r
--info --list-only --stderr --no-human-readable --no-h --out-format --log-format --log-file --log-file-format
--outbuf --8-bit-output -8
--force --preallocate --stop-after --time-limit --stop-at --inplace
--relative -R --no-implied-dirs --no-i-d --files-from --from0 -0 --ignore-missing-args
--no-relative --no-R --implied-dirs --i-d
--append --append-verify --no-sparse --no-S
--link-dest --compare-dest --copy-dest
--del --delete-during --delete-delay --delete-after --numeric-ids
--dirs -d --no-dirs --no-d --old-dirs --old-d --no-recursive --no-r --prune-empty-dirs -m
--no-prune-empty-dirs --no-m --delete-missing-args --no-perms --no-p --no-times --no-t --no-group --no-g
--keep-dirlinks -K --munge-links --no-numeric-ids --usermap --groupmap --chown --super --fake-super
--remove-source-files --open-noatime --atimes -U --fuzzy -y --max-alloc
"""
SUPPORTED = _SUPPORTED.split()


@pytest.mark.parametrize("name", RSYNC_OPTIONS)
def test_each_option_of_rsync_is_supported_or_refused_by_name(name: str) -> None:
    try:
        words = parse_sync([name, "a", "b", "c"])
    except UsageError as error:
        assert name not in SUPPORTED
        assert re.match(rf"rdc has no {re.escape(name)}(:|$)", str(error))
    else:
        assert name in SUPPORTED
        assert len(words.given) == 1


@pytest.mark.needs("rsync")
def test_the_list_above_is_what_the_installed_rsync_has() -> None:
    text = subprocess.run(["rsync", "--help"], capture_output=True, text=True, check=True).stdout
    listed: set[str] = set()
    for line in text.partition("\nOptions\n")[2].splitlines():
        names = re.match(r"-[^ ,]+(, -[^ ,]+)*", line)
        listed |= {name.partition("=")[0] for name in names[0].split(", ")} if names else set()
    ours = set(RSYNC_OPTIONS)
    assert len(listed) > 150
    # --no-OPTION stands for all --no- forms.
    assert listed - ours <= {"--no-OPTION"}


def test_no_option_is_both_supported_and_refused() -> None:
    names = [name for group in SYNC_OPTIONS for option in group.options for name in option.names]
    assert len(names) == len(set(names))
    assert not set(names) & set(REFUSED_RSYNC_OPTIONS)


def test_advice_names_only_options_that_exist() -> None:
    names = {name for group in SYNC_OPTIONS for option in group.options for name in option.names}
    for refused, advice in REFUSED_RSYNC_OPTIONS.items():
        assert advice, refused
        ssh_removed = re.sub(r'"ssh [^"]*"', "", advice)
        for word in re.findall(r"(?<![\w-])--?[a-z][\w-]*", ssh_removed):
            assert (
                word in names or word in ("--stdio", "--version") or all(f"-{c}" in names for c in word[1:])
            ), (
                refused,
                word,
            )


def test_rsync_path_points_to_remote_path() -> None:
    with pytest.raises(UsageError, match="rdc has no --rsync-path: use --remote-path"):
        parse_sync(["--rsync-path=/opt/rsync", "a", "b"])


def test_options_that_the_manual_says_are_left_out_fail_by_name() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/rsync.md").read_text()
    rows = page.partition("| option | why rdc leaves it out |")[2].partition("\n\n")[0]
    left_out = re.findall(r"^\| `(--[\w-]+)` \|", rows, re.MULTILINE)
    assert left_out and set(left_out) <= set(REFUSED_RSYNC_OPTIONS)
