"""What the check scripts share: which files there are, and how to report.

A check is a program that takes an optional folder (default: this project),
prints one line per problem, `path:line: what is wrong`, and exits 1 if there
was any. It must be able to fail: tools/test_checks.sh shows that it does.
"""
import fnmatch
import os
import subprocess
import sys

SKIPPED = {".git", "build", "node_modules", "__pycache__"}


def project():
    """The folder that tools/ is in."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def root():
    """The folder to check: the first argument, else this project."""
    return os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else project()


def files(top, *patterns):
    """Paths relative to `top`, sorted: what git tracks or would, else all."""
    if os.path.exists(os.path.join(top, ".git")):
        listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=top,
                                 check=True, capture_output=True, text=True)
        found = [p for p in listing.stdout.splitlines() if os.path.isfile(os.path.join(top, p))]
    else:
        found = []
        for folder, below, names in os.walk(top):
            below[:] = [b for b in below if b not in SKIPPED]
            found += [os.path.relpath(os.path.join(folder, n), top) for n in names]
    return sorted(p for p in found
                  if not patterns or any(fnmatch.fnmatch(p, q) for q in patterns))


def lines(top, path):
    with open(os.path.join(top, path), encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read().split("\n")


def finish(problems, summary):
    for problem in problems:
        print(problem)
    if problems:
        print(f"{os.path.basename(sys.argv[0])}: {len(problems)} problem(s)")
        sys.exit(1)
    print(f"{os.path.basename(sys.argv[0])}: {summary}")
