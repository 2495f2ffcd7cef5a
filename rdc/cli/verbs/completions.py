"""`rdc completions bash|zsh|fish`: generates completion rules from the option tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rdc.cli.environment import Environment, OptionGroup, parse_words
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, UsageError
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.verb import Verb


SUMMARY = "print the completion rules for a shell"

SUBVERBS = ("bash", "zsh", "fish")

OPTIONS = (OptionGroup("Options", (Option(("--help",), "show this text"),)),)

_INTRODUCTION = """\
Usage: rdc completions bash|zsh|fish

Examples:
  rdc completions bash > ~/.local/share/bash-completion/completions/rdc
  rdc completions zsh > ~/.zfunc/_rdc            (with fpath+=~/.zfunc before compinit)
  rdc completions fish > ~/.config/fish/completions/rdc.fish
"""

_FILES = ("FILE", "DIR", "PROGRAM")
"""Values that are file names. Shells complete no other values."""


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc completions` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc completions")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if len(parsed.operands) != 1 or parsed.operands[0] not in SUBVERBS:
        raise UsageError(f"rdc completions is followed by {', '.join(SUBVERBS)} (see rdc completions --help)")
    from rdc.cli.verb import load_verbs

    environment.data(completion_rules(parsed.operands[0], load_verbs()))
    return ExitCode.OK


def completion_rules(shell: str, verbs: dict[str, Verb]) -> str:
    """The rules for one shell of SUBVERBS."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)


def _options(verb: Verb) -> Iterator[Option]:
    """Yield the options of all groups of a verb."""
    for group in verb.OPTIONS:
        yield from group.options


def _subverbs(verb: Verb) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(verb, "SUBVERBS", ())
    return found


def _quoted(text: str) -> str:
    """Quotes text for any of the three shells."""
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"


def _bash(verbs: dict[str, Verb]) -> str:
    cases = ""
    for name, verb in verbs.items():
        words = [
            option_name + ("=" if option.metavar is not None and option_name.startswith("--") else "")
            for option in _options(verb)
            for option_name in option.names
        ]
        cases += (
            f"        {name}) options={_quoted(' '.join(words))}; subverbs='{' '.join(_subverbs(verb))}' ;;\n"
        )
    return f"""\
# Completion of rdc for bash; printed by: rdc completions bash
_rdc() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} options= subverbs=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{" ".join(verbs)} --help --version' -- "$current"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}    esac
    case $current in
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        *) [ "$COMP_CWORD" -ne 2 ] || COMPREPLY=($(compgen -W "$subverbs" -- "$current")) ;;
    esac
    case ${{COMPREPLY[0]}} in
        *=) compopt -o nospace ;;
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
            value = f":{option.metavar}:" + ("_files" if option.metavar in _FILES else " ")
        equals = "=" if value and name.startswith("--") else "+" if value else ""
        return _quoted(f"*{name}{equals}[{described(option.help)}]{value}")

    cases = ""
    for name, verb in verbs.items():
        specs = [spec(option, word) for option in _options(verb) for word in option.names]
        operands = (
            f"'1:what:({' '.join(_subverbs(verb))})' '*:file:_files'"
            if _subverbs(verb)
            else "'*:file:_files'"
        )
        lines = " \\\n            ".join((*specs, operands))
        cases += f"        {name})\n            _arguments \\\n            {lines}\n            ;;\n"
    summaries = "\n        ".join(
        _quoted(f"{name}:{described(verb.SUMMARY)}") for name, verb in verbs.items()
    )
    return f"""\
#compdef rdc
# Completion of rdc for zsh; printed by: rdc completions zsh
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
    lines = ["# Completion of rdc for fish; printed by: rdc completions fish"]
    for name, verb in verbs.items():
        lines.append(f"complete -c rdc -n __fish_use_subcommand -f -a {name} -d {_quoted(verb.SUMMARY)}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        if _subverbs(verb):
            lines.append(f"complete -c rdc {seen} -f -a '{' '.join(_subverbs(verb))}'")
        for option in _options(verb):
            spelled = " ".join(
                f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" for word in option.names
            )
            value = "" if option.metavar is None else " -r" if option.metavar in _FILES else " -x"
            lines.append(f"complete -c rdc {seen} {spelled}{value} -d {_quoted(option.help)}")
    return "\n".join(lines) + "\n"
