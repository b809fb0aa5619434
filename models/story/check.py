"""What must hold of the files that make.py writes: train.txt against pairs.jsonl."""
import json
import os
import re

from grammar import WORD

LEAST_PAIRS = 300
LEAST_DISTANCE = 4   # words before the answer that both versions share: all a 5-gram sees


def problems(grammar, folder):
    with open(os.path.join(folder, "train.txt"), encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    with open(os.path.join(folder, "pairs.jsonl"), encoding="utf-8") as stream:
        pairs = [json.loads(line) for line in stream]
    found = list(held_words(grammar, lines)) + list(held_frames(grammar, lines, pairs))
    for left, right in zip(pairs[::2], pairs[1::2]):
        found += twins(left, right)
    if len(pairs) < LEAST_PAIRS:
        found.append(f"{len(pairs)} pairs, not {LEAST_PAIRS}")
    return found


def held_words(grammar, lines):
    """Names and things of the tests that training has, in any spelling of case."""
    seen = {word.lower() for line in lines for word in WORD.findall(line)}
    for name, entries in grammar.held.items():
        for entry in entries:
            if entry.lower() in seen:
                yield f"held-out {name} in the training text: {entry}"


def masked(grammar):
    """A function from a text to its frame: every name and word of a list is one mark."""
    return lambda text: tuple("_" if word.lower() in grammar.listed else word
                              for word in WORD.findall(text))


def held_frames(grammar, lines, pairs):
    """Sentences that ask, as far as the answer, whose frame begins a sentence of training."""
    mask = masked(grammar)
    frames = set()
    for line in lines:
        for sentence in re.split(r"(?<=[.?!])\W*\s", line):
            frame = mask(sentence)
            frames.update(frame[:n] for n in range(1, len(frame) + 1))
    for pair in pairs:
        asked = re.split(r"(?<=[.?!])\W*\s", pair["prefix"] + pair["a"])[-1]
        if mask(asked) in frames:
            yield f"the frame of a pair in the training text: {asked}"


def without(pair):
    """The prefix without its deciding words, each of which is the last of its kind."""
    rest, kept = pair["prefix"], []
    for decides in reversed(pair["deciding"]):
        rest, _, after = rest.rpartition(decides)
        kept.append(after)
    return [*kept, rest]


def twins(left, right):
    """Twins ask the same where only what decides differs, and answer in reverse."""
    if (left["a"], left["b"]) != (right["b"], right["a"]) or left["a"] == left["b"]:
        yield f"no twins: {left} {right}"
    if without(left) != without(right):
        yield f"not the same but for what decides: {left['prefix']} | {right['prefix']}"
    for pair, other in ((left, right), (right, left)):
        near = WORD.findall(pair["prefix"])[-LEAST_DISTANCE:]
        if near != WORD.findall(other["prefix"])[-LEAST_DISTANCE:]:
            yield f"the words before the answer tell it: {pair['prefix']}"
        if pair["distance"] < LEAST_DISTANCE:
            yield f"a deciding word is only {pair['distance']} words back: {pair['prefix']}"
        if not pair["deciding"] or any(d not in pair["prefix"] for d in pair["deciding"]):
            yield f"the deciding words do not stand before: {pair}"
