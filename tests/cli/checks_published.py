"""Checks that compare what the program says with published numbers; see checks.py."""
import array
import glob
import json
import math
import os
import struct
import tempfile

import run_cases
from checks_tools import (MODEL, STORIES, TINY, explain_is_consistent, far, furthest, read_json,
                          read_safetensors, run)


def lesson_step(lesson, name):
    return next(step for step in lesson["steps"] if step.get("name") == name)


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


def matrix_step(name, numbers, columns, transposed):
    """A step of a lesson file that gives a matrix."""
    rows = [numbers[at:at + columns] for at in range(0, len(numbers), columns)]
    rows = zip(*rows) if transposed else rows
    lines = ["  " + " ".join(f"{x:.9g}" for x in row) + "\n" for row in rows]
    return f"matrix {name}\n" + "".join(lines)


def check_lessons_with_heads_match_published(program):
    """a lesson with heads computes the published multi-head cases"""
    for case, heads in (("f2_multihead_3x4_2heads", 2), ("f_multihead_5x64_8heads", 8)):
        path = os.path.join(run_cases.SHARED, "golden", "lessons", case + ".safetensors")
        data = read_safetensors(path)[1]
        width = 4 if heads == 2 else 64
        text = "title heads\n" + matrix_step("X", data["x"], width, False)
        for name, key in (("Wq", "w_q"), ("Wk", "w_k"), ("Wv", "w_v")):
            text += matrix_step(name, data[key], width, True)
        text += matrix_step("Wo", data["w_o"], len(data["concat"]) // len(data["x"]) * width, True)
        text += "matmul Q = X Wq\nmatmul K = X Wk\nmatmul V = X Wv\n"
        text += f"heads Z = Q K V {heads}\nmatmul O = Z Wo\n"
        with tempfile.TemporaryDirectory() as folder:
            lesson = os.path.join(folder, "heads.lesson")
            with open(lesson, "w", encoding="utf-8") as stream:
                stream.write(text)
            got = read_json(program, "lesson", lesson)
        for name, key, wanted in (("Z", "weights", "weights"), ("Z", "values", "concat"),
                                  ("O", "values", "out")):
            numbers = [x for row in lesson_step(got, name)[key] for x in row]
            problem = furthest(numbers, data[wanted], 2e-5)  # float32 sums of up to 512 products
            if problem:
                return f"{case}, {key} of {name}: {problem}"
    return None


def sdpa_flags(about):
    """The options that say what a published case's metadata says."""
    flags = ["--causal"] if about["causal"] == "1" else []
    flags += ["--align", "bottom-right"] if about["align"] == "bottom_right" else []
    for side in ("left", "right"):
        if int(about["window_" + side]) >= 0:
            flags += ["--" + side, about["window_" + side]]
    flags += ["--softcap", about["softcap"]] if float(about["softcap"]) else []
    return flags if about["scale_is_default"] == "1" else flags + ["--scale", about["scale"]]


def check_sdpa_matches_published(program):
    """attend sdpa on every dense published case"""
    cases = sorted(glob.glob(os.path.join(run_cases.SHARED, "golden", "sdpa", "*.safetensors")))
    seen = 0
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "out.safetensors")
        for case in cases:
            about, wanted = read_safetensors(case)
            if about["op"] != "sdpa":
                continue
            done = run(program, "sdpa", case, "-o", result, "--quiet", *sdpa_flags(about))
            if done.returncode != 0:
                return f"{about['case']}: {done.stderr.decode()}"
            got = read_safetensors(result)[1]
            for name in ("out", "lse"):
                problem = furthest(got[name], wanted[name], float(about["tol_f32_" + name]))
                if problem:
                    return f"{about['case']}, {name}: {problem}"
            seen += 1
    return None if seen > 100 else f"only {seen} cases"


def read_stories():
    with open(os.path.join(STORIES, "expected", "greedy.jsonl"), encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def check_run_tells_published_stories(program):
    """attend run tells the published stories byte for byte"""
    for story in read_stories():
        done = run(program, "run", "-m", MODEL, "-t", "0", "-n", str(story["n_generated"]), "--",
                   story["prompt"])
        wanted = story["text"].encode()
        # The README calls choices closer than 1e-3 a matter of rounding.
        if done.stdout != wanted and story["min_top2_gap"] >= 1e-3:
            return f"{story['id']}: {done.stdout!r}, not {wanted!r}"
        if done.returncode or b"tokens/s" not in done.stderr:
            return f"{story['id']}: exit {done.returncode}: {done.stderr!r}"
    return None


def check_run_json_has_published_tokens(program):
    """attend run --json has the published tokens, also from --ids"""
    for story in read_stories()[:8]:
        ids, n = story["prompt_ids"], len(story["prompt_ids"])
        flags = ["-m", MODEL, "-t", "0", "-n", str(story["n_generated"])]
        by_text = read_json(program, "run", *flags, "--", story["prompt"])
        by_ids = read_json(program, "run", *flags, "--ids", ",".join(map(str, ids)))
        for value in (by_text, by_ids):
            if story["min_top2_gap"] >= 1e-3 and value["tokens"] != story["greedy_ids"][n:]:
                return f"{story['id']}: tokens {value['tokens']}"
            if value["prompt_tokens"] != ids or value["text"] != story["text"]:
                return f"{story['id']}: {value}"
            if value["finish"] != "length" or value["class"] != "fma":
                return f"{story['id']}: {value['finish']}, {value['class']}"
    return None


def check_explain_matches_published_traces(program):
    """attend explain shows the published scores, weights and outputs"""
    stories = {story["id"]: story for story in read_stories()}
    for path in sorted(glob.glob(os.path.join(STORIES, "expected", "trace_*.safetensors"))):
        name = os.path.basename(path)[len("trace_"):-len(".safetensors")]
        trace = read_safetensors(path)[1]
        n = len(trace["embed"]) // 64
        ids = ",".join(map(str, stories[name]["greedy_ids"][:n]))
        for layer, head, query in ((0, 0, n - 1), (2, 5, n // 2), (4, 7, n - 1)):
            got = read_json(program, "explain", "-m", MODEL, "--ids", ids, "-L", str(layer), "-H",
                            str(head), "--query", str(query))
            row = (head * n + query) * n
            parts = [("weight", trace[f"block.{layer}.weights"], 2e-5),
                     ("score", trace[f"block.{layer}.scores"], 1e-4)]
            for key, wanted, tolerance in parts:  # tolerances of the published README
                numbers = [k[key] for k in got["keys"][:query + 1]]
                problem = furthest(numbers, wanted[row:row + query + 1], tolerance)
                if problem:
                    return f"{name} L{layer} H{head}: {key}: {problem}"
            z = trace[f"block.{layer}.head_out"][(head * n + query) * 8:][:8]
            problem = furthest(got["z"], z, 1e-4) or explain_is_consistent(got)
            if problem:
                return f"{name} L{layer} H{head}: {problem}"
    return None


def read_ids(path, name):
    """A tensor of whole numbers, or None."""
    with open(path, "rb") as stream:
        header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
        data = stream.read()
    begin, end = header[name]["data_offsets"] if name in header else (0, 0)
    return list(array.array("q", data[begin:end])) or None


def check_encoders_match_published_traces(program):
    """attend embed and fill give the vectors and probabilities of published traces"""
    for path in sorted(glob.glob(os.path.join(TINY, "*bert*", "expected", "*.safetensors"))):
        ids, mask = read_ids(path, "input_ids"), read_ids(path, "attention_mask")
        types = read_ids(path, "token_type_ids")
        if 0 in mask or any(types):  # the program has no flags for those
            continue
        trace, n = read_safetensors(path)[1], len(ids)
        model, text = os.path.dirname(os.path.dirname(path)), ",".join(map(str, ids))
        hidden = trace["final_hidden"]
        rows = [list(hidden[i * 32:(i + 1) * 32]) for i in range(n)]
        wanted = {"cls": rows[0], "mean": [sum(column) / n for column in zip(*rows)]}
        if "pooled" in trace:
            wanted["head"] = list(trace["pooled"])
        for pool, vector in wanted.items():
            got = read_json(program, "embed", "-m", model, "--ids", text, "--pool", pool)
            problem = far(got["texts"][0]["vector"], vector, 1e-4)
            if problem:
                return f"{path} {pool}: {problem}"
        got = read_json(program, "fill", "-m", model, "--ids", text, "--mask-id", str(ids[-1]),
                        "--top", "96")
        for gap in got["gaps"]:
            logits = trace["logits"][gap["position"] * 96:][:96]
            total = sum(math.exp(logit) for logit in logits)
            for row in gap["candidates"]:
                if abs(row["probability"] - math.exp(logits[row["id"]]) / total) > 1e-4:
                    return f"{path}: gap at {gap['position']}, token {row['id']}"
    return None


def check_run_of_t5_is_published(program):
    """attend run with T5 begins with the token of published traces, from either format"""
    for path in sorted(glob.glob(os.path.join(TINY, "t5*", "expected", "*.safetensors"))):
        ids = ",".join(map(str, read_ids(path, "encoder_input_ids")))
        logits = read_safetensors(path)[1]["logits"][:96]
        folder = os.path.dirname(os.path.dirname(path))
        for model in (folder, os.path.join(folder, "model.F32.gguf")):
            got = read_json(program, "run", "-m", model, "--ids", ids, "-n", "1", "-t", "0")
            if got["tokens"] != [max(range(96), key=lambda i: logits[i])]:
                return f"{path} {model}: {got['tokens']}"
    return None


def compare_explain(program, trace, prefix, n_keys, query, flags):
    """One row of a head against a trace's scores, weights and output, or None."""
    head, n_queries = 2, len(trace[f"{prefix}.scores"]) // (4 * n_keys)
    got = read_json(program, "explain", "-H", str(head), "--query", str(query), *flags)
    row = (head * n_queries + query) * n_keys
    for key, name, tolerance in (("score", "scores", 1e-4), ("weight", "weights", 2e-5)):
        wanted = list(trace[f"{prefix}.{name}"][row:row + n_keys])
        seen = [i for i, score in enumerate(wanted) if score != -math.inf]
        problem = far([got["keys"][i][key] for i in seen], [wanted[i] for i in seen], tolerance)
        if problem:
            return f"{prefix} {key}: {problem}"
    z = list(trace[f"{prefix}.head_out"][(head * n_queries + query) * 8:][:8])
    return far(got["z"], z, 1e-4) or explain_is_consistent(got)


def check_explain_of_encoders_is_published(program):
    """attend explain shows published scores of encoders, decoders beside them, and across"""
    path = os.path.join(TINY, "bert", "expected", "long.safetensors")
    ids = read_ids(path, "input_ids")
    if any(read_ids(path, "token_type_ids")):
        path = os.path.join(TINY, "roberta", "expected", "long.safetensors")
        ids = read_ids(path, "input_ids")
    model, text = os.path.dirname(os.path.dirname(path)), ",".join(map(str, ids))
    flags = ["-m", model, "--ids", text, "-L", "1"]
    problem = compare_explain(program, read_safetensors(path)[1], "block.1", len(ids), 3, flags)
    if problem:
        return f"{path}: {problem}"
    for folder in ("t5_gated", "t5_relu_tied"):
        path = os.path.join(TINY, folder, "expected", "long.safetensors")
        trace = read_safetensors(path)[1]
        text, answer = read_ids(path, "encoder_input_ids"), read_ids(path, "decoder_input_ids")
        for stack, prefix, keys in (("encoder", "encoder.block.1", text),
                                    ("decoder", "decoder.block.1", answer),
                                    ("cross", "decoder.block.1.cross", text)):
            flags = ["-m", os.path.join(TINY, folder), "--ids", ",".join(map(str, text)), "-L", "1",
                     "--stack", stack]
            if stack != "encoder":
                flags += ["--answer-ids", ",".join(map(str, answer[1:]))]
            problem = compare_explain(program, trace, prefix, len(keys), 4, flags)
            if problem:
                return f"{path}: {problem}"
            maps = read_json(program, "look", "-H", "2", *flags)
            if maps["key_tokens"] != keys or len(maps["heads"][0]["values"][0]) != len(keys):
                return f"{path} {stack}: keys of look"
    return None
