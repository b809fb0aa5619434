"""Minimax fits in multiple precision, by Remez exchange on a fixed fine grid.

fit() finds the c_k that minimise  max |target(x) - sum c_k x^e_k| / weight(x)
over [a, b].  rounded() does the same for coefficients of a given width: it
rounds the lowest open power, holds it, and fits the rest again, so that later
coefficients absorb what the rounding of earlier ones lost.
"""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, floor, frexp, ldexp

mp.dps = 60
GRID = 3000


def grid(a, b, n=GRID):
    a, b = mpf(a), mpf(b)
    return [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf(1) / 2) / n) for i in range(n)]


def fit(target, powers, a, b, weight=lambda x: mpf(1), points=None):
    """Returns (coefficients, largest weighted error)."""
    xs = points or grid(a, b)
    ys = [mpf(target(x)) for x in xs]
    ws = [1 / mpf(weight(x)) for x in xs]
    m = len(powers) + 1
    where = [int(i) for i in
             [(len(xs) - 1) * (1 - cos(pi * k / (m - 1))) / 2 for k in range(m)]]
    for _ in range(60):
        lhs, rhs = matrix(m, m), matrix(m, 1)
        for row, i in enumerate(where):
            for col, e in enumerate(powers):
                lhs[row, col] = xs[i] ** e * ws[i]
            lhs[row, m - 1] = (-1) ** row
            rhs[row] = ys[i] * ws[i]
        solved = lu_solve(lhs, rhs)
        coeffs, level = list(solved)[:-1], abs(solved[m - 1])
        errors = [(y - sum(c * x ** e for c, e in zip(coeffs, powers))) * w
                  for x, y, w in zip(xs, ys, ws)]
        worst = max(abs(e) for e in errors)
        if worst <= level * (1 + mpf(10) ** -6):
            break
        where = exchange(errors, m)
    return coeffs, worst


def exchange(errors, m):
    """Positions of m extrema of alternating sign, the largest that there are."""
    peaks = []
    for i, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > m:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    assert len(peaks) == m, "degenerate fit: ask for another degree"
    return peaks


def to_bits(x, bits):
    """x rounded to `bits` significant bits (nearest)."""
    if x == 0:
        return mpf(0)
    _, e = frexp(x)
    return ldexp(floor(ldexp(x, bits - e) + mpf(1) / 2), e - bits)


def rounded(target, powers, a, b, bits, weight=lambda x: mpf(1), fixed=None):
    """fit() with coefficients of `bits` bits; `fixed` holds some of them, by power."""
    held = dict(fixed or {})
    points = grid(a, b)
    open_powers = [p for p in powers if p not in held]
    rest = lambda x: mpf(target(x)) - sum(c * x ** e for e, c in held.items())
    while open_powers:
        coeffs, _ = fit(rest, open_powers, a, b, weight, points)
        held[open_powers.pop(0)] = to_bits(coeffs[0], bits)
    worst = max(abs(rest(x)) / mpf(weight(x)) for x in points)
    return [held[p] for p in powers], worst


def c_double(x):
    return hexfloat(to_bits(x, 53))


def c_float(x):
    return hexfloat(to_bits(x, 24)) + "f"


def hexfloat(x):
    text = float(x).hex()
    mantissa, exponent = text.split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def show(name, coeffs, worst, form=c_double):
    print(f"{name}: error 2^{float(mp.log(worst, 2)):.1f}")
    for c in coeffs:
        print(f"    {form(c)},  /* {mp.nstr(c, 10)} */")
