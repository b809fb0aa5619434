"""Coefficients of src/kernels/body/vmath.h.  Needs python3-mpmath."""
from mpmath import mp, mpf, erf, erfc, exp, log, pi, sqrt, tanh
from minimax import c_float, fit, show, to_bits

EDGE = 1 + mpf(2) ** -12  # the reduction may end a little outside its interval
TINY = mpf(10) ** -30


def constant(name, x, bits=24):
    print(f"{name}: {c_float(to_bits(x, bits))}  /* {mp.nstr(x, 12)} */")
    return to_bits(x, bits)


def ratio(f, z):
    """f(x)/x of an odd function, for z = x^2."""
    return f(sqrt(z)) / sqrt(z)


def step(holds, x):
    """The last float, going up from x, for which `holds`; x > 0 or x < 0."""
    while True:
        spacing = mp.ldexp(1, mp.frexp(x)[1] - 24)
        if not holds(x + spacing):
            return x
        x += spacing


constant("log2(e)", 1 / log(2))
high = constant("ln 2, high part (16 bits: times |n| < 256 is exact)", log(2), 16)
constant("ln 2, low part", log(2) - high)
constant("-2 sqrt(2/pi)", -2 * sqrt(2 / pi))
constant("-2 sqrt(2/pi) 0.044715", -2 * sqrt(2 / pi) * mpf("0.044715"))
constant("sqrt(1/2)", sqrt(mpf(1) / 2))
print("least x with e^x >= 2^-126:",
      c_float(-step(lambda x: exp(-x) >= mpf(2) ** -126, to_bits(mpf("87.33"), 24))))
print("largest x with finite e^x:",
      c_float(step(lambda x: exp(x) < mpf(2) ** 128 * (1 - mpf(2) ** -25), to_bits(mpf("88.72"), 24))))

# e^r = 1 + r + r^2 Q(r)
half = log(2) / 2 * EDGE
show("exp Q", *fit(lambda r: exp(r) - 1 - r, range(2, 7), -half, half, exp, 24), c_float)

# log(1+f) = f + f^2 Q(f), Q(0) = -1/2
low, top = (sqrt(mpf(1) / 2) - 1) * EDGE, (sqrt(2) - 1) * EDGE
show("log Q after -1/2", *fit(lambda f: log(1 + f) - f + f * f / 2, range(3, 12), low, top,
                              lambda f: abs(log(1 + f)) or TINY, 24), c_float)

# tanh x = x + x z P(z), z = x^2, |x| < 0.55
show("tanh P", *fit(lambda z: ratio(tanh, z) - 1, range(1, 6), TINY, mpf(0.55) ** 2,
                    lambda z: ratio(tanh, z), 24), c_float)

# erf x = x + x E(z), z = x^2, |x| < 1; log erfc x for 1 <= x <= 4, error of erfc
show("erf E", *fit(lambda z: ratio(erf, z) - 1, range(7), TINY, 1, lambda z: ratio(erf, z), 24),
     c_float)
show("log erfc", *fit(lambda x: log(erfc(x)), range(7), 1, 4, lambda x: 1 / erfc(x), 24), c_float)
