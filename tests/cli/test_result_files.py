"""No result replaces a file that the run reads: every option that names one, over every kind of input."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.cli import main
from tests.documents.corpora import words, write_jsonl
from tests.support.running.fake_environment import FakeProcess


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus, parts of scans and of documents, and a rule file."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("one", 1), ("two", 2)):
        os.makedirs(f"corpus/{name}")
        write_jsonl(Path(f"corpus/{name}/a.jsonl"), [" ".join(words(seed, 40)), " ".join(words(seed, 50))])
        assert run("scan", "-q", "-o", f"{name}.rdcscan", f"corpus/{name}")[0] == 0
        assert run("similar", "--text", "-q", "-o", f"{name}.rdcdocs", f"corpus/{name}")[0] == 0
    Path("rules").write_text("*.tmp\n")


def run(*given: str) -> tuple[int, str, str]:
    process = FakeProcess()
    code = main.run(["--no-catalog" if word == "NC" else word for word in given], process.environment)
    return code, process.out, process.err


def contents(top: Path) -> dict[str, str]:
    """The digest of each regular file below `top`."""
    return {
        os.path.relpath(path, top): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in top.rglob("*")
        if path.is_file()
    }


TEXT = ["similar", "--text", "-q"]
RUNS = {
    "a part of a scan": (["scan", "-q"], "-o={}", "corpus", "corpus/one/a.jsonl"),
    "a page of a scan": (["scan", "-q"], "--html={}", "corpus", "corpus/one/a.jsonl"),
    "a part of documents": (TEXT, "-o={}", "corpus", "corpus/one/a.jsonl"),
    "kept documents": (TEXT, "--write-kept={}", "corpus", "corpus/one/a.jsonl"),
    "a page of documents": (TEXT, "--html={}", "corpus", "corpus/one/a.jsonl"),
    "a slice of documents": ([*TEXT, "--slice=1/2"], "-o={}", "corpus", "corpus/one/a.jsonl"),
    "a slice of a scan": (["scan", "-q", "--slice=1/2"], "-o={}", "corpus", "corpus/one/a.jsonl"),
    "an older corpus": ([*TEXT, "--against=two.rdcdocs"], "-o={}", "corpus", "two.rdcdocs"),
    "a rule file": ([*TEXT, "--exclude-from=rules"], "--write-kept={}", "corpus", "rules"),
    "a merged scan": (["merge", "-q", "two.rdcscan"], "-o={}", "one.rdcscan", "one.rdcscan"),
    "a page of a merged scan": (["merge", "-q", "two.rdcscan"], "--html={}", "one.rdcscan", "one.rdcscan"),
    "merged documents": (["merge", "-q", "two.rdcdocs"], "-o={}", "one.rdcdocs", "one.rdcdocs"),
    "kept merged documents": (
        ["merge", "-q", "two.rdcdocs"],
        "--write-kept={}",
        "one.rdcdocs",
        "one.rdcdocs",
    ),
}
"""By the result: the command, the option, the operand, and a file that the command reads."""


def as_it_is(target: str) -> str:
    return target


def spelled_otherwise(target: str) -> str:
    return f"./corpus/../{target}"


def hard_link(target: str) -> str:
    os.link(target, "other-name")
    return "other-name"


def symbolic_link(target: str) -> str:
    os.symlink(target, "link")
    return "link"


def link_above(target: str) -> str:
    os.symlink(os.path.dirname(target) or ".", "above")
    return f"above/{os.path.basename(target)}"


@pytest.mark.parametrize("spelled", [as_it_is, spelled_otherwise, hard_link, symbolic_link, link_above])
@pytest.mark.parametrize("result", RUNS)
def test_an_input_stays(result: str, spelled: Callable[[str], str], tmp_path: Path) -> None:
    command, option, operand, target = RUNS[result]
    name = spelled(target)
    before = contents(tmp_path)
    for more in ([], ["--overwrite"]):
        code, out, err = run(*command, *more, option.format(name), operand)
        assert (code, out) == (1, ""), err
        assert name in err
        assert contents(tmp_path) == before
    assert "this run would read it" in err


@pytest.mark.parametrize("result", [name for name in RUNS if RUNS[name][2] == "corpus"])
def test_a_new_name_below_an_operand_is_left_out(result: str) -> None:
    command, option, operand, _ = RUNS[result]
    code, _, err = run(*command, option.format("corpus/new"), operand)
    assert code == 0, err
    assert os.path.getsize("corpus/new") > 0
    elsewhere = run(*command, option.format("elsewhere"), "--exclude=/new", operand)
    assert elsewhere[0] == 0
    if option != "--html={}" and "slice" not in result:
        # A slice has the rules among its options.
        assert Path("corpus/new").read_bytes() == Path("elsewhere").read_bytes()
    # What is excluded is not read, so it may be replaced; what would be read may not.
    assert run(*command, option.format("corpus/new"), "--exclude=/new", operand)[0] == 0
    assert run(*command, option.format("corpus/new"), operand)[0] == 1


@pytest.mark.parametrize(
    ("command", "option", "operand"),
    [
        (["scan", "-q"], "-o={}", "corpus"),
        (TEXT, "-o={}", "corpus"),
        (TEXT, "--write-kept={}", "corpus"),
        (TEXT, "--html={}", "corpus"),
        (["merge", "-q", "two.rdcdocs"], "-o={}", "one.rdcdocs"),
        (["merge", "-q", "two.rdcscan"], "-o={}", "one.rdcscan"),
    ],
)
def test_a_file_of_another_kind_stays(command: list[str], option: str, operand: str) -> None:
    for content in ("precious", '{"text": "a row"}\n', '{"path": "x", "text": "a row of a corpus"}\n'):
        Path("precious").write_text(content)
        code, out, err = run(*command, option.format("precious"), operand)
        assert (code, out) == (1, "")
        assert "--overwrite" in err
        assert Path("precious").read_text() == content
    assert run(*command, "--overwrite", option.format("precious"), operand)[0] == 0
    assert Path("precious").read_text(errors="replace") != content
    # A second run replaces its own result without being asked to. A part may be one that should be merged.
    is_merge = command[0] == "merge"
    assert run(*command, option.format("precious"), operand)[0] == (1 if is_merge else 0)


@pytest.mark.parametrize("ending", ["rdcscan", "rdcdocs"])
def test_a_pattern_of_all_parts_after_the_option_costs_none(ending: str, tmp_path: Path) -> None:
    Path(f"three.{ending}").write_bytes(Path(f"two.{ending}").read_bytes())
    before = contents(tmp_path)
    for names in (["one", "two"], ["one", "two", "three"]):
        code, _, err = run("merge", "-q", "-o", *(f"{name}.{ending}" for name in names))
        assert code == 1 and f"one.{ending}: expected nothing there" in err
        assert contents(tmp_path) == before


def test_tables_replace_only_tables() -> None:
    pytest.importorskip("pyarrow")
    assert run("scan", "-q", "--parquet=tables", "corpus")[0] == 0
    assert run("scan", "-q", "--parquet=tables", "corpus")[0] == 0
    Path("tables/levels.parquet").write_text("precious")
    code, out, err = run("scan", "-q", "--parquet=tables", "corpus")
    assert (code, out) == (1, "") and "levels.parquet: expected a Parquet file" in err
    assert Path("tables/levels.parquet").read_text() == "precious"
    assert run("scan", "-q", "--parquet=tables", "--overwrite", "corpus")[0] == 0
    assert Path("tables/levels.parquet").read_bytes().startswith(b"PAR1")
    code, _, err = run("scan", "-q", "--parquet=tables", ".")
    assert code == 1 and "this run would read it" in err


def test_a_stage_below_the_corpus_is_no_part_of_it() -> None:
    command = ["similar", "--text", "--json", "corpus"]
    plain = run(*command)[1]
    for _ in range(2):
        code, out, err = run(*command, "--stage=corpus/stage")
        assert code == 0, err
        found, expected = (
            [json.loads(line) for line in text.splitlines() if '"progress"' not in line]
            for text in (out, plain)
        )
        for events in (found, expected):
            del events[-1]["seconds"]
        assert [event for event in found if event.get("code") != 0] == expected
    code, _, err = run("similar", "--text", "--stage=corpus", "corpus")
    assert code == 1 and "name another directory" in err


def test_parts_of_a_cluster_below_the_tree_are_no_part_of_it() -> None:
    for verb, words_ in (("scan", ["--no-catalog"]), ("similar", ["--text"])):
        common = [verb, *words_, "-q", "corpus"]
        plain = run(*common)[1]
        for _ in range(2):
            code, out, err = run(*common, "--cluster=processes:2", "--slices=2", f"-o=corpus/parts-{verb}")
            assert (code, out) == (0, plain), err
        for name in os.listdir(f"corpus/parts-{verb}"):
            os.unlink(f"corpus/parts-{verb}/{name}")
    Path("corpus/page").touch()
    code, _, err = run("scan", "--cluster=processes:2", "-o=parts", "--html=corpus/page", "corpus")
    assert code == 1 and "this run would read it" in err


def test_a_log_is_no_input_of_a_sync() -> None:
    Path("a").write_text("content")
    Path("list").write_text("a\n")
    os.mkdir("src")
    Path("src/a").write_text("content")
    os.link("a", "b")
    for given in (
        ["sync", "--log-file=a", "a", "dst/"],
        ["sync", "--log-file=b", "a", "dst/"],
        ["sync", "--log-file=list", "--files-from=list", "src", "dst"],
        ["sync", "--log-file=rules", "--exclude-from=rules", "src/", "dst/"],
    ):
        code, _, err = run(*given)
        assert code == 1 and "this run would read it" in err, given
    assert Path("a").read_text() == "content" and Path("list").read_text() == "a\n"
    assert run("sync", "--log-file=log", "src/", "dst/")[0] == 0
    size = os.path.getsize("log")
    assert run("sync", "--log-file=log", "src/", "dst/")[0] == 0
    assert os.path.getsize("log") > size


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_logs_and_journals_do_not_go_through_links_of_others() -> None:
    os.mkdir("victim")
    os.symlink("victim", "planted")
    os.lchown("planted", 12_345, 12_345)
    os.mkdir("src")
    for name in ("a", "b"):
        Path(f"src/{name}").write_text("equal")
        os.utime(f"src/{name}", (0, 0))
    for given in (
        ["sync", "--log-file=planted/log", "src/", "dst/"],
        ["dupes", "--delete", "--apply", "--journal=planted/journal", "src"],
        ["dupes", "--delete", "--apply", "--journal=planted/more/journal", "src"],
        ["dedupe", "--hardlink", "--apply", "--journal=planted/journal", "src"],
        ["scan", "-q", "--parquet=planted/tables", "src"],
        ["scan", "-q", "-o=planted/x", "src"],
        ["similar", "--text", "-q", "--stage=planted/stage", "corpus"],
        ["similar", "--text", "-q", "--cluster=processes:1", "-o=planted/parts", "corpus"],
    ):
        code, _, err = run(*given)
        assert code == 1 and "a symbolic link of user 12345" in err, (given, code, err)
    assert os.listdir("victim") == []
    assert sorted(os.listdir("src")) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["dedupe", "--keep=master", "work"], "--keep-in=DIR"),
        (["dedupe", "--keep", "master", "work"], "--keep-in=DIR"),
        (["similar", "--text", "--keep=kept", "corpus"], "--write-kept=FILE"),
        (["merge", "--keep=kept", "one.rdcdocs"], "--write-kept=FILE"),
        (["merge", "--keep", "one.rdcdocs", "two.rdcdocs"], "--write-kept=FILE"),
    ],
)
def test_an_option_that_had_another_name(given: list[str], message: str) -> None:
    code, out, err = run(*given)
    assert (code, out) == (1, "")
    assert f"--keep: this option is {message} now" in err
