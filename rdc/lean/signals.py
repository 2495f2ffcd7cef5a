"""The `signal` module without its enumerations, for which it loads `enum`: 3.0 ms at each start.

`signal` takes all its functions and numbers from `_signal` and makes enumerations of the numbers. A start
needs the numbers alone. `Signals` and `Handlers` are missing here.
"""

from __future__ import annotations

import sys

__all__ = ["signal"]

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING or "signal" in sys.modules:
    import signal
else:
    import _signal as signal
