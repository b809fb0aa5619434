#!/usr/bin/env python3
"""Write the text that the built-in model story is trained on, and its tests.

    python3 models/story/make.py OUT [--stories N]     the files, into the folder OUT
    python3 models/story/make.py OUT --check           reads them and checks them
    python3 models/story/make.py OUT --ngram           a 5-gram model of the text on the pairs

    train.txt         stories for training, a line each
    train.marks       where in it, in bytes, is what the story before decides
    templates.txt     held-out templates with the words of training
    held.txt          held-out templates with held-out names and things
    pairs.jsonl       minimal pairs from these, for attend eval --pairs

english.grammar is the English, recipe.json the seed and the numbers. Python's standard
library is enough, and the same bytes come out everywhere: recipe.json has their hashes.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import check  # noqa: E402
import grammar as g  # noqa: E402
import ngram  # noqa: E402
import recipe  # noqa: E402


def pairs(grammar, seed, each):
    """Twins follow each other: the same story in both versions."""
    for kind, _, story in g.held_stories(grammar, seed, each, held=True):
        for version in (0, 1):
            yield {**story.pair(version), "category": kind}


def marks(stories):
    """A line "BEGIN END" for each mark of all stories; the text is ASCII, so bytes are letters."""
    at = 0
    for story, version in stories:
        for begin, end in story.marks(version):
            yield f"{at + begin} {at + end}"
        at += len(story.text(version)) + 1


def contents(numbers, count):
    """The files' lines by their names."""
    grammar = g.Grammar(os.path.join(HERE, "english.grammar"))
    seed, texts = numbers["seed"], numbers["texts_each"]
    stories = list(g.stories(grammar, seed, 0, count))
    yield "train.txt", (story.text(version) for story, version in stories)
    yield "train.marks", marks(stories)
    for name, held in (("templates.txt", False), ("held.txt", True)):
        told = enumerate(g.held_stories(grammar, seed + 1, texts, held))
        yield name, (story.text(number % 2) for number, (_, _, story) in told)
    yield "pairs.jsonl", map(json.dumps, pairs(grammar, seed, numbers["pairs_each"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out")
    parser.add_argument("--stories", type=int, help="of the training text; default: the recipe's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--ngram", action="store_true")
    arguments = parser.parse_args()
    numbers = recipe.read(HERE)
    if arguments.check:
        problems = check.problems(g.Grammar(os.path.join(HERE, "english.grammar")), arguments.out)
        print("\n".join(problems) or "sound")
        return 1 if problems else 0
    if arguments.ngram:
        for line in ngram.report(arguments.out):
            print(line)
        return 0
    count = arguments.stories or numbers["stories"]
    recipe.write(arguments.out, contents(numbers, count),
                 recipe.hashes(numbers, count == numbers["stories"]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"make.py: {error}")
