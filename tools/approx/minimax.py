"""Minimax polynomials in multiple precision, by Remez exchange on a fine grid.

fit() finds the c_k that minimise  max |target(x) - sum c_k x^k| / weight(x)
over [a, b], k running over neighbouring powers.  With `bits` the coefficients
come out rounded to that width: the lowest open power is rounded and held, and
the rest fitted again, so that later coefficients absorb what rounding lost.
"""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, floor, frexp, ldexp

mp.dps = 45
GRID = 1500


def fit(target, powers, a, b, weight=lambda x: mpf(1), bits=None):
    """Returns (coefficients, largest weighted error)."""
    a, b = mpf(a), mpf(b)
    xs = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * GRID)) for i in range(GRID)]
    rest = [mpf(target(x)) for x in xs]
    scale = [1 / mpf(weight(x)) for x in xs]
    powers, held = list(powers), []
    if bits is None:
        held = exchange(xs, rest, scale, powers)
        rest = [y - horner(held, powers[0], x) for x, y in zip(xs, rest)]
    while len(held) < len(powers):
        still = powers[len(held):]
        c = to_bits(exchange(xs, rest, scale, still)[0], bits)
        rest = [y - c * x ** still[0] for x, y in zip(xs, rest)]
        held.append(c)
    return held, max(abs(y * s) for y, s in zip(rest, scale))


def horner(coeffs, lowest, x):
    total = mpf(0)
    for c in reversed(coeffs):
        total = total * x + c
    return total * x ** lowest


def exchange(xs, ys, scale, powers):
    """Coefficients of the best fit on the grid.

    x^lowest is taken out as a part of the weight, with its sign, so that what
    is left are the powers 0 … n, which can alternate on any interval.
    """
    lowest, n = powers[0], len(powers)
    scale = [s * (-1 if x < 0 and lowest % 2 else 1) for x, s in zip(xs, scale)]
    where = [int((len(xs) - 1) * (1 - cos(pi * k / n)) / 2) for k in range(n + 1)]
    for _ in range(40):
        lhs, rhs = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, i in enumerate(where):
            for col, power in enumerate(powers):
                lhs[row, col] = xs[i] ** power * scale[i]
            lhs[row, n] = (-1) ** row
            rhs[row] = ys[i] * scale[i]
        solved = lu_solve(lhs, rhs)
        coeffs, level = list(solved)[:n], abs(solved[n])
        errors = [(y - horner(coeffs, lowest, x)) * s for x, y, s in zip(xs, ys, scale)]
        if max(abs(e) for e in errors) <= level * (1 + mpf(10) ** -6):
            return coeffs
        where = alternating(errors, n + 1)
    raise ArithmeticError("no convergence")


def alternating(errors, count):
    """Positions of `count` extrema of alternating sign, the largest there are."""
    peaks = []
    for i, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        # Dropping an inner peak takes its smaller neighbour along, or signs repeat.
        if len(peaks) == count + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
            continue
        least = min(range(len(peaks)), key=lambda k: abs(errors[peaks[k]]))
        if least in (0, len(peaks) - 1):
            peaks.pop(least)
        else:
            left = abs(errors[peaks[least - 1]]) < abs(errors[peaks[least + 1]])
            del peaks[least - 1 if left else least:least + 1 if left else least + 2]
    if len(peaks) < count:
        raise ArithmeticError("degenerate fit: ask for another degree")
    return peaks


def to_bits(x, bits):
    """x rounded to `bits` significant bits (nearest)."""
    if x == 0:
        return mpf(0)
    _, e = frexp(x)
    return ldexp(floor(ldexp(x, bits - e) + mpf(1) / 2), e - bits)


def hexfloat(x):
    mantissa, exponent = float(x).hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def c_double(x):
    return hexfloat(to_bits(x, 53))


def c_float(x):
    return hexfloat(to_bits(x, 24)) + "f"


def show(name, coeffs, worst, form=c_double):
    print(f"{name}: error 2^{float(mp.log(worst, 2)):.1f}")
    for c in coeffs:
        print(f"    {form(c)},  /* {mp.nstr(c, 10)} */")
