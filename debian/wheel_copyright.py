"""Prints the paragraphs of debian/copyright about wheels, made of the licences that they hold.

python3 debian/wheel_copyright.py WHEEL...
"""

from __future__ import annotations

import re
import sys
import zipfile
from email.message import Message
from email.parser import Parser

APACHE = "On Debian systems, this text is in /usr/share/common-licenses/Apache-2.0."


def paragraphs(path: str) -> str:
    """Return a Files paragraph and its License paragraph, in the form of DEP 5."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        found = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(found).decode())
        texts = {
            name.rpartition("/")[2]: wheel.read(name).decode()
            for name in names
            if re.search(r"\.dist-info/(?:licenses/)?(?:LICEN[CS]E|COPYING|NOTICE)[^/]*$", name)
        }
    if not texts:
        sys.exit(f"{path}: holds no licence")
    kind = f"{metadata['Name'].lower()}-license"
    lines = [
        f"Files: debian/wheels/{path.rpartition('/')[2].partition('-')[0]}-*",
        "Copyright: " + "\n           ".join(holders(texts) or [f"the authors: {author(metadata)}"]),
        f"License: {kind}",
        f"Comment: {metadata['Name']} {metadata['Version']}, as a wheel from PyPI",
        "",
        f"License: {kind}",
    ]
    for name, text in texts.items():
        lines += [f" {name}:", " .", *indented(text), " ."]
    return "\n" + "\n".join(lines[:-1]) + "\n"


def holders(texts: dict[str, str]) -> list[str]:
    """Return the lines that name the holders of the copyright, with the years."""
    found: list[str] = []
    for line in "\n".join(texts.values()).splitlines():
        matched = re.match(r"\s*Copyright (?:\([cC]\) )?(\d{4}.*)", line)
        if matched and matched[1].strip() not in found:
            found.append(matched[1].strip())
    return found


def author(metadata: Message) -> str:
    """Return the author, for a package whose licence names nobody."""
    return str(metadata["Author"] or metadata["Author-email"])


def indented(text: str) -> list[str]:
    """Return the text of the licence; the Apache License becomes a reference to its copy in Debian."""
    if re.search(r"Apache License\s+Version 2\.0, January 2004", text):
        before = text.partition("Apache License")[0].rstrip()
        text = "\n".join(filter(None, [before, "Apache License, Version 2.0.", APACHE]))
    return [f" {line.rstrip()}" if line.strip() else " ." for line in text.expandtabs().splitlines()]


if __name__ == "__main__":
    for wheel_path in sys.argv[1:]:
        print(paragraphs(wheel_path), end="")
