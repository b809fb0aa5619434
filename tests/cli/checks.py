"""Checks that need more than a case: JSON, terminals, published results.

A check takes the program's path and returns what is wrong, or None. Its name
is its first line of documentation; `needs_shared` marks those that compare with
published cases.
"""
import json
import os
import subprocess

import run_cases


def run(program, *arguments, env=None, stdin=None):
    return subprocess.run([program, *arguments], capture_output=True, timeout=run_cases.SECONDS,
                          env=run_cases.environment(program, env), check=False,
                          stdin=subprocess.DEVNULL if stdin is None else stdin)


def read_json(program, *arguments):
    """The JSON value that a command prints; more than one is an error."""
    done = run(program, *arguments, "--json")
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout.decode("utf-8"), parse_constant=lambda word: 1 / 0)


def lesson_step(lesson, name):
    return next(step for step in lesson["steps"] if step.get("name") == name)


def far(got, wanted, tolerance):
    """The first pair of numbers that differ by more, in lists of any depth."""
    if isinstance(wanted, list):
        if len(got) != len(wanted):
            return f"{len(got)} numbers, not {len(wanted)}"
        return next((p for p in (far(g, w, tolerance) for g, w in zip(got, wanted)) if p), None)
    return None if abs(got - wanted) <= tolerance else f"{got}, not {wanted}"


def check_lessons_match_published(program):
    """lessons compute the published numbers"""
    with open(os.path.join(run_cases.SHARED, "golden", "lessons", "lessons.json")) as stream:
        golden = {case["file"].split(".")[0]: case for case in json.load(stream)}
    lessons = {name: read_json(program, "lesson", name)
               for name in ("mortgage", "dot-and-scale", "mixing", "river-bank", "causal-mask")}
    bank, causal = golden["d_river_bank"], golden["e_causal_4"]
    # 1e-6: float32 through a softmax of five; the published numbers have 9 digits
    # (causal_4: 6).
    wanted = [
        ("mortgage", "w", "values", [golden["a_softmax_bank"]["weights"]]),
        ("mortgage", "w", "exps", [golden["a_softmax_bank"]["exp"]]),
        ("mortgage", "o", "values", [golden["a_softmax_bank"]["mix"]]),
        ("mortgage", "w100", "values", [golden["a_softmax_bank"]["weights"]]),
        ("mortgage", "flat", "values", [golden["a3_softmax_halved"]["weights"]]),
        ("dot-and-scale", "s", "values", [[golden["b_dot_and_scale"]["dot"]]]),
        ("dot-and-scale", "s", "terms", [golden["b_dot_and_scale"]["products"]]),
        ("dot-and-scale", "t", "values", [[golden["b_dot_and_scale"]["scaled"]]]),
        ("mixing", "o", "values", [golden["c_mix_two"]["mix"]]),
        ("mixing", "p", "values", [golden["c2_mix_three"]["mix"]]),
        ("river-bank", "q", "values", [bank["query"]]),
        ("river-bank", "K", "values", bank["keys"]),
        ("river-bank", "V", "values", bank["values"]),
        ("river-bank", "s", "values", [bank["dots"]]),
        ("river-bank", "t", "values", [bank["scaled"]]),
        ("river-bank", "w", "values", [bank["weights"]]),
        ("river-bank", "o", "values", [bank["mix"]]),
        ("river-bank", "w1", "values", [golden["d2_river_bank_unscaled"]["weights"]]),
        ("causal-mask", "W", "values", causal["weights"]),
    ]
    for name, step, key, numbers in wanted:
        # The scores of w100 are 100.2 and so on, rounded to float32: 4e-6 each.
        tolerance = 2e-5 if step == "w100" else 1e-6
        problem = far(lesson_step(lessons[name], step)[key], numbers, tolerance)
        if problem:
            return f"{name}, {key} of {step}: {problem}"
    attention = lesson_step(lessons["river-bank"], "O")["values"]
    river = golden["d3_river_bank_query_river"]["mix"]
    pairs = [step for step in lessons["causal-mask"]["steps"] if step["step"] == "pairs"][0]
    return (far(attention[2], bank["mix"], 1e-6) or far(attention[1], river, 1e-6) or
            far(pairs["visible"], [float(n) for n in causal["pairs_for_n"].values()], 0))


def all_checks():
    return [(check.__doc__.split("\n")[0], check, "published" in check.__doc__)
            for name, check in sorted(globals().items()) if name.startswith("check_")]
