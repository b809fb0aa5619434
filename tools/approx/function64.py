"""Coefficients of src/kernels/function64.c.  Needs python3-mpmath."""
from mpmath import mp, mpf, cos, erf, erfc, exp, floor, log, pi, sin, sqrt
from minimax import c_double, fit, show, to_bits


def split(name, x, *bits):
    """x as a sum of parts: the first ones short, the last a full double."""
    parts = []
    for b in bits:
        part = to_bits(x, b)
        parts.append(c_double(part))
        x -= part
    print(name, ", ".join(parts))


split("ln2", log(2), 42, 53)
split("pi/2", pi / 2, 33, 33, 53)
split("pi/2 as two doubles", pi / 2, 53, 53)
split("2/3", mpf(2) / 3, 53, 53)
print("log2(e)", c_double(1 / log(2)), " 2/pi", c_double(2 / pi),
      " 2/sqrt(pi) - 1", c_double(2 / sqrt(pi) - 1))
print("sqrt(1/2)", c_double(sqrt(mpf(1) / 2)))

# exp(r) = 1 + r + r^2 Q(r); error relative to exp(r)
half = log(2) / 2 * (1 + mpf(2) ** -20)
series = lambda r: (exp(r) - 1 - r) / r ** 2 if abs(r) > mpf(10) ** -15 else mpf(1) / 2
show("exp Q", *fit(series, range(10), -half, half, lambda r: exp(r) / r ** 2 if r else mpf(10) ** 50))

# log((1+s)/(1-s)) = s (2 + z (2/3 + z P(z))), z = s^2; error relative to 2s
top = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * (1 + mpf(2) ** -20)


def atanh_tail(z):
    return 2 * sum(z ** k / (2 * k + 5) for k in range(60))


show("log P", *fit(atanh_tail, range(7), 0, top, lambda z: 2 / (z * z)))

# sin r = r + r^3 S(z), cos r = 1 - z/2 + z^2 C(z), z = r^2; |r| <= pi/4
edge = (pi / 4) ** 2 * (1 + mpf(2) ** -20)


def sin_tail(z):
    return sum((-1) ** k * z ** (k - 1) / mp.factorial(2 * k + 1) for k in range(1, 25))


def cos_tail(z):
    return sum((-1) ** k * z ** (k - 2) / mp.factorial(2 * k) for k in range(2, 26))


show("sin S", *fit(sin_tail, range(6), 0, edge, lambda z: sin(sqrt(z)) / (z * sqrt(z))))
show("cos C", *fit(cos_tail, range(6), 0, edge, lambda z: cos(sqrt(z)) / z ** 2))

# erf x = x + x E(z), z = x^2, |x| <= 1;  erfc x = exp(-x^2) G(t), t = (x-2)/(x+2), x in [1, 6]


def erf_tail(z):
    x = sqrt(z)
    return erf(x) / x - 1 if z else 2 / sqrt(pi) - 1


def scaled_erfc(t):
    x = 2 * (1 + t) / (1 - t)
    return exp(x * x) * erfc(x)


show("erf E", *fit(erf_tail, range(13), mpf(10) ** -30, 1, lambda z: erf(sqrt(z)) / sqrt(z)))
show("erfc G", *fit(scaled_erfc, range(13), -mpf(1) / 3 - mpf(2) ** -30, mpf(1) / 2,
                    lambda t: exp((2 * (1 + t) / (1 - t)) ** 2)))

mp.prec = 1400
fraction = 2 / pi
print("2/pi, 37 words of 32 bits")
line = []
for _ in range(37):
    fraction *= 2 ** 32
    word = int(floor(fraction))
    fraction -= word
    line.append(f"0x{word:08x}")
for i in range(0, 37, 7):
    print("    " + ", ".join(line[i:i + 7]) + ",")
