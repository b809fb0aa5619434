"""Checks that need more than a case: JSON, terminals, published results.

A check is a function whose name begins with check_: it takes the program's path
and returns what is wrong, or None. Its name in the list is its first line of
documentation; one that needs the published cases says "published" there. Those
of one subject are in a file of their own, the others here.
"""
import glob
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

import checks_inside
import checks_published
import checks_terminal
import checks_train
import run_cases
from checks_tools import HOSTILE, MODEL, VIEWS, far, read_json, run, view_arguments


def check_documents_show_what_is_printed(program):
    """documents show what their commands print"""
    top, seen = os.path.normpath(os.path.join(run_cases.HERE, "..", "..")), 0
    for path in [os.path.join(top, "README.md"), *glob.glob(f"{top}/docs/**/*.md", recursive=True)]:
        with open(path, encoding="utf-8") as stream:
            blocks = re.findall(r"^```\n\$ (.+)\n((?s:.*?))^```$", stream.read(), re.M)
        for command, shown in blocks:
            done = subprocess.run(["/bin/sh", "-c", command], cwd=top, capture_output=True,
                                  env=run_cases.environment(program), check=False,
                                  timeout=run_cases.SECONDS, stdin=subprocess.DEVNULL)
            # A line with nothing but … stands for lines left out.
            pattern = "".join("(?:.*\n)*?" if line == "…\n" else re.escape(line)
                              for line in shown.splitlines(keepends=True))
            printed = done.stdout.decode(errors="replace")
            if not re.fullmatch(pattern, printed if printed.endswith("\n") else printed + "\n"):
                return f"{path}: {command}\n{printed}"
            seen += 1
    return None if seen else "no document shows anything"


def check_picture_is_current(program):
    """the picture of explain in docs is what the program prints"""
    top, name = os.path.normpath(os.path.join(run_cases.HERE, "..", "..")), "explain.svg"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(top, "tools", "draw_pictures"), program, folder], check=True,
                       timeout=run_cases.SECONDS)
        with open(os.path.join(folder, name), "rb") as stream:
            drawn = stream.read()
    with open(os.path.join(top, "docs", "pictures", name), "rb") as stream:
        same = stream.read() == drawn
    return None if same else f"tools/draw_pictures {program} draws another"


def check_json_of_every_view(program):
    """--json is one valid value for every command, hostile prompts too (published model)"""
    for prompt in HOSTILE:
        for view in VIEWS:
            read_json(program, *view_arguments(view, prompt, MODEL))
    for page in (["info"], ["cost"], ["lesson", "list"], ["info", MODEL]):
        read_json(program, *page)
    return None


def check_interrupt(program):
    """Ctrl-C ends a long text with its line finished and 130 (published model)"""
    arguments = ["run", "-m", MODEL, "-n", "400", "--threads", "1", "Once upon a time"]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=run_cases.environment(program))
    first = os.read(process.stdout.fileno(), 1)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=run_cases.SECONDS)
    if process.returncode == 0 and b"(length)" in errors:
        return None  # the machine was faster than the signal
    if process.returncode != 130 or b"interrupted" not in errors:
        return f"exit {process.returncode}: {errors!r}"
    return None if (first + rest).startswith(b"Once upon a time") else f"text {first + rest!r}"


def check_threads_and_targets(program):
    """run has the same bytes on 1, 2, 3, 5 threads, every target of a class (published model)"""
    targets = read_json(program, "info")["targets"]
    flags = ["--json", "-m", MODEL, "-n", "40", "--seed", "7", "-t", "0.9", "--top-p", "0.95",
             "Once upon"]
    seen = {}
    for extra in [["--threads", n] for n in ("1", "2", "3", "5")] + [["--cpu", t] for t in targets]:
        value = json.loads(run(program, "run", *extra, *flags).stdout)
        if seen.setdefault(value["class"], value["tokens"]) != value["tokens"]:
            return f"{extra}: {value['tokens']}"
    return None if len(seen) == 2 else f"classes seen: {list(seen)}"


def write_attention(path, value, keys):
    """q, k, v of one head of 32 for sdpa, all numbers alike."""
    header, data = {}, b""
    for name, rows in (("q", 1), ("k", keys), ("v", keys)):
        bytes_ = struct.pack("<f", value) * rows * 32
        header[name] = {"dtype": "F32", "shape": [1, 1, rows, 32],
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text + data)


def check_cache_types_fail_alone(program):
    """sdpa --cache measures the types that hold a number where another cannot"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        write_attention(path, 1e6, 3)
        types = {t["dtype"]: t for t in read_json(program, "sdpa", "--cache", path)["cache"]}
        if list(types) != ["f32", "f16", "bf16", "q8_0", "q4_0"]:
            return f"types {list(types)}"
        if "f16" not in types["f16"].get("reason", "") or types["f32"].get("out_rms") != 0:
            return f"{types}"
        if "reason" in types["bf16"]:
            return f"{types['bf16']}"
        write_attention(path, 1, 0)
        done = run(program, "sdpa", "--cache", path)
    told = done.stderr.decode()
    return None if done.returncode == 1 and "S is 0" in told else f"{done.returncode} {told}"


def check_bench_of_gradients(program):
    """bench backward counts the visible pairs of its shapes"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as shapes:
        shapes.write("H=2 D=16 T=64 causal=1 dtype=f32\n"
                     "H=4 G=2 D=16 Dv=8 T=64 dtype=f16 features=alibi,sink,bias,dropout\n")
        shapes.flush()
        rows = read_json(program, "bench", "backward", "--shapes", shapes.name, "--threads", "1",
                         "--quiet")["rows"]
    if [row["bench"] for row in rows] != ["backward"] * 2:
        return f"rows {rows}"
    for row, flops in zip(rows, (2 * 64 * 65 / 2 * 10 * 16, 4 * 64 * 64 * 2 * (3 * 16 + 2 * 8))):
        if far(row["gflops"] * row["ms"] * 1e6, flops, flops * 1e-6):
            return f"{row['gflops'] * row['ms'] * 1e6} flops, not {flops}"
    return None


def check_bench_leaves_nothing(program):
    """bench model says how much it writes, and a signal removes it, wherever TMPDIR is"""
    with tempfile.TemporaryDirectory() as folder:
        deep = os.path.join(folder, "a" * 100)
        os.mkdir(deep)
        shapes = os.path.join(folder, "shapes")
        with open(shapes, "w", encoding="utf-8") as stream:
            stream.write("features=llama,decode T=1\n" * 200)
        with subprocess.Popen([program, "bench", "model", "--shapes", shapes, "--threads", "1"],
                              stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                              env=run_cases.environment(program, {"TMPDIR": deep})) as process:
            told = next((line for line in process.stderr if "MB" in line), "")
            if " 400 MB of random weights" not in told or deep not in told:
                process.kill()
                return f"says {told!r}"
            if len(os.listdir(deep)) != 1:
                process.kill()
                return f"{deep} has {os.listdir(deep)}"
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            code = process.wait(run_cases.SECONDS)
        left = os.listdir(deep)
    return None if code == -signal.SIGTERM and not left else f"exit {code}, left {left}"


def all_checks():
    """(name, check, whether it needs the published cases) of every check."""
    files = (sys.modules[__name__], checks_inside, checks_published, checks_terminal, checks_train)
    checks = [check for file in files for name, check in vars(file).items()
              if name.startswith("check_")]
    checks.sort(key=lambda check: check.__name__)
    names = [check.__doc__.split("\n")[0] for check in checks]
    return [(name, check, "published" in name) for name, check in zip(names, checks)]
