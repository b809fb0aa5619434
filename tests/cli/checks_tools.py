"""What the checks share: running the program, also on a terminal, and reading what it says."""
import array
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import run_cases

STORIES = os.path.join(run_cases.SHARED, "golden_models", "stories260k")
MODEL = os.path.join(STORIES, "stories260K.bin")
TINY = os.path.join(run_cases.SHARED, "golden_models", "tiny_random")
HOSTILE = ["", " ", "\n", "a\tb\x1b[31mc\x07", "\u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd",
           "\U0001f469\u200d\U0001f680\U0001f44d\U0001f3fd\U0001f1e9\U0001f1ea",
           "e\u0301" + "\u0301" * 40, "\u732b\u3000\ufe0f", "<s></s>\\n", "%s%n%d", "a" * 300,
           b"\xff\xfe\xc3", b"\xed\xa0\x80\xf8\x88"]
VIEWS = [["explain", "--block"], ["explain", "-H", "0", "--keys", "4"], ["look"],
         ["look", "-H", "0"], ["look", "-H", "0", "--digits", "2"],
         ["look", "-H", "1", "--stage", "raw"], ["tokenize"], ["run", "-n", "8", "--quiet"],
         ["trace"], ["heads"], ["lens"], ["lens", "--grid"], ["dla", "--top", "5"]]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def view_arguments(view, prompt, model):
    return [view[0], *view[1:], "-m", model, "--", prompt]


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


def far(got, wanted, tolerance):
    """The first pair of numbers that differ by more, in lists of any depth."""
    if isinstance(wanted, list):
        if len(got) != len(wanted):
            return f"{len(got)} numbers, not {len(wanted)}"
        return next((p for p in (far(g, w, tolerance) for g, w in zip(got, wanted)) if p), None)
    return None if abs(got - wanted) <= tolerance else f"{got}, not {wanted}"


def furthest(got, wanted, tolerance):
    """Like far, for flat lists with infinities."""
    if len(got) != len(wanted):
        return f"{len(got)} numbers, not {len(wanted)}"
    for place, (g, w) in enumerate(zip(got, wanted)):
        if g != w and not abs(g - w) <= tolerance:
            return f"element {place}: {g}, not {w}"
    return None


def flat(values):
    """The numbers of nested lists, as the floats that their decimals stand for."""
    if isinstance(values, list):
        return [x for v in values for x in flat(v)]
    return [struct.unpack("<f", struct.pack("<f", values))[0]]


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
