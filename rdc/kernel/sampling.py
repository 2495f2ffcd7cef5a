"""Min-wise samples of sets."""

from __future__ import annotations

from rdc.kernel import kernel_name
from rdc.kernel.samples._samples import choose, minimum_samples, partition_samples, sample_matches

__all__ = ["minimum_samples", "partition_samples", "sample_matches"]

choose(kernel_name())
