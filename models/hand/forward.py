#!/usr/bin/env python3
"""Run the built-in model in float64 with plain lists: a second opinion.

    python3 models/hand/forward.py "Ada Lovelace met Alan Turing . Ada"
    python3 models/hand/forward.py --logits TEXT    only the last 64 logits

Reads the three files of this folder and nothing of the engine, so that a test
can compare the two. The whole transformer is the function `forward`.
"""
import json
import math
import os
import re
import struct
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load():
    """The tensors, as rows of (column, value) pairs: nearly all weights are 0."""
    with open(os.path.join(FOLDER, "model.safetensors"), "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        rows, columns = entry["shape"]
        begin, end = entry["data_offsets"]
        numbers = struct.unpack(f"<{rows * columns}e", data[begin:end])
        tensors[name] = [[(c, w) for c, w in enumerate(numbers[r * columns:(r + 1) * columns]) if w]
                         for r in range(rows)]
    return tensors


def apply(matrix, x):
    return [sum(w * x[c] for c, w in row) for row in matrix]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def softmax(scores):
    top = max(scores)
    e = [math.exp(s - top) for s in scores]
    total = sum(e)
    return [x / total for x in e]


def forward(tensors, ids, width):
    """Logits [T][V] and the attention weights of each layer [layer][T][T]."""
    words, places = (tensors[f"model.embed_{what}.weight"] for what in ("tokens", "positions"))
    stream = []
    for place, word in enumerate(ids):
        x = [0.0] * width
        for c, w in words[word] + places[place]:
            x[c] += w
        stream.append(x)
    patterns = []
    for layer in range(2):
        q, k, v, o = (tensors[f"model.layers.{layer}.self_attn.{m}_proj.weight"] for m in "qkvo")
        queries, keys, values = ([apply(m, x) for x in stream] for m in (q, k, v))
        scale = 1 / math.sqrt(len(q))
        pattern, after = [], []
        for i, query in enumerate(queries):
            weights = softmax([scale * dot(query, key) for key in keys[:i + 1]])
            mixed = [sum(w * value[c] for w, value in zip(weights, values))
                     for c in range(len(v))]
            after.append([a + b for a, b in zip(stream[i], apply(o, mixed))])
            pattern.append(weights)
        stream = after
        patterns.append(pattern)
    return [apply(tensors["lm_head.weight"], x) for x in stream], patterns


def main(arguments):
    with open(os.path.join(FOLDER, "config.json")) as file:
        width = json.load(file)["hidden_size"]
    with open(os.path.join(FOLDER, "words.txt")) as file:
        words = file.read().split("\n")[1:-1]
    known = {word.lower(): n for n, word in enumerate(words)}
    ids = [0] + [known[piece] for piece in re.findall(r"\w+|[^\w\s]", arguments[-1].lower())]
    logits, patterns = forward(load(), ids, width)
    if arguments[0] == "--logits":
        print("\n".join(f"{x:.17g}" for x in logits[-1]))
        return
    print("  i word       layer 0 looks at       layer 1 looks at       next")
    for i, word in enumerate(ids):
        row = f"{i:3} {words[word]:10}"
        for pattern in patterns:
            j = max(range(i + 1), key=lambda n: pattern[i][n])
            row += f" {j:3} {words[ids[j]]:10} {pattern[i][j]:.4f} "
        p = softmax(logits[i])
        best = sorted(range(len(p)), key=lambda n: (-p[n], n))[:3]
        print(row + "  " + "  ".join(f"{words[n]} {p[n]:.3f}" for n in best))


if __name__ == "__main__":
    main(sys.argv[1:])
