"""The options that rdc and rsync share, each with the words that a case may hold.

A row stands for an option that changes what is taken, compared, written or said. What has no effect on a
local run (--rsh, --timeout and the like) is in `MANNERS`: it must change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

__all__ = ["DELETIONS", "MANNERS", "SHARED", "SharedOption", "option_words"]

RULES = (
    "--exclude=a", "--exclude=/a", "--exclude=b/", "--exclude=a/b", "--exclude=a-*",
    "--exclude=/a/**", "--exclude=*", "--include=a", "--include=*/", "--include=b/***",
    "--filter=- .h", "--filter=+ /c/*", "--exclude=n?", "--include=n1", "--filter=P a",
    "--filter=protect /a/**", "--filter=H b/", "--filter=S n1", "--filter=R *", "--filter=-! */",
    "--filter=-p n?", "--filter=-s c", "--filter=+r a", "--filter=-r b", "--filter=!",
    "--exclude-from={beside}/rules", "--include-from={beside}/rules",
)  # fmt: skip

MODES = ("D755,F644", "go-w", "u=rwX,go=", "+x", "F600", "Dg+s,ug+w,Fo-w,+X", "a=r")

MAPS = ("*:7", "0:daemon,daemon:root", "1-12345:bin", ":4,nobody:54321", "?*:4,:5", "0-0:0,*:1")

MANNERS = (
    "-z",
    "--no-compress",
    "--partial",
    "--bwlimit=100m",
    "--timeout=60",
    "-r",
    "-l",
    "-p",
    "-t",
    "-o",
    "-g",
    "--no-whole-file",
    "--no-W",
    "-s",
    "--i-r",
    "--preallocate",
    "--out-format=%i %n%L",
    "--outbuf=L",
    "-8",
    "-h",
    "--no-h",
    "--stop-after=100",
    "--time-limit=100",
    "--stop-at=2099-12-31T23:59",
    "-q",
    "--super",
    "--info=none",
    "--stderr=client",
    "--max-alloc=1g",
    "--temp-dir={beside}/temporary",
)


DELETIONS = (
    "--delete",
    "--del",
    "--delete-during",
    "--delete-delay",
    "--delete-after",
    "--delete-excluded",
)


@dataclass(frozen=True, slots=True)
class SharedOption:
    """An option that both programs have. `names`: rsync's spellings of what `words` draws."""

    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    several: bool = False
    """A case may hold more than one of `words`."""


def _plain(*names: str) -> SharedOption:
    return SharedOption(names, tuple((name,) for name in names))


def _valued(*words: str) -> SharedOption:
    return SharedOption((words[0].partition("=")[0],), tuple((word,) for word in words))


SHARED: tuple[SharedOption, ...] = (
    SharedOption(DELETIONS, tuple((word,) for word in DELETIONS)),
    _plain("-c", "--checksum"),
    _plain("-u", "--update"),
    _plain("--existing", "--ignore-non-existing"),
    _plain("--ignore-existing"),
    _plain("--size-only"),
    _plain("-I", "--ignore-times"),
    _valued("--modify-window=0", "--modify-window=1", "-@2"),
    _plain("-W", "--whole-file"),
    _plain("-y", "--fuzzy"),
    _plain("--open-noatime"),
    SharedOption(("-U", "--atimes"), (("-U",), ("--atimes",), ("-UU",))),
    _plain("--remove-source-files"),
    _plain("-i", "--itemize-changes"),
    _plain("--force"),
    _plain("--ignore-errors"),
    _valued("--max-size=2", "--max-size=10k"),
    _valued("--min-size=2", "--min-size=10k"),
    _valued("--max-delete=0", "--max-delete=1", "--max-delete=3"),
    _plain("-H", "--hard-links"),
    _plain("-X", "--xattrs"),
    _plain("-A", "--acls"),
    _plain("-S", "--sparse"),
    _plain("-x", "--one-file-system"),
    _plain("--numeric-ids"),
    _valued(*(f"--usermap={each}" for each in MAPS)),
    _valued(*(f"--groupmap={each}" for each in MAPS)),
    _valued("--chown=daemon:bin", "--chown=:12345", "--chown=7"),
    _plain("--no-owner", "--no-o"),
    SharedOption(
        ("-b", "--backup", "--backup-dir", "--suffix"),
        (
            ("-b",),
            ("--backup", "--suffix=.old"),
            ("--backup-dir=old",),
            ("-b", "--backup-dir=o/l/d", "--suffix=.1"),
        ),
    ),
    _valued(*(f"--chmod={mode}" for mode in MODES)),
    _plain("--mkpath"),
    _plain("-m", "--prune-empty-dirs"),
    SharedOption(("-d", "--dirs"), (("-d", "--no-r"), ("--dirs", "--no-recursive"))),
    _plain("--old-dirs", "--old-d"),
    _plain("-C", "--cvs-exclude"),
    _plain("-F"),
    _plain("-L", "--copy-links"),
    _plain("-k", "--copy-dirlinks"),
    _plain("--copy-unsafe-links"),
    _plain("--safe-links"),
    _plain("--munge-links"),
    _plain("-K", "--keep-dirlinks"),
    _plain("-O", "--omit-dir-times"),
    _plain("-J", "--omit-link-times"),
    _plain("-E", "--executability"),
    _plain("--no-D", "--no-devices", "--no-specials", "-D"),
    _plain("--delay-updates"),
    _valued("--partial-dir=.parts"),
    _plain("--inplace"),
    _plain("--append", "--append-verify"),
    SharedOption(
        ("--exclude", "--include", "--filter", "-f", "--exclude-from", "--include-from"),
        tuple((rule,) for rule in RULES), several=True
    ),
)  # fmt: skip


@st.composite
def option_words(draw: st.DrawFn, table: Sequence[SharedOption] = SHARED) -> tuple[str, ...]:
    """The words of one case: up to four options, and sometimes what must change nothing."""
    chosen = draw(st.lists(st.sampled_from(range(len(table))), max_size=4, unique=True))
    words: list[str] = []
    for number in sorted(chosen):
        option = table[number]
        for each in draw(
            st.lists(st.sampled_from(option.words), min_size=1, max_size=3 if option.several else 1)
        ):
            words += each
    if draw(st.integers(0, 3)) == 0:
        words.append(draw(st.sampled_from(MANNERS)))
    return tuple(words)
