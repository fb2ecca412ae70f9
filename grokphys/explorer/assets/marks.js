// What moves in every frame, drawn in a fraction of the time that Bokeh takes for it by itself.
Object.assign(window.grokphys, (() => {
  const MANY = 200, LAYERS = 4
  const triangle = (ctx, x, y, r, up) => {
    const low = up * r / Math.sqrt(3)
    ctx.moveTo(x - r, y + low)
    ctx.lineTo(x + r, y + low)
    ctx.lineTo(x, y - 2 * low)
    ctx.closePath()
  }
  const shapes = {
    circle: (ctx, x, y, r) => { ctx.moveTo(x + r, y); ctx.arc(x, y, r, 0, 2 * Math.PI) },
    square: (ctx, x, y, r) => ctx.rect(x - r, y - r, 2 * r, 2 * r),
    triangle: (ctx, x, y, r) => triangle(ctx, x, y, r, 1),
    inverted_triangle: (ctx, x, y, r) => triangle(ctx, x, y, r, -1),
    diamond: (ctx, x, y, r) => {
      ctx.moveTo(x, y + r)
      ctx.lineTo(x + r / 1.5, y)
      ctx.lineTo(x, y - r)
      ctx.lineTo(x - r / 1.5, y)
      ctx.closePath()
    },
  }

  // Bokeh fills and strokes each marker by itself, in 25 ms for 2080. Here markers of one look are one path, in
  // a few layers, so that no class hides all others. Few markers, and kinds that are not known here, are Bokeh's.
  function gather() {
    const view = Bokeh.Models.get("Scatter").prototype.default_view.prototype, each = view._paint
    view._paint = function (ctx, indices, data) {
      const {sx, sy, size, marker, fill_color, line_color, visuals} = this
      const known = [sx, sy, size, marker, fill_color, line_color, visuals?.fill, visuals?.line].every(Boolean)
      if (data !== undefined || indices.length < MANY || !known) return each.call(this, ctx, indices, data)
      if (!indices.every(i => marker.get(i) in shapes)) return each.call(this, ctx, indices, data)
      const depth = Math.ceil(indices.length / LAYERS)
      for (let from = 0; from < indices.length; from += depth) {
        const alike = new Map()
        for (const i of indices.slice(from, from + depth)) {
          if (!isFinite(sx[i] + sy[i])) continue
          const look = `${marker.get(i)} ${fill_color.get(i)} ${line_color.get(i)}`
          if (!alike.has(look)) alike.set(look, [])
          alike.get(look).push(i)
        }
        for (const group of alike.values()) {
          const shape = shapes[marker.get(group[0])]
          ctx.beginPath()
          for (const i of group) shape(ctx, sx[i], sy[i], size.get(i) / 2)
          visuals.fill.apply(ctx, group[0])
          visuals.line.apply(ctx, group[0])
        }
      }
    }
  }

  // A token: a disc with its number, in one glyph. A glyph of texts measures each of them anew in every frame.
  const font = getComputedStyle(document.documentElement).getPropertyValue("--font") || "sans-serif"

  function token(source, {ctx, i, r, visuals}) {
    ctx.arc(0, 0, r, 0, 2 * Math.PI)
    visuals.fill.apply(ctx, i)
    visuals.line.apply(ctx, i)
    ctx.fillStyle = source.data.ink[i]
    ctx.font = `bold 11px ${font}`
    ctx.textAlign = "center"
    ctx.textBaseline = "middle"
    ctx.fillText(source.data.name[i], 0, 0.5)
  }

  // Add the way to where tokens are now to their trails, which the server does not send; the oldest part goes.
  function trail(tokens, trails) {
    const {x, y} = tokens.data, {x0, y0, x1, y1} = trails.data, last = x0.length - x.length
    for (const column of [x0, y0, x1, y1]) column.copyWithin(0, x.length)
    for (const [begin, end, now] of [[x0, x1, x], [y0, y1, y]]) {
      for (let k = 0; k < x.length; k++) {
        begin[last + k] = end[last + k]
        end[last + k] = now[k]
      }
    }
    trails.change.emit()
  }

  // Bokeh sends points that are dragged only once they are let go. Here they go 20 times a second, where they moved.
  let sent = null, later = 0, sending = false

  function held(source, down) {
    sent = down ? source : null
    clearTimeout(later)
    later = 0
  }

  function dragged(source) {
    if (source !== sent || later || sending) return
    later = setTimeout(() => {
      later = 0
      sending = true
      source.setv({data: source.data}, {check_eq: false})
      sending = false
    }, 50)
  }

  // Keep units equal on both axes of a plane around the origin, for every size of the page.
  function square(plot) {
    if (plot.properties.inner_height.is_unset || !(plot.inner_height > 0)) return
    const half = plot.y_range.end * plot.inner_width / plot.inner_height
    plot.x_range.setv({start: -half, end: half})
  }

  document.addEventListener("DOMContentLoaded", gather, {once: true})
  return {token, trail, held, dragged, square}
})())
