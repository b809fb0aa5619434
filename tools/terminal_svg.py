#!/usr/bin/env python3
"""Draws what a program prints in a terminal as an SVG, for documents.

    attend explain --color always | tools/terminal_svg.py > explain.svg

Understands the escapes that attend writes: bold, faint, 24-bit and 256 colours,
backgrounds. --light draws on white (the program wants --theme light as well).
tools/draw_pictures draws those of docs/ with it.
"""
import html
import re
import sys
import unicodedata

ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
CELL, LINE, MARGIN = 8.4, 18, 12
THEMES = {"dark": ("#14171c", "#d8dee9"), "light": ("#ffffff", "#1c1f24")}
LEVELS = (0, 95, 135, 175, 215, 255)


def color_256(n):
    if n >= 232:
        return "#" + f"{8 + 10 * (n - 232):02x}" * 3
    n -= 16
    return "#%02x%02x%02x" % (LEVELS[n // 36], LEVELS[n // 6 % 6], LEVELS[n % 6])


def apply(style, codes):
    """The style after an escape with these numbers."""
    codes = [int(code or 0) for code in codes.split(";")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (1, 2):
            style = {**style, "bold" if code == 1 else "faint": True}
        elif code in (38, 48) and codes:
            kind = codes.pop(0)
            color = color_256(codes.pop(0)) if kind == 5 else "#%02x%02x%02x" % tuple(codes[:3])
            codes = codes if kind == 5 else codes[3:]
            style = {**style, "fore" if code == 38 else "back": color}
    return style


def cells_of(line, style):
    """(text, style) pieces of one line, and the style that goes on."""
    pieces, at = [], 0
    for match in ESCAPE.finditer(line):
        pieces.append((line[at:match.start()], style))
        style, at = apply(style, match.group(1)), match.end()
    return [(text, s) for text, s in pieces + [(line[at:], style)] if text], style


def width_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


# Block characters become rectangles, since fonts leave gaps between them: left
# edge, top, width and height as parts of a cell.
BLOCKS = {"█": (0, 0, 1, 1), "▀": (0, 0, 1, 0.5), "▄": (0, 0.5, 1, 0.5),
          **{c: (0, 0, (i + 1) / 8, 1) for i, c in enumerate("▏▎▍▌▋▊▉")}}


def draw_piece(text, style, column, top, theme):
    x, width = MARGIN + column * CELL, width_of(text) * CELL
    fore = style.get("fore", theme[1])
    out = []
    if "back" in style:
        out.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LINE}" '
                   f'fill="{style["back"]}"/>')
    if text.strip() and set(text) <= set(BLOCKS) | {" "}:
        for place, character in enumerate(text):
            if character in BLOCKS:
                left, down, wide, high = BLOCKS[character]
                out.append(f'<rect x="{x + (place + left) * CELL:.1f}" y="{top + down * LINE}" '
                           f'width="{wide * CELL + 0.1:.1f}" height="{high * LINE}" '
                           f'fill="{fore}"/>')
    elif text.strip():
        extra = ' font-weight="bold"' if style.get("bold") else ""
        extra += ' opacity="0.6"' if style.get("faint") else ""
        out.append(f'<text x="{x:.1f}" y="{top + 13}" fill="{fore}" textLength="{width:.1f}" '
                   f'lengthAdjust="spacingAndGlyphs"{extra} xml:space="preserve">'
                   f"{html.escape(text)}</text>")
    return out


def main():
    theme = THEMES["light" if "--light" in sys.argv else "dark"]
    lines = sys.stdin.read().rstrip("\n").split("\n")
    style, body, widest = {}, [], 0
    for number, line in enumerate(lines):
        pieces, style = cells_of(line, style)
        column, top = 0, MARGIN + number * LINE
        for text, piece_style in pieces:
            body += draw_piece(text, piece_style, column, top, theme)
            column += width_of(text)
        widest = max(widest, column)
    width, height = 2 * MARGIN + widest * CELL, 2 * MARGIN + len(lines) * LINE
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
          f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">')
    print(f'<rect width="100%" height="100%" rx="6" fill="{theme[0]}"/>')
    print("\n".join(body))
    print("</svg>")


main()
