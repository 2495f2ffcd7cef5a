"""`rdc signature` prints the library's results as text and as JSON with a fixed schema."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.cli.verbs import signature
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.signature.tree import SignatureTree, sign
from tests.support.running.fake_environment import FakeProcess

DATA = random.Random(7).randbytes(300_000)


def sign_file(path: bytes, params: ChunkParams) -> SignatureTree:
    return sign(Path(os.fsdecode(path)).read_bytes(), params)


def output(tmp_path: Path, *words: str, data: bytes = DATA, name: str = "file") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    process = FakeProcess()
    code = signature.run([*words, str(path)], process.environment, sign_file=sign_file)
    assert code is ExitCode.OK
    return process.out


def test_json_schema(tmp_path: Path) -> None:
    value = json.loads(output(tmp_path, "--json", "--mean=1K"))
    params = ChunkParams.for_mean(1024)
    tree = sign(DATA, params)
    assert list(value) == ["schema", "path", "size", "root", "params", "traits", "levels"]
    assert value["schema"] == 1
    assert value["path"] == str(tmp_path / "file")
    assert value["size"] == len(DATA)
    assert value["root"] == tree.root.hex()
    assert value["params"] == params.id.hex()
    assert value["traits"] == tree.traits.hex()
    assert len(value["levels"]) == len(tree.levels) >= 2
    for number, (level, expected) in enumerate(zip(value["levels"], tree.levels, strict=True)):
        assert list(level) == ["level", "records", "bytes", "mean"]
        assert level["level"] == number
        assert level["records"] == expected.records
        assert level["bytes"] == expected.bytes
        assert level["mean"] == pytest.approx(len(DATA) / expected.items, abs=0.1)
    # Chunks have about the requested mean; nodes are about sixteen times as long.
    assert 800 < value["levels"][0]["mean"] < 1300
    assert 10 < value["levels"][1]["mean"] / value["levels"][0]["mean"] < 24


def test_default_parameters_are_those_of_sync(tmp_path: Path) -> None:
    assert json.loads(output(tmp_path, "--json"))["params"] == SYNC_PARAMS.id.hex()


def test_names_that_are_no_text(tmp_path: Path) -> None:
    value = json.loads(output(tmp_path, "--json", name=os.fsdecode(b"\xff\x7f\n")))
    assert value["path"].endswith("�\x7f\n")
    text = output(tmp_path, "--json", name=os.fsdecode(b"\xff\x7f\n"))
    assert text[:-1].isprintable()
    assert list(value)[1:3] == ["path", "path_b64"]


def test_empty_file(tmp_path: Path) -> None:
    value = json.loads(output(tmp_path, "--json", data=b""))
    assert value["size"] == 0
    assert [level["mean"] for level in value["levels"]] == [0.0]


def test_text(tmp_path: Path) -> None:
    tree = sign(DATA, SYNC_PARAMS)
    lines = output(tmp_path, name="x\x1b").splitlines()
    assert lines[0].startswith("path ")
    assert lines[0].endswith("x\\x1b")
    assert lines[1] == "size    300,000 bytes"
    assert lines[2] == f"root    {tree.root.hex()}"
    assert len(lines) == 6 + len(tree.levels)


@pytest.mark.parametrize("mean", ["x", "", "-1", "0", "167", "1e3", "9999999999", "99999999", "0x10"])
def test_mean_out_of_range(mean: str) -> None:
    with pytest.raises(UsageError):
        signature.run([f"--mean={mean}", "f"], FakeProcess().environment, sign_file=sign_file)


def test_a_real_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    process = FakeProcess()
    assert signature.run(["--json", str(path)], process.environment) is ExitCode.OK
    assert json.loads(process.out)["root"] == sign(DATA, SYNC_PARAMS).root.hex()
    with pytest.raises(RdcError, match="none"):
        signature.run([str(tmp_path / "none")], process.environment)


def test_one_file_at_a_time() -> None:
    with pytest.raises(UsageError, match="2 were given"):
        signature.run(["a", "b"], FakeProcess().environment, sign_file=sign_file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("missing", "missing: nothing there to sign; check the path"),
        ("missing/below", "nothing there to sign"),
        (".", "expected a file, found a directory; rdc index signs the files of one"),
        ("pipe", "expected a regular file, found a device, pipe or socket"),
        ("file/below", "cannot look at it: Not a directory"),
        ("x" * 300, "cannot look at it: File name too long"),
    ],
)
def test_what_is_no_file_is_named(tmp_path: Path, name: str, text: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(RdcError) as caught:
        signature.run(["--no-catalog", str(tmp_path / name)], FakeProcess().environment)
    assert text in str(caught.value) and caught.value.code is ExitCode.PARTIAL
