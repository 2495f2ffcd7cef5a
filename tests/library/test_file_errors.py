"""A FileError that leaves the library is an OSError, too; inside it is none."""

from __future__ import annotations

import errno
import inspect
import os
from pathlib import Path

import pytest

import rdc
from rdc import errors
from rdc.library import public_error


def test_a_missing_file_is_an_oserror_with_its_path(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    with pytest.raises(OSError) as raised:
        rdc.sign_file(path)
    error = raised.value
    assert isinstance(error, rdc.FileError)
    assert isinstance(error, rdc.RdcError)
    assert error.errno == errno.ENOENT
    assert error.filename == error.path == os.fsdecode(error.path_bytes)
    assert error.path_bytes == path
    assert "cannot open it" in str(error)
    assert not str(error).startswith("[Errno")
    assert error.strerror == os.strerror(errno.ENOENT)
    assert error.code is rdc.ExitCode.VANISHED


def test_a_sync_of_nothing_is_one(tmp_path: Path) -> None:
    for source in (f"{tmp_path}/missing", f"{tmp_path}/missing/"):
        with pytest.raises(rdc.FileError) as raised:
            rdc.sync(source, tmp_path / "copy", catalog=None)
        assert isinstance(raised.value, OSError)
        assert raised.value.filename.rstrip("/") == f"{tmp_path}/missing"


def test_class_code_and_text_stay() -> None:
    inner = errors.FileChangedError(b"a", "a: changed")
    inner.__cause__ = PermissionError(errno.EACCES, "denied")
    outer = public_error(inner)
    assert isinstance(outer, rdc.FileChangedError)
    assert isinstance(outer, rdc.FileError)
    assert (outer.code, str(outer), outer.errno) == (rdc.ExitCode.VANISHED, "a: changed", errno.EACCES)
    assert public_error(outer) is outer
    other = public_error(errors.FileError(b"b", "b: bad", code=rdc.ExitCode.FILE_IO))
    assert (type(other), other.code, other.errno, other.strerror) == (
        rdc.FileError,
        rdc.ExitCode.FILE_IO,
        None,
        "b: bad",
    )


def test_inside_a_file_error_is_no_oserror() -> None:
    """Many handlers of OSError say something about the file: they must not catch what says it already."""
    assert not issubclass(errors.FileError, OSError)


def test_every_function_of_the_library_raises_public_errors() -> None:
    for name in rdc.__all__:
        function = getattr(rdc, name)
        if inspect.isfunction(function) and function.__module__.startswith("rdc.library."):
            assert hasattr(function, "__wrapped__"), f"rdc.{name} lacks @public"
