"""Checks of what a terminal shows: widths, colours, questions; see checks.py."""
import os
import time
import unicodedata

from checks_tools import (ESCAPES, HOSTILE, MODEL, VIEWS, on_terminal, read_json, start_on_terminal,
                          view_arguments)

LOOKS = [{"COLORTERM": "truecolor"}, {"TERM": "xterm"}, {"TERM": "dumb"}, {"LANG": "C"},
         {"LANG": "C", "NO_COLOR": "1"}]


def columns_of(line):
    """Columns of a line on a terminal; None if it has characters that it must not have."""
    total = 0
    for character in ESCAPES.sub("", line):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            return None
        if not unicodedata.combining(character):
            total += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return total


def bad_line(text, columns):
    for line in text.replace("\r\n", "\n").split("\n"):
        width = columns_of(line)
        if width is None:
            return f"a control character reaches the terminal: {line!r}"
        if width > columns:
            return f"{width} columns: {line!r}"
    return None


def check_hostile_prompts_on_terminals(program):
    """hostile prompts stay within the terminal and leave it alone (published model)"""
    for number, prompt in enumerate(HOSTILE):
        for place, view in enumerate(VIEWS):
            columns = (40, 80, 200)[(number + place) % 3]
            env = LOOKS[(number + place) % len(LOOKS)]
            text, code = on_terminal(program, view_arguments(view, prompt, MODEL), columns, env)
            if view[0] == "run":  # the text itself: lines as they come, tabs too
                problem = bad_line(text.replace("\t", " "), 10**9)
            else:
                problem = bad_line(text, columns)
            if code or problem:
                return f"{view} {prompt!r} {columns} {env}: exit {code}, {problem}"
    return None


def check_pages_on_terminals(program):
    """pages keep to 40, 80 and 200 columns in UTF-8 and C"""
    names = [entry["name"] for entry in read_json(program, "lesson", "list")["lessons"]]
    pages = [["lesson", name] for name in names] + [["lesson", "list"], ["cost"], ["info"]]
    pages += [["help", name] for name in ("run", "lesson", "look", "sdpa", "explain")]
    pages += [["explain"], ["look"], ["look", "-L", "1", "-H", "0"]]
    for columns in (40, 80, 200):
        for number, page in enumerate(pages):
            env = LOOKS[(number + columns) % len(LOOKS)]
            enters = b"\n" * 20 if page[0] == "lesson" else b""
            text, code = on_terminal(program, page, columns, env, enters)
            problem = bad_line(text, columns)
            if code or problem:
                return f"{page} {columns} {env}: exit {code}, {problem}"
    return None


def check_question_waits(program):
    """a question waits for Enter at a terminal"""
    child, terminal = start_on_terminal(program, ["lesson", "mixing"], 80)
    before = ""
    while "(Enter shows the answer)" not in before:
        before += os.read(terminal, 65536).decode()
    time.sleep(0.2)  # a program that does not wait would go on
    os.set_blocking(terminal, False)
    try:
        before += os.read(terminal, 65536).decode()
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    os.write(terminal, b"\n\n\n")
    after = ""
    while True:
        try:
            after += os.read(terminal, 65536).decode()
        except OSError:
            break
    os.waitpid(child, 0)
    os.close(terminal)
    if "[1.5  0.5]" in ESCAPES.sub("", before):
        return f"did not wait: {before!r}"
    return None if "[1.5  0.5]" in ESCAPES.sub("", after) else f"no answer after Enter: {after!r}"


def check_colours_on_terminal(program):
    """Q, K and V have their colours on a terminal, and none with NO_COLOR or TERM=dumb"""
    dark = {"Q": "38;2;111;219;219", "K": "38;2;255;111;39", "V": "38;2;183;75;255"}
    text, _ = on_terminal(program, ["explain"], 80, {"COLORTERM": "truecolor"})
    for letter, escape in dark.items():
        if escape not in text:
            return f"no {letter} in its colour"
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "(unset)"}):
        text, _ = on_terminal(program, ["explain"], 80, env)
        if "\x1b" in text:
            return f"escapes with {env}"
    return None
