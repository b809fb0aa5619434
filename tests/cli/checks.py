"""Checks that need more than a case: JSON, terminals, published results.

A check takes the program's path and returns what is wrong, or None. Its name
is its first line of documentation; `needs_shared` marks those that compare with
published cases.
"""
import array
import csv
import fcntl
import glob
import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import xml.etree.ElementTree
import zipfile

import checks_train
import run_cases


def run(program, *arguments, env=None, stdin=None):
    return subprocess.run([program, *arguments], capture_output=True, timeout=run_cases.SECONDS,
                          env=run_cases.environment(program, env), check=False,
                          stdin=subprocess.DEVNULL if stdin is None else stdin)


def read_json(program, command, *arguments):
    """The JSON value that a command prints; more than one is an error."""
    done = run(program, command, "--json", *arguments)
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


def read_safetensors(path):
    """Metadata, and floats of every F32 and F64 tensor by name."""
    with open(path, "rb") as stream:
        header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
        data = stream.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "F64"):
            begin, end = entry["data_offsets"]
            tensors[name] = array.array("f" if entry["dtype"] == "F32" else "d", data[begin:end])
    return header.get("__metadata__", {}), tensors


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


def furthest(got, wanted, tolerance):
    """Like far, for flat lists with infinities."""
    if len(got) != len(wanted):
        return f"{len(got)} numbers, not {len(wanted)}"
    for place, (g, w) in enumerate(zip(got, wanted)):
        if g != w and not abs(g - w) <= tolerance:
            return f"element {place}: {g}, not {w}"
    return None


def matrix_step(name, numbers, columns, transposed):
    """A step of a lesson file that gives a matrix."""
    rows = [numbers[at:at + columns] for at in range(0, len(numbers), columns)]
    rows = zip(*rows) if transposed else rows
    return f"matrix {name}\n" + "".join("  " + " ".join((f"{x:.9g}" for x in row)) + "\n" for row in rows)


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


STORIES = os.path.join(run_cases.SHARED, "golden_models", "stories260k")
MODEL = os.path.join(STORIES, "stories260K.bin")


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


def explain_is_consistent(row):
    """The steps fit together: exactly where the engine promises the same bits."""
    visible = [key for key in row["keys"] if not key["hidden"]]
    key = row["keys"][row["key"]]
    if row["terms"][-1]["sum"] != key["raw"]:
        return f"terms sum to {row['terms'][-1]['sum']}, the score is {key['raw']}"
    if row["max"] != max(k["score"] for k in visible):
        return "max is not the largest score"
    # float32 sums of at most a few dozen terms
    if abs(sum(k["exp"] for k in visible) - row["sum"]) > 1e-5 * row["sum"]:
        return "exps do not add up to sum"
    if abs(sum(k["weight"] for k in row["keys"]) - 1) > 1e-5:
        return "weights do not add up to 1"
    mix = [sum(column) for column in zip(*(k["weighted"] for k in row["keys"]))]
    if any(k["weight"] for k in row["keys"] if k["hidden"]):
        return "a hidden key has weight"
    return far(row["z"], mix, 1e-5)


def check_explain_json_of_builtin(program):
    """attend explain --json of the built-in model is consistent"""
    row = read_json(program, "explain")
    if row["next"][0]["token"] != "Lovelace" or row["next"][0]["probability"] <= 0.9:
        return f"next is {row['next'][0]}"
    if row["keys"][row["key"]]["token"] != "Lovelace":
        return f"the strongest key is {row['keys'][row['key']]}"
    return explain_is_consistent(row)


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
    top = os.path.normpath(os.path.join(run_cases.HERE, "..", ".."))
    printed = run(program, "explain", "--color", "always", env={"COLORTERM": "truecolor"}).stdout
    drawn = subprocess.run([sys.executable, os.path.join(top, "tools", "terminal_svg.py")],
                           input=printed, capture_output=True, check=True, timeout=60,
                           env={**os.environ, "PYTHONUTF8": "1"}).stdout
    with open(os.path.join(top, "docs", "pictures", "explain.svg"), "rb") as stream:
        same = stream.read() == drawn
    return None if same else "attend explain --color always | tools/terminal_svg.py draws another"


def start_on_terminal(program, arguments, columns, env=None):
    """A running program, and the terminal of that width that it runs on."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execve(program, [program, *arguments], run_cases.environment(program, env))
    return child, terminal


def on_terminal(program, arguments, columns, env=None, keys=b""):
    """What a program prints on a terminal of that width, and its exit code."""
    child, terminal = start_on_terminal(program, arguments, columns, env)
    if keys:
        os.write(terminal, keys)
    output = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side has gone
            break
        if not piece:
            break
        output += piece
    status = os.waitpid(child, 0)[1]
    os.close(terminal)
    return output.decode("utf-8", errors="replace"), os.waitstatus_to_exitcode(status)


ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def columns_of(line):
    """Columns of a line on a terminal; None if it has characters that it must not have."""
    total = 0
    for character in ESCAPES.sub("", line):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            return None
        if not unicodedata.combining(character):
            total += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return total


HOSTILE = ["", " ", "\n", "a\tb\x1b[31mc\x07", "\u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd",
           "\U0001f469\u200d\U0001f680\U0001f44d\U0001f3fd\U0001f1e9\U0001f1ea",
           "e\u0301" + "\u0301" * 40, "\u732b\u3000\ufe0f", "<s></s>\\n", "%s%n%d", "a" * 300,
           b"\xff\xfe\xc3", b"\xed\xa0\x80\xf8\x88"]
VIEWS = [["explain", "--block"], ["explain", "-H", "0", "--keys", "4"], ["look"],
         ["look", "-H", "0"], ["look", "-H", "0", "--digits", "2"],
         ["look", "-H", "1", "--stage", "raw"], ["tokenize"], ["run", "-n", "8", "--quiet"],
         ["trace"], ["heads"], ["lens"], ["lens", "--grid"], ["dla", "--top", "5"]]
LOOKS = [{"COLORTERM": "truecolor"}, {"TERM": "xterm"}, {"TERM": "dumb"}, {"LANG": "C"},
         {"LANG": "C", "NO_COLOR": "1"}]


def bad_line(text, columns):
    for line in text.replace("\r\n", "\n").split("\n"):
        width = columns_of(line)
        if width is None:
            return f"a control character reaches the terminal: {line!r}"
        if width > columns:
            return f"{width} columns: {line!r}"
    return None


def view_arguments(view, prompt, model):
    return [view[0], *view[1:], "-m", model, "--", prompt]


def check_hostile_prompts_on_terminals(program):
    """hostile prompts stay within the terminal and leave it alone (published model)"""
    for number, prompt in enumerate(HOSTILE):
        for place, view in enumerate(VIEWS):
            columns = (40, 80, 200)[(number + place) % 3]
            env = LOOKS[(number + place) % len(LOOKS)]
            text, code = on_terminal(program, view_arguments(view, prompt, MODEL), columns, env)
            if view[0] == "run":  # the text itself: lines as they come, tabs too
                problem = bad_line(text.replace("\t", " "), 10**9)
            else:
                problem = bad_line(text, columns)
            if code or problem:
                return f"{view} {prompt!r} {columns} {env}: exit {code}, {problem}"
    return None


def check_pages_on_terminals(program):
    """pages keep to 40, 80 and 200 columns in UTF-8 and C"""
    names = [entry["name"] for entry in read_json(program, "lesson", "list")["lessons"]]
    pages = [["lesson", name] for name in names] + [["lesson", "list"], ["cost"], ["info"]]
    pages += [["help", name] for name in ("run", "lesson", "look", "sdpa", "explain")]
    pages += [["explain"], ["look"], ["look", "-L", "1", "-H", "0"]]
    for columns in (40, 80, 200):
        for number, page in enumerate(pages):
            env = LOOKS[(number + columns) % len(LOOKS)]
            enters = b"\n" * 20 if page[0] == "lesson" else b""
            text, code = on_terminal(program, page, columns, env, enters)
            problem = bad_line(text, columns)
            if code or problem:
                return f"{page} {columns} {env}: exit {code}, {problem}"
    return None


def check_question_waits(program):
    """a question waits for Enter at a terminal"""
    child, terminal = start_on_terminal(program, ["lesson", "mixing"], 80)
    before = ""
    while "(Enter shows the answer)" not in before:
        before += os.read(terminal, 65536).decode()
    time.sleep(0.2)  # a program that does not wait would go on
    os.set_blocking(terminal, False)
    try:
        before += os.read(terminal, 65536).decode()
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    os.write(terminal, b"\n\n\n")
    after = ""
    while True:
        try:
            after += os.read(terminal, 65536).decode()
        except OSError:
            break
    os.waitpid(child, 0)
    os.close(terminal)
    if "[1.5  0.5]" in ESCAPES.sub("", before):
        return f"did not wait: {before!r}"
    return None if "[1.5  0.5]" in ESCAPES.sub("", after) else f"no answer after Enter: {after!r}"


def check_colours_on_terminal(program):
    """Q, K and V have their colours on a terminal, and none with NO_COLOR or TERM=dumb"""
    dark = {"Q": "38;2;111;219;219", "K": "38;2;255;111;39", "V": "38;2;183;75;255"}
    text, _ = on_terminal(program, ["explain"], 80, {"COLORTERM": "truecolor"})
    for letter, escape in dark.items():
        if escape not in text:
            return f"no {letter} in its colour"
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "(unset)"}):
        text, _ = on_terminal(program, ["explain"], 80, env)
        if "\x1b" in text:
            return f"escapes with {env}"
    return None


def check_interrupt(program):
    """Ctrl-C ends a long text with its line finished and 130 (published model)"""
    arguments = ["run", "-m", MODEL, "-n", "400", "--threads", "1", "Once upon a time"]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=run_cases.environment(program))
    first = os.read(process.stdout.fileno(), 1)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=run_cases.SECONDS)
    if process.returncode == 0 and b"(length)" in errors:
        return None  # the machine was faster than the signal
    if process.returncode != 130 or b"interrupted" not in errors:
        return f"exit {process.returncode}: {errors!r}"
    return None if (first + rest).startswith(b"Once upon a time") else f"text {first + rest!r}"


def check_json_of_every_view(program):
    """--json is one valid value for every command, hostile prompts too (published model)"""
    for prompt in HOSTILE:
        for view in VIEWS:
            read_json(program, *view_arguments(view, prompt, MODEL))
    for page in (["info"], ["cost"], ["lesson", "list"], ["info", MODEL]):
        read_json(program, *page)
    return None


def check_trace_files_are_what_json_says(program):
    """trace writes the same numbers as npz (read by another zip reader), csv and JSON"""
    select = ["trace", "--quiet", "-s", "blocks.1.attn.hook_pattern,blocks.0.attn.hook_z"]
    tensors = {t["name"]: t["values"] for t in read_json(program, *select)["tensors"]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.npz")
        subprocess.run([program, *select, "-o", path], check=True, stdout=subprocess.DEVNULL)
        archive = zipfile.ZipFile(path)
        if archive.testzip() or sorted(archive.namelist()) != sorted(n + ".npy" for n in tensors):
            return f"npz: {archive.namelist()}"
        for name, values in tensors.items():
            data = archive.read(name + ".npy")
            begin = 10 + struct.unpack("<H", data[8:10])[0]
            if list(struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])) != flat(values):
                return f"npz: {name} differs"
    lines = subprocess.run([program, *select, "-o", "-"], check=True, capture_output=True, text=True)
    rows = list(csv.DictReader(lines.stdout.splitlines()))
    for name, values in tensors.items():
        written = [struct.unpack("<f", struct.pack("<f", float(r["value"])))[0] for r in rows
                   if r["name"] == name]
        if written != flat(values):
            return f"csv: {name} differs"
    return None


def numbers_of_svg(path):
    """What the titles of an SVG's cells say, hidden ones as None; the file must be XML."""
    titles = [e.text for e in xml.etree.ElementTree.parse(path).iter() if e.tag.endswith("title")]
    words = [title.rsplit(": ", 1)[1] for title in titles if title.startswith("query ")]
    return [None if word == "hidden" else float(word) for word in words]


def data_of_page(path):
    """The JSON inside an HTML page, which must be the only element that a prompt reaches."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count("<script") != 2 or text.count("</script>") != 2 or "http-equiv" not in text:
        raise AssertionError("a prompt became markup")
    return json.loads(text.split('id="trace">', 1)[1].split("</script>", 1)[0])


def check_pictures_show_what_json_says(program):
    """look writes the same numbers into SVG and HTML, hostile prompts too (published model)"""
    with tempfile.TemporaryDirectory() as folder:
        for prompt in (*HOSTILE, '</script><b>"&amp;<!--'):
            view = ["look", "-m", MODEL, "-L", "2", "-H", "1"]
            # Millions of pixels take a sanitizer a minute: pictures of the short ones.
            kinds = ("svg", "html", "png")[:3 if len(prompt) < 200 else 2]
            paths = {kind: os.path.join(folder, "x." + kind) for kind in kinds}
            for kind, path in paths.items():
                zoom = ["--zoom", "2"] if kind == "png" else []
                done = run(program, *view, "-o", path, *zoom, "--", prompt)
                if done.returncode or done.stdout:
                    return f"{path} {prompt!r}: {done.returncode} {done.stdout} {done.stderr}"
            scores = read_json(program, *view, "--stage", "mask", "--", prompt)["heads"][0]["values"]
            weights = read_json(program, *view, "--", prompt)["heads"][0]["values"]
            wanted = [[None if s is None else w for s, w in zip(*rows)]
                      for rows in zip(scores, weights)]
            if data_of_page(paths["html"])["heads"][0]["values"] != wanted:
                return f"html differs: {prompt!r}"
            drawn = numbers_of_svg(paths["svg"])
            for got, want in zip(drawn, sum(wanted, []), strict=True):
                if (got is None) != (want is None) or (want and abs(got / want - 1) > 1e-5):
                    return f"svg: {got}, not {want}: {prompt!r}"
            if "png" not in paths:
                continue
            with open(paths["png"], "rb") as file:
                head = file.read(24)
            side = 12 * len(wanted) + 8 + 8  # cells of 6 pixels, twice as large, and a gap around
            if head[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">II", head[16:]) != (side, side):
                return f"png: {head}, not {side}"
    return None


def check_svg_cells_tile(program):
    """cells of an SVG of a long text lie side by side (published model)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.svg")
        done = run(program, "look", "-m", MODEL, "-L", "0", "--first", "show", "-o", path,
                   "word " * 35)
        if done.returncode:
            return done.stderr.decode()
        rects = [e.attrib for e in xml.etree.ElementTree.parse(path).iter() if e.tag.endswith("rect")]
    cells = [r for r in rects[1:] if r.get("height") != "14"]
    side, per_map = float(cells[0]["width"]), round(math.sqrt(len(cells) / 8))
    if len(cells) != 8 * per_map * per_map or per_map < 100:
        return f"{len(cells)} cells"
    for number in range(8):
        one = cells[number * per_map * per_map:(number + 1) * per_map * per_map]
        left, top = float(one[0]["x"]), float(one[0]["y"])
        for n, cell in enumerate(one):
            wanted = left + n % per_map * side, top + n // per_map * side
            if far([float(cell["x"]), float(cell["y"])], list(wanted), 0.01 * side):
                return f"map {number}, cell {n}: {cell}, not {wanted}"
    return None


def check_svg_of_a_hostile_name(program):
    """a control character in a model's file name leaves an SVG well-formed"""
    with tempfile.TemporaryDirectory() as folder:
        for name in (b"a\x01b\x1b<&.gguf", b"bad\xff\xc3.gguf", "ü".encode() * 100 + b".gguf"):
            model, path = os.path.join(folder.encode(), name), os.path.join(folder, "x.svg")
            done = run(program, "init", "llama", "--layers", "1", "-o", model, "--quiet")
            done = done if done.returncode else run(program, "look", "-m", model, "-H", "0",
                                                    "-o", path, "Hi")
            if done.returncode:
                return done.stderr.decode(errors="replace")
            title = next(e.text for e in xml.etree.ElementTree.parse(path).iter()
                         if e.tag.endswith("title"))
            if "layer 0, head 0" not in title:
                return f"title {title!r}"
    return None


def check_page_tells_nan_from_hidden(program):
    """a weight that is no number is NaN on the page, not a hidden key"""
    with tempfile.TemporaryDirectory() as folder:
        model, path = os.path.join(folder, "m"), os.path.join(folder, "x.html")
        run(program, "init", "llama", "--layers", "1", "--heads", "1", "--width", "32", "-o", model)
        weights = os.path.join(model, "model.safetensors")
        with open(weights, "r+b") as stream:
            header = stream.read(struct.unpack("<Q", stream.read(8))[0])
            begin = json.loads(header)["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0]
            stream.seek(8 + len(header) + begin)
            stream.write(struct.pack("<f", math.nan))
        done = run(program, "look", "-m", model, "-L", "0", "-H", "0", "-o", path, "Hi you")
        if done.returncode:
            return done.stderr.decode()
        values = data_of_page(path)["heads"][0]["values"]
    wanted = [["NaN" if j <= i else None for j in range(len(values))] for i in range(len(values))]
    return None if values == wanted and len(values) > 1 else f"values {values}"


def check_identities_of_every_decoder(program):
    """parts sum to logits, the last lens row is the answer, a run copied into itself changes nothing"""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(MODEL)))
    with tempfile.TemporaryDirectory() as scratch:
        for config in sorted(glob.glob(os.path.join(folder, "tiny_random", "*", "config.json"))):
            model = ["-m", os.path.dirname(config), "--ids", "3,4,5,6,7", "--quiet"]
            info = read_json(program, "info", *model[:2])
            if info["encoder_layers"] or not info["cache_bytes"]:
                continue  # an encoder
            shares = read_json(program, "dla", *model)
            if "gemma2" not in config and far(shares["sum"], shares["logits"], 1e-4):
                return f"{config}: parts sum to {shares['sum']}, not {shares['logits']}"
            answer = read_json(program, "run", *model, "-t", "0", "-n", "1", "--logprobs", "1")
            last = read_json(program, "lens", *model)["rows"][-1]
            if [last["top"][0]["id"]] != answer["tokens"] or last["kl"] != 0:
                return f"{config}: the last lens row is not the answer"
            trace = os.path.join(scratch, "run.safetensors")
            sites = "*.hook_resid_pre,*.attn.hook_z,*.hook_attn_scores,*.hook_pattern"
            read_json(program, "trace", *model, "-s", sites, "-o", trace)
            logits = [read_json(program, "trace", *model, "-s", "logits")["tensors"]]
            for site in sites.split(","):
                logits.append(read_json(program, "trace", *model, "-s", "logits", "--edit",
                                        f"copy {site}", "--source", trace)["tensors"])
            if any(other != logits[0] for other in logits):
                return f"{config}: a run copied into itself changes it"
    return None


def check_heads_measure_what_trace_keeps(program):
    """heads gives previous, first and self of the weights that trace prints (published model)"""
    prompt = ["-m", MODEL, "--quiet", "Lily was a girl. Lily was"]
    traced = read_json(program, "trace", "-s", "*.hook_pattern", *prompt)["tensors"]
    for row in read_json(program, "heads", *prompt)["heads"]:
        a = traced[row["layer"]]["values"][row["head"]]
        rows = range(1, len(a))
        for name, want in (("previous", sum(a[i][i - 1] for i in rows) / len(rows)),
                           ("first", sum(a[i][0] for i in rows) / len(rows)),
                           ("self", sum(a[i][i] for i in rows) / len(rows)),
                           ("entropy", sum(-x * math.log(x) for i in rows for x in a[i] if x)
                            / len(rows))):
            if far(row[name], want, 1e-6):
                return f"{name}: {row[name]}, not {want}"
    return None


def check_shares_sum_to_logits(program):
    """dla's parts sum to the difference of two logits (published model)"""
    said = read_json(program, "dla", "-m", MODEL, "--target", " g", "--vs", " b", "Once upon a")
    total = sum(part["share"] for part in said["parts"]) + said["constant"]
    logits = read_json(program, "trace", "-m", MODEL, "-s", "logits", "--quiet", "Once upon a")
    last = logits["tensors"][0]["values"][-1]
    wanted = last[said["target"]] - last[said["vs"]]
    return f"{total}, not {wanted}" if far(total, wanted, 1e-4) else None


def flat(values):
    """The numbers of nested lists, as the floats that their decimals stand for."""
    if isinstance(values, list):
        return [x for v in values for x in flat(v)]
    return [struct.unpack("<f", struct.pack("<f", values))[0]]


def check_look_json_is_explain_json(program):
    """look and explain agree on weights and scores"""
    row = read_json(program, "explain", "-L", "1")
    for stage, key in (("weights", "weight"), ("raw", "raw"), ("scaled", "scaled"), ("mask", "score")):
        heads = read_json(program, "look", "--stage", stage)["heads"]
        values = [head for head in heads if head["layer"] == 1][0]["values"][row["query"]]
        if values != [k[key] for k in row["keys"]]:
            return f"{stage}: {values}"
    return None


def check_threads_and_targets(program):
    """run gives the same bytes with 1, 2, 3, 5 threads and on every target of a class"""
    targets = read_json(program, "info")["targets"]
    flags = ["--json", "-m", MODEL, "-n", "40", "--seed", "7", "-t", "0.9", "--top-p", "0.95",
             "Once upon"]  # published model
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


TINY = os.path.join(run_cases.SHARED, "golden_models", "tiny_random")


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
    flags = ["-m", os.path.dirname(os.path.dirname(path)), "--ids", ",".join(map(str, ids)), "-L", "1"]
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


def all_checks():
    known = {**globals(), **vars(checks_train)}
    return [(check.__doc__.split("\n")[0], check, "published" in check.__doc__ or check is check_threads_and_targets)
            for name, check in sorted(known.items()) if name.startswith("check_")]
