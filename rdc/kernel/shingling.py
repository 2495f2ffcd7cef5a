"""Features of texts: shingles, bigrams of URLs, and the text of HTML pages.

shingles/reference.py and shingles/html_reference.py define them.
"""

from __future__ import annotations

from rdc.kernel.shingles.html_reference import html_texts
from rdc.kernel.shingles.reference import shingle_features, url_features

__all__ = ["html_texts", "shingle_features", "url_features"]
