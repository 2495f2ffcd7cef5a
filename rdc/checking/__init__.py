"""`rdc check`: a comparison of two trees that changes neither: what differs, and how (CHECK.md).

Reading order: run (a session of a check), conversation (this end's side of it), tree_comparison and
further_comparison (how entries differ), content_comparison and sampling (contents).
"""

from __future__ import annotations
