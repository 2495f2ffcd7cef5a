"""Draws screens of each verb, moments of a run, and pages in a browser."""

from __future__ import annotations

import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from fcntl import ioctl
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.style import Style
from rich.text import Text

from scripts.manual.recording import SETUP
from scripts.manual.transcripts import HERE, Machines

COLUMNS = (80, 120)
PAGE_WIDTHS = {390: 1400, 1000: 1200, 1600: 1100}
"""Width of the window to its height, in pixels."""

SCREENS = {
    "sync": ("rdc sync photos/ backup/", "rm photos/2023/IMG_1.jpg", "rdc sync -i --delete photos/ backup/"),
    "sync-help": ("rdc sync --help",),
    "sync-dry-run": (
        "rdc sync photos/ backup/; rm photos/2023/IMG_1.jpg; echo x >> photos/2024/notes.txt",
        "rdc sync -n -v --delete photos/ backup/",
        "rdc sync -n -i --delete photos/ backup/",
    ),
    "sync-quiet": (
        "rdc sync photos/ backup/ > log 2>&1; cat log",
        "rdc sync photos/ missing/dir/ > log 2>&1; cat log",
    ),
    "sync-ssh": (
        "rdc sync -e 'ssh -p 1' photos/ localhost:backup/",
        "rdc sync photos/ server:backup/",
    ),
    "advice": (
        "rdc sycn photos/ backup/",
        "rdc -av photos/ backup/",
        "rdc photos/ backup/",
        "rdc backup photos/",
        "rdc verify photos/ backup/",
        "rdc sync --iconv=utf-8 photos/ backup/",
        "rdc sync --exlude=.git photos/ backup/",
        "rdc sync photos/ nowhere/backup/",
    ),
    "check": (
        "cp -a photos copy; echo x >> copy/2024/notes.txt",
        "rdc check photos/ copy/",
        "rdc check photos copy/",
    ),
    "undo": (
        "rdc sync --mkpath photos/ backup/a/; rm photos/2024/notes.txt",
        "rdc sync --delete --keep-undo=30d photos/ backup/a/",
        "rdc undo -v backup/a/",
    ),
    "unite": (
        "mkdir two; rdc unite photos two",
        "echo left >> photos/2024/notes.txt; echo right >> two/2024/notes.txt",
        "touch two/new.txt",
        "rdc unite -n photos two",
        "rdc unite photos two",
        "rdc unite --status photos two",
    ),
    "store": ("rdc store put photos st", "rdc store list st"),
    "jobs": ("cat .config/rdc/config.toml", "rdc run photos", "rdc jobs", "rdc jobs show photos"),
    "watch": ("timeout --foreground -s INT 3 rdc watch photos/ backup/",),
    "scan": ("rdc scan photos/",),
    "merge": (
        "rdc scan -o one.part photos/2023",
        "rdc scan -o two.part photos/2024",
        "rdc merge one.part two.part",
    ),
    "dupes": ("rdc dupes photos/",),
    "similar": ("seq 30000 > photos/2023/notes.txt; rdc similar photos/",),
    "similar-text": (
        "mkdir texts; for n in 1 2 3; do (seq 300; echo copy $n) > texts/$n.txt; done; date > texts/4.txt",
        "rdc similar --text texts/",
    ),
    "dedupe": ("rdc dedupe --hardlink photos/", "rdc dedupe --hardlink --apply photos/"),
    "signature": ("rdc signature photos/2023/IMG_2.jpg | head -20",),
    "index": ("rdc index photos/",),
    "catalog": ("sleep 3; rdc index photos/", "rdc catalog show"),
    "keys": ("rdc keys new --name=laptop", "rdc keys show"),
    "config": ("rdc config show",),
    "completions": (
        "rdc completions --install bash",
        "rdc completions --help",
    ),
    "install": ("rdc install --help | head -30",),
    "serve": ("rdc serve --help | head -30",),
}
"""The commands of each screen, in the directory that SETUP makes, by a name that begins with the verb's."""

PREPARED = {
    "jobs": """
mkdir -p .config/rdc
cat > .config/rdc/config.toml <<END
[jobs.photos]
source = "~/photos/"
destination = "~/backup/"
schedule = "daily 03:30"
END
""",
    "sync-ssh": """
mkdir ../bin
cat > ../bin/ssh <<'END'
#!/bin/bash
if [ "$1" = server ]; then
  shift
  PATH=/usr/bin:/bin exec bash -c "$*"
fi
exec /usr/bin/ssh "$@"
END
chmod +x ../bin/ssh
""",
}
"""The setup before the first command of a screen: a settings file, and a server without rdc."""


class Moment(NamedTuple):
    """A moment of a run in tmux."""

    command: str
    text: str
    """The text that the terminal shows by then."""
    typed: str = ""
    """Text that is typed then."""
    keys: tuple[str, ...] = ()
    """The keys that are pressed after it. Without keys the picture shows the moment itself."""
    after: str = ""
    """The text that the terminal shows after these keys."""


MOMENTS = {
    "bar": Moment("rdc sync -v --bwlimit=2m photos/ slow/", r"[4-9]\.\d MB of"),
    "ctrl-c": Moment(
        "rdc sync -v --bwlimit=2m photos/ slow/", r"[4-9]\.\d MB of", "", ("C-c",), r"(?s)interrupted.*\n\$"
    ),
    "pipe": Moment("rdc sync -v photos/2024/ backup/ | cat", "copied"),
    "completion": Moment(
        "source <(rdc completions bash)", r"\n\$", "rdc sync --del", ("Tab", "Tab"), r"--delete-excluded"
    ),
}

MOMENT_SECONDS = 30

SHOWN_LINES = 46
CHARACTER, LINE, MARGIN = 7.85, 18, 14
COLOURS = {
    "red": "#e06c5f", "green": "#8fbf7f", "yellow": "#e5c07b", "blue": "#7fa8d8", "magenta": "#c39ac9",
    "cyan": "#7fc0c0", "white": "#ffffff", "bright_black": "#8a909c",
}  # fmt: skip

CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


def in_terminal(line: str, machines: Machines, columns: int) -> str:
    """Return what `line` prints into a terminal of `columns` columns, as ANSI text."""
    child, terminal = pty.fork()
    if child == 0:
        environ = {**machines.environ(HERE), "TERM": "xterm-256color", "COLUMNS": str(columns)}
        environ.pop("NO_COLOR")
        os.chdir(machines.home(HERE))
        os.execvpe("bash", ["bash", "-c", f"sleep 0.1; {machines.translated(line)}"], environ)  # noqa: S606 - a screen is of a shell
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    parts = []
    try:
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    except OSError:
        pass  # Linux ends a terminal without a process by EIO
    os.waitpid(child, 0)
    os.close(terminal)
    return machines.shown(settled(b"".join(parts).decode("utf-8", "replace")))


def settled(raw: str) -> str:
    """Return the screen when all is printed: what a progress bar overwrote is gone.

    Only text after a carriage return takes the place of a line: ssh ends its lines by one, to which the
    terminal adds its own.
    """
    lines, row = [""], 0
    returned = False
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r\n|\n|\r)", raw):
        moved = re.fullmatch(r"\x1b\[(\d*)A", piece)
        if piece in {"\r\n", "\n"}:
            row += 1
            lines += [""] * (row + 1 - len(lines))
            returned = False
        elif piece == "\r":
            returned = True
        elif moved:
            row = max(0, row - int(moved[1] or 1))
        elif re.fullmatch(r"\x1b\[[0-2]?K", piece):
            lines[row] = ""
        elif piece and (piece.endswith("m") or not piece.startswith("\x1b[")):
            lines[row] = piece if returned else lines[row] + piece
            returned = False
    return "\n".join(lines).rstrip("\n")


def drawn(title: str, texts: list[Text], columns: int) -> str:
    """Return a terminal with these lines, as SVG."""
    width, height = round(columns * CHARACTER) + 2 * MARGIN, LINE * len(texts) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img"><title>{escape(title)}</title><style>text{{font:13px ui-monospace,'
        "SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9;white-space:pre}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#20242c"/>'
    ]
    for row, text in enumerate(texts):
        y = MARGIN + LINE * (row + 1) - 5
        column = 0
        for start, stop, style in _runs(text):
            piece = text.plain[start:stop]
            colour = COLOURS.get(style.color.name if style.color else "", "")
            look = (f' fill="{colour}"' if colour else "") + (' font-weight="600"' if style.bold else "")
            look += ' opacity=".65"' if style.dim else ""
            if piece.strip():
                # Each run has its own place and length, so that fonts of other widths keep the columns.
                x, length = MARGIN + column * CHARACTER, len(piece) * CHARACTER
                parts.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" xml:space="preserve"{look}>'
                    f"{escape(piece)}</text>"
                )
            column += len(piece)
    return "\n".join(parts) + "</svg>\n"


def _runs(text: Text) -> list[tuple[int, int, Style]]:
    """Pieces of one style: (start, stop, style)."""
    edges = sorted({0, len(text.plain), *(edge for span in text.spans for edge in (span.start, span.end))})
    return [
        (start, stop, _style(text.style, *(s.style for s in text.spans if s.start <= start < s.end)))
        for start, stop in pairwise(edges)
    ]


def _style(*styles: str | Style) -> Style:
    return Style.combine(each if isinstance(each, Style) else Style.parse(each) for each in styles)


def screens(program: Path) -> dict[str, str]:
    """All screens, by name of file."""
    found = {}
    for columns in COLUMNS:
        for name, commands in SCREENS.items():
            with tempfile.TemporaryDirectory(prefix="rdc-docs-") as directory:
                machines = Machines(Path(directory), program)
                machines.run(SETUP + "mkdir backup" + PREPARED.get(name, ""), HERE)
                texts: list[Text] = []
                for command in commands:
                    typed = Text("$ " + command, "bold white")
                    texts += typed.divide(range(columns, len(typed.plain), columns))
                    shown = in_terminal(command, machines, columns)
                    for text in map(Text.from_ansi, shown.split("\n")) if shown else ():
                        # A terminal begins a new row where a line is too long.
                        texts += text.divide(range(columns, len(text.plain), columns))
                left = len(texts) - SHOWN_LINES
                if left > 0:
                    texts[SHOWN_LINES:] = [Text(f"... {left} lines more")]
                verb = name.partition("-")[0]
                found[f"{name}-{columns}.svg"] = drawn(f"rdc {verb}, {columns} columns", texts, columns)
    return found


def moments(program: Path) -> dict[str, str]:
    """Pictures of MOMENTS, by name of file; none if there is no tmux."""
    if shutil.which("tmux") is None:
        print("no tmux: the pictures of a running sync stay as they are")
        return {}
    found = {}
    for name, moment in MOMENTS.items():
        with tempfile.TemporaryDirectory(prefix="rdc-docs-") as directory:
            machines = Machines(Path(directory), program)
            machines.run(SETUP + "mkdir backup slow", HERE)
            shown = _shown_at(moment, machines)
            texts = [Text.from_ansi(line) for line in shown.rstrip("\n").split("\n")]
            found[f"moment-{name}.svg"] = drawn(f"rdc sync: {name}", texts, COLUMNS[0])
    return found


def _shown_at(moment: Moment, machines: Machines) -> str:
    """Return what a terminal shows at a moment. Raises TimeoutError if that does not come."""
    environ = {**machines.environ(HERE), "TERM": "xterm-256color", "PS1": "$ "}
    environ.pop("NO_COLOR")
    environ.pop("COLUMNS")
    server = ("tmux", "-f", "/dev/null", "-S", str(machines.top / "tmux"))

    def tmux(*words: str) -> str:
        done = subprocess.run(
            [*server, *words],
            env=environ,
            cwd=machines.home(HERE),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def wait_for(wanted: str) -> str:
        end = time.monotonic() + MOMENT_SECONDS
        while True:
            shown = tmux("capture-pane", "-e", "-p")
            if re.search(wanted, re.sub(r"\x1b\[[0-9;]*m", "", shown)):
                return shown
            if time.monotonic() > end:
                raise TimeoutError(f"{moment.command}: {wanted!r} did not appear:\n{shown}")
            time.sleep(0.05)

    tmux(
        "new-session",
        "-d",
        "-x",
        str(COLUMNS[0]),
        "-y",
        "24",
        "env PS1='$ ' HISTFILE= bash --norc --noprofile -i",
    )
    try:
        wait_for(r"(?m)^\$")
        tmux("send-keys", "-l", moment.command)
        tmux("send-keys", "Enter")
        shown = wait_for(moment.text if "|" not in moment.command else rf"(?s){moment.text}.*\n\$")
        if moment.typed:
            tmux("send-keys", "-l", moment.typed)
        if moment.keys:
            tmux("send-keys", *moment.keys)
            shown = wait_for(moment.after)
        # A command that still runs would write into a directory that is removed.
        tmux("send-keys", "C-c")
        wait_for(r"\n\$\s*$")
        return machines.shown(shown)
    finally:
        tmux("kill-server")


def pages(program: Path, place: Path) -> None:
    """Write pictures of the pages of a scan and of duplicates, at each of PAGE_WIDTHS."""
    with tempfile.TemporaryDirectory(prefix="rdc-docs-") as directory:
        machines = Machines(Path(directory), program)
        machines.run(SETUP + "cp -r photos copy; rdc scan --html=scan.html --price=25 . >/dev/null", HERE)
        machines.run("rdc dupes --html=dupes.html photos copy", HERE)
        chosen = [(name, *size) for name in ("scan", "dupes") for size in PAGE_WIDTHS.items()]
        for name, width, height in chosen:
            # No window of Chromium is narrower than 500 pixels, but a frame may be.
            frame = machines.home(HERE) / f"frame-{width}.html"
            frame.write_text(
                "<!doctype html><body style='margin:0;background:#777'>"
                f"<iframe src='{name}.html' width={width} height={height} style='border:0;display:block'>"
            )
            subprocess.run(
                [
                    *CHROMIUM, f"--user-data-dir={directory}/chromium", "--allow-file-access-from-files",
                    f"--window-size={max(width, 500)},{height}", "--virtual-time-budget=5000",
                    f"--screenshot={place / f'{name}-page-{width}.png'}", frame.as_uri(),
                ],
                check=True, capture_output=True,
            )  # fmt: skip
