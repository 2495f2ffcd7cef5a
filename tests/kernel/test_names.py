"""Ranks of names: SipHash-2-4 by its published vectors, in C as in Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdc.kernel
from rdc.kernel import _kernel
from tests.reference import kernel as pure
from tests.reference.siphash import siphash

KEY = bytes(range(16))
every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])
keys = st.binary(min_size=16, max_size=16)
names = st.binary(max_size=300).map(lambda name: name.replace(b"\0", b"n"))


def test_siphash_is_siphash() -> None:
    # The example of the paper's appendix, and the first and last of the reference implementation's vectors.
    assert siphash(KEY, bytes(range(15))) == 0xA129_CA61_49BE_45E5
    assert siphash(KEY, b"").to_bytes(8, "little").hex() == "310e0edd47db6f72"
    assert siphash(KEY, bytes(range(63))).to_bytes(8, "little").hex() == "724506eb4c328a95"


@every_kernel
def test_each_name_has_its_own_rank(module: Any) -> None:
    assert module.name_ranks(KEY, b"") == b""
    assert module.name_ranks(KEY, b"\0").hex() == "310e0edd47db6f72"
    one, two = module.name_ranks(KEY, b"one\0"), module.name_ranks(KEY, b"two\0")
    assert module.name_ranks(KEY, memoryview(b"one\0two\0\0")) == one + two + module.name_ranks(KEY, b"\0")
    assert module.name_ranks(KEY[::-1], b"one\0") != one


@every_kernel
def test_what_is_no_list_of_names_is_refused(module: Any) -> None:
    for key, blob in ((KEY, b"one"), (KEY, b"one\0t"), (KEY[1:], b"one\0"), (KEY + b"k", b"")):
        with pytest.raises(ValueError, match="name ranks: a key of 16 bytes"):
            module.name_ranks(key, blob)


@given(keys, st.lists(names, max_size=20))
def test_both_agree_and_ranks_stand_alone(key: bytes, many: list[bytes]) -> None:
    blob = b"".join(name + b"\0" for name in many)
    ranks = pure.name_ranks(key, blob)
    assert _kernel.name_ranks(key, blob) == ranks
    assert ranks == b"".join(_kernel.name_ranks(key, name + b"\0") for name in many)


def test_a_large_blob_is_hashed_without_the_lock() -> None:
    blob = b"".join(b"entry %d of a directory\0" % i for i in range(2000))
    assert rdc.kernel.name_ranks(KEY, blob) == pure.name_ranks(KEY, blob)


whole_names = names.filter(bool)


@given(st.lists(st.tuples(names, keys, st.lists(whole_names, max_size=5)), max_size=8))
def test_the_ranks_of_a_text_are_those_of_its_directories(
    directories: list[tuple[bytes, bytes, list[bytes]]],
) -> None:
    text, digests, ranks = b"", b"", b""
    for path, key, many in directories:
        blob = b"".join(name + b"\0" for name in many)
        text += b"\0" + path + b"\0" + blob
        digests += key + bytes(16)
        ranks += pure.name_ranks(key, blob)
    assert _kernel.text_ranks(text, digests) == pure.text_ranks(text, digests) == ranks


@given(st.binary(max_size=20).map(lambda text: text.replace(b"1", b"\0")), st.integers(0, 4))
def test_a_text_is_read_alike_or_refused(text: bytes, directories: int) -> None:
    """Whatever the bytes: both refuse them, or both find the same names."""
    text = text.translate(bytes([0, 0, 97, 98] * 64))
    results = []
    for module in (pure, _kernel):
        try:
            results.append(module.text_ranks(text, bytes(32 * directories)))
        except ValueError as error:
            assert "text ranks" in str(error)
            results.append(None)
    assert results[0] == results[1]


def test_digests_of_another_length_are_refused() -> None:
    for module in (pure, _kernel):
        assert module.text_ranks(b"", b"") == b""
        for text, digests in (
            (b"\0a\0b\0", bytes(31)),
            (b"\0a\0b", bytes(32)),
            (b"\0a\0", b""),
            (b"", bytes(32)),
        ):
            with pytest.raises(ValueError, match="text ranks"):
                module.text_ranks(text, digests)
