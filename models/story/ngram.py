"""The control of the minimal pairs: what the four words before tell.

A 5-gram model over words and marks, interpolated by Witten and Bell's rule: after a
context seen n times with d different followers, a share d / (n + d) of the probability
is left to the context without its first word. Words see further than a tokenizer's
pieces, so this is the stronger control. A pair whose two answers it finds equally
probable counts one half.
"""
import collections
import json
import math
import os

from grammar import WORD

ORDER = 5


class Ngram:
    def __init__(self):
        self.followers = collections.defaultdict(collections.Counter)
        self.seen = collections.Counter()
        self.vocabulary = set()

    def learn(self, words):
        words = ["\n"] * (ORDER - 1) + words + ["\n"]
        self.vocabulary.update(words)
        for at in range(ORDER - 1, len(words)):
            for length in range(ORDER):
                context = tuple(words[at - length:at])
                self.followers[context][words[at]] += 1
                self.seen[context] += 1

    def probability(self, context, word):
        p = 1 / (len(self.vocabulary) + 1)
        for length in range(ORDER):
            tail = tuple(context[len(context) - length:])
            n = self.seen.get(tail)
            if n:
                d = len(self.followers[tail])
                p = (self.followers[tail][word] + d * p) / (n + d)
        return p

    def score(self, prefix, text):
        words, total = ["\n"] * (ORDER - 1) + WORD.findall(prefix), 0
        for word in WORD.findall(text):
            total += math.log(self.probability(words[1 - ORDER:], word))
            words.append(word)
        return total


def report(folder):
    """The share of pairs it gets, by category and of all."""
    model, counts = Ngram(), {}
    with open(os.path.join(folder, "train.txt"), encoding="utf-8") as stream:
        for line in stream:
            model.learn(WORD.findall(line))
    with open(os.path.join(folder, "pairs.jsonl"), encoding="utf-8") as stream:
        for pair in map(json.loads, stream):
            a, b = (model.score(pair["prefix"], pair[answer]) for answer in "ab")
            for name in (pair["category"], "all"):
                row = counts.setdefault(name, [0, 0])
                row[0] += 1 if a > b else 0.5 if a == b else 0
                row[1] += 1
    every = counts.pop("all")
    for name, (right, n) in [*counts.items(), ("all", every)]:
        yield f"{100 * right / n:5.1f} %  {right:g} of {n}  {name}"
