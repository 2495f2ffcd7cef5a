"""The man pages and completions of data/, which are made from the code: scripts/docs --refresh writes them.

They are kept, not made while a package is built. A build then runs nothing of rdc and needs none of its
dependencies, other packagers find plain files, and a change of an option shows what it does to the pages.
"""

from __future__ import annotations

from rdc.cli.manual import manual, verb_manual
from rdc.cli.verb import load_verbs
from rdc.cli.verbs.completions import completion_rules
from scripts.manual.notes import TOP

DATA = TOP / "data"

COMPLETIONS = {
    "bash": "share/bash-completion/completions/rdc",
    "zsh": "share/zsh/site-functions/_rdc",
    "fish": "share/fish/vendor_completions.d/rdc.fish",
}
"""The directories in which each shell looks, below a prefix such as /usr."""

MAN = "share/man/man1"


def data_files() -> dict[str, str]:
    """Return the text of each file, by its path below data/."""
    verbs = load_verbs()
    pages = {f"{MAN}/rdc.1": manual(verbs)}
    pages |= {f"{MAN}/rdc-{name}.1": verb_manual(name, verb) for name, verb in verbs.items()}
    return pages | {path: completion_rules(shell, verbs) for shell, path in COMPLETIONS.items()}


def write_data_files() -> list[str]:
    """Write the files that differ and remove pages of verbs that are gone. Return the paths it changed."""
    wanted, changed = data_files(), []
    for name, text in wanted.items():
        path = DATA / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(name)
    for path in (DATA / MAN).iterdir():
        if f"{MAN}/{path.name}" not in wanted:
            path.unlink()
            changed.append(f"{MAN}/{path.name}")
    return changed


if __name__ == "__main__":
    for name in write_data_files():
        print("written", f"data/{name}")
