#!/usr/bin/env python3
"""Writes apps/cli/width.inc: how many columns a character takes in a terminal.

Classes: 0 combining, 2 wide, -1 to be spelled out (invisible, or a part of
sequences whose width terminals do not agree on). Everything else takes one
column. The character database is the one of the Python that runs this.
"""
import sys
import unicodedata

SPELLED = [(0xFE00, 0xFE0F), (0xE0100, 0xE01EF), (0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF),
           (0x1160, 0x11FF), (0x3164, 0x3164), (0xFFA0, 0xFFA0), (0x2800, 0x2800),
           (0x115F, 0x115F), (0x034F, 0x034F), (0x17B4, 0x17B5), (0x180B, 0x180F)]
WIDE_UNASSIGNED = [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1FAFF),
                   (0x20000, 0x2FFFD), (0x30000, 0x3FFFD)]


def within(rune, ranges):
    return any(first <= rune <= last for first, last in ranges)


def columns(rune):
    char = chr(rune)
    category = unicodedata.category(char)
    if within(rune, SPELLED) or category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return -1
    if category == "Zs" and rune != 0x20:
        return -1
    if category in ("Mn", "Me"):
        return 0
    if category == "Cn":
        return 2 if within(rune, WIDE_UNASSIGNED) else 1
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def main():
    ranges = []
    for rune in range(0x20, 0x110000):
        kind = columns(rune)
        if ranges and ranges[-1][2] == kind:
            ranges[-1][1] = rune
        else:
            ranges.append([rune, rune, kind])
    ranges = [r for r in ranges if r[2] != 1]
    print(f"/* Columns of characters, Unicode {unicodedata.unidata_version}, written by")
    print(" * tools/width_table.py: {first, last, columns}; -1 is spelled out. */")
    line = ""
    for first, last, kind in ranges:
        item = f"{{0x{first:X}, 0x{last:X}, {kind}}},"
        if len(line) + 1 + len(item) > 98:
            print(line)
            line = ""
        line += (" " if line else "") + item
    print(line)


if __name__ == "__main__":
    sys.exit(main())
