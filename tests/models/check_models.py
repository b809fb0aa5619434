#!/usr/bin/env python3
"""Tests of the trained models that ship, and of how they are made.

    check_models.py PROGRAM     PROGRAM: attend

A whole retraining is `make models`. Here the run of induction is started from nothing
and stopped after some steps: the checkpoints that it has written by then must be those
that ship, bit for bit. The name of a check is its first line of documentation. Closes with
N passed, N failed.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(TOP, "models", "induction")
sys.path.insert(0, os.path.join(TOP, "models"))
sys.dont_write_bytecode = True
import checks  # noqa: E402
import rebuild  # noqa: E402

LAST = 113           # the retraining's step, the twelfth of twenty checkpoints
SECONDS = 300        # that it may take on a slow and busy machine


def ask(program, *words):
    """What a command prints as JSON."""
    done = subprocess.run([program, *words, "--json", "--quiet"], check=True, timeout=120,
                          capture_output=True)
    return json.loads(done.stdout)


def run_until(program, step, folder):
    """Trains until the checkpoint of `step` is there, or to the end."""
    subprocess.run([sys.executable, "-B", os.path.join(MODEL, "make.py"), folder], check=True,
                   capture_output=True, timeout=SECONDS)
    settings = {"data": os.path.join(folder, "train.txt"), "output": os.path.join(folder, "run")}
    command = [program, "train", os.path.join(MODEL, "train.json"), "--quiet", "--threads", "1"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    wanted = os.path.join(folder, "run", f"step-{step:08d}")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        end = time.monotonic() + SECONDS
        while run.poll() is None and not os.path.isdir(wanted) and time.monotonic() < end:
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)  # SIGINT is ignored where a script runs in the background
    return settings["output"]


def check_hashes(program, folder):
    """a shipped file is not the one that the recipe names, or there is one more or less"""
    del program, folder
    numbers = rebuild.read_json(MODEL, "recipe.json")
    found = rebuild.hashes_of(os.path.join(MODEL, numbers["ship"]["to"]))
    wrong = [name for name in found | numbers["ship"]["sha256"]
             if found.get(name) != numbers["ship"]["sha256"].get(name)]
    return f"not the recipe's: {wrong}" if wrong or len(found) < 24 else None


def check_usage(program, folder):
    """the builder of models does not take the command lines that it documents"""
    del folder
    for words in (["--threads", "1", "--write", "story"], ["story", "--write", "--threads", "1"]):
        got = rebuild.parse([program, *words])
        if (got.attend, got.models, got.threads, got.write) != (program, ["story"], 1, True):
            return f"{words}: {got}"
    return None


def check_size(program, folder):
    """the checkpoints take more than 3 MB together"""
    del program, folder
    checkpoints = os.path.join(MODEL, "checkpoints")
    total = sum(os.path.getsize(os.path.join(checkpoints, n)) for n in os.listdir(checkpoints))
    return f"{total} bytes" if total >= 3e6 else None


def check_retraining(program, folder):
    """training from nothing no longer gives the bits that ship"""
    if ask(program, "info")["class"] != "fma":
        return None  # other bits, by promise
    run = run_until(program, LAST, folder)
    packed = os.path.join(folder, "packed")
    for name in rebuild.steps_of(run):  # what was interrupted saved its step too
        if int(name[len("step-"):]) > LAST:
            rebuild.shutil.rmtree(os.path.join(run, name))
    rebuild.pack(program, run, {"ship": {"to": "checkpoints", "dtype": "f16"}}, packed)
    shipped = rebuild.hashes_of(os.path.join(MODEL, "checkpoints"))
    got = {name: digest for name, digest in rebuild.hashes_of(packed).items()
           if not name.endswith(".jsonl")}
    wrong = [name for name in got if got[name] != shipped[name]]
    return f"{len(got)} files, others: {wrong}" if wrong or len(got) != 12 + 2 else None


def check_birth(program, folder):
    """the first checkpoint has an induction head, or the last has none"""
    del folder
    rows = ask(program, "birth")["checkpoints"]
    best = [max(head["induction"] for head in row["heads"]) for row in rows]
    steps = [row["step"] for row in rows]
    good = len(rows) == 20 and steps[0] == 0 and best[0] < 0.1 and best[-1] > 0.8
    return None if good else f"{steps}: {best}"


def check_probe(program, folder):
    """the head repeats only the one sequence that it was chosen by"""
    del folder
    scores = []
    for period in ("16", "25", "32"):
        for seed in ("1", "2", "3", "4"):
            heads = ask(program, "heads", "--probe", period, "-m", "induction", "--seed", seed)
            scores += [head["induction"] for head in heads["heads"]
                       if (head["layer"], head["head"]) == (1, 0)]
    mean = sum(scores) / len(scores)
    return None if mean > 0.8 and min(scores) > 0.7 else f"{mean}: {scores}"


def check_repeats(program, folder):
    """a repetition is not known from its first half, or known without the head too"""
    subprocess.run([sys.executable, "-B", os.path.join(MODEL, "make.py"), folder, "--lines", "1"],
                   check=True, capture_output=True, timeout=SECONDS)
    words = ("eval", "--halves", os.path.join(folder, "repeats.txt"), "-m", "induction")
    whole = ask(program, *words)
    without = ask(program, *words, "--edit", "zero blocks.1.attn.hook_z head=0")
    gain = whole["first"]["loss"] - whole["second"]["loss"]
    undone = without["second"]["loss"] - whole["second"]["loss"]
    good = whole["ratio"] < 0.1 and undone > gain / 2
    return None if good else f"{whole['ratio']} of the first half; {undone} of {gain} undone"


def main():
    program = os.path.abspath(sys.argv[1])

    def call(check):
        with tempfile.TemporaryDirectory() as folder:
            return check(program, folder)
    return checks.run_all(globals(), call)


if __name__ == "__main__":
    sys.exit(main())
