"""`rdc check`: a comparison of two trees that changes neither: what differs, and how (CHECK.md).

Reading order: run (a session of a check), conversation (this end's side of it), tree_comparison (how entries
differ), content_comparison (contents).
"""

from __future__ import annotations
