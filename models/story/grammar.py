"""Reads english.grammar and draws stories from it; the file itself says how it is written."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from draw import Draw  # noqa: E402

SLOT = re.compile(r"\{(a )?(\w+?)(\d?)\}")
CHOICE = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
WORD = re.compile(r"\w+|[^\w\s]")


class Grammar:
    def __init__(self, path):
        self.lists, self.held = {}, {}          # name: entries
        self.words = set()                      # names of the lists of single words
        self.stories, self.held_stories = [], []  # (kind, parts, templates)
        self.listed = set()                     # words of lists and names, in small letters
        self.names = []                         # all that a beginning and an end make
        with open(path, encoding="utf-8") as stream:
            self._read(stream)
        parts = self.lists["begin"], self.lists["end"]
        self.listed = {entry.lower() for name in self.words for lists in (self.lists, self.held)
                       for entry in lists.get(name, ()) if entry not in sum(parts, [])}
        taken = self.listed | self._said()
        self.names = [begin + end for begin in parts[0] for end in parts[1]
                      if (begin + end).lower() not in taken]

    def _read(self, stream):
        entries, single = None, False
        for number, line in enumerate(stream, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("  "):
                entries.extend(line.split() if single else [line.strip()])
                continue
            held = line.startswith("held ")
            word, *rest = line.removeprefix("held ").split()
            if word not in ("words", "phrases") and not held and word != "story":
                sys.exit(f"english.grammar:{number}: not understood: {line}")
            entries, single = [], word == "words"
            if word in ("words", "phrases"):
                (self.held if held else self.lists)[rest[0]] = entries
                self.words.update(rest[:1] if single else ())
            elif held:
                self.held_stories.append((word, 1, entries))
            else:
                self.stories.append((rest[0], int(rest[1]), entries))

    def _said(self):
        """The words of phrases and templates, in small letters."""
        lines = [line for name in self.lists if name not in self.words for line in self.lists[name]]
        lines += [line for *_, lines in self.stories + self.held_stories for line in lines]
        return {word.lower() for line in lines for word in WORD.findall(line)}


class Story:
    """One template with everything drawn but the version: text(0) and text(1) are twins."""

    def __init__(self, grammar, template, draw, held):
        self.lists = {**grammar.lists, **(grammar.held if held else {})}
        self.draw = draw
        self.bound, self.last = {}, {}  # entries of numbered slots; the last one of other slots
        self._draw_people(grammar, held)
        self.plan = re.sub(" +", " ", self._expand(template)).strip()

    def _draw_people(self, grammar, held):
        self.known = not held and self.draw.below(5) < 2
        if self.known:
            girl, boy = (self.draw.one_of(self.lists[kind]) for kind in ("girl", "boy"))
            self.people = ({"A": girl, "B": boy}, {"A": boy, "B": girl})
        else:
            names = self.lists["person"] if held else grammar.names
            first = self.draw.one_of(names)
            self.people = ({"A": first, "B": self._other(names, [first])},) * 2

    def _other(self, entries, than):
        """One of the entries, but not of those; a list has more of them than a story asks for."""
        while True:
            entry = self.draw.one_of(entries)
            if entry not in than:
                return entry

    def _expand(self, text):
        return SLOT.sub(self._fill, text)

    def _fill(self, match):
        article, name, number = match.groups()
        if name in ("A", "B"):
            return match.group(0)
        if name == "known":
            return self._expand(self._introduction())
        filled = self._entry(name.lower() if article else name, number)
        if not article:
            return filled
        text = ("an " if filled[0] in "aeiou" else "a ") + filled
        return text.capitalize() if name[0].isupper() else text

    def _introduction(self):
        kind = self.draw.below(3) if self.known else 0
        return ("{meet}", "{met}", "")[kind]

    def _entry(self, name, number):
        if not number:
            entry = self.last[name] = self._other(self.lists[name], [self.last.get(name)])
            return self._expand(entry)
        if (name, number) not in self.bound:
            than = [entry for (other, _), entry in self.bound.items() if other == name]
            self.bound[name, number] = self._other(self.lists[name], than)
        return self._expand(self.bound[name, number])

    def _say(self, plan, version):
        plan = CHOICE.sub(lambda match: match.group(version + 1), plan)
        return re.sub(r"\{([AB])\}", lambda match: self.people[version][match.group(1)], plan)

    def text(self, version):
        return self._say(self.plan, version)

    def pair(self, version):
        """What is asked at the last [|]: prefix, the right answer, the wrong one, the words
        that decide, and how many words and marks follow the last of these."""
        *before, last = list(CHOICE.finditer(self.plan))
        head = self.plan[:last.start()]
        space = " " if head.endswith(" ") else ""
        deciding = [self._say(match.group(version + 1), version) for match in before]
        after = self._say(head[before[-1].end():], version)
        return {"prefix": self._say(head, version).rstrip(),
                "a": space + self._say(last.group(version + 1), version),
                "b": space + self._say(last.group(2 - version), version),
                "deciding": deciding, "distance": len(WORD.findall(after))}


def stories(grammar, seed, first, count):
    """Training stories by their numbers: each depends on the seed and its number alone."""
    kinds = [templates for _, parts, templates in grammar.stories for _ in range(parts)]
    for number in range(first, first + count):
        draw = Draw(seed, number)
        template = draw.one_of(draw.one_of(kinds))
        version = draw.below(2)
        yield Story(grammar, template, draw, held=False).text(version)


def held_stories(grammar, seed, each, held):
    """(kind, template, story) of every held-out template, `each` times; held: with held-out words."""
    number = 0
    for kind, _, templates in grammar.held_stories:
        for template in templates:
            for _ in range(each):
                yield kind, template, Story(grammar, template, Draw(~seed, number), held)
                number += 1
