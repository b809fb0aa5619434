#!/usr/bin/env python3
"""Runs the commands that a page of docs/ shows, and compares what they print.

    check_commands.py PROGRAM PAGE... [--write]     --write: puts what they print into the page

A command is an indented line that begins with `$ `; the indented lines behind it are what
it prints, stderr left out. They run one after another in an empty folder that has the
project's models/ in it. A number with a point that stands in the page's own sentences must
be in something that was printed. Closes with N passed, N failed.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INDENT = "    "
NUMBER = r"(?<![\w.@])\d+\.\d+(?![\w.])"


def read(page):
    """Lists of a page's lines: sentences (None, lines), or a command and what it prints."""
    parts = []
    with open(page, encoding="utf-8") as stream:
        for line in stream.read().splitlines():
            if line.startswith(INDENT + "$ "):
                parts.append((line[len(INDENT) + 2:], []))
            elif line.startswith(INDENT) and parts and parts[-1][0]:
                parts[-1][1].append(line[len(INDENT):])
            else:
                if not parts or parts[-1][0]:
                    parts.append((None, []))
                parts[-1][1].append(line)
    return parts


def run(command, program, folder):
    """What a command prints, without blanks at the ends of lines."""
    path = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(command, shell=True, cwd=folder, timeout=300, capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": path, "LANG": "C.UTF-8", "COLUMNS": "80"})
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return lines if done.returncode == 0 else lines + [f"exit {done.returncode}: {done.stderr}"]


def check(page, program, write):
    """How many commands were as the page says, and what was not."""
    parts, problems, printed = read(page), [], []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(TOP, "models"), os.path.join(folder, "models"))
        for command, lines in parts:
            if command:
                got = run(command, program, folder)
                printed += got
                if write:
                    lines[:] = got
                if got != lines:
                    problems.append("\n".join([f"{page}: {command}", *got]))
    known = set(re.findall(r"\d+\.\d+", "\n".join(printed)))
    for command, lines in parts:
        if not command:
            problems += [f"{page}: {number} is printed by no command"
                         for number in re.findall(NUMBER, "\n".join(lines)) if number not in known]
    if write:
        with open(page, "w", encoding="utf-8") as stream:
            for command, lines in parts:
                block = [f"$ {command}", *lines] if command else lines
                stream.writelines((INDENT if command and line else "") + line + "\n"
                                  for line in block)
    return sum(command is not None for command, _ in parts), problems


def main():
    program, *pages = [os.path.abspath(name) for name in sys.argv[1:] if name != "--write"]
    commands, problems = 0, []
    for page in pages:
        n, wrong = check(page, program, "--write" in sys.argv)
        commands, problems = commands + n, problems + wrong
    for problem in problems:
        print("FAIL " + problem)
    print(f"{commands - len(problems)} passed, {len(problems)} failed")
    return 1 if problems or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
