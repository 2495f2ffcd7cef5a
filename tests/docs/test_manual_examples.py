"""The examples of README.md and of the manual run, and print what the pages show."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pytest

from scripts.manual.refresh import PICTURES
from scripts.manual.transcripts import blocks_of, comparable, differences, has_examples, pages, run_page
from tests.support.project_paths import TOP

PROGRAM = Path(sys.executable).parent

EXAMPLES = [path for path in pages() if has_examples(path.read_text())]

SAMPLE = """\
<!-- setup: echo hidden > file -->

```console
$ cat file; echo 12.5 MB in 3 s
hidden
1.0 KB in 0.1 s
$ echo a \\
  b
```

```toml title="on the server: daemon.toml"
a = 1
```

```console title="on the server"
$ cat daemon.toml
```
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(TOP).as_posix())
def test_the_examples_print_what_the_page_shows(path: Path) -> None:
    found = differences(path.read_text(), PROGRAM)
    assert not found, "run scripts/docs --refresh, and read what it changed"


def test_a_page_is_run_as_it_reads() -> None:
    (first, said), (_, server) = run_page(SAMPLE, PROGRAM)
    assert said == "$ cat file; echo 12.5 MB in 3 s\nhidden\n12.5 MB in 3 s\n$ echo a \\\n  b\na b\n"
    assert first.commands[0].printed == "hidden\n1.0 KB in 0.1 s"
    assert server == "$ cat daemon.toml\na = 1\n"
    assert comparable("sent 1.2 MB in 3 s") == comparable("sent 990 B in 12 s")
    assert comparable("2 files") != comparable("2 links")


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_are_current(name: str) -> None:
    text = (TOP / "docs" / "pictures" / name).read_text()
    assert comparable(text) == comparable(PICTURES[name]()), "run scripts/docs --refresh"


def test_examples_in_python_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDC_CATALOG", "off")
    ran = 0
    for path in pages():
        text = "".join(block.text + "\n" for block in blocks_of(path.read_text()) if block.kind == "python")
        if text:
            place = tmp_path / path.stem
            place.mkdir()
            monkeypatch.chdir(place)
            example = doctest.DocTestParser().get_doctest(text, {}, path.name, None, 0)
            assert doctest.DocTestRunner().run(example).failed == 0
            ran += len(example.examples)
    assert ran > 10
