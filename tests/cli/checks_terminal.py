"""Checks of what a terminal shows: widths, colours, questions; see checks.py."""
import fcntl
import os
import signal
import struct
import termios
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


def read_until(terminal, text):
    """What a terminal shows until that text is there; all there is if it never comes. A read
    may end within a character, so bytes are put together before they are text."""
    shown, end, wanted = b"", time.monotonic() + 20, text.encode()
    while wanted not in shown and time.monotonic() < end:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
    return shown.decode(errors="replace")


def check_question_waits(program):
    """a question waits for Enter at a terminal"""
    child, terminal = start_on_terminal(program, ["lesson", "mixing"], 80)
    before = read_until(terminal, "(Enter shows the answer)")
    time.sleep(0.2)  # a program that does not wait would go on
    os.set_blocking(terminal, False)
    try:
        before += os.read(terminal, 65536).decode(errors="replace")
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    os.write(terminal, b"\n\n\n")
    after = read_until(terminal, "\0")  # all there is
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


SCREEN_BACK = "\x1b[?25h\x1b[?1049l"
CLEARED = "\x1b[H\x1b[J"
STEP = ["step", "-m", MODEL, "--", "Once upon a time"]


def check_step_gives_the_terminal_back(program):
    """step: q, Ctrl-C, signals and a crash give the terminal its mode and screen back"""
    ends = [(b"q", 0), (b"\x1b", 0), (b"\x03", 130 << 8), (signal.SIGTERM, signal.SIGTERM),
            (signal.SIGHUP, signal.SIGHUP), (signal.SIGSEGV, signal.SIGSEGV)]
    for end, wanted in ends:
        child, terminal = start_on_terminal(program, STEP, 80)
        usual = termios.tcgetattr(terminal)[3]
        read_until(terminal, "? help")
        raw = termios.tcgetattr(terminal)[3]
        if isinstance(end, bytes):
            os.write(terminal, end)
        else:
            os.kill(child, end)
        shown = read_until(terminal, SCREEN_BACK)
        _, status = os.waitpid(child, 0)
        try:
            after = termios.tcgetattr(terminal)[3]
        except termios.error:  # the last process that had it is gone
            after = usual
        os.close(terminal)
        if status & ~0x80 != wanted:  # 0x80: a core was written
            return f"{end}: status {status}, not {wanted}"
        if raw == usual or after != usual or SCREEN_BACK not in shown:
            return f"{end}: the terminal is not as it was: {shown[-80:]!r}"
    return None


def check_step_walks(program):
    """step: keys and arrows move, heads go and come back, a resized screen is redrawn"""
    steps = [(b"", "layer 0/4"), (b"\x1b[Bj", "layer 2/4"), (b"]]", "head 2/7"),
             (b"\x1b[D", "\u25b83"), (b"x", "1 edit: zero blocks.2.attn.hook_z head=2"),
             (b"e", "2 edits"), (b"u", "the last edit is undone"),
             (b"r", "no edits: the same bits as at the start"), (b"s", "scale sqrt"),
             (b"?", "h l  left right"), (b"?", "scale sqrt"), ((16, 50), "hl jk")]
    child, terminal = start_on_terminal(program, STEP, 80)
    problem, shown = None, ""
    for step, text in steps:
        if isinstance(step, bytes):
            os.write(terminal, step)
        else:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *step, 0, 0))
        shown = read_until(terminal, text)
        if text not in shown:
            problem = problem or f"{step}: no {text!r} in {shown!r}"
    os.write(terminal, b"q")
    read_until(terminal, SCREEN_BACK)
    os.waitpid(child, 0)
    os.close(terminal)
    page = shown.split(CLEARED)[-1]
    if page.count("\n") > 16:
        problem = problem or f"{page.count(chr(10))} lines on 16"
    return problem or bad_line(page, 50)


def check_step_prints_safely(program):
    """step: hostile prompts keep to the width, with and without colours and UTF-8"""
    for number, prompt in enumerate(HOSTILE):
        columns, env = (40, 80, 200)[number % 3], LOOKS[number % len(LOOKS)]
        text, code = on_terminal(program, ["step", "-m", MODEL, "--keys", "jxs", "--", prompt],
                                 columns, env)
        if code or bad_line(text, columns):
            return f"{prompt!r} {columns} {env}: exit {code}, {bad_line(text, columns)}"
    return None
