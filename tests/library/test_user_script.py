"""A script with every public name passes mypy, and uses exactly the public names."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import rdc
from tests.support.project_paths import TOP

SCRIPT = TOP / "tests" / "library" / "user_script.py"


def test_mypy_accepts_a_users_script(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        f"--cache-dir={tmp_path}",
        "--config-file=",
        str(SCRIPT),
    ]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_uses_every_public_name() -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rdc"
    }
    assert used == set(rdc.__all__)


def test_names_in_public_signatures_are_public() -> None:
    """What a public function takes or gives, and the fields of public records, have public types."""
    known = {*rdc.__all__, "Buffer", "PathLike", "Mapping", "Sequence", "Iterable", "Iterator", "Callable"}
    known |= {"BinaryIO", "Executor", "OSError", "None", "Any", "Self", "Name"}
    # Two are opened and handed over, and one has methods for rdc's own bulk work.
    for name in set(rdc.__all__) - {"Catalog", "SignatureStore", "Chunker", "SimilarPairs"}:
        thing = getattr(rdc, name)
        texts: list[str] = []
        if inspect.isfunction(thing):
            texts += map(str, thing.__annotations__.values())
        elif inspect.isclass(thing):
            texts += map(str, inspect.get_annotations(thing).values())
            for key, method in vars(thing).items():
                if inspect.isfunction(method) and (not key.startswith("_") or key == "__init__"):
                    texts += map(str, method.__annotations__.values())
        used = {word for text in texts for word in re.findall(r"\b[A-Z]\w+", text)}
        assert used <= known, (name, used - known)
