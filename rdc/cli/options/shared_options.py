"""The options that several verbs have: which files are chosen, and how much of a machine a run may use
(--depth, --max-rate, --cluster and slices).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from rdc.cli.environment import Environment, OptionGroup, Words, parsed_value
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.lean.records import Record, replace
from rdc.limits import FILTER_BYTES, RATE_LEAST, SCAN_SLICES
from rdc.model.options import Option
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSyntax
from rdc.model.sync import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cluster.engines import EngineUrl
    from rdc.model.scan import ScanSlice
    from rdc.tree.rule_text import RuleDefaults


ReadRuleFile = Callable[[str], bytes]
"""Maps the name of a rule file to its content; '-' is stdin. Raises RdcError."""

CHOOSE = "Choose (patterns are tried in the order given; the first match decides)"
"""The title of the options that choose files in a short help."""

FILTER_GROUP = OptionGroup(
    "Choosing files (rules are tried in the order given; the first match decides)",
    stage=CHOOSE,
    options=(
        Option(
            ("--exclude",),
            "leave out what matches, such as '*.o' anywhere or /build/ at the top",
            "PATTERN",
            common=True,
            note="""The patterns are rsync's: see [Filters](../filters.md). What is excluded is not deleted
                either, unless with `--delete-excluded`.""",
        ),
        Option(
            ("--include",),
            "take what matches, even if a later pattern leaves it out",
            "PATTERN",
            common=True,
            example="--include='*.c' --exclude='*' src/ backup/",
        ),
        Option(
            ("--exclude-from",),
            "read exclude patterns from FILE, one per line",
            "FILE",
            common=True,
            note="`-` is stdin.",
        ),
        Option(
            ("--include-from",),
            "read include patterns from FILE, one per line",
            "FILE",
            example="--include-from=keep.txt --exclude='*' src/ backup/",
        ),
        Option(
            ("-f", "--filter"),
            "add a rule: '- PATTERN', 'P PATTERN', '. FILE', ': FILE' and others",
            "RULE",
            rsync="see [Filters](filters.md)",
        ),
        Option(
            ("-F",),
            "read rules from .rsync-filter in each directory; -FF also leaves these files out",
            note="""The same as `--filter=': /.rsync-filter'`, and the second time `--filter='-
                .rsync-filter'`.""",
        ),
        Option(
            ("--gitignore",),
            "leave out what the .gitignore of each directory lists",
            common=True,
            note="""The lines mean what they mean to git: the last line that matches decides, and a file
                counts before those of the directories above it. git's own files, settings and index are
                not looked at, and `.git` itself is taken unless `--exclude=.git/` is there, too.""",
        ),
        Option(
            ("--rdcignore",),
            "leave out what the .rdcignore of each directory lists, in the language of .gitignore",
            note="""As `--gitignore`, with files of another name, so that a repository's own rules stay out
                of a backup. Without this option, `.rdcignore` is a file like any other. Entries that it
                leaves out stay at DST, also if the file is new there: the rules are read again before
                deletions, as with `--delete-after`. With `--delete-excluded`, such entries are deleted,
                and a warning says so.""",
        ),
        Option(
            ("--exclude-caches",),
            "leave out the contents of directories with a CACHEDIR.TAG",
            note="""As in tar: the directory and its tag are taken, and nothing else in it. The tag is a
                regular file `CACHEDIR.TAG` that begins with `Signature:
                8a477f597d28d172789f06886806bc55`.""",
        ),
        Option(
            ("-C", "--cvs-exclude"),
            "leave out what CVS ignores: *.o, *~, .git/ and others",
            note="""The patterns of cvs(1), then those of `~/.cvsignore` and `CVSIGNORE`, and in each
                directory those of `.cvsignore`. They come after all other rules. `--filter=:C` and
                `--filter=-C` put the two parts anywhere.""",
            rsync="with the `~/.cvsignore` of the side where it is typed",
        ),
    ),
)


_KEYS = frozenset(option.key for option in FILTER_GROUP.options)


_RULE_FILES = {
    "--gitignore": (b".gitignore", RuleSyntax.GIT),
    "--rdcignore": (b".rdcignore", RuleSyntax.GIT),
    "--exclude-caches": (b"CACHEDIR.TAG", RuleSyntax.CACHE_TAG),
}


def read_rules(words: Words, read_rule_file: ReadRuleFile) -> tuple[FilterRule | DirectoryRules, ...]:
    """Return the rules of all options of FILTER_GROUP, in the order typed. Raises RdcError."""
    chosen = [given for given in words.given if given.key in _KEYS]
    if not chosen:
        return ()
    from rdc.tree import filter_list
    from rdc.tree.rule_text import RuleListBuilder

    def cvs(defaults: RuleDefaults) -> list[FilterRule]:
        from rdc.tree.rule_text import cvs_rules

        return cvs_rules(defaults, _own_cvs_lists(read_rule_file))

    builder = RuleListBuilder(read_rule_file, cvs=cvs)
    short = 0
    for given in chosen:
        if given.key == "-F":
            builder.add_filter(b"- .rsync-filter" if short else b": /.rsync-filter")
            short += 1
            continue
        if given.key in _RULE_FILES:
            name, syntax = _RULE_FILES[given.key]
            builder.add_directory_rules(DirectoryRules(name, syntax), given.key)
            continue
        if given.key == "--cvs-exclude":
            continue
        action = RuleAction.INCLUDE if given.key.startswith("--include") else RuleAction.EXCLUDE
        if given.key.endswith("-from"):
            data = read_rule_file(given.value)
            try:
                builder.add_lines(data, action, name=given.value)
            except UsageError as error:
                raise UsageError(f"{given.key}={error}") from error
        elif given.key == "--filter":
            builder.add_filter(os.fsencode(given.value))
        else:
            builder.add_pattern(os.fsencode(given.value), action)
    if words.has("--cvs-exclude"):
        # They come after all others, wherever -C stands, as in rsync.
        builder.add_filter(b":C")
        builder.add_filter(b"-C")
    rules = builder.rules()
    # Checks the bounds of the list, so that the user sees a mistake before rdc connects.
    filter_list(rules)
    return rules


def _own_cvs_lists(read_rule_file: ReadRuleFile) -> list[bytes]:
    """Return what the user has CVS ignore: in ~/.cvsignore and in CVSIGNORE."""
    home, found = os.environ.get("HOME"), []
    if home and os.path.exists(path := os.path.join(home, ".cvsignore")):
        found.append(read_rule_file(path))
    return [*found, os.fsencode(os.environ.get("CVSIGNORE", ""))]


class RuleFiles(Record):
    """Reads the rule files of one run. A ReadRuleFile."""

    environment: Environment
    named: list[bytes]
    """The names of those that were read. No result may replace them."""

    def __call__(self, name: str) -> bytes:
        self.named.append(os.fsencode(name))
        return read_rule_file(name, self.environment)


def read_rule_file(
    name: str, environment: Environment, *, limit: int = FILTER_BYTES, of: str = "patterns"
) -> bytes:
    """Return the content of a rule file; '-' is stdin. Raises RdcError if it is unreadable or too long.

    `limit`: in bytes. `of`: what the file holds, for error messages.
    """
    if name == "-":
        data = environment.stdin.read(limit + 1)
    else:
        try:
            # O_NONBLOCK: a fifo without a writer must not block the run.
            with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                # A pipe has a writer, such as <(find src), which may still be at work.
                os.set_blocking(file.fileno(), True)
                data = file.read(limit + 1)
        except OSError as error:
            raise RdcError(f"{name}: cannot read {of}: {error.strerror}", code=ExitCode.FILE_IO) from error
    if len(data) > limit:
        raise UsageError(
            f"{name}: more than {limit:,} bytes of {of}, which are the most: name directories rather than"
            " what is in them, or sync parts one by one"
        )
    return data


# Limits on the use of machines.

DEPTH = OPTIONS["depth"].options[0]

MAX_RATE = Option(
    ("--max-rate",), "read at most SIZE per second, such as 50M, for storage that others use", "SIZE"
)

CLUSTER = Option(
    ("--cluster",),
    "divide the work into slices, run by processes:N here, dask://HOST:PORT, ray://HOST:PORT or ray:local;"
    " -o is the directory of their parts, which all machines share",
    "URL",
)

SLICES = Option(
    ("--slices",), "number of slices (default: four per worker thread, or that of the existing parts)", "N"
)

OVERWRITE = Option(("--overwrite",), "replace existing files with results, but never a file that is read")

SLICE = Option(
    ("--slice",), "read only slice I of N, from 1/N to N/N, as one of N separate jobs; needs -o", "I/N"
)


class OneSlice(Record):
    """A job of one slice."""

    slice: ScanSlice
    part: str
    """The file that gets what the job found."""


class OnCluster(Record):
    """A job whose slices are the tasks of an engine."""

    engine: EngineUrl
    slices: int | None
    """Number of slices; None for a suitable one."""
    directory: str
    """The directory of the parts."""


def read_depth(words: Words) -> int:
    """Return the number of --depth, or 0 if it is absent. Raises UsageError."""
    last = words.last("--depth")
    return 0 if last is None else parsed_value(last, OPTIONS["depth"])


def read_max_rate(words: Words) -> int:
    """Return the bytes a second of --max-rate, or 0 if it is absent or 0. Raises UsageError."""
    rate = words.size("--max-rate") or 0
    if 0 < rate < RATE_LEAST:
        raise UsageError(
            f"--max-rate={words.value('--max-rate')}: {RATE_LEAST >> 20}M a second at least is expected,"
            " or 0 for no bound"
        )
    return rate


def read_slicing(words: Words, part: str | None, ending: str) -> OneSlice | OnCluster | None:
    """Read how a job is divided; None if it is whole. `part`: the value of -o. `ending`: of a part's name.
    Raises UsageError."""
    given, whole = words.value("--slice"), f"a whole number from 1 to {SCAN_SLICES} is expected"
    own = None if given is None else _slice(given)
    if own is not None and part is None:
        raise UsageError(
            f"--slice={own} needs -o, such as: -o {own.number}.{ending}; rdc merge adds slices up"
        )
    url = words.value("--cluster")
    if url is not None:
        cluster = _cluster(words, url, part)
        number = words.number("--slices", None, whole, least=1, most=SCAN_SLICES, digits=9)
        return replace(cluster, slices=number)
    if words.has("--slices"):
        raise UsageError("--slices needs --cluster; one slice of a job array is --slice=I/N")
    return None if own is None or part is None else OneSlice(own, part)


def _cluster(words: Words, url: str, part: str | None) -> OnCluster:
    from rdc.cluster.engines import parse_engine

    engine = parse_engine(url)
    if words.has("--slice"):
        raise UsageError("--cluster makes all slices; leave --slice out")
    if part is None:
        raise UsageError(
            "--cluster needs -o, a directory for the parts that all machines see, such as: -o parts"
        )
    from rdc.files.objects.object_store import is_url

    local = [path for path in words.operands if not is_url(os.fsencode(path))]
    relative = next((path for path in (*local, part) if not path.startswith("/")), None)
    if relative is not None and not engine.is_here:
        raise UsageError(
            f"{printable(relative)}: expected an absolute path, since workers have other working directories"
        )
    return OnCluster(engine, None, part)


def _slice(text: str) -> ScanSlice:
    import re  # a sync needs none

    from rdc.model.scan import ScanSlice

    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if found is None:
        raise UsageError(f"--slice={text}: a slice and their number are expected, such as 1/8 to 8/8")
    try:
        return ScanSlice(int(found[1]), int(found[2]))
    except UsageError as error:
        raise UsageError(f"--slice={text}: {error}") from error
