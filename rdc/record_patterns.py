"""Patterns of the __init__ of records (rdc/records.py), by number of fields.

Each takes the functions that store the fields. These return None, so `or` calls them all. A code object sorts
the variables of its closure, so the names of these functions are in alphabetical order.

Python caches the patterns with this file's bytecode. Without them, each end of a sync compiles them from
text. That took 1.5 ms for up to nine fields (40 paired runs of a local sync) and 0.2 ms for each number
above.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, without loading typing
if TYPE_CHECKING:
    from typing import Any

INITIALIZERS: dict[int, Any] = {
    0: lambda: lambda self: None,
    1: lambda a: lambda self, p: a(self, p),  # noqa: PLW0108
    2: lambda a, b: lambda self, p, q: a(self, p) or b(self, q),
    3: lambda a, b, c: lambda self, p, q, r: a(self, p) or b(self, q) or c(self, r),
    4: lambda a, b, c, d: lambda self, p, q, r, s: a(self, p) or b(self, q) or c(self, r) or d(self, s),
    5: lambda a, b, c, d, e: lambda self, p, q, r, s, t: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t)
    ),
    6: lambda a, b, c, d, e, f: lambda self, p, q, r, s, t, u: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u)
    ),
    7: lambda a, b, c, d, e, f, g: lambda self, p, q, r, s, t, u, v: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
    ),
    8: lambda a, b, c, d, e, f, g, h: lambda self, p, q, r, s, t, u, v, w: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
        or h(self, w)
    ),
    9: lambda a, b, c, d, e, f, g, h, i: lambda self, p, q, r, s, t, u, v, w, x: (
        a(self, p) or b(self, q) or c(self, r) or d(self, s) or e(self, t) or f(self, u) or g(self, v)
        or h(self, w) or i(self, x)
    ),
    10: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
        )
    ),
    11: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10)
        )
    ),
    12: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11)
        )
    ),
    13: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11) or s12(self, p12)
        )
    ),
    14: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11) or s12(self, p12) or s13(self, p13)
        )
    ),
    15: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11) or s12(self, p12) or s13(self, p13)
            or s14(self, p14)
        )
    ),
    16: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14, s15: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11) or s12(self, p12) or s13(self, p13)
            or s14(self, p14) or s15(self, p15)
        )
    ),
    17: lambda s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14, s15, s16: (
        lambda self, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11, p12, p13, p14, p15, p16: (
            s00(self, p00) or s01(self, p01) or s02(self, p02) or s03(self, p03) or s04(self, p04)
            or s05(self, p05) or s06(self, p06) or s07(self, p07) or s08(self, p08) or s09(self, p09)
            or s10(self, p10) or s11(self, p11) or s12(self, p12) or s13(self, p13)
            or s14(self, p14) or s15(self, p15) or s16(self, p16)
        )
    ),
}  # fmt: skip
