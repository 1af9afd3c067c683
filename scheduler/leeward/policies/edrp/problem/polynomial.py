"""A response-time curve from measurements: the least-squares polynomial that increases over the range measured.

The paper fits R_i(rate) to what it measured on Storm (section 8) and takes it to be increasing (section 3.2).  Noise
breaks that, so the fit is constrained: of all polynomials of the degree, the one with the least squared error whose
derivative is not negative.  The derivative is written in Bernstein's basis, raised to a degree at which "no
coefficient is negative", which is enough for "nowhere negative", leaves next to nothing out.

Below the range the curve stays at its lowest value (a response time does not fall below that of the lowest rate, so
this errs on the safe side); above it nothing is known, so it is infinite: a plan never relies on a rate that nobody
has measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from leeward.core.fields import FieldError

#: Degree to which the derivative is raised: the higher, the fewer increasing polynomials are missed.
RAISED = 60
#: Share of the curve's height by which a derivative may seem negative: float noise of the coefficients.
NOISE = 1e-9
#: Highest degree; beyond it float noise in powers of the rate shows.
MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial:
    """R(x) = sum of c_p x^p for a rate x from `low_tps` to `high_tps`, s; constant below, infinite above."""

    #: c_0, c_1, ...: s, s per tuple/s, ...
    coefficients: tuple[float, ...]
    low_tps: float
    high_tps: float
    #: Root mean square of what the measurements are away from the curve, s.
    residual_s: float = 0.0

    def response_s(self, load_tps: float, replicas: int) -> float:
        rate = load_tps / replicas
        if rate > self.high_tps * (1 + 1e-12):
            return math.inf
        value = 0.0
        for coefficient in reversed(self.coefficients):
            value = value * max(rate, self.low_tps) + coefficient
        return max(value, 0.0)


def fit_polynomial(rates_tps: Sequence[float], responses_s: Sequence[float], degree: int) -> Polynomial:
    """The increasing polynomial of at most `degree` with the least squared error.

    Raises `FieldError` where the measurements are not such, or too few: there must be more than `degree`
    different rates.
    """
    x, y = np.array(rates_tps, dtype=float), np.array(responses_s, dtype=float)
    _check_measurements(x, y, degree)
    low, high = float(x.min()), float(x.max())
    unit = (x - low) / (high - low)  # 0 .. 1
    # p(t) = a_0 + a_1 t + ...; not below 0 at the lowest rate; derivative in Bernstein's basis not below 0
    fitted = np.vander(unit, degree + 1, increasing=True)
    least = np.vstack([np.eye(1, degree + 1), _derivative_in_bernstein(degree)])
    a = _least_squares(fitted, y, least)
    residual = float(np.sqrt(np.mean((fitted @ a - y) ** 2)))
    shifted = np.polynomial.Polynomial(a, domain=[low, high], window=[0.0, 1.0]).convert(domain=[-1, 1], window=[-1, 1])
    coefficients = tuple(float(c) for c in shifted.coef)
    return Polynomial(coefficients=coefficients, low_tps=low, high_tps=high, residual_s=residual)


def _check_measurements(x: np.ndarray, y: np.ndarray, degree: int) -> None:
    if not 1 <= degree <= MOST:
        raise FieldError("degree", degree, f"must be from 1 to {MOST}", remedy="3 is enough for most curves")
    if x.ndim != 1 or x.shape != y.shape:
        raise FieldError("responses", len(y), f"there are {len(x)} rates", remedy="give one response time for each")
    for field, values in (("rates", x), ("responses", y)):
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            at = int(wrong[0])
            what = "must be finite and 0 or more"
            raise FieldError(f"{field}[{at}]", float(values[at]), what, remedy="leave it out")
    if len(np.unique(x)) <= degree:
        raise FieldError(
            "rates", len(np.unique(x)), f"different rates do not determine degree {degree}", remedy="measure at more"
        )


def _derivative_in_bernstein(degree: int) -> np.ndarray:
    """[RAISED + 1, degree + 1]: the coefficients of p' over 0 .. 1 from those of p in powers of t."""
    rows = np.zeros((RAISED + 1, degree + 1))
    for power in range(1, degree + 1):  # t^q has the coefficients C(b, q) / C(n, q)
        q = power - 1
        rows[:, power] = [power * comb(b, q) / comb(RAISED, q) for b in range(RAISED + 1)]
    return rows


def _least_squares(fitted: np.ndarray, y: np.ndarray, least: np.ndarray) -> np.ndarray:
    """The a with the least |fitted a - y| such that least a >= 0.

    With fitted = Q R and z = R a - Q'y it is the shortest z with G z >= h, which non-negative least squares gives
    (Lawson and Hanson, Solving Least Squares Problems, chapter 23).
    """
    from scipy.optimize import nnls

    q, r = np.linalg.qr(fitted)
    target = q.T @ y
    g = np.linalg.solve(r.T, least.T).T
    free = np.linalg.solve(r, target)
    if (least @ free >= 0).all():
        return free
    scale = max(float(np.abs(target).max()), 1e-300)
    g_norm = np.linalg.norm(g, axis=1)
    g, h = g / g_norm[:, None], -(g @ target) / g_norm / scale
    dual, _ = nnls(np.vstack([g.T, h]), np.eye(1, g.shape[1] + 1, g.shape[1])[0], maxiter=10_000)
    rest = np.vstack([g.T, h]) @ dual - np.eye(1, g.shape[1] + 1, g.shape[1])[0]
    z = -rest[:-1] / rest[-1] * scale
    return np.linalg.solve(r, z + target)


def check_polynomial(field: str, curve: Polynomial) -> None:
    """Raises `FieldError` for the first thing that is wrong with a curve that is read or made by hand."""
    if not curve.coefficients:
        raise FieldError(f"{field}.coefficients", [], "is empty", remedy="give at least one")
    values = [
        *((f"coefficients[{p}]", c) for p, c in enumerate(curve.coefficients)),
        ("range[0]", curve.low_tps), ("range[1]", curve.high_tps), ("residual", curve.residual_s),
    ]  # fmt: skip
    for name, value in values:
        if not math.isfinite(value):
            raise FieldError(f"{field}.{name}", value, "is not a finite number", remedy="give a finite number")
        if value < 0 and not name.startswith("coefficients"):
            raise FieldError(f"{field}.{name}", value, "must be 0 or more", remedy="give 0 or more")
    if curve.high_tps <= curve.low_tps:
        raise FieldError(f"{field}.range[1]", curve.high_tps, "does not exceed the lowest rate", remedy="swap them")
    shape = np.polynomial.Polynomial(curve.coefficients)
    turns = [float(root.real) for root in shape.deriv().roots() if abs(root.imag) < 1e-9 * (1 + float(abs(root)))]
    points = [curve.low_tps, *sorted(t for t in turns if curve.low_tps < t < curve.high_tps), curve.high_tps]
    heights = shape(np.array(points))
    noise = NOISE * max(1e-12, float(np.abs(heights).max()))
    if heights[0] < -noise:
        raise FieldError(field, float(heights[0]), "is negative at the lowest rate", remedy="fit it again")
    for start, end, before, after in zip(points, points[1:], heights, heights[1:], strict=False):
        if after < before - noise:
            what = f"falls between the rates {start:g} and {end:g}, but response time grows with the rate"
            raise FieldError(field, list(curve.coefficients), what, remedy="fit it with fit_polynomial")
