"""A recipe: how the new version of one file is put together from its bases."""

from __future__ import annotations

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.plan.descent import Part
    from rdc.session.trees.signed_file import SignedFile
    from rdc.signature.tree import SignatureTree

__all__ = ["Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The result of a comparison."""

    file: int
    """Its row in the source's manifest."""
    path: bytes
    parts: Sequence[Part]
    """In file order; together they fill the new version."""
    bases: Sequence[SignedFile]
    size: int
    """Bytes of the new version."""
    masked: bool
    """Blocks were matched with masked x86 displacements, which the source corrects."""

    @property
    def trees(self) -> list[SignatureTree]:
        """The signature trees of the bases."""
        return [base.tree for base in self.bases]
