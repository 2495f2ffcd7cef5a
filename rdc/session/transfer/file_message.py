"""The type of messages about one file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.protocol.messages.registry import (
        BlockAnswer,
        Code,
        Correction,
        Data,
        FileEnd,
        FileFailed,
        Holes,
        Literals,
        NodeAnswer,
        Table,
        Targets,
        TreeAnswer,
    )

__all__ = ["FileMessage"]

FileMessage: TypeAlias = (
    "TreeAnswer | NodeAnswer | BlockAnswer | Correction | Targets | Literals | Data | Code | Table"
    " | FileEnd | FileFailed | Holes"
)
"""Each names its file by its row in the source's manifest."""
