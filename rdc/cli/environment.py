"""A verb's environment: streams, variables and clock of the run, its words, and the settings of all runs.

Tests pass fakes of the surroundings. Options are parsed as rsync does, from tables that also make the
help text.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from rdc.errors import ExitCode, RdcError, UsageError, escaped, printable
from rdc.lean.records import Record
from rdc.limits import SIZE_LIMIT
from rdc.model.options import Declared, Option, parse_directory, parse_size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, TextIO, TypeVar

    from rdc.model.settings import Table
    from rdc.report.output import Bar

    D = TypeVar("D")


# The streams, environment variables and clock that a verb uses. Tests pass fakes.

SUGGESTED = 3
"""Names of options that a message suggests, at most."""

_ESCAPE = "rdc.escape"


class OutputClosedError(Exception):
    """The reader of stdout has closed the pipe. Not an RdcError: no message can reach the reader."""


class Environment(Record):
    """The surroundings of one run. Data goes to stdout, messages go to stderr."""

    stdin: BinaryIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    stdout_is_terminal: bool
    stderr_is_terminal: bool
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""

    def data(self, text: str) -> None:
        """Write to stdout. Raises OutputClosedError for a closed pipe, RdcError (11) for a full disk."""
        try:
            self.stdout.write(text)
        except OSError as error:
            raise _output_error(error) from error

    def show_help(self, text: str) -> None:
        """Write a help text to stdout, folded to the terminal's width. Raises as data() does."""
        from rdc.cli.help_page import folded, page_width

        self.data(folded(text, page_width(self.stdout, self.environ)))

    def binary(self, data: bytes) -> None:
        """Write bytes to stdout, such as file names. Raises as data() does."""
        try:
            self.stdout.flush()
            self.stdout.buffer.write(data)
        except OSError as error:
            raise _output_error(error) from error

    def buffer(self, mode: str | None) -> None:
        """Set how stdout is buffered: "N" not at all, "L" by lines, "B" by blocks; None leaves it."""
        if mode is not None and isinstance(self.stdout, io.TextIOWrapper):
            self.stdout.reconfigure(line_buffering=mode == "L", write_through=mode == "N")

    def flush(self) -> None:
        """Flush stdout. Raises as data() does."""
        try:
            self.stdout.flush()
        except OSError as error:
            raise _output_error(error) from error

    def talk(self, text: str) -> None:
        """Write to stderr, after all that was written to stdout. Ignores errors, because no other place for
        messages is left."""
        with contextlib.suppress(OSError):
            self.stdout.flush()  # an error shows again at the next write
        with contextlib.suppress(OSError):
            self.stderr.write(text)
            self.stderr.flush()

    @property
    def unseen(self) -> bool:
        """Return whether neither stdout nor stderr is a terminal, as under cron."""
        return not (self.stdout_is_terminal or self.stderr_is_terminal)

    @property
    def color(self) -> bool:
        """Return whether colour is wanted: NO_COLOR is unset or empty (https://no-color.org)."""
        return not self.environ.get("NO_COLOR")

    @property
    def can_redraw(self) -> bool:
        """Return whether stderr is a terminal that can move its cursor."""
        return self.stderr_is_terminal and self.environ.get("TERM", "") not in ("", "dumb")

    def progress(self, *, quiet: bool, lines: bool = False) -> Bar | None:
        """Return a progress bar, progress lines, or None if the run shows no progress.

        A bar needs a terminal that can redraw. `lines` asks for progress lines in place of a bar that is
        impossible.
        """
        if self.can_redraw and not quiet:
            from rdc.report.progress_display import ProgressBar

            return ProgressBar(self.stderr, self.clock, color=self.color)
        if lines and not quiet:
            from rdc.report.progress_display import ProgressLines

            return ProgressLines(self.talk, self.clock)
        return None


def process_environment() -> Environment:
    """Return the Environment of this process. /dev/null replaces a stream that was closed at the start."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        null = os.open(os.devnull, os.O_RDWR)
        sys.stdin = sys.stdin or os.fdopen(os.dup(null), "r")
        sys.stdout = sys.stdout or os.fdopen(os.dup(null), "w")
        sys.stderr = sys.stderr or os.fdopen(os.dup(null), "w")
        os.close(null)
    codecs.register_error(_ESCAPE, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name may hold characters that the locale lacks. They must not end the run.
            stream.reconfigure(errors=_ESCAPE)
    return Environment(
        stdin=sys.stdin.buffer,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
        stdout_is_terminal=sys.stdout.isatty(),
        stderr_is_terminal=sys.stderr.isatty(),
        clock=time.monotonic,
    )


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that the stream cannot encode.

    Python's "backslashreplace" shows U+00E9 and the undecodable byte E9 alike; this handler does not.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escaped, error.object[error.start : error.end])), error.end


def _output_error(error: OSError) -> Exception:
    """Translate an error of a write to stdout."""
    if isinstance(error, BrokenPipeError):
        return OutputClosedError()
    return RdcError(f"cannot write to standard output: {error.strerror}", code=ExitCode.FILE_IO)


# Parses options as rsync does, from a table that also generates the help text.
#
# argparse does not fit for two reasons. It reports a missing value for `--filter '-_*.o'` and `--exclude -x`;
# popt, which rsync uses, takes the next word as the value whatever its first character is. And argparse
# cannot refuse an option by name with advice, as rdc does for a hundred options of rsync.


class OptionGroup(Record):
    """Options that stand below one title in the help text."""

    title: str
    options: tuple[Option, ...]
    stage: str = ""
    """The title that its common options have in the short help, where a verb has one."""
    names_only: bool = False
    """True if the help text lists the names in one paragraph, without explanations."""


class Given(Record):
    """One option of a command line."""

    key: str
    value: str
    """The value; empty for a flag."""


class Words(Record):
    """A parsed command line. The options keep their order, which filter rules need."""

    given: tuple[Given, ...]
    operands: tuple[str, ...]
    taken: str = ""
    """The word after the last operand that an option took: "--html takes 'a' as its FILE". Empty for none."""

    def missing(self, message: str, command: str) -> UsageError:
        """Return the error for a missing operand. An option may have taken the word that was meant as one."""
        return UsageError(f"{message}{self.taken and '; ' + self.taken} (see {command} --help)")

    def has(self, *keys: str) -> bool:
        """Return whether one of these options is given."""
        return any(given.key in keys for given in self.given)

    def count(self, key: str) -> int:
        """Return how often this option is given."""
        return sum(given.key == key for given in self.given)

    def last(self, *keys: str) -> Given | None:
        """Return the last of these options, which overrides the earlier ones; None without any."""
        return next((given for given in reversed(self.given) if given.key in keys), None)

    def value(self, key: str) -> str | None:
        """Return the value of an option; None without it."""
        last = self.last(key)
        return None if last is None else last.value

    def values(self, key: str) -> list[str]:
        """Return the values of an option that may be repeated, in their order."""
        return [given.value for given in self.given if given.key == key]

    def size(self, key: str) -> int | None:
        """Return the bytes of an option; None without it. Raises UsageError."""
        last = self.last(key)
        return None if last is None else read_size(key, last.value)

    def number(
        self, key: str, default: D, expected: str, *, least: int = 0, most: int = SIZE_LIMIT, digits: int = 18
    ) -> int | D:
        """Return the number of an option, `default` without it. Raises UsageError, which says what is
        `expected`, for another text, and for more than `digits` digits."""
        text = self.value(key)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= digits and least <= int(text) <= most):
            raise UsageError(f"{key}={text}: {expected}")
        return int(text)

    def only(self, keys: Sequence[str], command: str) -> str:
        """Return the one of these options that is given, or "". Raises UsageError for several of them."""
        found = sorted({given.key for given in self.given if given.key in keys})
        if len(found) > 1:
            raise UsageError(f"{' and '.join(found)} exclude each other (see {command} --help)")
        return found[0] if found else ""


def parse_words(
    words: Sequence[str],
    groups: Sequence[OptionGroup],
    refused: Mapping[str, str],
    *,
    command: str,
    of_sync: Sequence[OptionGroup] = (),
) -> Words:
    """Parse options and operands in any order. `--` ends the options.

    The forms are `-avn`, `-e CMD`, `-eCMD`, `--option VALUE` and `--option=VALUE`. `refused` maps the name of
    an option that rdc lacks to the advice for its error message. `command` is the command that error messages
    name. `of_sync`: the options of rdc sync, which the error message for such an option refers to. Raises
    UsageError, one line that names the option.
    """
    reader = _Reader(groups, refused, command, of_sync)
    given: list[Given] = []
    operands: list[str] = []
    taken = ""
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            option = reader.find(name)
            if option.metavar is None and equals and value not in option.values:
                wrong = (
                    f"={value}: expected {' or '.join(option.values)}" if option.values else " takes no value"
                )
                raise reader.error(name + wrong)
            if option.metavar is not None and not equals:
                value = reader.value(option, name, next(rest, None))
                taken = _taken(option, name, value)
            given.append(Given(option.key, value))
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                name, letters = "-" + letters[0], letters[1:]
                option = reader.find(name)
                value = ""
                if option.metavar is not None and letters:
                    value, letters = letters.removeprefix("="), ""
                elif option.metavar is not None:
                    value = reader.value(option, name, next(rest, None))
                    taken = _taken(option, name, value)
                given.append(Given(option.key, value))
        else:
            operands.append(word)
            taken = ""
    return Words(tuple(given), tuple(operands), taken)


def _taken(option: Option, name: str, word: str) -> str:
    return f"{name} takes '{printable(word)}' as its {option.metavar}"


class _Reader(Record):
    """Finds options by name and words the error messages of one command."""

    groups: Sequence[OptionGroup]
    refused: Mapping[str, str]
    command: str
    of_sync: Sequence[OptionGroup]

    def find(self, name: str) -> Option:
        for group in self.groups:
            for option in group.options:
                if name in option.names:
                    return option
        advice = self._refusal(name)
        if advice is not None:
            is_of_sync = self.of_sync or self.command in ("rdc sync", "rdc watch")
            has_none = "rdc has no" if is_of_sync else f"{self.command} has no"
            raise UsageError(f"{has_none} {name}" + (f": {advice}" if advice else ""))
        if any(name in option.names for group in self.of_sync for option in group.options):
            raise self.error(f"{self.command} has no {name}, which is an option of rdc sync")
        raise self.error(f"unknown option {name}{self._suggestion(name)}")

    def value(self, option: Option, name: str, word: str | None) -> str:
        if word is None:
            raise self.error(f"{name} needs a value: {name} {option.metavar}")
        return word

    def error(self, message: str) -> UsageError:
        return UsageError(f"{message} (see {self.command} --help)")

    def _refusal(self, name: str) -> str | None:
        if name in self.refused:
            return self.refused[name]
        if name.startswith("--no-") and len(name) > len("--no-"):
            plain = name.removeprefix("--no-")
            positive = ("-" if len(plain) == 1 else "--") + plain
            if positive in self.refused:
                return f"{positive} is never on, so it can be left out"
            if any(positive in option.names for group in self.groups for option in group.options):
                return f"{positive} cannot be turned off"
        return None

    def _suggestion(self, name: str) -> str:
        import difflib

        known = [name for group in self.groups for option in group.options for name in option.names]
        # Other programs accept the start of a name.
        begun = [one for one in known if one.startswith(name)] if len(name) > len("--") else []
        near = begun or (difflib.get_close_matches(name, known, n=1, cutoff=0.75) if len(name) > 2 else [])
        return f"; did you mean {' or '.join(near)}?" if 0 < len(near) <= SUGGESTED else ""


def parsed_value(given: Given, declared: Declared) -> Any:
    """Return the value of an option as the field of SyncOptions that it is declared at has it. Raises
    UsageError."""
    if not given.value and declared.parse is parse_directory:
        raise UsageError(f"{given.key} needs a directory, such as: {given.key}=.parts")
    try:
        value = given.value if declared.parse is None else declared.parse(given.value)
        declared.check_value(value)
    except ValueError as error:
        raise UsageError(f"{given.key}={given.value}: {error}") from None
    return value


def read_size(option: str, text: str) -> int:
    """Return the bytes that `text` means, as in rdc.model.options. Raises UsageError."""
    try:
        return parse_size_of(text)
    except ValueError as error:
        raise UsageError(f"{option}={text}: {error}") from None


def read_command(text: str, shown: str, example: str) -> tuple[str, ...]:
    """Return the words of a command. `shown`: the option with `text`. `example`: such an option, with a
    command. Raises UsageError."""
    from rdc.transport.pipes import shell_words

    try:
        found = tuple(shell_words(text))
    except ValueError as error:
        raise UsageError(f"{shown}: {error}; quote it as for a shell") from error
    if not found:
        name = shown.removesuffix(text).rstrip(" =")
        raise UsageError(f"{name} needs a command, such as: {example}")
    return found


RSH_EXAMPLE = "-e 'ssh -p 2222'"

HELP = Option(("--help",), "show this text", values=("all",))
"""--help of every verb. --help=all differs from it where a verb has a short help."""


def options_help(groups: Sequence[OptionGroup]) -> str:
    """Return the option part of a --help text: one line per option, explanations aligned."""
    lines = []
    for group in groups:
        lines.append(f"\n{group.title}:")
        if group.names_only:
            lines.append(", ".join(option.names[0] for option in group.options))
            continue
        for option in group.options:
            names = ", ".join(option.names)
            if option.metavar is not None:
                names += ("=" if option.names[-1].startswith("--") else " ") + option.metavar
            separator = "" if len(names) < 27 else "\n" + " " * 29
            lines.append(f"  {names:<27}{separator}{option.help}".rstrip())
    return "\n".join(lines) + "\n"


# Settings for all runs, from a file and from the environment. Options on the command line override them.
#
# Only an option that another option can revert is a setting. A flag without such a counterpart would stay on.


class Setting(Record):
    """One setting, and the option that it stands for."""

    key: str
    """The name in the file. The variable is RDC_ and the name in capitals."""
    help: str
    on: str = ""
    """For a switch: the option for true. Otherwise: the option that takes the value."""
    off: str = ""
    """The option for a switch that is false, or for a value that is `off`."""
    value: bool = True
    """True if the setting has a value; False for a switch."""

    @property
    def variable(self) -> str:
        """The environment variable of the setting."""
        return "RDC_" + self.key.upper().replace("-", "_")


SETTINGS = (
    Setting("bwlimit", "send at most this much per second, as --bwlimit", "--bwlimit"),
    Setting("catalog", "directory of the catalog, or off", "--catalog", "--no-catalog"),
    Setting("compress", "true: always, false: never", "--compress", "--no-compress", value=False),
    Setting("depth", "number of storage calls in flight, as --depth", "--depth"),
    Setting("fsync", "false: do not fsync", "--fsync", "--no-fsync", value=False),
    Setting("guard", "stop if more than this share of DST would change, or off", "--guard", "--no-guard"),
    Setting("keys", "the key directory for rdc://", "--keys"),
    Setting("owner", "true: always keep owners, false: never", "--owner", "--no-owner", value=False),
    Setting("remote-path", "the rdc program on the remote side", "--remote-path"),
    Setting("rsh", "the remote shell, as -e", "--rsh"),
    Setting("timeout", "give up after this many seconds without a byte, as --timeout", "--timeout"),
)

HOST_KEYS = ("bwlimit", "compress", "keys", "remote-path", "rsh", "timeout")
"""The settings that a table [hosts.NAME] may have: those of a connection."""

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")


class Chosen(Record):
    """A setting with a value, and where the value comes from."""

    setting: Setting
    value: str
    source: str
    """The path of the file, or the name of the variable."""

    @property
    def word(self) -> str:
        """The word on a command line that means the same."""
        if self.setting.value:
            off = self.setting.off and self.value == "off"
            return self.setting.off if off else f"{self.setting.on}={self.value}"
        return self.setting.on if self.value == "true" else self.setting.off


def settings_file(environ: Mapping[str, str]) -> str | None:
    """Return the path of the settings file, or None without a home directory."""
    from rdc.model.location import config_directory

    directory = config_directory(environ)
    return None if directory is None else os.path.join(directory, "config.toml")


def chosen_settings(environ: Mapping[str, str], hosts: Callable[[], Iterable[str]] = tuple) -> list[Chosen]:
    """Return the settings with a value, in the order of SETTINGS. The variable of a setting overrides the
    table [hosts.NAME] of the file, and this the rest of the file.

    `hosts`: returns the hosts that the run connects to; called only if the file has such tables. Raises
    UsageError that names the file and key, or the variable.
    """
    path = settings_file(environ)
    found = _read_file(path, hosts) if path is not None and os.path.exists(path) else {}
    for setting in SETTINGS:
        value = environ.get(setting.variable, "")
        if value:
            found[setting.key] = Chosen(setting, _checked(setting, value), setting.variable)
    return [found[setting.key] for setting in SETTINGS if setting.key in found]


def host_settings(environ: Mapping[str, str]) -> dict[str, list[Chosen]]:
    """Return the settings of each table [hosts.NAME] of the file, by name. Raises UsageError."""
    path = settings_file(environ)
    if path is None or not os.path.exists(path):
        return {}
    from rdc.model.settings import read_settings

    table = read_settings(path)
    return {
        host: list(_chosen(of_host, HOST_KEYS, f"{path}, [hosts.{host}]").values())
        for host, of_host in (() if table is None else table.tables("hosts"))
    }


def default_words(
    groups: Sequence[OptionGroup],
    environ: Mapping[str, str],
    words: Sequence[str] = (),
    host_operands: bool = False,
) -> list[Chosen]:
    """Return the settings that a verb with these options has. Their words precede the typed `words`.

    `host_operands`: whether operands are hosts, not places.
    """
    names = {name for group in groups for option in group.options for name in option.names}
    if not any(setting.on in names for setting in SETTINGS):
        return []
    found = chosen_settings(environ, lambda: _hosts_of(words, groups, host_operands=host_operands))
    return [chosen for chosen in found if chosen.word.partition("=")[0] in names]


def _hosts_of(words: Sequence[str], groups: Sequence[OptionGroup], *, host_operands: bool) -> Iterable[str]:
    """Yield the hosts of a command line, without their users. A wrong command line has none: its verb reports
    what is wrong."""
    try:
        operands = parse_words(words, groups, {}, command="rdc").operands
    except UsageError:
        return
    from rdc.model.location import parse_location

    for operand in operands:
        try:
            host = operand if host_operands else parse_location(operand).host
        except UsageError:
            continue
        if host is not None:
            yield host.rpartition("@")[2]


def _read_file(path: str, hosts: Callable[[], Iterable[str]]) -> dict[str, Chosen]:
    from rdc.model.settings import read_settings

    table = read_settings(path)
    if table is None:
        return {}
    found = _chosen(table, [setting.key for setting in SETTINGS], path, tables=("hosts", "jobs"))
    tables = dict(table.tables("hosts"))
    if not tables:
        return found
    of_hosts: dict[str, Chosen] = {}
    for host in hosts():
        if host not in tables:
            continue
        for key, chosen in _chosen(tables[host], HOST_KEYS, f"{path}, [hosts.{host}]").items():
            other = of_hosts.setdefault(key, chosen)
            if other.value != chosen.value:
                raise UsageError(
                    f"{chosen.source}: '{key}' differs from that of {other.source}, and one run has one; give"
                    f" {chosen.setting.on} on the command line"
                )
    return found | of_hosts


def _chosen(
    table: Table, keys: Sequence[str], source: str, *, tables: Sequence[str] = ()
) -> dict[str, Chosen]:
    """Return the settings of one table of the file. `tables`: the tables that it may have."""
    from rdc.model.settings import Setting as Declared
    from rdc.model.settings import SettingKind

    by_key = {setting.key: setting for setting in SETTINGS if setting.key in keys}
    kinds = {
        key: Declared(SettingKind.SCALAR if setting.value else SettingKind.FLAG)
        for key, setting in by_key.items()
    }
    found = table.read(kinds, tables=tables, hint=f"; there are {', '.join(by_key)}")
    texts = {name.replace("_", "-"): value for name, value in found.items()}
    return {
        key: Chosen(by_key[key], value if by_key[key].value else str(value).lower(), source)
        for key, value in texts.items()
    }


def _checked(setting: Setting, value: str) -> str:
    if setting.value:
        return value
    if value.lower() not in (*_YES, *_NO):
        raise UsageError(f"{setting.variable}={value}: expected true or false")
    return str(value.lower() in _YES).lower()
