"""Random numbers for the generators of text: splitmix64, the same everywhere.

Python's own generator promises the same numbers only for some of its methods;
these fourteen lines are whole numbers and nothing else.
"""
MASK = (1 << 64) - 1


class Draw:
    def __init__(self, seed, stream=0):
        self.state = (seed * 0x9E3779B97F4A7C15 + stream * 0xD1B54A32D192ED03) & MASK
        self.below(1)

    def below(self, n):
        """A whole number from 0 to n-1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        x = self.state
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        return (x ^ x >> 31) * n >> 64

    def one_of(self, entries):
        return entries[self.below(len(entries))]
