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
