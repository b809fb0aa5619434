#!/usr/bin/env python3
"""attend train, killed again and again, ends with the bits of a run left alone.

    kill_train.py PROGRAM [KILLS [SEED]]

Every other kill (SIGKILL) falls while a checkpoint is being written, the rest at
random moments from the start on, preparing the data included. A run that got to
its end before its kill is compared, and another one begins. Closes with the
number of kills and how many of them left half a checkpoint behind.
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time

STEPS = 40
CONFIG = {"data": "texts", "layers": 2, "width": 64, "heads": 4, "batch": 4, "length": 32,
          "steps": STEPS, "warmup": 5, "evaluate_every": 8, "evaluate_batches": 2,
          "save_every": 2, "keep": 2, "dropout": 0.1, "documents": True}
SECONDS = 120


def write_texts():
    os.mkdir("texts")
    words = random.Random(5)
    for name in ("a.txt", "b.txt", "c.txt"):
        with open(os.path.join("texts", name), "w", encoding="utf-8") as stream:
            for _ in range(2000):
                stream.write(words.choice(["the ", "cat ", "sat ", "on ", "a ", "mät. "]))


def start(program, output):
    return subprocess.Popen([program, "train", "run.json", "--quiet", "-s", f"output={output}"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def finish(process):
    code = process.wait(timeout=SECONDS)
    if code:
        sys.exit(f"FAIL attend train ends with {code}")


def half_checkpoints(output):
    return set(glob.glob(os.path.join(output, "step-*.part")))


def wait_for_write(process, output, old):
    """Until a checkpoint has begun to be written, or the run is over."""
    while process.poll() is None and half_checkpoints(output) <= old:
        time.sleep(0.0002)


def compare(output, wanted):
    """The last checkpoint of a finished run, byte by byte, and its log."""
    last = f"step-{STEPS:08d}"
    for path in sorted(glob.glob(os.path.join(wanted, last, "*"))):
        with open(path, "rb") as a, open(path.replace(wanted, output, 1), "rb") as b:
            if a.read() != b.read():
                sys.exit(f"FAIL {os.path.basename(path)} is another after kills")
    if half_checkpoints(output):
        sys.exit("FAIL half a checkpoint stays behind")
    with open(os.path.join(output, "log.jsonl"), encoding="utf-8") as stream:
        steps = [json.loads(line)["step"] for line in stream]
    if steps != list(range(1, STEPS + 1)):
        sys.exit(f"FAIL the log has steps {steps}")


def kill_often(program, kills, moments, longest):
    killed = halves = runs = 0
    output = "run-0"
    while killed < kills:
        old = half_checkpoints(output)  # of a kill before; their names have its process id
        process = start(program, output)
        if killed % 2:
            wait_for_write(process, output, old)
            time.sleep(moments.uniform(0, 0.004))
        else:
            time.sleep(moments.uniform(0, longest))
        process.kill()
        if process.wait(timeout=SECONDS) == 0:
            compare(output, "whole")
            runs += 1
            output = f"run-{runs}"
            continue
        killed += 1
        halves += not half_checkpoints(output) <= old
    finish(start(program, output))
    compare(output, "whole")
    return halves, runs + 1


def main():
    program = os.path.abspath(sys.argv[1])
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_texts()
        with open("run.json", "w", encoding="utf-8") as stream:
            json.dump(CONFIG, stream)
        begin = time.monotonic()
        finish(start(program, "whole"))
        longest = time.monotonic() - begin
        halves, runs = kill_often(program, kills, random.Random(seed), longest)
        os.chdir("/")
    print(f"{kills} kills, {halves} while a checkpoint was written; {runs} runs, the same bits")
    if not halves:
        sys.exit("FAIL no kill met a checkpoint that was being written")


if __name__ == "__main__":
    main()
