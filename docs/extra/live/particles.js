"use strict"
// Particles whose pair sums attract, repel and align (Musat, section 5), and particles that move by tabulated
// kernels. The functions repeat `ParticleSystem` and `PairForces` of the Python package for one run in the plane.

const TOKENS = 17
const PAIRS = []
for (let i = 0; i < TOKENS; i++) for (let j = i; j < TOKENS; j++) PAIRS.push({i, j, label: (i + j) % TOKENS})

/** Weights P/n of interactions between classes and within a class, n ordered pairs of pair sums of each kind. */
const WEIGHTS = (() => {
  const counts = Array(TOKENS).fill(0)
  for (const {label} of PAIRS) counts[label]++
  const same = counts.reduce((sum, n) => sum + n * (n - 1), 0)
  return [PAIRS.length / (PAIRS.length * (PAIRS.length - 1) - same), PAIRS.length / same]
})()

/** Sums of all pairs of points [[x, y], ...]. */
function pairSums(points) {
  return PAIRS.map(({i, j}) => [points[i][0] + points[j][0], points[i][1] + points[j][1]])
}

/** Factor of s_a - s_b in the force on s_a, and factor of s_b/|s_b|, at squared distance r2 and cosine c. */
function musat(law) {
  const soft = law.softening ** 2
  const attraction = law.attraction * WEIGHTS[1], repulsion = law.repulsion * WEIGHTS[0]
  const along = [-law.alignment * WEIGHTS[0], law.alignment * WEIGHTS[1]]
  return {
    between: (r2, same) => same ? -attraction / Math.sqrt(r2 + soft) : repulsion / (r2 + soft),
    along: (cosine, same) => cosine > 0 ? along[same] : 0,
  }
}

/** Value of a table on a uniform grid from 0 to `end` between whose places it is linear; constant beyond. */
function interpolated(table, end, x) {
  const place = x * (table.length - 1) / end
  if (place >= table.length - 1) return table[table.length - 1]
  const below = Math.floor(place)
  return table[below] + (place - below) * (table[below + 1] - table[below])
}

/** The same factors of kernels that were measured: tables [between classes, within a class]. */
function tabulated({distance, angle, jump, longest}) {
  return {
    between: (r2, same) => r2 > 0 ? interpolated(distance[same], longest, Math.sqrt(r2)) / Math.sqrt(r2) : 0,
    along: (cosine, same) => (cosine > 0 ? jump[same] : 0)
      + (angle ? interpolated(angle[same], Math.PI, Math.acos(Math.min(1, Math.max(-1, cosine)))) : 0),
  }
}

/** Forces [[x, y], ...] on all points, by a law {attraction, ...} or by tables {distance, angle, ...}. */
function forces(points, law) {
  const {between, along} = law.distance ? tabulated(law) : musat(law)
  const sums = pairSums(points), total = points.map(() => [0, 0])
  const norms = sums.map(([x, y]) => Math.hypot(x, y))
  const on = sums.map(([x, y], a) => {
    const out = law.radius && norms[a] > 0 ? interpolated(law.radius, law.farthest, norms[a]) / norms[a] : 0
    return [out * x, out * y]
  })
  for (let a = 0; a < sums.length; a++) {
    const [ax, ay] = sums[a]
    for (let b = 0; b < a; b++) {
      const [bx, by] = sums[b], same = PAIRS[a].label === PAIRS[b].label ? 1 : 0
      const dx = ax - bx, dy = ay - by
      const push = between(dx * dx + dy * dy, same)
      on[a][0] += push * dx
      on[a][1] += push * dy
      on[b][0] -= push * dx
      on[b][1] -= push * dy
      const both = norms[a] * norms[b]
      if (both === 0) continue
      const turn = along((ax * bx + ay * by) / both, same)
      on[a][0] += turn * bx / norms[b]
      on[a][1] += turn * by / norms[b]
      on[b][0] += turn * ax / norms[a]
      on[b][1] += turn * ay / norms[a]
    }
  }
  PAIRS.forEach(({i, j}, a) => {
    for (const axis of [0, 1]) {
      total[i][axis] += on[a][axis]
      total[j][axis] += on[a][axis]
    }
  })
  return total
}

/** Motion [[x, y], ...] that keeps mean and variance of each axis, as the steps do: the forces less their other parts. */
function velocity(points, law) {
  const F = forces(points, law), centered = normalized(points)
  for (const axis of [0, 1]) {
    const mean = F.reduce((sum, f) => sum + f[axis], 0) / TOKENS
    const scale = F.reduce((sum, f, n) => sum + f[axis] * centered[n][axis], 0) / TOKENS
    F.forEach((f, n) => { f[axis] -= mean + scale * centered[n][axis] })
  }
  return F
}

/** Points with zero mean and unit variance on each axis. */
function normalized(points) {
  const moved = points.map(point => [...point])
  for (const axis of [0, 1]) {
    const mean = moved.reduce((sum, point) => sum + point[axis], 0) / TOKENS
    const variance = moved.reduce((sum, point) => sum + (point[axis] - mean) ** 2, 0) / TOKENS
    for (const point of moved) point[axis] = variance > 0 ? (point[axis] - mean) / Math.sqrt(variance) : 0
  }
  return moved
}

/** Points after a step along the forces, normalized again. */
function stepped(points, law, size) {
  const F = forces(points, law)
  return normalized(points.map(([x, y], n) => [x + size * F[n][0], y + size * F[n][1]]))
}

/** Ratio of the largest to the smallest distance from the origin (Musat, Algorithm 1). */
function circleRatio(points) {
  const norms = points.map(([x, y]) => Math.hypot(x, y))
  return Math.max(...norms) / Math.min(...norms)
}

/** Number of pair sums whose nearest other one is of another class (Musat, Algorithm 2). */
function imperfections(points) {
  const sums = pairSums(points)
  return sums.reduce((count, [x, y], a) => {
    let nearest = -1, least = Infinity
    sums.forEach(([u, v], b) => {
      const square = (x - u) ** 2 + (y - v) ** 2
      if (b !== a && square < least) [nearest, least] = [b, square]
    })
    return count + (PAIRS[nearest].label !== PAIRS[a].label ? 1 : 0)
  }, 0)
}

/** Random starts: normal numbers of a small generator with a seed (mulberry32). */
function randomStart(seed) {
  let state = seed >>> 0
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
  return normalized(Array.from({length: TOKENS}, () => [normal(), normal()]))
}
