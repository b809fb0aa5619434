#!/usr/bin/env python3
"""Tests of the text that the built-in models are trained on.

    check_data.py PROGRAM [--whole]     PROGRAM: attend; whole: the text as long as the recipe's

A story or line depends on the seed and its number alone, so a beginning of the text is
checked in the suite and all of it before a release. The name of a check is its first
line of documentation. Closes with N passed, N failed.
"""
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import checks

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The first 1500 lines of the training text by sha256.
BEGINNING = {
    "story": {"train.txt": "e8529c8cc39a9745926ee5fa8084a33aea2e01c6d4ed716598a038c11f9c5d6d",
              "train.marks": "804058ca9b16cc0a2b65e673324e78b10d1c1ffd29c2266aa1786723b996efd8"},
    "induction": {"train.txt": "a795e4774e0854cd59a140a2f318398b4e7411d084ba8909333e7f2c6e784681"}}
SHORT = 1500


def make(model, folder, *options):
    """What the generator of a model prints; its exit status must be 0."""
    script = os.path.join(TOP, "models", model, "make.py")
    done = subprocess.run([sys.executable, "-B", script, folder, *options], capture_output=True,
                          text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return stream.read()


def edit(path, change):
    text = read(path)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(change(text))


def pairs_of(folder):
    return [json.loads(line) for line in read(folder, "pairs.jsonl").splitlines()]


def check_bytes(run):
    """the same bytes as everywhere else"""
    for model in ("story", "induction"):
        numbers = json.loads(read(TOP, "models", model, "recipe.json"))
        for name, wanted in numbers["sha256"].items():
            if not run.whole:
                wanted = BEGINNING[model].get(name, wanted)
            with open(os.path.join(run.folder[model], name), "rb") as stream:
                got = hashlib.sha256(stream.read()).hexdigest()
            if got != wanted:
                return f"{model}/{name}: {got}, not {wanted}"
    return None


def check_sound(run):
    """held-out words, frames and sequences are not in the training text; twins tell nothing near"""
    for model in ("story", "induction"):
        if make(model, run.folder[model], "--check") != "sound\n":
            return f"{model}: not sound"
    return None


def refused(run, name, change, expected):
    """What --check misses in story's files with one fault in them, or None."""
    with tempfile.TemporaryDirectory() as folder:
        for file in ("train.txt", "pairs.jsonl"):
            text = read(run.folder["story"], file)
            with open(os.path.join(folder, file), "w", encoding="utf-8") as stream:
                stream.write(change(text) if file == name else text)
        try:
            make("story", folder, "--check")
        except AssertionError as error:
            return None if expected in str(error) else f"not {expected}, but {error}"
    return f"not refused: {expected}"


def check_refusals(run):
    """a held-out name, a frame, an unequal twin, a near word and a late one are refused"""
    lines = read(run.folder["story"], "pairs.jsonl").splitlines()
    first = json.loads(lines[0])
    asked = re.split(r"(?<=[.?!]) ", first["prefix"] + first["a"])[-1]

    def replaced(**members):
        return lambda text: text.replace(lines[0], json.dumps({**first, **members}), 1)

    near = first["prefix"] + " now"
    return (refused(run, "train.txt", lambda text: text + "A word to Marlow.\n", "person") or
            refused(run, "train.txt", lambda text: text + "The old TEAPOT.\n", "thing") or
            refused(run, "train.txt", lambda text: text + asked + " ball.\n", "the frame") or
            refused(run, "pairs.jsonl", replaced(prefix="Well. " + first["prefix"]),
                    "the same but for") or
            refused(run, "pairs.jsonl", replaced(prefix=near), "before the answer tell") or
            refused(run, "pairs.jsonl", replaced(distance=3), "only 3 words back") or
            refused(run, "pairs.jsonl", replaced(deciding=["queen"]), "do not stand before") or
            refused(run, "pairs.jsonl", replaced(a=first["b"]), "no twins"))


def check_categories(run):
    """a category has too few pairs to be measured"""
    counts = collections.Counter(pair["category"] for pair in pairs_of(run.folder["story"]))
    wanted = {"her": 150, "it": 60, "because": 60, "bank": 60, "name": 60, "surname": 40,
              "thing": 60, "list": 40, "quote": 40}
    short = {name for name, least in wanted.items() if counts[name] < least}
    return f"too few: {short}" if short or set(counts) != set(wanted) else None


def check_distance(run):
    """most deciding words stand further than four words back, and before the answer"""
    for pair in pairs_of(run.folder["story"]):
        words = re.findall(r"\w+|[^\w\s]", pair["prefix"])
        last = re.findall(r"\w+|[^\w\s]", pair["deciding"][-1])
        begin = len(words) - pair["distance"] - len(last)
        if pair["distance"] <= 4 or words[begin:begin + len(last)] != last:
            return f"{pair['deciding']} is not {pair['distance']} words back: {pair['prefix']}"
    return None


def check_ngram(run):
    """a 5-gram model of the same text gets more than 65 % of the pairs"""
    report = make("story", run.folder["story"], "--ngram").splitlines()
    high = [line for line in report if float(line.split("%")[0]) > 65]
    return "\n".join(high) if high or not report[-1].endswith("all") else None


def check_place(run):
    """the answer that is mentioned first, or last, is right in more than 65 % of the pairs"""
    right, pairs = [0, 0], pairs_of(run.folder["story"])
    for pair in pairs:
        a, b = pair["a"].strip(), pair["b"].strip()
        if a not in pair["prefix"] or b not in pair["prefix"]:
            right = [right[0] + 0.5, right[1] + 0.5]
            continue
        right[0] += pair["prefix"].find(a) < pair["prefix"].find(b)
        right[1] += pair["prefix"].rfind(a) > pair["prefix"].rfind(b)
    return None if max(right) <= 0.65 * len(pairs) else f"{right} of {len(pairs)}"


def check_words_of_the_demo(run):
    """what the issue and the lessons say of Maya, the road and the bank is not in the text"""
    text = read(run.folder["story"], "train.txt")
    for said in ("Maya", "Ravi", "notebook", "because it was tired", "because it was flooded",
                 "bank of the river", "money in the bank"):
        if said not in text:
            return f"not there: {said}"
    wrong = re.search(r"^(Maya lent \w+ his|Ravi lent \w+ her) ", text, re.M)
    return wrong and wrong.group()


def check_attend_reads_pairs(run):
    """attend eval reads the pairs, and a model that knows nothing gets half of them"""
    model = os.path.join(run.folder["story"], "random.gguf")
    subprocess.run([run.program, "init", "llama", "--layers", "1", "--width", "8", "--heads", "1",
                    "--context", "512", "-o", model, "--force", "--quiet"], check=True, timeout=60)
    done = subprocess.run([run.program, "eval", "--json", "--quiet", "-m", model, "-p",
                           os.path.join(run.folder["story"], "pairs.jsonl")],
                          check=True, capture_output=True, timeout=600)
    got = json.loads(done.stdout)
    if got["pairs"] != len(pairs_of(run.folder["story"])) or len(got["categories"]) != 9:
        return f"{got['pairs']} pairs of {len(got['categories'])} categories"
    # 896 fair coins: 40 and 60 % are six standard deviations away.
    return None if 0.4 < got["accuracy"] < 0.6 else f"right in {got['accuracy']}"


class Run:
    def __init__(self, program, whole, folder):
        self.program, self.whole = os.path.abspath(program), whole
        self.folder = {model: os.path.join(folder, model) for model in ("story", "induction")}
        for model, option in (("story", "--stories"), ("induction", "--lines")):
            make(model, self.folder[model], *([] if whole else [option, str(SHORT)]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(sys.argv[1], "--whole" in sys.argv, folder)
        return checks.run_all(globals(), lambda check: check(run))


if __name__ == "__main__":
    sys.exit(main())
