"""Checks of attend train; see checks.py."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import run_cases


def is_native(program):
    """False under an emulator or a sanitizer, whose memory counts too."""
    with open(program, "rb") as stream:
        content = stream.read()
    sanitized = b"__asan_init" in content or b"__tsan_init" in content
    return content[:4] == b"\x7fELF" and not sanitized


def start_training(program, folder, *settings, most=None):
    flags = [flag for setting in settings for flag in ("-s", setting)]
    limited = ["sh", "-c", f"ulimit -v {most // 1024}; exec \"$@\"", "sh"] if most else []
    return subprocess.Popen([*limited, program, "train", "run.json", "--json", "--threads", "2",
                             *flags],
                            cwd=folder, env=run_cases.environment(program), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def highest_memory(process):
    """Bytes that a process held at its highest, asked until it ends. What wait4 says would
    begin with the memory of the one that started it."""
    highest = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as stream:
                said = re.search(r"VmHWM:\s*(\d+) kB", stream.read())
        except OSError:
            break
        highest = max(highest, int(said[1]) * 1024 if said else 0)
        time.sleep(0.002)
    return highest


def check_train_announces_memory_before_it_takes_it(program):
    """train says what a run takes that it cannot take, and does not try before"""
    if not is_native(program):
        return None
    settings = {"data": "text", "output": "out", "layers": 1, "width": 64, "heads": 2, "batch": 1,
                "slices": 1, "length": 4, "steps": 1, "ffn_width": 10000000}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as stream:
            json.dump(settings, stream)
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as stream:
            stream.write("".join(f"{i}\n" for i in range(500)))
        run = start_training(program, folder, most=2**30)
        _, err = (text.decode() for text in run.communicate())
    said = re.search(r"memory (\d+) MB", err)
    # Values, packed values, two moments and a gradient, of two matrices.
    if not said or float(said[1]) < 5 * 2 * 64 * 10000000 * 4 / 2**20:
        return f"nothing or too little is announced: {err}"
    if run.returncode != 1 or "no memory" not in err[said.end():]:
        return f"exit {run.returncode}: {err}"
    return None


def check_train_takes_the_memory_it_announces(program):
    """train takes, at its highest, what it announces within a tenth, in every way to save some"""
    if not is_native(program):
        return None
    settings = {"data": "text", "output": "out", "layers": 3, "width": 256, "heads": 4, "batch": 8,
                "length": 64, "steps": 2, "evaluate_every": 2, "evaluate_batches": 1}
    ways = ([], ["recompute=true"], ["pass_slices=2"], ["family=llama", "dropout=0.1"])
    for number, way in enumerate(ways):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as stream:
                json.dump(settings, stream)
            with open(os.path.join(folder, "text"), "w", encoding="utf-8") as stream:
                stream.write("".join(f"{i * i}\n" for i in range(20000)))
            run = start_training(program, folder, *way)
            measured = highest_memory(run)
            out, err = (text.decode() for text in run.communicate())
        if run.returncode:
            return f"exit {run.returncode}: {err}"
        announced = json.loads(out)["bytes"]
        if abs(measured - announced) > 0.1 * announced:
            return f"{way}: {announced} bytes announced, {measured} taken"
        said = float(re.search(r"memory (\d+) MB", err)[1])
        if abs(said - announced / 2**20) > 1:
            return f"{way}: {said} MB announced, but {announced} bytes in JSON"
        if number == 0:
            whole = announced
        elif way == ["recompute=true"] and announced > 0.95 * whole:
            return f"{way} saves nothing"
    return None


def steps_logged(folder):
    try:
        with open(os.path.join(folder, "out", "log.jsonl"), encoding="utf-8") as stream:
            return stream.read().count("\n")
    except OSError:
        return 0


def check_an_interrupted_train_loses_nothing(program):
    """train saves the step at which SIGINT or SIGTERM came, and goes on from it with the same bits"""
    settings = {"data": "text", "output": "out", "layers": 1, "width": 32, "heads": 2, "batch": 2,
                "length": 32, "steps": 60, "save_every": 1000, "warmup": 0, "final_rate": 1e-3}
    ends = {}
    for number in (None, signal.SIGINT, signal.SIGTERM):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as stream:
                json.dump(settings, stream)
            with open(os.path.join(folder, "text"), "w", encoding="utf-8") as stream:
                stream.write("".join(f"{i * i}\n" for i in range(20000)))
            run = start_training(program, folder, *([] if number is None else ["steps=100000"]))
            if number is not None:
                while steps_logged(folder) < 3 and run.poll() is None:
                    time.sleep(0.01)
                run.send_signal(number)
            out, err = (text.decode() for text in run.communicate())
            if number is not None:
                saved = re.search(r"interrupted: step (\d+) is saved", err)
                if run.returncode != -number or not saved:
                    return f"exit {run.returncode}: {err}"
                if int(saved[1]) != steps_logged(folder):
                    return f"step {saved[1]} of {steps_logged(folder)} is saved"
                with open(os.path.join(folder, "out", "heads.jsonl"), encoding="utf-8") as stream:
                    if [json.loads(line)["step"] for line in stream][-1:] != [int(saved[1])]:
                        return "heads.jsonl lacks the checkpoint"
                last = start_training(program, folder, f"steps={max(60, int(saved[1]) + 1)}")
                err = last.communicate()[1].decode()
                if f"goes on from step {saved[1]}" not in err:
                    return err
            with open(os.path.join(folder, "out", "log.jsonl"), encoding="utf-8") as stream:
                ends[number] = [json.loads(line)["loss"] for line in stream][:60]
    return None if ends[None] == ends[signal.SIGINT] == ends[signal.SIGTERM] else "other losses"


def check_a_second_signal_ends_train_at_once(program):
    """train ends its evaluation first when a second signal comes, which need not be the same one"""
    if not is_native(program):
        return None
    settings = {"data": "text", "output": "out", "layers": 2, "width": 64, "heads": 2, "batch": 4,
                "length": 256, "validation": 0.9, "evaluate_every": 1, "evaluate_batches": 10**9}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "run.json"), "w", encoding="utf-8") as stream:
            json.dump(settings, stream)
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as stream:
            stream.write("0123456789\n" * 300000)
        run = start_training(program, folder)
        if not any(b"of a fresh model" in line for line in run.stderr):
            return f"exit {run.wait()} before the first step"
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        time.sleep(0.1)
        if run.poll() is not None:
            return f"one signal is enough: exit {run.returncode}"
        run.send_signal(signal.SIGTERM)
        try:
            err = run.communicate(timeout=5)[1].decode()
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            return "it goes on"
    good = run.returncode == -signal.SIGTERM and "saved" not in err
    return None if good else f"exit {run.returncode}: {err}"
