"""The slow reference of every kernel: written from the specification, loop by loop, for reading."""

import math

import numpy as np


def pairs(tokens):
    return [(i, j) for i in range(tokens) for j in range(i, tokens)]


def forces(
    positions, *, attraction=1.0, repulsion=1.0, alignment=1.0, softening=0.1, training=None, rule=None
):
    """Forces of one run (tokens, dim) as the table of the specification has them.

    `training` lists the pairs (i, j), i <= j, that interact, and `rule(i, j)` tells the class.
    """
    tokens = len(positions)
    all_pairs = pairs(tokens) if training is None else training
    sums = {a: positions[a[0]] + positions[a[1]] for a in all_pairs}
    label = {a: (a[0] + a[1]) % tokens if rule is None else rule(*a) for a in all_pairs}
    same = sum(label[a] == label[b] for a in all_pairs for b in all_pairs if a != b)
    diff = sum(label[a] != label[b] for a in all_pairs for b in all_pairs)
    weight_same, weight_diff = len(all_pairs) / same, len(all_pairs) / diff
    result = np.zeros_like(positions)
    for a in all_pairs:
        force = np.zeros(positions.shape[1])
        for b in all_pairs:
            if a == b:
                continue
            d = sums[a] - sums[b]
            squared = d @ d + softening**2
            if squared > 0:
                if label[a] == label[b]:
                    force -= attraction * weight_same * d / np.sqrt(squared)
                else:
                    force += repulsion * weight_diff * d / squared
            if sum(sums[a] * sums[b]) > 0:  # rounded product by rounded product: BLAS may fuse them
                unit = sums[b] / np.linalg.norm(sums[b])
                force += alignment * unit * (weight_same if label[a] == label[b] else -weight_diff)
        result[a[0]] += force
        result[a[1]] += force
    return result


def pair_forces(positions, function, parameters=(), *, on="tokens", rule=None):
    """Σ_j f(|x_i - x_j|²) (x_i - x_j) of one run (tokens, dim), between tokens or between their pair sums."""
    tokens = len(positions)
    force = np.zeros_like(positions)
    if on == "tokens":
        for i in range(tokens):
            for j in range(tokens):
                d = positions[i] - positions[j]
                if i != j and d @ d > 0:
                    force[i] += function(d @ d, *parameters) * d
        return force
    for i, j in pairs(tokens):
        for k, m in pairs(tokens):
            d = positions[i] + positions[j] - positions[k] - positions[m]
            if (i, j) != (k, m) and d @ d > 0:
                same = rule(i, j) == rule(k, m)
                for end in (i, j):
                    force[end] += function(d @ d, same, *parameters) * d
    return force


def clustering_potential(
    positions, *, attraction=1.0, repulsion=1.0, softening=0.1, training=None, rule=None
):
    """Energy whose negative gradient is the force without alignment (each pair of pair sums once)."""
    tokens = len(positions)
    all_pairs = pairs(tokens) if training is None else training
    label = [(i + j) % tokens if rule is None else rule(i, j) for i, j in all_pairs]
    sums = [positions[i] + positions[j] for i, j in all_pairs]
    count = len(all_pairs)
    same = sum(label[a] == label[b] for a in range(count) for b in range(count) if a != b)
    diff = count * (count - 1) - same
    energy = 0.0
    for a in range(count):
        for b in range(a):
            squared = (sums[a] - sums[b]) @ (sums[a] - sums[b]) + softening**2
            if label[a] == label[b]:
                energy += attraction * count / same * np.sqrt(squared)
            else:
                energy -= repulsion * count / diff * np.log(squared) / 2
    return energy


def normalised(positions):
    centered = positions - positions.mean(axis=0)
    scale = centered.std(axis=0)
    return centered / np.where(scale > 0, scale, 1.0)


def grid_imperfections(E, modulus=None, *, training=None, rule=None):
    """Algorithm 2 of Musat, Appendix A, line by line."""
    tokens = len(E)
    modulus = tokens if modulus is None else modulus
    rule = (lambda i, j: (i + j) % modulus) if rule is None else rule
    all_pairs = pairs(tokens) if training is None else training
    imperfections = 0
    for i, j in all_pairs:
        min_dist = np.inf
        match = False
        for k, m in all_pairs:
            if (i, j) == (k, m):
                continue
            dist = np.linalg.norm((E[i] + E[j]) - (E[k] + E[m]))
            if dist < min_dist:
                min_dist = dist
                match = rule(i, j) == rule(k, m)
        if not match:
            imperfections += 1
    return imperfections


def relabellings(table):
    """All bijections f with f(a)·f(b) a function of a·b, by trying every permutation."""
    from itertools import permutations

    order = len(table)
    found = []
    for f in permutations(range(order)):
        image = {}
        if all(image.setdefault(table[a][b], table[f[a]][f[b]]) == table[f[a]][f[b]]
               for a in range(order) for b in range(order)):  # fmt: skip
            found.append(f)
    return found


def procrustes_disparity(first, second, permutations=None):
    """Smallest disparity over relabelings, i → u i + s by default, by SciPy's own Procrustes."""
    from math import gcd

    from scipy.spatial import procrustes

    tokens = len(first)
    if permutations is None:
        units = [u for u in range(1, tokens) if gcd(u, tokens) == 1]
        permutations = [(u * np.arange(tokens) + s) % tokens for u in units for s in range(tokens)]
    return min(procrustes(second, first[np.asarray(one)])[2] for one in permutations)


def cliffs_delta(first, second):
    """Cliff's delta by all pairs of values."""
    return float(np.mean([np.sign(x - y) for x in first for y in second]))


def elastic_net_gap(X, y, w, alpha, l1_ratio):
    """Excess of the elastic net's objective at `w` over its dual, from residuals, not moments."""
    n = len(y)
    X, y = X - X.mean(axis=0), y - y.mean()
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    # The ridge part as rows of data of their own makes it a Lasso.
    X = np.concatenate([X, math.sqrt(n * l2) * np.eye(X.shape[1])])
    y = np.concatenate([y, np.zeros(X.shape[1])])
    residual = y - X @ w
    steepest = np.abs(X.T @ residual).max() / n
    dual = residual * (l1 / steepest if steepest > l1 else 1.0)
    primal = residual @ residual / (2 * n) + l1 * np.abs(w).sum()
    return primal - (y @ dual - dual @ dual / 2) / n


def matrix_log1p(A):
    """Logarithm of 1 + A by its series, for nilpotent A."""
    power, total = np.eye(len(A)), np.zeros_like(A)
    for k in range(1, len(A) + 1):
        power = power @ A
        total += (-1) ** (k + 1) * power / k
    return total


def neuron_fourier(weights):
    """Magnitude α and phase φ of every frequency of one neuron's weights (p,): w_a = Σ α cos(2πka/p + φ)."""
    p = len(weights)
    magnitude, phase = [], []
    for k in range(1, p // 2 + 1):
        cosine = sum(weights[a] * math.cos(2 * math.pi * k * a / p) for a in range(p)) * 2 / p
        sine = sum(weights[a] * math.sin(2 * math.pi * k * a / p) for a in range(p)) * 2 / p
        if 2 * k == p:
            cosine, sine = cosine / 2, 0.0
        magnitude.append(math.hypot(cosine, sine))
        phase.append(math.atan2(0.0 - sine, cosine))
    return np.array(magnitude), np.array(phase)


def neuron(w_in, w_out):
    """Frequency, participation ratio, Gini coefficient and misalignment of one neuron that is not dead."""
    alpha, phi = neuron_fourier(w_in)
    _, psi = neuron_fourier(w_out)
    best = max(range(len(alpha)), key=lambda k: alpha[k])
    p = len(w_in)
    waves = [
        [alpha[k] * math.cos(2 * math.pi * (k + 1) * a / p + phi[k]) for a in range(p)]
        for k in range(len(alpha))
    ]
    power = [sum(x**2 for x in wave) / p for wave in waves]
    purity = sum(x**2 for x in power) / sum(power) ** 2
    gini = sum(abs(a - b) for a in alpha for b in alpha) / (2 * len(alpha) * sum(alpha))
    turns = (2 * phi[best] - psi[best]) / (2 * math.pi)
    misalignment = 2 * math.pi * (turns - math.ceil(turns - 0.5))
    return best + 1, purity, gini, misalignment


def lottery_velocity(theta, xi, c):
    """Magnitudes and phases of He et al., put together: α' = 2cαβ cos D, φ' = -2cβ sin D, and so on."""
    alpha, phi, beta, psi = abs(theta), np.angle(theta), abs(xi), np.angle(xi)
    D = 2 * phi - psi
    growth = 2 * c * alpha * beta * np.cos(D) - 2j * c * beta * np.sin(D) * alpha
    output = c * alpha**2 * np.cos(D) + 1j * c * alpha**2 / beta * np.sin(D) * beta
    return growth * np.exp(1j * phi), output * np.exp(1j * psi)


def lottery_series(mpmath, theta, xi, time, order=30):
    """θ and ξ after `time` with c = 1/2, by Taylor series about many times, in mpmath's digits."""
    theta, xi, left = mpmath.mpc(theta), mpmath.mpc(xi), mpmath.mpf(time)
    while left != 0:
        a, b = [theta], [xi]
        for n in range(order):
            a.append(sum(mpmath.conj(a[j]) * b[n - j] for j in range(n + 1)) / (n + 1))
            b.append(sum(a[j] * a[n - j] for j in range(n + 1)) / (2 * n + 2))
        step = (mpmath.mpf(10) ** -22 / max(abs(a[-1]), abs(b[-1]))) ** (mpmath.mpf(1) / order)
        step = min(step, abs(left)) * mpmath.sign(left)
        theta, xi = mpmath.polyval(a[::-1], step), mpmath.polyval(b[::-1], step)
        left -= step
    return complex(theta), complex(xi)


def logit_waves(logits, answer=lambda a, b: a + b):
    """Coefficients A_k of cos(2πk(a + b - c)/p) in logits (p, p, p), each by a sum over all a, b, c."""
    p = len(logits)
    found = []
    for k in range(1, p // 2 + 1):
        total = sum(
            logits[a, b, c] * math.cos(2 * math.pi * k * (answer(a, b) - c) / p)
            for a in range(p)
            for b in range(p)
            for c in range(p)
        )
        found.append(total / p**3 * (1 if 2 * k == p else 2))
    return np.array(found)


def restricted_logits(logits, frequencies):
    """Constant part of logits (p, p, p), and cos and sin of 2πk(a + b)/p, by orthogonal projection."""
    p = len(logits)
    sums = np.add.outer(np.arange(p), np.arange(p))
    terms = [np.ones((p, p))]
    for k in frequencies:
        terms += [np.cos(2 * np.pi * k * sums / p), np.sin(2 * np.pi * k * sums / p)]
    kept = np.zeros_like(logits)
    for term in terms:
        if abs(term).max() > 1e-9:
            for c in range(p):
                kept[:, :, c] += (logits[:, :, c] * term).sum() / (term**2).sum() * term
    return kept


def cross_entropy(logits, pairs):
    """Mean over pairs (a, b) of minus the log of the softmax at (a + b) mod p."""
    p = len(logits)
    losses = []
    for a, b in pairs:
        weights = [math.exp(x) for x in logits[a, b]]
        losses.append(-math.log(weights[(a + b) % p] / sum(weights)))
    return sum(losses) / len(losses)
