#!/usr/bin/env python3
"""Rebuild the trained models from nothing, and check that the bits are those shipped.

    python3 models/rebuild.py ATTEND [--threads N] [--write] [MODEL...]

ATTEND is the program. A model's recipe.json says what is shipped:

    "ship": {"to": "checkpoints", "dtype": "f16", "sha256": {...}}

A name that ends in .gguf receives the last checkpoint as one file, beside it the log of
the run without its times; a folder receives every checkpoint of the run as
step-N.safetensors, with one config.json and tokenizer.json for all, the scores of the
heads and such a log. --write puts the files and their hashes into models/, which is how
the first ones got there.

The text comes from make.py, the run from train.json; what is in build/models is removed
first. Numbers are those of the class fma: another processor's are refused.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
BUILD = os.path.join("build", "models")
MODELS = ("story", "induction")


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return json.load(stream)


def steps_of(run):
    """The run's checkpoints, oldest first."""
    return sorted(name for name in os.listdir(run) if name.startswith("step-"))


def untimed_log(source, target):
    """The log's evaluated steps without what differs from run to run."""
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for line in map(json.loads, lines):
            if "validation" in line:
                kept = {k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")}
                out.write(json.dumps(kept) + "\n")


def pack(attend, run, numbers, folder):
    """What is shipped of a run, in `folder`."""
    os.makedirs(folder)
    steps, ship = steps_of(run), numbers["ship"]

    def convert(step, target):
        subprocess.run([attend, "convert", os.path.join(run, step), target, "--dtype",
                        ship["dtype"], "--quiet"], check=True)
    if ship["to"].endswith(".gguf"):
        convert(steps[-1], os.path.join(folder, ship["to"]))
        untimed_log(os.path.join(run, "log.jsonl"), os.path.join(folder, "log.jsonl"))
        return
    part = os.path.join(folder, "part")
    for step in steps:
        convert(step, part)
        name = f"step-{int(step[len('step-'):])}.safetensors"
        os.rename(os.path.join(part, "model.safetensors"), os.path.join(folder, name))
        for name in ("config.json", "tokenizer.json"):
            os.replace(os.path.join(part, name), os.path.join(folder, name))
        shutil.rmtree(part)
    shutil.copy(os.path.join(run, "heads.jsonl"), folder)
    untimed_log(os.path.join(run, "log.jsonl"), os.path.join(folder, "log.jsonl"))


def hashes_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as stream:
            found[name] = hashlib.sha256(stream.read()).hexdigest()
    return found


def install(model, numbers, folder, found):
    """Puts the files and their hashes into models/."""
    to = os.path.join(HERE, model, numbers["ship"]["to"])
    if to.endswith(".gguf"):
        for name in found:
            shutil.copy(os.path.join(folder, name), os.path.dirname(to))
    else:
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(folder, to)
    numbers["ship"]["sha256"] = found
    with open(os.path.join(HERE, model, "recipe.json"), "w", encoding="utf-8") as stream:
        json.dump(numbers, stream, indent=2)
        stream.write("\n")


def rebuild(attend, model, threads, write):
    """True if the model came out as it is shipped."""
    numbers, begin = read_json(HERE, model, "recipe.json"), time.monotonic()
    build = os.path.join(BUILD, model)
    shutil.rmtree(build, ignore_errors=True)
    subprocess.run([sys.executable, os.path.join(HERE, model, "make.py"), build], check=True)
    subprocess.run([attend, "train", os.path.join(HERE, model, "train.json"), "--threads",
                    str(threads)], check=True)
    folder = os.path.join(build, "ship")
    pack(attend, read_json(HERE, model, "train.json")["output"], numbers, folder)
    found = hashes_of(folder)
    if write:
        install(model, numbers, folder, found)
        numbers = read_json(HERE, model, "recipe.json")
    wanted = numbers["ship"].get("sha256", {})
    wrong = [name for name in sorted(found | wanted) if found.get(name) != wanted.get(name)]
    for name in wrong:
        print(f"{model}/{name}: {found.get(name)}, not {wanted.get(name)}")
    print(f"{model}: {len(found) - len(wrong)} of {len(wanted)} files as shipped, "
          f"{time.monotonic() - begin:.0f} s")
    return not wrong


def parse(words):
    """The command line: options may stand before, between and behind the names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("attend")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    return parser.parse_intermixed_args(words)


def main():
    arguments = parse(sys.argv[1:])
    attend = os.path.abspath(arguments.attend)
    os.chdir(TOP)
    models = arguments.models or [m for m in MODELS if "ship" in read_json(HERE, m, "recipe.json")]
    good = [rebuild(attend, m, arguments.threads, arguments.write) for m in models]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
