"""A pair of equal files to be linked, and writers that interfere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rdc.files.names.leased_files import LeasedFile
from rdc.files.names.name_change import Link


@dataclass
class Pair:
    """`kept` and `old`, equal in everything, held; and what `old`'s name goes through."""

    place: Path
    kept: LeasedFile
    old: LeasedFile
    swap: Link

    @property
    def name(self) -> Path:
        return self.place / "old"

    @property
    def beside(self) -> Path:
        return self.place / os.fsdecode(self.swap.displaced)

    def let_go(self) -> None:
        self.kept.close()
        self.old.close()

    def expect_untouched(self) -> None:
        """Two separate files and nothing else."""
        assert os.stat(self.place / "kept").st_ino != os.stat(self.name).st_ino
        assert sorted(os.listdir(self.place)) == ["kept", "old"]
