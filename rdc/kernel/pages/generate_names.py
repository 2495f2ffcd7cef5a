"""Generates html_names.h: the names of characters in HTML, as Python has them from the standard."""

from __future__ import annotations

from html.entities import html5

__all__ = ["names_text"]


def names_text() -> str:
    """Returns the whole text of html_names.h."""
    width = max(len(name) for name in html5) + 1
    entries = [f'    {{"{name}", "{_escaped(html5[name])}"}},' for name in sorted(html5)]
    return "\n".join(
        [
            "/* html_names.h - names of characters; written by scripts/kernel_tables, do not edit. */",
            "#ifndef RDC_HTML_NAMES_H",
            "#define RDC_HTML_NAMES_H",
            "",
            "typedef struct {",
            f"    char name[{width}]; /* without the &; most end with a semicolon */",
            "    char value[8]; /* UTF-8 */",
            "} rdc_html_name;",
            "",
            "/* In order of name. */",
            f"static const rdc_html_name rdc_html_names[{len(entries)}] = {{",
            *entries,
            "};",
            "",
            "#endif",
            "",
        ]
    )


def _escaped(characters: str) -> str:
    return "".join([f"\\{byte:03o}" for byte in characters.encode()])
