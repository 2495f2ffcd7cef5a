"""Tables of the reference that are made from the code: exit codes, settings, dependencies, filters."""

from __future__ import annotations

import re
import tomllib

import rdc
from rdc.cli.environment import SETTINGS
from rdc.cli.main import READER_GONE
from rdc.cli.options.shared_options import FILTER_GROUP
from rdc.errors import ExitCode
from scripts.manual.notes import TOP, MissingNoteError, notes
from scripts.manual.options import spelled


def exit_code_table() -> str:
    """All exit codes, in order."""
    codes = {code.name: int(code) for code in ExitCode} | {"READER_GONE": READER_GONE}
    meanings = notes("exit_codes")
    if codes.keys() != meanings.keys():
        raise MissingNoteError(
            f"rdc/cli/notes/exit_codes.toml differs in {sorted(codes.keys() ^ meanings.keys())}"
        )
    rows = [
        f'| <a id="code-{code}"></a>{code} | {meanings[name]} |'
        for name, code in sorted(codes.items(), key=_second)
    ]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def _second(pair: tuple[str, int]) -> int:
    return pair[1]


def settings_table() -> str:
    """Return the settings of a user: name in the file, variable, options."""
    examples = notes("settings")["examples"]
    if examples.keys() != {setting.key for setting in SETTINGS}:
        raise MissingNoteError("docs/notes/settings.toml has other settings than rdc.cli.environment")
    rows = []
    for setting in SETTINGS:
        options = " ".join(f"`{name}`" for name in (setting.on, setting.off) if name)
        rows.append(f"| `{setting.key}` | `{setting.variable}` | {options} | {setting.help} |")
    return "\n".join(["| setting | variable | options | meaning |", "|---|---|---|---|", *rows])


def settings_example() -> str:
    """Return a settings file with every setting."""
    examples = notes("settings")["examples"]
    lines = [f"{setting.key} = {examples[setting.key]}" for setting in SETTINGS]
    return '```toml title="config.toml"\n' + "\n".join(lines) + "\n```"


def filter_table() -> str:
    """Return the options that choose files."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in spelled(option))} | {option.help} |"
        for option in FILTER_GROUP.options
    ]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def document_section(path: str, heading: str) -> str:
    """Return the text below a heading of a document of the repository."""
    text = (TOP / path).read_text()
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise MissingNoteError(f"{path} has no section {heading}")
    return found[1].strip()


PURPOSES = {
    "blake3": "digests of chunks, nodes and files: fast, threaded, cryptographic",
    "cryptography": "the keys of `rdc://`; only `rdc keys` loads it",
    "msgpack": "the payload of protocol frames",
    "packaging": "selects wheels for the host of `rdc install`; only that verb loads it",
    "rich": "the progress bar; loaded when one appears",
    "watchdog": "reading inotify in `rdc watch`; 7.1 is the first version that reports an overflow",
    "xxhash": "digests of fixed blocks in a scan",
    "zstandard": "compression on the wire, and of a scan's samples",
    "build": "tests: makes the source distribution",
    "distributed": "`rdc scan --cluster=dask://`; the extra `dask`",
    "hypothesis": "tests: random inputs",
    "jsonschema": "tests: validates the JSON report",
    "mfusepy": "tests: file systems with limited support for metadata; ISC, 3.1 of 2026, one file",
    "mkdocs": "this manual; the extra `docs`",
    "mkdocs-material": "the theme of this manual; the extra `docs`",
    "mkdocstrings-python": "the page of the Python API; the extra `docs`",
    "moto": "tests: a server like S3's on loopback; Apache-2.0, 5.2 of 2026, released monthly, 50 MB",
    "mypy": "tests: types, strictly",
    "pyarrow": "`rdc scan --parquet`; the extra `parquet`",
    "pytest": "tests: the runner",
    "pytest-timeout": "tests: a test that hangs fails with its name",
    "pytest-xdist": "tests: on all cores at once",
    "pyyaml": "tests: reading the workflow for hosted runners",
    "ray": "`rdc scan --cluster=ray://`; the extra `ray`",
    "ruff": "tests: format and lint",
    "selectolax": "`rdc.similarity.html_text`; the extra `html`; MIT, it brings Lexbor (Apache-2.0)",
    "s3fs": "`rdc scan s3://`, `rdc similar --text s3://`; the extra `s3`; BSD, 2026.9, monthly; 50 MB",
}


def api(names: str) -> str:
    """Names of `import rdc`, for mkdocstrings: their signatures and docstrings."""
    return "\n\n".join(
        f"::: {rdc._modules()[name]}.{name}\n    options:\n      heading: rdc.{name}"
        for name in names.split()
    )


def dependency_table() -> str:
    """Return the table of the packages that rdc is built from and that its tests need."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    rows = []
    for requirement in needed:
        name = re.split(r"[><=\[]", requirement)[0]
        if name not in PURPOSES:
            raise MissingNoteError(f"scripts/manual/reference.py: PURPOSES does not say what {name} is for")
        rows.append(f"| {name} | {PURPOSES[name]} |")
    return "\n".join(["| package | for |", "|---|---|", *rows])
