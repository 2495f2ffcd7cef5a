"""The tables of a scan: in C where it is built, else as pure_survey defines them."""

from __future__ import annotations

from rdc.kernel.choice import chosen_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel._survey import ChunkTable, Folder, select_chunks
else:
    # The choice of the kernel decides here as well: a demand for "pure" is one for all of it.
    if chosen_module().kernel_name() == "pure":
        from rdc.kernel import pure_survey as _module
    else:
        from rdc.kernel import _survey as _module
    ChunkTable = _module.ChunkTable
    Folder = _module.Folder
    select_chunks = _module.select_chunks

__all__ = ["ChunkTable", "Folder", "select_chunks"]
