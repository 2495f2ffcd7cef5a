"""The recording of a terminal: commands that run, drawn as a picture that plays once and then stands."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from scripts.manual.transcripts import HERE, Machines

COMMANDS = (
    "rdc sync photos/ backup/",
    "echo 'one more line' >> photos/2024/notes.txt; mv photos/new photos/2025",
    "rdc sync -i --delete photos/ backup/",
    "rdc dupes photos/",
)
"""The commands of the recording: a first copy, an edit and a rename, what they cost, and duplicates."""

SETUP = """
set -e
mkdir -p photos/2023 photos/2024 photos/new
for year in 2023 2024 new; do
  for number in 1 2 3 4 5 6; do
    python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(sys.argv[1]).randbytes(700_000))' \\
      $year$number > photos/$year/IMG_$number.jpg
  done
done
cp photos/2023/IMG_3.jpg photos/2024/copy-of-IMG_3.jpg
seq 40000 > photos/2024/notes.txt
touch -d '2024-06-01' photos/*/* photos/* photos
"""

WIDTH, LINE, CHARACTER, TOP_BAR = 760, 18, 7.85, 34
TYPED_SECONDS, PAUSE_SECONDS = 0.9, 0.5


class Line(NamedTuple):
    text: str
    command: bool
    at: float
    """Seconds from the beginning."""


def recorded(program: Path) -> list[Line]:
    """Run the commands, and say what appears when."""
    with tempfile.TemporaryDirectory(prefix="rdc-docs-") as directory:
        machines = Machines(Path(directory), program)
        machines.run(SETUP, HERE)
        lines, now = [], 0.4
        for command in COMMANDS:
            lines.append(Line("$ " + command, True, now))
            now += TYPED_SECONDS
            for text in machines.run(command, HERE).splitlines():
                lines.append(Line(text, False, now))
                now += 0.06
            now += PAUSE_SECONDS
    return lines


def drawn(lines: list[Line]) -> str:
    """Return the picture. Lines appear one after the other, or at once where the reader wants no motion."""
    height = TOP_BAR + LINE * len(lines) + 18
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img"><title>A terminal: rdc copies a directory, then what changed in it,'
        " then finds duplicates</title><style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"
        "'DejaVu Sans Mono',monospace;fill:#d8dee9;white-space:pre}.c{fill:#fff;font-weight:600}"
        ".p{fill:#8fbf7f}"
        "@keyframes a{from{opacity:0}to{opacity:1}}"
        "@media (prefers-reduced-motion:no-preference){.l{animation:a .1s linear both}}</style>"
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#20242c"/>'
        '<circle cx="18" cy="17" r="5" fill="#e06c5f"/><circle cx="36" cy="17" r="5" fill="#e5c07b"/>'
        '<circle cx="54" cy="17" r="5" fill="#8fbf7f"/>'
    ]
    for number, line in enumerate(lines):
        y = TOP_BAR + LINE * (number + 1) - 4
        text = escape(line.text)
        if line.command:
            text = f'<tspan class="p">$</tspan><tspan class="c">{text[1:]}</tspan>'
        parts.append(
            f'<text class="l" style="animation-delay:{line.at:.2f}s" x="16" y="{y}" xml:space="preserve">'
            f"{text}</text>"
        )
    return "\n".join(parts) + "</svg>\n"
