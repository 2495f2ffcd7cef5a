"""The module signal as its C part is, without the enums that name what are numbers: they take each side of a
sync 2 ms to make."""

from __future__ import annotations

from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = ["signal"]
