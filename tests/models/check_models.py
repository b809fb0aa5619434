#!/usr/bin/env python3
"""Tests of the trained models that ship, and of how they are made.

    check_models.py PROGRAM     PROGRAM: attend

A whole retraining is `make models`. Here the run of induction is started from nothing
and stopped after some steps: the checkpoints that it has written by then must be those
that ship, bit for bit; of story the loss of a first step is compared. What story knows
is measured beside what it knows without attention. The name of a check is its first line
of documentation. Closes with N passed, N failed.
"""
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(TOP, "models", "induction")
STORY = os.path.join(TOP, "models", "story")
sys.path.insert(0, os.path.join(TOP, "models"))
sys.dont_write_bytecode = True
import checks  # noqa: E402
import rebuild  # noqa: E402

LAST = 113           # the retraining's step, the twelfth of twenty checkpoints
STORY_STEP, STORY_LOSS = 20, 7.5873547  # in the log of the run that story.gguf is of
SECONDS = 300        # that it may take on a slow and busy machine
PAIRS = 896          # of story's file


def ask(program, *words):
    """What a command prints as JSON."""
    done = subprocess.run([program, *words, "--json", "--quiet"], check=True, timeout=SECONDS,
                          capture_output=True)
    return json.loads(done.stdout)


def run_until(program, model, step, folder, **settings):
    """Trains from nothing until the checkpoint of `step` is there, or to the end."""
    subprocess.run([sys.executable, "-B", os.path.join(model, "make.py"), folder], check=True,
                   capture_output=True, timeout=SECONDS)
    settings = {"data": os.path.join(folder, "train.txt"), "output": os.path.join(folder, "run"),
                **settings}
    command = [program, "train", os.path.join(model, "train.json"), "--quiet", "--threads", "1"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    wanted = os.path.join(settings["output"], f"step-{step:08d}")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        end = time.monotonic() + SECONDS
        while run.poll() is None and not os.path.isdir(wanted) and time.monotonic() < end:
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)  # SIGINT is ignored where a script runs in the background
    return settings["output"]


def shipped(model):
    """The hashes of the files that ship, by their names: a folder, or a file and its log."""
    ship = rebuild.read_json(model, "recipe.json")["ship"]
    path = os.path.join(model, ship["to"])
    if os.path.isdir(path):
        return rebuild.hashes_of(path)
    found = {}
    for name in (ship["to"], "log.jsonl"):
        with open(os.path.join(model, name), "rb") as stream:
            found[name] = hashlib.sha256(stream.read()).hexdigest()
    return found


def check_hashes(program, folder):
    """a shipped file is not the one that the recipe names, or there is one more or less"""
    del program, folder
    for model, count in ((MODEL, 24), (STORY, 2)):
        wanted, found = rebuild.read_json(model, "recipe.json")["ship"]["sha256"], shipped(model)
        wrong = [name for name in found | wanted if found.get(name) != wanted.get(name)]
        if wrong or len(found) != count:
            return f"{model}: {len(found)} files, not the recipe's: {wrong}"
    return None


def check_usage(program, folder):
    """the builder of models does not take the command lines that it documents"""
    del folder
    for words in (["--threads", "1", "--write", "story"], ["story", "--write", "--threads", "1"]):
        got = rebuild.parse([program, *words])
        if (got.attend, got.models, got.threads, got.write) != (program, ["story"], 1, True):
            return f"{words}: {got}"
    return None


def check_size(program, folder):
    """the checkpoints take more than 3 MB together, or story more than 4"""
    del program, folder
    checkpoints = os.path.join(MODEL, "checkpoints")
    total = sum(os.path.getsize(os.path.join(checkpoints, n)) for n in os.listdir(checkpoints))
    story = os.path.getsize(os.path.join(STORY, "story.gguf"))
    return f"{total} and {story} bytes" if total >= 3e6 or story >= 4e6 else None


def check_retraining(program, folder):
    """training from nothing no longer gives the bits that ship"""
    if ask(program, "info")["class"] != "fma":
        return None  # other bits, by promise
    run = run_until(program, MODEL, LAST, folder)
    packed = os.path.join(folder, "packed")
    for name in rebuild.steps_of(run):  # what was interrupted saved its step too
        if int(name[len("step-"):]) > LAST:
            rebuild.shutil.rmtree(os.path.join(run, name))
    rebuild.pack(program, run, {"ship": {"to": "checkpoints", "dtype": "f16"}}, packed)
    files = shipped(MODEL)
    got = {name: digest for name, digest in rebuild.hashes_of(packed).items()
           if not name.endswith(".jsonl")}
    wrong = [name for name in got if got[name] != files[name]]
    return f"{len(got)} files, others: {wrong}" if wrong or len(got) != 12 + 2 else None


def check_story_begins(program, folder):
    """training story from nothing no longer begins as the run of the file that ships"""
    if ask(program, "info")["class"] != "fma":
        return None
    run = run_until(program, STORY, STORY_STEP, folder, save_every=STORY_STEP,
                    marks=os.path.join(folder, "train.marks"))
    with open(os.path.join(run, "log.jsonl"), encoding="utf-8") as lines:
        losses = {line["step"]: line["loss"] for line in map(json.loads, lines)}
    got = losses.get(STORY_STEP)
    return None if got == STORY_LOSS else f"loss {got} at step {STORY_STEP}, not {STORY_LOSS}"


def check_story_log(program, folder):
    """the log of story is of another run than its recipe's"""
    del program, folder
    with open(os.path.join(STORY, "log.jsonl"), encoding="utf-8") as lines:
        log = [json.loads(line) for line in lines]
    settings = rebuild.read_json(STORY, "train.json")
    every = settings["evaluate_every"]
    good = [line["step"] for line in log] == list(range(every, settings["steps"] + 1, every))
    return None if good and log[-1]["validation"] < log[0]["validation"] else f"{log}"


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


def story_pairs(folder, every=1):
    """The file of pairs of story's recipe, or one pair in `every` of it."""
    subprocess.run([sys.executable, "-B", os.path.join(STORY, "make.py"), folder, "--stories", "1"],
                   check=True, capture_output=True, timeout=SECONDS)
    path = os.path.join(folder, "pairs.jsonl")
    with open(path, encoding="utf-8") as stream:
        pairs = stream.readlines()
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(pairs[::every])
    return path


def check_pairs(program, folder):
    """story no longer knows what is held out, or knows it without looking anywhere"""
    # A sanitizer is twenty times slower and looks for other faults: some pairs of each kind, and
    # no threshold, which holds for all of them together.
    sanitized = checks.is_sanitized(program)
    every = 8 if sanitized else 1
    words = ("eval", "-m", "story", "-p", story_pairs(folder, every), "--threads", "1")
    whole = ask(program, *words)
    uniform = ask(program, *words, "--edit", "set *.hook_attn_scores value=0")
    low = [c["category"] for c in whole["categories"] if c["accuracy"] < 0.85]
    good = not low and whole["accuracy"] >= 0.95 and uniform["accuracy"] <= 0.65
    counted = whole["pairs"] == uniform["pairs"] == PAIRS // every
    return None if counted and (good or sanitized) else f"{whole}, {uniform}"


def other_asked(pair):
    """The same story, but the other person is asked for; None where it does not name them."""
    prefix, wrong = pair["prefix"], re.escape(pair["b"])
    if pair["category"] == "surname":
        other = re.search(rf"(\w+){wrong}\b", prefix)
        asked = other and prefix.rsplit(" ", 1)[0] + " " + other.group(1)
    elif pair["category"] == "list":
        other = re.search(rf"(\w+) bought an?{wrong}\.", prefix)
        asked = other and re.sub(r"At noon .*", f"At noon {other.group(1)} sold the", prefix)
    else:
        return None
    return asked and {"prefix": asked, "a": pair["b"], "b": pair["a"]}


def check_other_asked(program, folder):
    """surnames and lists are known by which stands first or last: their pairs ask for one place"""
    with open(story_pairs(folder), encoding="utf-8") as stream:
        turned = [t for t in map(other_asked, map(json.loads, stream)) if t]
    path = os.path.join(folder, "turned.jsonl")
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(pair) + "\n" for pair in turned)
    right = ask(program, "eval", "-m", "story", "-p", path)["accuracy"]
    return None if len(turned) == 96 and right >= 0.9 else f"{right} of {len(turned)}"


def main():
    program = os.path.abspath(sys.argv[1])

    def call(check):
        with tempfile.TemporaryDirectory() as folder:
            return check(program, folder)
    return checks.run_all(globals(), call)


if __name__ == "__main__":
    sys.exit(main())
