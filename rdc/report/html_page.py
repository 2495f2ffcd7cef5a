"""Parts of self-contained pages: no script, no network access, no other files.

A content security policy forbids all but the styles in the page, so even a name that escaped the escaping
could load nothing. Charts are bars beside the figures that they show, inside tables: whoever cannot see them
loses nothing. Colours follow the reader's choice of light or dark, and each pair of text and ground has a
contrast of 4.5 at least, which tests/report/test_browser.py computes.
"""

from __future__ import annotations

import html
import time

from rdc.errors import one_line, printable
from rdc.lean.records import Record
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAME_CHARACTERS = 240
"""Longest name that is shown whole. So a page of some hundred names stays small, whatever they are."""

COMMAND_CHARACTERS = 4000

_STYLE = """\
:root { color-scheme: light dark; --ground: #fff; --ink: #1c2430; --soft: #525c6a; --line: #d8dee6;
  --card: #f5f7fa; --kept: #1f5fa8; --packed: #8db4dc; --twice: #c2562f; --note: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181f; --ink: #e6eaf0; --soft: #a7b0bd;
  --line: #343c48; --card: #1d232c; --kept: #6ea8e6; --packed: #35587f; --twice: #e08a62; --note: #e0b050; } }
* { box-sizing: border-box; }
body { background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 70rem; padding: 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p { margin: .3rem 0 .7rem; }
code { font-size: .9em; }
.soft { color: var(--soft); }
.note { border-left: 4px solid var(--note); padding-left: .7rem; }
.advice { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem 1rem; }
.cards { display: grid; gap: .7rem; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr));
  list-style: none; margin: 1.2rem 0; padding: 0; }
.cards li { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .7rem 1rem; }
.cards b { display: block; font-size: 1.4rem; line-height: 1.3; }
.cards span { display: block; }
.wide { overflow-x: auto; }
.wide + .wide { margin-top: 1.2rem; }
table { border-collapse: collapse; font-size: .92rem; width: 100%; }
caption { color: var(--soft); padding: 0 0 .3rem; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: inherit; min-width: 9rem; white-space: pre-line; }
.number { font-variant-numeric: tabular-nums; overflow-wrap: normal; text-align: right; white-space: nowrap; }
.bar { background: var(--line); display: flex; height: .5rem; margin-top: .25rem; }
.bar i { display: block; min-width: 1px; }
.kept { background: var(--kept); } .packed { background: var(--packed); } .twice { background: var(--twice); }
.legend i { display: inline-block; height: .8rem; margin: 0 .4rem 0 1rem; width: .8rem; }
details { border-bottom: 1px solid var(--line); padding: .3rem 0; }
summary { cursor: pointer; }
ol { padding-left: 2.5rem; }
@media (max-width: 600px) { body { padding: .8rem; } h1 { font-size: 1.35rem; }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); } .cards b { font-size: 1.1rem; }
  table { font-size: .85rem; } th, td { padding: .35rem .3rem; } tbody th { min-width: 6.5rem; } }
@media print { details, tr { break-inside: avoid; } }
"""


class PageOrigin(Record):
    """The host, the time and the command line of a page."""

    host: str
    seconds: float
    """Seconds since the epoch."""
    command: str | None = None
    """The command line; None for a page of the library."""

    @classmethod
    def here(cls, command: str | None = None) -> PageOrigin:
        """Return this machine and this moment."""
        import socket

        return cls(socket.gethostname(), time.time(), command)


def page_head(title: str, heading: str, origin: PageOrigin) -> str:
    """Return the page up to its first section. `title`: tells pages of rdc from other files."""
    when = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(origin.seconds))
    made = f"<time>{when}</time> on {name_text(origin.host)}, rdc {__version__}"
    if origin.command is not None:
        made += f": <code>{name_text(one_line(origin.command), COMMAND_CHARACTERS)}</code>"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<style>\n{_STYLE}</style></head>\n<body><main>\n<h1>{html.escape(heading)}</h1>\n"
        f'<p class="soft">{made}</p>\n'
    )


PAGE_END = "</main></body></html>\n"


def name_text(name: str | bytes, most: int = NAME_CHARACTERS) -> str:
    """Return a name as HTML text. The middle of one with more than `most` characters is left out."""
    shown = printable(name)
    if len(shown) > most:
        shown = f"{shown[: most // 2]} \N{HORIZONTAL ELLIPSIS} {shown[-most // 2 :]}"
    return html.escape(shown)


def section(title: str, *parts: str) -> str:
    """Return a section, or nothing if all its parts are empty."""
    body = "".join(parts)
    return f"<section><h2>{html.escape(title)}</h2>\n{body}</section>\n" if body else ""


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f"<p{_class(kind)}>{html.escape(text)}</p>\n"


def cards(rows: Iterable[tuple[str, str, str]]) -> str:
    """Return figures side by side: what each is, the figure, and more about it."""
    items = "".join(
        f"<li><span>{html.escape(what)}</span><b>{html.escape(figure)}</b>"
        f'<span class="soft">{html.escape(more)}</span></li>'
        for what, figure, more in rows
    )
    return f'<ul class="cards">{items}</ul>\n'


class Row(Record):
    """A row of a table."""

    name: str
    """HTML."""
    cells: tuple[str, ...]
    """Text."""
    bar: tuple[tuple[str, float], ...] = ()
    """Parts of a bar: the class of each, and its share of the whole width, 0 to 1."""


def table(caption: str, heads: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a table whose first column names the rows; nothing if there are none. Columns of figures are
    aligned to the right. A table that is too wide scrolls by itself, also by keys."""
    if not rows:
        return ""
    kinds = [
        "number" if all(row.cells[at][:1].isdigit() or row.cells[at][:1] in "+-" for row in rows) else ""
        for at in range(len(heads) - 1)
    ]
    head = "".join(
        f'<th scope="col"{_class(kind)}>{html.escape(text)}</th>'
        for text, kind in zip(heads, ["", *kinds], strict=True)
    )
    body = "".join(
        f'<tr><th scope="row">{row.name}{_bar(row.bar)}</th>'
        + "".join(
            f"<td{_class(kind)}>{html.escape(cell)}</td>" for cell, kind in zip(row.cells, kinds, strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{html.escape(caption)}">'
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>\n"
    )


def legend(parts: Iterable[tuple[str, str]]) -> str:
    """Return the legend of a bar's parts: class and text of each."""
    items = "".join(f'<i class="{kind}"></i>{html.escape(text)}' for kind, text in parts)
    return f'<p class="legend soft" aria-hidden="true">{items}</p>\n'


def _bar(parts: Sequence[tuple[str, float]]) -> str:
    shares = [(kind, min(1.0, max(0.0, share))) for kind, share in parts]
    inner = "".join(
        f'<i class="{kind}" style="width:{100 * share:.2f}%"></i>' for kind, share in shares if share
    )
    return f'<span class="bar" aria-hidden="true">{inner}</span>' if parts else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
