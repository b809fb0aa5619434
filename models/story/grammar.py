"""Reads english.grammar and draws stories from it; the file itself says how it is written."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from draw import Draw  # noqa: E402

SLOT = re.compile(r"\{(a )?(\w+?)(\d?)\}")
CHOICE = re.compile(r"[\[<]([^\[\]<>|]*)(?:\|([^\[\]<>|]*))?[\]>]")
MARKS = "\1", "\2"  # around what <|> said, in texts on their way to marks()
PARTS = ("begin", "end"), ("first", "second")  # of names, of things
WORD = re.compile(r"\w+|[^\w\s]")


class Grammar:
    def __init__(self, path):
        self.lists, self.held = {}, {}          # name: entries
        self.words = set()                      # names of the lists of single words
        self.stories, self.held_stories = [], []  # (kind, parts, templates)
        self.listed = set()                     # words of lists and names, in small letters
        self.names = []                         # made of two parts, without a sex
        with open(path, encoding="utf-8") as stream:
            self._read(stream)
        self.listed = {entry.lower() for name in self.words - set(sum(PARTS, ()))
                       for lists in (self.lists, self.held) for entry in lists.get(name, ())}
        self.names, made = (self._made(*parts) for parts in PARTS)
        simple = self.lists["thing"]
        self.lists["thing"] = simple * (len(made) // len(simple)) + made  # as many of each

    def _made(self, first, second):
        """All that two lists of parts make, but what the texts say anyhow."""
        taken = self.listed | self._said()
        made = [one + two for one in self.lists[first] for two in self.lists[second]]
        made = [word for word in made if word.lower() not in taken]
        self.listed |= {word.lower() for word in made}
        return made

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


def _version(match, version):
    """What a choice says; of a mark without a choice, both versions say the same."""
    return match.group(version + 1) if match.group(2) is not None else match.group(1)


class Story:
    """One template with everything drawn but the version: text(0) and text(1) are twins."""

    def __init__(self, grammar, template, draw, held):
        self.lists = {**grammar.lists, **(grammar.held if held else {})}
        self.draw = draw
        self.bound, self.last = {}, {}  # entries of numbered slots; the last one of other slots
        self.people = self._people(grammar, held)
        plan = re.sub(" +", " ", self._expand(template)).strip()
        self.plan = re.sub(r"\{([ABCXY])\}", lambda match: self.people[match.group(1)], plan)

    def _people(self, grammar, held):
        """What stands for {A} … {Y}."""
        unknown = self.lists["person"] if held else grammar.names
        one, two, three = self._some(unknown, 3)
        titled = held or self.draw.below(5) > 1
        people = self._titled(one, two, three) if titled else self._named()
        people["X"], people["Y"] = one, two
        if not held and not self.draw.below(3):
            people["X"], people["Y"] = self._some(self.lists["girl"] + self.lists["boy"], 2)
        return people

    def _titled(self, one, two, three):
        """{A}, {B} and {C} by titles, as names that no list knows do not tell the sex."""
        ladies, lords = self.lists["lady"], self.lists["lord"]
        first, second = self._some(range(len(ladies)), 2)
        third = self.draw.one_of((ladies, lords))[second]
        return {"A": f"[{ladies[first]}|{lords[first]}] {one}",
                "B": f"[{lords[first]}|{ladies[first]}] {two}",
                "C": f"{third} {three}"}

    def _named(self):
        """{A}, {B} and {C} by names that tell the sex."""
        girls, boys = self.lists["girl"], self.lists["boy"]
        girl, boy = self.draw.one_of(girls), self.draw.one_of(boys)
        third = self.draw.one_of((girls, boys))
        return {"A": f"[{girl}|{boy}]", "B": f"[{boy}|{girl}]",
                "C": self._other(third, (girl, boy))}

    def _some(self, entries, count):
        chosen = []
        while len(chosen) < count:
            chosen.append(self._other(entries, chosen))
        return chosen

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
        if name in "ABCXY":
            return match.group(0)
        filled = self._entry(name.lower() if article else name, number)
        if not article:
            return filled
        text = ("an " if filled[0] in "aeiou" else "a ") + filled
        return text.capitalize() if name[0].isupper() else text

    def _entry(self, name, number):
        if not number:
            entry = self.last[name] = self._other(self.lists[name], [self.last.get(name)])
            return self._expand(entry)
        if (name, number) not in self.bound:
            than = [entry for (other, _), entry in self.bound.items() if other == name]
            self.bound[name, number] = self._other(self.lists[name], than)
        return self._expand(self.bound[name, number])

    def _say(self, plan, version):
        return CHOICE.sub(lambda match: _version(match, version), plan)

    def text(self, version):
        return self._say(self.plan, version)

    def marks(self, version):
        """Begin and end in the text of what stands between < and >, with the space before."""
        begin, end = MARKS
        plan = re.sub(" ?<", lambda match: begin + match.group(0), self.plan).replace(">", ">" + end)
        parts = re.split(f"([{begin}{end}])", self._say(plan, version))
        at, spans = 0, []
        for part in parts:
            if part == begin:
                spans.append([at])
            elif part == end:
                spans[-1].append(at)
            else:
                at += len(part)
        return spans

    def pair(self, version):
        """What is asked at the last [|]: prefix, the right answer, the wrong one, the words
        that decide, and how many words and marks follow the last of these."""
        *before, last = list(CHOICE.finditer(self.plan))
        head = self.plan[:last.start()]
        space = " " if head.endswith(" ") else ""
        deciding = [_version(match, version) for match in before]
        after = self._say(head[before[-1].end():], version)
        return {"prefix": self._say(head, version).rstrip(),
                "a": space + _version(last, version),
                "b": space + _version(last, 1 - version),
                "deciding": deciding, "distance": len(WORD.findall(after))}


def stories(grammar, seed, first, count):
    """Training stories and their versions, by their numbers: each depends on the seed and
    its number alone."""
    kinds = [templates for _, parts, templates in grammar.stories for _ in range(parts)]
    for number in range(first, first + count):
        draw = Draw(seed, number)
        template = draw.one_of(draw.one_of(kinds))
        version = draw.below(2)
        yield Story(grammar, template, draw, held=False), version


def held_stories(grammar, seed, each, held):
    """(kind, template, story) of every held-out template, `each` times; held: with held-out words."""
    number = 0
    for kind, _, templates in grammar.held_stories:
        for template in templates:
            for _ in range(each):
                yield kind, template, Story(grammar, template, Draw(~seed, number), held)
                number += 1
