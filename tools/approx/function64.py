"""Coefficients of src/kernels/function64.c and trig64.c.  Needs python3-mpmath."""
from mpmath import mp, mpf, atanh, cos, erf, erfc, exp, floor, log, pi, sin, sqrt
from minimax import c_double, fit, show, to_bits

EDGE = 1 + mpf(2) ** -20  # the reduction may end a little outside its interval
TINY = mpf(10) ** -20


def split(name, x, *bits):
    """x as a sum of parts: the first ones short, the last a full double."""
    parts = []
    for b in bits:
        part = to_bits(x, b)
        parts.append(c_double(part))
        x -= part
    print(f"{name}:", ", ".join(parts))


def ratio(f, z):
    """f(x)/x of an odd function, for z = x^2."""
    return f(sqrt(z)) / sqrt(z)


split("log2(e)", 1 / log(2), 53)
split("2/pi", 2 / pi, 53)
split("ln 2", log(2), 42, 53)
split("pi/2", pi / 2, 33, 33, 53)
split("pi/2, two doubles", pi / 2, 53, 53)
split("2/3", mpf(2) / 3, 53, 53)

# e^r = 1 + r + r^2 Q(r)
half = log(2) / 2 * EDGE
show("exp Q", *fit(lambda r: exp(r) - 1 - r, range(2, 12), -half, half, exp))

# log((1+s)/(1-s)) = s (2 + z (2/3 + z P(z))), z = s^2, |s| <= (sqrt 2 - 1)/(sqrt 2 + 1)
top = (3 - 2 * sqrt(2)) ** 2 * EDGE
show("log P", *fit(lambda z: 2 * ratio(atanh, z) - 2 - 2 * z / 3, range(2, 9), TINY, top,
                   lambda z: 2 * ratio(atanh, z)))

# sin r = r + r z S(z), cos r = 1 - z/2 + z^2 C(z), z = r^2, |r| <= pi/4
top = (pi / 4) ** 2 * EDGE
show("sin S", *fit(lambda z: ratio(sin, z) - 1, range(1, 7), TINY, top, lambda z: ratio(sin, z)))
show("cos C", *fit(lambda z: cos(sqrt(z)) - 1 + z / 2, range(2, 8), TINY, top,
                   lambda z: cos(sqrt(z))))

# erf x = x + x E(z), z = x^2, |x| <= 1;  erfc x = exp(-x^2) G(t), t = (x-2)/(x+2), 1 <= x <= 6
show("erf E", *fit(lambda z: ratio(erf, z) - 1, range(13), TINY, 1, lambda z: ratio(erf, z)))


def x_of(t):
    return 2 * (1 + t) / (1 - t)


show("erfc G", *fit(lambda t: exp(x_of(t) ** 2) * erfc(x_of(t)), range(13), -mpf(1) / 3,
                    mpf(1) / 2, lambda t: exp(x_of(t) ** 2)))

# 2/pi up to bit 1184: enough words for the largest double
mp.prec = 1400
print("2/pi, words of 32 bits:")
digits = int(floor(2 / pi * mpf(2) ** 1184))
words = [digits >> 32 * i & 0xffffffff for i in reversed(range(37))]
for i in range(0, 37, 7):
    print("    " + " ".join(f"0x{word:08x}," for word in words[i:i + 7]))
