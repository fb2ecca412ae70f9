"use strict"
// The page: presets, sliders, the canvases, and recorded trainings that are played.

const MUSAT = {alignment: 2, attraction: 1, repulsion: 1, softening: 0.1}
const SLIDERS = [
  ["alignment", "alignment fₐ", 0, 4, 0.05], ["attraction", "attraction gₐ", 0, 4, 0.05],
  ["repulsion", "repulsion gᵣ", 0, 4, 0.05], ["softening", "softening ε", 0.01, 0.5, 0.01],
  ["size", "step size η", 0.001, 0.1, 0.001], ["arrows", "length of the arrows", 0, 0.5, 0.01],
]
const CIRCLE = Array.from({length: TOKENS}, (_, k) => [Math.cos(2 * Math.PI * k / TOKENS), Math.sin(2 * Math.PI * k / TOKENS)])
const PRESETS = {
  "circle": {name: "a circle forms", seed: 14, watch: "Attraction, repulsion and alignment: the circle ratio falls below 1.2."},
  "grid": {name: "an imperfect grid", seed: 13, law: {alignment: 1}, size: 0.01,
    watch: "Weaker alignment: pair sums gather on a lattice, where some have a neighbor of another class."},
  "pull": {name: "pull it apart", points: CIRCLE, arrows: 0.12, paused: true,
    watch: "Drag a particle off the circle, then press Play. Arrows show where the forces move each."},
  "measured": {name: "measured forces", seed: 14, tables: true, arrows: 0.48,
    watch: "The kernels of the finding: converged layers, middle of a training, weight decay 1. Attraction is largest at 0.9 sizes of the embedding and gone at 2.4. No circle formed from 40 starts."},
  ...Object.fromEntries(DATA.trainings.map(({slug, name, watch}, n) => [slug, {name, watch, training: n}])),
}
const HISTORY = 400
const $ = id => document.getElementById(id)
const state = {points: CIRCLE, start: CIRCLE, step: 0, playing: false, seed: 1, law: {...MUSAT}, size: 0.02, arrows: 0,
  training: null, frame: 0, ratios: [], trail: [], held: null, chosen: 0}

/** Law that moves the particles: the sliders' constants, or the measured tables with these constants ignored. */
const law = () => state.tables ? DATA.kernels : state.law
/** Step size: the unit of time of the tables is another one. */
const stepSize = () => state.size * (state.tables ? DATA.kernels.pace : 1)

// -- runs ---------------------------------------------------------------------------------------------------

function begin(points) {
  Object.assign(state, {points: normalized(points), step: 0, ratios: [], trail: []})
  state.start = state.points
  remember()
}

function remember() {
  state.ratios.push(circleRatio(state.points))
  state.trail.push(state.points)
  if (state.trail.length > 40) state.trail.shift()
  if (state.ratios.length > HISTORY) state.ratios.shift()
}

function advance(steps) {
  if (state.training !== null) return showFrame(Math.min(state.frame + Math.ceil(steps / 4), frames() - 1))
  for (let n = 0; n < steps; n++) {
    const points = stepped(state.points, law(), stepSize())
    if (!points.flat().every(Number.isFinite)) return stop("The run blew up: make the step smaller.")
    if (state.held !== null) points[state.held] = state.points[state.held]
    state.points = points
    state.step++
    remember()
  }
}

const frames = () => DATA.trainings[state.training].steps.length

function showFrame(frame) {
  const {positions, steps} = DATA.trainings[state.training]
  state.frame = frame
  state.points = positions[frame]
  state.trail = positions.slice(Math.max(0, frame - 20), frame + 1)
  state.ratios = positions.slice(0, frame + 1).map(circleRatio)
  state.step = steps[frame]
  $("frame").value = frame
  if (frame === frames() - 1) stop()
}

function stop(message) {
  play(false)
  if (message) $("watch").textContent = message
}

function play(on) {
  if (on && state.training !== null && state.frame === frames() - 1) showFrame(0)
  state.playing = on
  $("play").textContent = on ? "Pause" : "Play"
  $("play").setAttribute("aria-pressed", on)
}

function choose(slug) {
  const preset = PRESETS[slug] ?? PRESETS[slug = "circle"]
  Object.assign(state, {law: {...MUSAT, ...preset.law}, tables: preset.tables ?? false, size: preset.size ?? 0.02,
    arrows: preset.arrows ?? 0, training: preset.training ?? null, seed: preset.seed ?? 1})
  for (const button of $("presets").children) button.setAttribute("aria-pressed", button.value === slug)
  $("watch").textContent = preset.watch
  if (state.training !== null) {
    $("frame").max = frames() - 1
    showFrame(0)
  } else begin(preset.points ?? randomStart(state.seed))
  arrange()
  play(!preset.paused && !matchMedia("(prefers-reduced-motion: reduce)").matches)
}

/** Show the controls that the mode has. */
function arrange() {
  const recorded = state.training !== null
  for (const id of ["frame-label", "release", "accuracy-box"]) $(id).hidden = !recorded
  $("start").hidden = recorded
  $("clock").textContent = recorded ? "training step" : "step"
  for (const [key] of SLIDERS) {
    const input = $(`law-${key}`), value = key in state.law ? state.law[key] : state[key]
    input.value = value
    input.nextElementSibling.textContent = value
    input.parentElement.hidden = recorded || (state.tables && key in state.law)
  }
}

// -- drawing ------------------------------------------------------------------------------------------------

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const hue = c => `oklch(${style("--light")} 0.15 ${360 * c / TOKENS})`

/** Context of a canvas at the resolution of the screen, cleared, with its width and height. */
function cleared(id) {
  const canvas = $(id), ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  context.font = `11px ${style("--font")}`
  return {context, width, height}
}

/** Map from the plane to a canvas of which the shorter side shows 2 `reach`, with its inverse. */
function plane(width, height, reach) {
  const scale = Math.min(width, height) / 2 / reach
  return {to: ([x, y]) => [width / 2 + scale * x, height / 2 - scale * y],
    from: (u, v) => [(u - width / 2) / scale, (height / 2 - v) / scale]}
}

const reach = points => Math.max(1.6, ...points.map(([x, y]) => 1.12 * Math.hypot(x, y)))

function line(context, points) {
  context.beginPath()
  points.forEach(([x, y], n) => n ? context.lineTo(x, y) : context.moveTo(x, y))
  context.stroke()
}

function dot(context, [x, y], radius, color) {
  context.fillStyle = color
  context.beginPath()
  context.arc(x, y, radius, 0, 7)
  context.fill()
}

function drawPoints() {
  const {context, width, height} = cleared("points")
  const {to} = plane(width, height, reach(state.points)), radius = width < 300 ? 7 : 10
  context.lineWidth = 1
  state.points.forEach((_, i) => {
    context.strokeStyle = hue(2 * i)
    context.globalAlpha = 0.45
    line(context, state.trail.map(points => to(points[i])))
  })
  context.globalAlpha = 1
  if (state.arrows && state.training === null) {
    const F = velocity(state.points, law()), length = state.arrows * (state.tables ? DATA.kernels.pace : 1)
    context.strokeStyle = style("--ink")
    context.lineWidth = 1.5
    state.points.forEach(([x, y], i) => {
      const [u, v] = to([x, y]), [p, q] = to([x + length * F[i][0], y + length * F[i][1]])
      const turn = Math.atan2(q - v, p - u), head = side => [p - 6 * Math.cos(turn + side), q - 6 * Math.sin(turn + side)]
      line(context, [[u, v], [p, q]])
      line(context, [head(0.5), [p, q], head(-0.5)])
    })
  }
  context.textAlign = "center"
  context.textBaseline = "middle"
  state.points.forEach((point, i) => {
    dot(context, to(point), radius, hue(2 * i))
    if (i === state.chosen && document.activeElement === $("points")) {
      context.strokeStyle = style("--ink")
      context.lineWidth = 2
      context.beginPath()
      context.arc(...to(point), radius + 2, 0, 7)
      context.stroke()
    }
    context.fillStyle = style("--card")
    context.fillText(i, ...to(point))
  })
}

function drawSums() {
  const {context, width, height} = cleared("sums"), sums = pairSums(state.points)
  const {to} = plane(width, height, 1.15 * reach(sums.map(([x, y]) => [x / 1.12, y / 1.12])))
  sums.forEach((point, a) => dot(context, to(point), width < 300 ? 2.5 : 4.5, hue(PAIRS[a].label)))
}

/** Draw curves [{values, color, name}] over `x` between the first and the last of the ticks, with a line at `rule`. */
function curves(id, x, list, ticks, label, rule, scale = v => v) {
  const {context, width, height} = cleared(id), left = 34, bottom = height - 18
  const low = ticks[0], high = ticks[ticks.length - 1]
  const place = (u, v) => [left + (width - left - 8) * (u - x[0]) / (x[x.length - 1] - x[0] || 1),
    bottom - (bottom - 8) * (scale(Math.min(high, Math.max(low, v))) - scale(low)) / (scale(high) - scale(low))]
  context.strokeStyle = style("--line")
  line(context, [place(x[0], rule), place(x[x.length - 1], rule)])
  context.fillStyle = style("--soft")
  context.textAlign = "right"
  context.textBaseline = "middle"
  for (const tick of ticks) context.fillText(+tick.toFixed(2), left - 5, place(x[0], tick)[1])
  context.textAlign = "left"
  context.fillText(+x[0].toFixed(2), left, height - 7)
  context.textAlign = "center"
  context.fillText(label, (left + width) / 2, height - 7)
  context.textAlign = "right"
  context.fillText(+x[x.length - 1].toFixed(2), width - 8, height - 7)
  list.forEach(({values, color, name}, n) => {
    context.strokeStyle = context.fillStyle = color
    context.lineWidth = 2
    line(context, values.map((value, k) => place(x[k], value)))
    if (name) context.fillText(name, width - 10, 14 + 15 * n)
  })
}

function drawCurves() {
  const last = state.training !== null ? DATA.trainings[state.training].steps.slice(0, state.ratios.length)
    : state.ratios.map((_, n) => state.step - state.ratios.length + 1 + n)
  curves("ratios", last, [{values: state.ratios, color: style("--same")}], [1, 3, 10, 30, 100],
    state.training !== null ? "training step" : "step", 1.2, Math.log)
  const r = Array.from({length: 161}, (_, n) => 0.025 * n), {between} = state.tables ? tabulated(DATA.kernels) : musat(state.law)
  const curve = same => r.map(d => between(d * d, same) * d / WEIGHTS[same])
  const values = [curve(1), curve(0)], largest = Math.max(...values[0].map(v => -v)), unit = largest > 0 ? largest : 1
  $("kernel-title").textContent = `${state.tables ? "measured force" : "Musat's force"} between two pair sums, in units of its largest attraction`
  curves("kernels", r, [{values: values[0].map(v => v / unit), color: style("--same"), name: "same class (below 0: attracts)"},
    {values: values[1].map(v => v / unit), color: style("--other"), name: "different classes (above 0: repel)"}],
    [-2, -1, 0, 1, 2, 3, 4, 5], "distance, in sizes of the embedding", 0)
}

function shape(points, ratio, count) {
  const r = points.reduce((sum, [x, y]) => sum + x * y, 0) / TOKENS
  return ratio < 1.2 ? "circle" : Math.abs(r) > 0.99 ? "line" : count < 80 ? "grid" : "no order yet"
}

function draw() {
  const ratio = circleRatio(state.points), count = imperfections(state.points)
  $("steps").textContent = state.step
  $("ratio").textContent = ratio > 99 ? "> 99" : ratio.toFixed(2)
  $("imperfections").textContent = ratio < 1.2 ? "–" : `${count} of ${PAIRS.length}`
  $("shape").textContent = shape(normalized(state.points), ratio, count)
  if (state.training !== null) $("accuracy").textContent = `${(100 * DATA.trainings[state.training].accuracy[state.frame]).toFixed(0)} %`
  drawPoints()
  drawSums()
  drawCurves()
}

// -- what the reader does -----------------------------------------------------------------------------------

function place(event) {
  const canvas = $("points"), box = canvas.getBoundingClientRect()
  return plane(canvas.clientWidth, canvas.clientHeight, reach(state.points)).from(event.clientX - box.left, event.clientY - box.top)
}

function move(token, point) {
  state.points = state.points.map((old, i) => i === token ? point : old)
  draw()
}

function release() {
  const points = state.points
  Object.assign(state, {training: null, law: {...MUSAT}, tables: false, size: 0.02})
  begin(points)
  arrange()
  $("watch").textContent = "Musat's particles from where the network was. Does the network go on to the same shape?"
  play(true)
}

function listen() {
  for (const [slug, {name}] of Object.entries(PRESETS)) {
    const button = document.createElement("button")
    Object.assign(button, {textContent: name, value: slug, onclick: () => {
      history.replaceState(null, "", `#${slug}`)
      choose(slug)
      draw()
    }})
    $("presets").append(button)
  }
  for (const [key, name, min, max, step] of SLIDERS) {
    const label = document.createElement("label"), input = document.createElement("input")
    Object.assign(input, {type: "range", id: `law-${key}`, min, max, step})
    input.oninput = () => {
      (key in state.law ? state.law : state)[key] = +input.value
      arrange()
      draw()
    }
    label.append(name, input, document.createElement("output"))
    $("law").append(label)
  }
  $("play").onclick = () => play(!state.playing)
  $("step").onclick = () => { play(false); advance(1); draw() }
  $("reset").onclick = () => { state.training !== null ? showFrame(0) : begin(state.start); draw() }
  $("start").onclick = () => { begin(randomStart(++state.seed)); draw() }
  $("release").onclick = release
  $("frame").oninput = event => { play(false); showFrame(+event.target.value); draw() }
  const canvas = $("points")
  canvas.onpointerdown = event => {
    if (state.training !== null) return
    const [x, y] = place(event), gap = state.points.map(([u, v]) => Math.hypot(u - x, v - y))
    const nearest = gap.indexOf(Math.min(...gap))
    if (gap[nearest] > 0.15 * reach(state.points)) return
    state.held = state.chosen = nearest
    canvas.setPointerCapture(event.pointerId)
  }
  canvas.onpointermove = event => { if (state.held !== null) move(state.held, place(event)) }
  canvas.onpointerup = canvas.onpointercancel = () => { state.held = null }
  canvas.onkeydown = event => {
    const way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key]
    if (!way || state.training !== null) return
    event.preventDefault()
    const [x, y] = state.points[state.chosen]
    if (event.shiftKey) move(state.chosen, [x + 0.06 * way[0], y + 0.06 * way[1]])
    else state.chosen = (state.chosen + way[0] - way[1] + TOKENS) % TOKENS
    draw()
  }
  canvas.onfocus = canvas.onblur = () => draw()
  addEventListener("resize", draw)
  addEventListener("hashchange", () => { choose(location.hash.slice(1)); draw() })
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
}

function tick() {
  if (state.playing) {
    advance(+$("speed").value)
    draw()
  }
  requestAnimationFrame(tick)
}

listen()
choose(location.hash.slice(1))
draw()
tick()
