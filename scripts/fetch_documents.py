"""Fetches real documents for bench/documents.py: pages of Debian's -doc packages, as JSON lines.

Each line has `path` and `text`, HTML as it is. The packages come with apt-get download, which needs no root.
About 60 MB are fetched, and nothing is installed.
Command: .venv/bin/python scripts/fetch_documents.py OUT.jsonl [PACKAGE ...]
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import tempfile
from pathlib import Path

PACKAGES = (
    "libboost1.74-doc",
    "libstdc++-12-doc",
    "linux-doc-6.1",
    "manpages-dev",
    "postgresql-doc-15",
    "python-django-doc",
    "qtbase5-doc-html",
)
LEAST, MOST = 200, 1 << 20
"""Bytes of a page. Smaller ones are frames and redirections."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as folder, options.out.open("w") as out:
        for package in options.packages:
            content = Path(folder) / package
            content.mkdir()
            fetched = subprocess.run(["apt-get", "download", "-q", package], cwd=content, check=False)
            found = list(content.glob("*.deb"))
            if fetched.returncode or not found:
                print(f"{package}: not fetched; run apt-get update, or name packages that there are")
                continue
            subprocess.run(["dpkg-deb", "-x", found[0], content / "x"], check=True)
            before = count
            for file in sorted((content / "x").rglob("*")):
                text = page(file)
                if text is not None and LEAST <= len(text) <= MOST:
                    line = {"path": str(file.relative_to(content / "x")), "text": text}
                    out.write(json.dumps(line) + "\n")
                    count += 1
            print(f"{package}: {count - before} documents", flush=True)
    print(f"{count} documents")


def page(file: Path) -> str | None:
    """Return the text of a page or a manual page; None for other files."""
    if file.is_symlink() or not file.is_file():
        return None
    if file.suffix in (".html", ".htm", ".txt", ".rst"):
        return file.read_bytes().decode(errors="replace")
    if file.suffix == ".gz" and ("man" in file.parts or file.name.endswith((".txt.gz", ".rst.gz"))):
        return gzip.decompress(file.read_bytes()).decode(errors="replace")
    return None


if __name__ == "__main__":
    main()
