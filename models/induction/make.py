#!/usr/bin/env python3
"""Write the text that the model induction is trained on, and its tests.

    python3 models/induction/make.py OUT [--lines N]     the files, into the folder OUT
    python3 models/induction/make.py OUT --check         reads them and checks them

    train.txt       lines for training: a random sequence and its repetitions, or simple text
    repeats.txt     lines of other sequences, each said twice; all symbols of one differ
    pairs.jsonl     minimal pairs from these, for attend eval --pairs: how a repetition goes on

In a repeated sequence of random symbols nothing but the sequence itself tells what
comes next: a model must find the place where it saw this symbol before, and say what
followed. Simple text, of few words, is there so that the model learns the habits of
neighbours first, which are what a model without induction heads is left with.

recipe.json has the seed, the numbers and the hashes of the files. Python's standard
library is enough, and the same bytes come out everywhere.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import recipe  # noqa: E402
from draw import Draw  # noqa: E402

SYMBOLS = "abcdefghijklmnopqrstuvwxyz0123456789"
SHORTEST, SHORT, LONGEST = 4, 20, 60    # of a sequence
ROOM = 128                              # symbols of a line at most: a window of training
TESTED = 32                             # symbols of a tested sequence

WHO = "the cat,the dog,a bird,the cow,a fox,my hen,the old man,the girl,a boy,my son".split(",")
DOES = "sat,ran,saw a bee,ate an egg,had tea,went home,met a pig,hid,slept,got wet".split(",")
WHERE = "on the mat,in the bed,by the sea,at the door,in the sun,on a hill".split(",")


def different(draw, n):
    """n symbols, all different."""
    left, sequence = list(SYMBOLS), ""
    for _ in range(n):
        sequence += left.pop(draw.below(len(left)))
    return sequence


def random_sequence(draw):
    """Three of four are short, so that most of a window repeats something; three of four of
    those are without a symbol twice, where one symbol back is enough to know the next."""
    if draw.below(4):
        n = SHORTEST + draw.below(SHORT - SHORTEST + 1)
    else:
        n = SHORT + draw.below(LONGEST - SHORT + 1)
    if draw.below(4) and n <= len(SYMBOLS):
        return different(draw, n)
    return "".join(draw.one_of(SYMBOLS) for _ in range(n))


def repeated(draw):
    sequence = random_sequence(draw)
    most = ROOM // len(sequence)
    return sequence * (2 + draw.below(min(7, most - 1)))


def simple_text(draw):
    sentences = []
    for _ in range(2 + draw.below(3)):
        sentences.append(f"{draw.one_of(WHO)} {draw.one_of(DOES)} {draw.one_of(WHERE)}.")
    return " ".join(sentences)


def training_lines(seed, count):
    """Each line depends on the seed and its number alone."""
    for number in range(count):
        draw = Draw(seed, number)
        yield simple_text(draw) if draw.below(10) < 3 else repeated(draw)


def tested_sequences(seed, count):
    for number in range(count):
        yield different(Draw(~seed, number), TESTED)


def pairs(sequences):
    """A sequence, the same again as far as some symbol, and the next or another of it."""
    for number, sequence in enumerate(sequences):
        at = 4 + 5 * number % (TESTED - 5)
        wrong = sequence[(at + 7) % TESTED]
        yield {"prefix": sequence + sequence[:at], "a": sequence[at], "b": wrong,
               "deciding": sequence[at - 1:at + 1], "distance": TESTED, "category": "repeat"}


def contents(numbers, count):
    """The files' lines by their names."""
    tested = list(tested_sequences(numbers["seed"], numbers["tested"]))
    yield "train.txt", training_lines(numbers["seed"], count)
    yield "repeats.txt", (sequence * 2 for sequence in tested)
    yield "pairs.jsonl", map(json.dumps, pairs(tested))


def problems(folder):
    def lines(name):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            return stream.read().splitlines()

    # Eight symbols in a row: of the 36^8 that are possible no tested one is in training by
    # chance, so what stands there must have been copied.
    seen, known, every = set(), 0, 0
    for line in lines("train.txt"):
        seen.update(line[at:at + 8] for at in range(len(line) - 7))
        if len(line) > ROOM:
            yield f"a line of {len(line)} symbols"
    for line in lines("repeats.txt"):
        half = line[:len(line) // 2]
        if line != half * 2 or len(set(half)) != TESTED:
            yield f"no repetition of {TESTED} different symbols: {line}"
        for at in range(len(half) - 7):
            known, every = known + (half[at:at + 8] in seen), every + 1
    if known:
        yield f"{known} of {every} runs of eight symbols of repeats.txt are in train.txt"
    for pair in map(json.loads, lines("pairs.jsonl")):
        decided = pair["prefix"].find(pair["deciding"])
        if decided < 0 or pair["deciding"] != pair["prefix"][-1] + pair["a"]:
            yield f"not decided: {pair}"
        if len(pair["prefix"]) - 1 - decided != pair["distance"]:
            yield f"not {pair['distance']} symbols before: {pair}"


def main():
    numbers = recipe.read(HERE)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out")
    parser.add_argument("--lines", type=int, help="of the training text; default: the recipe's")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not arguments.check:
        count = arguments.lines or numbers["lines"]
        recipe.write(arguments.out, contents(numbers, count),
                     recipe.hashes(numbers, count == numbers["lines"]))
        return 0
    found = list(problems(arguments.out))
    print("\n".join(found) or "sound")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"make.py: {error}")
