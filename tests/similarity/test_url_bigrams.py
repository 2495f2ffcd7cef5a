"""Bigrams of URLs: which words count, and where they stand."""

from __future__ import annotations

from array import array

import pytest

from rdc.similarity import TextColumn, url_bigrams


def features(*urls: str) -> list[list[int]]:
    column = TextColumn.join(urls)
    found = url_bigrams(column.text, column.offsets)
    return [list(found.of(row)) for row in range(len(found))]


def test_urls_are_bigrams_of_words_with_positions() -> None:
    sets = features(
        "www6.infoseek.com",
        "HTTP://www.Infoseek.com/index.html",
        "infoseek.com",
        "x",
        "12/_/",
        "\u017f世",
        "S 世",
    )
    assert [len(one) for one in sets] == [2, 2, 1, 1, 0, 1, 1]
    assert sets[0] == sets[1]
    assert sets[2][0] != sets[0][1], "the same words stand elsewhere"
    assert sets[5] == sets[6]
    assert features("com.infoseek") != features("infoseek.com")
    assert len({one for each in sets for one in each}) == 5


def test_bigrams_are_what_they_were() -> None:
    """No machine, compiler or version may change them."""
    assert features("infoseek.com", "x") == [[14938507430403769864], [7685079081746943611]]


@pytest.mark.parametrize("offsets", [array("q", [0, 3, 2]), b"1234567"])
def test_bad_columns_are_refused(offsets: array[int] | bytes) -> None:
    with pytest.raises(ValueError):
        url_bigrams(b"abc", offsets)
