"""The slow reference of every kernel: written from the specification, loop by loop, for reading."""

import numpy as np


def pairs(tokens):
    return [(i, j) for i in range(tokens) for j in range(i, tokens)]


def forces(positions, *, attraction=1.0, repulsion=1.0, alignment=1.0, softening=0.1):
    """Forces of one run (tokens, dim) as the table of the specification has them."""
    tokens = len(positions)
    all_pairs = pairs(tokens)
    sums = {a: positions[a[0]] + positions[a[1]] for a in all_pairs}
    label = {a: (a[0] + a[1]) % tokens for a in all_pairs}
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


def clustering_potential(positions, *, attraction, repulsion, softening):
    """Energy whose negative gradient is the force without alignment (each pair of pair sums once)."""
    tokens = len(positions)
    all_pairs = pairs(tokens)
    label = [(i + j) % tokens for i, j in all_pairs]
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
    centred = positions - positions.mean(axis=0)
    scale = centred.std(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)


def grid_imperfections(E, modulus=None):
    """Algorithm 2 of Musat, Appendix A, line by line."""
    tokens = len(E)
    modulus = tokens if modulus is None else modulus
    imperfections = 0
    for i, j in pairs(tokens):
        min_dist = np.inf
        match = False
        for k, m in pairs(tokens):
            if (i, j) == (k, m):
                continue
            dist = np.linalg.norm((E[i] + E[j]) - (E[k] + E[m]))
            if dist < min_dist:
                min_dist = dist
                match = (i + j) % modulus == (k + m) % modulus
        if not match:
            imperfections += 1
    return imperfections


def procrustes_disparity(first, second):
    """Smallest disparity over relabellings, by SciPy's own Procrustes."""
    from math import gcd

    from scipy.spatial import procrustes

    tokens = len(first)
    return min(
        procrustes(second, first[(u * np.arange(tokens) + s) % tokens])[2]
        for u in range(1, tokens)
        if gcd(u, tokens) == 1
        for s in range(tokens)
    )
