#!/usr/bin/env python3
"""Tests of the program from outside: what it prints and how it ends.

    run_cases.py PROGRAM [WORD...]     only cases whose name has all the words

Cases stand in *.cases beside this file:

    == name: the failure it would catch
    env COLUMNS=40                   environment on top of the plain one
    file a.lesson                    a file for the case; its lines are indented
      title x
    $ attend lesson a.lesson         run by sh in a folder of the case's own
    exit 1                           default 0
    > text                           stdout is exactly these lines
    >+ text                          … has a line that contains this
    >- text                          … has none
    >~ regex                         … matches as a whole
    >* anything                      … may be anything
    ! !+ !- !~ !*                    the same for stderr

Without a line about it an output must be empty. Checks that need more than
that are functions in checks*.py. $SHARED is the folder of published cases; a
case that needs it and lacks it is skipped. Closes with N passed, N failed.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.path.normpath(os.path.join(HERE, "..", "..", "..", "shared"))
SECONDS = 60


class Case:
    def __init__(self, name):
        self.name, self.command, self.code = name, None, 0
        self.environment, self.files = {}, {}
        self.wanted = {">": [], "!": []}


def read_cases(path):
    """The cases of one file."""
    case, file = None, None
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            line = line.rstrip("\n")
            if file and (line.startswith("  ") or not line):
                case.files[file] += line[2:] + "\n"
                continue
            file = None
            if not line or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "==":
                if case:
                    yield case
                case = Case(rest)
            elif word == "$":
                case.command = rest
            elif word == "exit":
                case.code = int(rest)
            elif word == "env":
                case.environment.update([rest.split("=", 1)])
            elif word == "file":
                file = rest
                case.files[file] = ""
            elif word[0] in "!>" and word[1:] in ("", "+", "-", "~", "*"):
                case.wanted[word[0]].append((word[1:], rest))
            else:
                sys.exit(f"{path}:{number}: not understood: {line}")
    if case:
        yield case


def environment(program, more=None):
    """The same for every case, whoever runs it."""
    plain = {"PATH": os.path.dirname(program) + ":/usr/bin:/bin", "LANG": "C.UTF-8",
             "TERM": "xterm-256color", "SHARED": SHARED, "HOME": "/nonexistent",
             "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""),
             "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "")}
    plain.update(more or {})
    return {key: value for key, value in plain.items() if value != "(unset)"}


def compare(what, wanted, got):
    """What is wrong with one output, or None."""
    exact = [text for kind, text in wanted if kind == ""]
    if exact and got != "\n".join(exact) + "\n":
        return f"{what} is not\n" + "\n".join(exact)
    if not wanted and got:
        return f"{what} is not empty"
    for kind, text in wanted:
        if kind == "+" and not any(text in line for line in got.split("\n")):
            return f"{what} has no line with: {text}"
        if kind == "-" and text in got:
            return f"{what} has: {text}"
        if kind == "~" and not re.fullmatch(text, got, re.S):
            return f"{what} does not match {text}"
    return None


def problem_of(case, program):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in case.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
                stream.write(text)
        try:
            done = subprocess.run(["/bin/sh", "-c", case.command], cwd=folder, timeout=SECONDS,
                                  env=environment(program, case.environment), capture_output=True,
                                  stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            return f"took more than {SECONDS} s"
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    problem = None if done.returncode == case.code else f"exit {done.returncode}, not {case.code}"
    problem = problem or compare("stdout", case.wanted[">"], out)
    problem = problem or compare("stderr", case.wanted["!"], err)
    return problem and f"{problem}\n--- stdout\n{out[-3000:]}--- stderr\n{err[-3000:]}"


def main():
    program, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    # What a script runs in the background ignores it, and so would all that is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jobs = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.cases"))):
        jobs += [(case.name, lambda case=case: problem_of(case, program), "$SHARED" in case.command)
                 for case in read_cases(path)]
    sys.path.insert(0, HERE)
    import checks
    jobs += [(name, lambda check=check: check(program), needs_shared)
             for name, check, needs_shared in checks.all_checks()]
    passed, failed, skipped = 0, 0, 0
    for name, job, needs_shared in jobs:
        if not all(word in name for word in words):
            continue
        if needs_shared and not os.path.isdir(SHARED):
            skipped += 1
            continue
        try:
            problem = job()
        except (AssertionError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            problem = f"{type(error).__name__}: {error}"
        passed, failed = passed + (problem is None), failed + (problem is not None)
        if problem:
            print(f"FAIL {name}\n{problem}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
