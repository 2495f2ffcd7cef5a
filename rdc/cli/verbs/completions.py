"""`rdc completions bash|zsh|fish`: generates completion rules from the option tables, and installs them.

The rules know the hosts of ssh, and paths on them where a connection is shared already (ssh's ControlMaster):
a key press opens no connection and asks for no password.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, parse_words
from rdc.cli.verb import HOST_VERBS, JOB_VERBS, HelpText, load_verbs
from rdc.errors import ExitCode, UsageError
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.verb import Verb


SUMMARY = "print or install the completion rules for a shell"

SUBVERBS = ("bash", "zsh", "fish")

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(
                ("--install",),
                "install the rules and the man pages for this user",
                note="""The rules go to `~/.local/share/bash-completion/completions`, `~/.zfunc` or
                `~/.config/fish/completions`, and the man pages to `~/.local/share/man/man1`, where man(1)
                finds them if `~/.local/bin` is in `PATH`. A file there that is not rdc's own stays, and the
                verb fails. If no shell is named, it is that of `$SHELL`.""",
            ),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc completions bash|zsh|fish
       rdc completions --install [bash|zsh|fish]

Examples:
  rdc completions --install              install them for your shell, and the man pages
  rdc completions bash > rdc.bash        print them, for a package or your own setup

Completions know verbs, options and their values, files, the hosts of ssh, and paths on a host to which ssh
has a shared connection (ControlMaster). For zsh, put fpath+=~/.zfunc before compinit in ~/.zshrc.
"""

_FILES = ("FILE", "DIR", "PROGRAM")
"""Values that are file names."""

_REMOTE = ("sync", "check", "watch", "unite")
"""Verbs whose operands may be HOST:PATH."""


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc completions` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc completions")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    chosen = list(parsed.operands)
    installs = parsed.has("--install")
    if installs and not chosen:
        chosen = [os.path.basename(environment.environ.get("SHELL", ""))]
    if len(chosen) != 1 or chosen[0] not in SUBVERBS:
        raise UsageError(f"rdc completions is followed by {', '.join(SUBVERBS)} (see rdc completions --help)")
    verbs = load_verbs()
    if not installs:
        environment.data(completion_rules(chosen[0], verbs))
        return ExitCode.OK
    _install(chosen[0], verbs, environment)
    return ExitCode.OK


def _install(shell: str, verbs: dict[str, Verb], environment: Environment) -> None:
    """Write the rules and the man pages below the user's home, and print where. Raises RdcError; a file that
    rdc did not write is never replaced."""
    from rdc.cli.manual import manual, verb_manual
    from rdc.files.own.output_file import Output, OutputKind, make_directory, write_output

    rules = OutputKind("completion rules of rdc", _is_rules)
    page = OutputKind("a man page of rdc", lambda head: head.startswith(b".TH RDC"))
    home = environment.environ.get("HOME", "")
    if not os.path.isabs(home):
        raise UsageError("HOME is not set; print the rules with: rdc completions SHELL")
    data = environment.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local/share")
    config = environment.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    place = {
        "bash": os.path.join(data, "bash-completion/completions/rdc"),
        "zsh": os.path.join(home, ".zfunc/_rdc"),
        "fish": os.path.join(config, "fish/completions/rdc.fish"),
    }[shell]
    pages = os.path.join(home, ".local/share/man/man1")
    texts = {place: (rules, completion_rules(shell, verbs))}
    texts[os.path.join(pages, "rdc.1")] = (page, manual(verbs))
    for name, verb in verbs.items():
        texts[os.path.join(pages, f"rdc-{name}.1")] = (page, verb_manual(name, verb))
    for path, (kind, text) in texts.items():
        make_directory(os.fsencode(os.path.dirname(path)))
        write_output(Output(os.fsencode(path), kind), (text.encode(),))
    environment.data(f"{place}\n{pages}/rdc.1 and {len(verbs)} pages of verbs\n")
    if shell == "zsh":
        environment.data("put fpath+=~/.zfunc before compinit in ~/.zshrc\n")


def _is_rules(head: bytes) -> bool:
    return head.startswith((b"#compdef rdc\n", b"# Completion of rdc for "))


def completion_rules(shell: str, verbs: dict[str, Verb]) -> str:
    """Return the rules for one shell of SUBVERBS."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)


def _options(verb: Verb) -> Iterator[Option]:
    """Yield the options of all groups of a verb."""
    for group in verb.OPTIONS:
        yield from group.options


def _subverbs(verb: Verb) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(verb, "SUBVERBS", ())
    return found


def _quoted(text: str) -> str:
    """Quote text for a POSIX shell, where nothing is special between single quotes but the quote."""
    return "'" + text.replace("'", "'\\''") + "'"


def _quoted_for_fish(text: str) -> str:
    """Quote text for fish, where a backslash between single quotes is special, too."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_OPERANDS = {"remote": _REMOTE, "host": HOST_VERBS, "job": JOB_VERBS}
"""For each kind of operand that is no file: the verbs that take it."""

_JOBS = "rdc jobs 2>/dev/null | sed '1d; s/ .*//'"
"""The command that lists the names of jobs."""

_HOSTS = (
    "{ sed -n 's/^[[:space:]]*[Hh]ost[[:space:]=]\\{1,\\}//p' ~/.ssh/config;"
    " cut -d ' ' -f 1 ~/.ssh/known_hosts; } 2>/dev/null | tr ' ,' '\\n\\n' | grep -v '[][|*?!#@]'"
)
"""The command that lists the hosts that ssh knows by name."""

_SECONDS = 1
"""The longest that a remote side may take to list paths."""


def _bash(verbs: dict[str, Verb]) -> str:
    cases = ""
    for name, verb in verbs.items():
        words = [
            option_name + ("=" if option.metavar is not None and option_name.startswith("--") else "")
            for option in _options(verb)
            for option_name in option.names
        ]
        operands = next((kind for kind, having in _OPERANDS.items() if name in having), "file")
        cases += (
            f"        {name}) options={_quoted(' '.join(words))}; subverbs='{' '.join(_subverbs(verb))}';"
            f" operands={operands} ;;\n"
        )
    values: dict[str, str] = {}
    for name, verb in verbs.items():
        for option in _options(verb):
            for word in option.names:
                if option.values and word.startswith("--"):
                    values[f"{name}:{word}"] = " ".join(option.values)
    chosen = "".join(f"        {key}) values='{text}' ;;\n" for key, text in values.items())
    return f"""\
# Completion of rdc for bash; printed by: rdc completions bash
_rdc_hosts() {{ {_HOSTS}; }}
_rdc_paths() {{  # paths on the host $1 that begin with $2, where ssh shares a connection
    ssh -O check "$1" 2>/dev/null || return
    timeout {_SECONDS} ssh -o BatchMode=yes "$1" "ls -1dp -- $(printf %q "$2")*" 2>/dev/null
}}
_rdc() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} options= subverbs= operands=file values= word
    # Bash divides words at ':' and '=', too; a whole word ends at a blank.
    word=${{COMP_LINE:0:COMP_POINT}}
    word=${{word##* }}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{" ".join(verbs)} --help --version' -- "$current"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}    esac
    case ${{COMP_WORDS[1]}}:${{word%%=*}} in
{chosen}    esac
    case $word in
        -*=*) [ -z "$values" ] || COMPREPLY=($(compgen -W "$values" -- "${{word#*=}}")) ;;
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        */*:*) ;;
        *:*) [ "$operands" != remote ] || COMPREPLY=($(_rdc_paths "${{word%%:*}}" "${{word#*:}}")) ;;
        */*) ;;
        *)
            [ "$COMP_CWORD" -ne 2 ] || COMPREPLY=($(compgen -W "$subverbs" -- "$current"))
            case $operands in
                host) COMPREPLY=($(compgen -W "$(_rdc_hosts)" -- "$current")) ;;
                job) COMPREPLY+=($(compgen -W "$({_JOBS})" -- "$current")) ;;
                remote)
                    COMPREPLY=($(compgen -W "$(_rdc_hosts)" -S : -- "$current"))
                    # Without a host that fits, files are completed by default.
                    [ ${{#COMPREPLY[@]}} -eq 0 ] || COMPREPLY+=($(compgen -f -- "$current"))
                    ;;
            esac
            ;;
    esac
    case ${{COMPREPLY[0]}} in
        *= | *: | */) compopt -o nospace ;;
    esac
}}
complete -o default -F _rdc rdc
"""


def _zsh(verbs: dict[str, Verb]) -> str:
    def described(text: str) -> str:
        return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")

    def spec(option: Option, name: str) -> str:
        value = ""
        if option.metavar is not None:
            action = "_files" if option.metavar in _FILES else " "
            value = f":{option.metavar}:" + (f"({' '.join(option.values)})" if option.values else action)
        equals = "=" if value and name.startswith("--") else "+" if value else ""
        return _quoted(f"*{name}{equals}[{described(option.help)}]{value}")

    cases = ""
    for name, verb in verbs.items():
        specs = [spec(option, word) for option in _options(verb) for word in option.names]
        if _subverbs(verb):
            action = "_rdc_jobs" if name in JOB_VERBS else "_files"
            operands = f"'1:what:({' '.join(_subverbs(verb))})' '*:file:{action}'"
        else:
            actions = {"remote": "_rdc_places", "host": "_rdc_hosts", "job": "_rdc_jobs"}
            kind = next((kind for kind, having in _OPERANDS.items() if name in having), "")
            action = actions.get(kind, "_files")
            operands = f"'*:file:{action}'"
        lines = " \\\n            ".join((*specs, operands))
        cases += f"        {name})\n            _arguments \\\n            {lines}\n            ;;\n"
    summaries = "\n        ".join(
        _quoted(f"{name}:{described(verb.SUMMARY)}") for name, verb in verbs.items()
    )
    return f"""\
#compdef rdc
# Completion of rdc for zsh; printed by: rdc completions zsh
_rdc_places() {{
    local host=${{(Q)PREFIX%%:*}}
    if [[ $PREFIX == *:* && $host != */* ]]; then
        compset -P 1 '*:'
        # Only where ssh shares a connection: a key press opens none.
        ssh -O check $host 2>/dev/null && _remote_files -- ssh
    else
        _alternative 'files:file:_files' 'hosts:host:_rdc_hosts -r: -S:'
    fi
}}
_rdc_hosts() {{
    local -a hosts
    hosts=(${{(f)"$({_HOSTS})"}})
    compadd "$@" -a hosts
}}
_rdc_jobs() {{
    local -a jobs
    jobs=($({_JOBS}))
    _describe -t jobs 'job' jobs
}}
_rdc() {{
    local -a verbs
    verbs=(
        {summaries}
    )
    if (( CURRENT == 2 )); then
        _describe -t verbs 'verb' verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{cases}    esac
}}
_rdc "$@"
"""


def _fish(verbs: dict[str, Verb]) -> str:
    lines = [
        f"""\
# Completion of rdc for fish; printed by: rdc completions fish
function __rdc_places
    set -l word (commandline -ct)
    if not string match -qr '^[^/]+:' -- $word
        __fish_print_hostnames | string replace -r '$' ':'
        return
    end
    set -l parts (string split -m 1 : -- $word)
    # Only where ssh shares a connection: a key press opens none.
    ssh -O check $parts[1] 2>/dev/null; or return
    set -l asked "ls -1dp -- "(string escape -- $parts[2])"*"
    timeout {_SECONDS} ssh -o BatchMode=yes $parts[1] $asked 2>/dev/null | string replace -r '^' "$parts[1]:"
end
function __rdc_jobs
    {_JOBS}
end"""
    ]
    for name, verb in verbs.items():
        summary = _quoted_for_fish(verb.SUMMARY)
        lines.append(f"complete -c rdc -n __fish_use_subcommand -f -a {name} -d {summary}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        if _subverbs(verb):
            lines.append(f"complete -c rdc {seen} -f -a '{' '.join(_subverbs(verb))}'")
        if name in _REMOTE:
            lines.append(f"complete -c rdc {seen} -a '(__rdc_places)'")
        if name in JOB_VERBS:
            lines.append(f"complete -c rdc {seen} -f -a '(__rdc_jobs)'")
        if name in HOST_VERBS:
            lines.append(f"complete -c rdc {seen} -f -a '(__fish_print_hostnames)'")
        for option in _options(verb):
            spelled = " ".join(
                f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in option.names
            )
            value = "" if option.metavar is None else " -r" if option.metavar in _FILES else " -x"
            if value and option.values:
                value += f" -a '{' '.join(option.values)}'"
            lines.append(f"complete -c rdc {seen} {spelled}{value} -d {_quoted_for_fish(option.help)}")
    return "\n".join(lines) + "\n"
