"""Near-duplicate documents in slices, through the engines that are installed, with one worker that dies.

What one search prints, keeps and writes as a part must equal what the merge of slices does, to the byte.
Prints seconds and the memory of each step.

    scripts/soak documents [--documents=N] [--pages=FILE.jsonl] [--corpus=DIR] [--slices=N] [--seed=N]
        [--engines=processes,dask,ray:local,ray]

scripts/make_documents.py makes the documents: of pages that scripts/fetch_documents.py fetched, or of the
manual and the sources of rdc. --corpus is a directory that has documents already.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import rdc
from rdc.cluster.engines import opened_engine, parse_engine
from rdc.errors import printable
from scripts.make_documents import Maker, read_pages, write_documents
from scripts.soak_slices import NEEDED, deadly
from tests.cluster.clusters import TOKEN, dask_cluster, ray_cluster
from tests.support.project_paths import TOP

RESULTS = ("groups", "kept", "part")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--documents", type=int, default=20_000)
    arguments.add_argument("--pages", type=Path)
    arguments.add_argument("--corpus", type=Path)
    arguments.add_argument("--engines", default="processes,dask,ray:local")
    arguments.add_argument("--slices", type=int, default=16)
    arguments.add_argument("--seed", type=int, default=time.time_ns() & 0xFFFFFF)
    given = arguments.parse_args()
    names = [name for name in given.engines.split(",") if find_spec(NEEDED[name]) is not None]
    print(f"seed {given.seed}, engines {' '.join(names)}", flush=True)
    os.environ.update(TOKEN)
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        corpus = given.corpus or top / "corpus"
        if given.corpus is None:
            pages = read_pages(given.pages) if given.pages else own_pages()
            write_documents(Maker(pages, given.seed), corpus, given.documents)
        size = sum(file.stat().st_size for file in corpus.rglob("*") if file.is_file())
        print(f"{size / 1e6:,.0f} MB in {corpus}", flush=True)
        measured("one search", top, "whole", "similar", "--text", corpus)
        for number, engine in enumerate(names):
            through(engine, corpus, given.slices, top / f"engine{number}", top)


def own_pages() -> list[str]:
    """Texts that every clone has."""
    files = sorted([*TOP.glob("docs/**/*.md"), *TOP.glob("rdc/**/*.py"), *TOP.glob("rdc/**/*.md")])
    return [text for text in (file.read_text() for file in files) if len(text) > 1_000]


def through(name: str, corpus: Path, slices: int, own: Path, top: Path) -> None:
    """Make the parts with one engine, of whose tasks one kills its worker, and compare their merge."""
    own.mkdir()
    (own / "parts").mkdir()
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        url = {"processes": "processes:2", "ray:local": "ray:local"}.get(name)
        if url is None:
            url = stack.enter_context(dask_cluster(own) if name == "dask" else ray_cluster(own))
        engine = stack.enter_context(opened_engine(parse_engine(url)))
        ready = time.monotonic()
        executor = deadly(engine, own / "marks", {slices // 2})
        parts = rdc.document_parts(corpus, executor, slices, own / "parts")
        done = time.monotonic()
    deaths = len(list((own / "marks").iterdir()))
    if deaths != 1:
        raise SystemExit(f"{name}: expected one worker to die, found {deaths}")
    size = sum(os.stat(part).st_size for part in parts)
    print(
        f"{name}: {done - ready:.1f} s for {slices} slices with two workers, one of them killed once,"
        f" {ready - begun:.1f} s to begin; parts of {size / 1e6:,.0f} MB",
        flush=True,
    )
    measured(f"{name}: merge", top, "merged", "merge", *reversed(parts))
    for result in RESULTS:
        if not filecmp.cmp(top / f"whole.{result}", top / f"merged.{result}", shallow=False):
            raise SystemExit(f"{name}: {result} of {slices} slices differ from those of one search")
    subprocess.run(["rm", "-r", own], check=True)
    print(f"{name}: {', '.join(RESULTS)} equal those of one search, to the byte", flush=True)


def peak(pid: int) -> int:
    """KiB that a process took at most until now. What wait4 says counts the process that began it as well."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        return 0 if found is None else int(found[1])
    return 0


def measured(what: str, top: Path, name: str, *words: str | Path) -> None:
    """Run rdc with its results in files, and print what it took."""
    part, kept = top / f"{name}.part", top / f"{name}.kept"
    command = [sys.executable, "-m", "rdc", *map(str, words), f"--write-kept={kept}", "-o", str(part)]
    begun = time.monotonic()
    with (top / f"{name}.groups").open("wb") as groups, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=TOP, stdout=groups, stderr=errors)
        memory, found = 0, 0
        while not found:
            memory = max(memory, peak(process.pid))
            time.sleep(0.02)
            found, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        summary = errors.read()
    if process.returncode:
        raise SystemExit(f"{what}: {printable(summary[-500:])}")
    seconds, cpu = time.monotonic() - begun, usage.ru_utime + usage.ru_stime
    print(f"{what}: {seconds:.1f} s, {cpu:.1f} s of CPU, {memory / 1024:.0f} MB", flush=True)
    print(f"  {printable(summary.splitlines()[-1])}", flush=True)


if __name__ == "__main__":
    main()
