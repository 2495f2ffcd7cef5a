"""Limits of what a peer may ask for in one session: open requests, and work in proportion to the content."""

from __future__ import annotations

OUTSTANDING_REQUESTS = 65_536
"""Requests without an answer. Both sides keep about 300 bytes for each, to refuse answers without a
request."""

OUTSTANDING_ORDINALS = 4 << 20
"""Files and nodes named by requests without an answer: four bytes each on both sides, four times a million
files."""

HEARD_NUMBERS = 1 << 19
"""Files, nodes and ranges in requests that a source decodes while it answers another one. Each takes 40
bytes, 20 MiB in all. Further requests wait undecoded, up to INBOUND_BYTES."""

SENT_TIMES = 16
"""Times that a destination may ask for each byte of content, on average over all announced bytes. It asks
once. If every step fails twice in a bundle, it asks three times in each of two descents and twice for the
whole file."""

COMPARED_TIMES = 64
"""Times that a destination may have each byte read for comparison. Roots, digests and traits take 6 reads,
trees 3, nodes of forgotten trees 12. Blocks of 3 sizes and claims take 8 in each of two descents and 8 in a
bundle. One file that needs all of this takes 45; most files take 3 to 5."""

TOLD_TIMES = 16
"""Times that a destination may ask for each entry of a manifest. It asks for a row in three groups of columns
and for the nodes above it, which are a fifteenth as many. A request for a whole tier counts once more."""

TOLD_FREELY = 65_536
"""Rows and nodes of a manifest that may be asked for in addition to TOLD_TIMES."""

ASKED_FILE_BYTES = 4096
"""Bytes counted for each file that a request names, besides its content: opening a file takes about as long
as reading so many bytes."""

ASKED_NODE_BYTES = 2048
"""Bytes counted for each node that a request names: more than any expanded node has, and a small part of the
bytes below it."""

ASKED_FREELY_BYTES = 64 << 20
"""Bytes that may be asked for in addition to the limits per byte: small trees need no such limit."""
