// The page's side of the bridge: buttons become commands, and what the session tells becomes text.
"use strict"
window.grokphys = (() => {
  const at = id => document.getElementById(id)
  let bridge = null, fading = 0, telling = 0, awaited = "", written = 0
  const opened = new Set()

  function command(name, value = null) {
    if (bridge !== null) bridge.command = [bridge.command[0] + 1, name, value]
  }

  // Tell the session which frame is on screen, once the browser has painted it; a hidden page paints none,
  // so its session rests.
  function acknowledge() {
    const frame = bridge.frame
    requestAnimationFrame(() => setTimeout(() => { bridge.shown = Math.max(bridge.shown, frame) }, 0))
  }

  // A sentence on what is done goes by itself; all others stay as long as they hold.
  function say(kind, sentence) {
    const line = at("message")
    clearTimeout(fading)
    if (kind === "done") fading = setTimeout(() => say("note", ""), 8000)
    line.className = kind
    at("sentence").textContent = sentence
    at("cancel").hidden = kind !== "progress"
    at("dismiss").hidden = kind === "progress"
    line.hidden = sentence === ""
  }

  function readouts() {
    const list = at("status"), values = bridge.status
    const ids = values.map(([name]) => "status-" + name.replaceAll(" ", "-"))
    if ([...list.querySelectorAll("dd")].map(item => item.id).join() !== ids.join()) {
      list.replaceChildren(...values.map(([name], k) => {
        const group = document.createElement("div")
        const term = document.createElement("dt"), value = document.createElement("dd")
        term.textContent = name
        const key = name.replace(/ \d+$/, "")
        if (key in terms()) term.append(why(key))
        value.id = ids[k]
        group.append(term, value)
        return group
      }))
    }
    // A value keeps the room of its longest words, so that the ones beside it stand still.
    values.forEach(([, value], k) => {
      const item = at(ids[k]), room = Math.max(4, value.length, parseInt(item.style.minWidth) || 0)
      item.textContent = value
      item.style.minWidth = room + "ch"
    })
  }

  function transport() {
    const play = at("play"), playing = bridge.playing === 1
    play.textContent = playing ? "Pause" : "Play"
    play.dataset.command = playing ? "pause" : "play"
    play.setAttribute("aria-pressed", String(playing))
    at("status").setAttribute("aria-live", playing ? "off" : "polite")  // no flood of numbers while it plays
    const speeds = at("speed").dataset.speeds.split(" ").map(Number)
    at("speed").value = speeds.findIndex(speed => speed >= bridge.speed)
    at("speed-value").textContent = bridge.speed
  }

  // A view that is opened for the first time may take seconds to make: say so at once.
  function expect(view) {
    awaited = view === bridge?.view ? "" : view
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.setAttribute("aria-busy", String(tab.dataset.view === awaited))
      if (tab.dataset.view === awaited) at("verdict").textContent = `Opening ${tab.textContent} …`
    }
    document.body.classList.toggle("awaiting", awaited !== "")
  }

  function tabs() {
    opened.add(bridge.view)
    expect("")
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const chosen = tab.dataset.view === bridge.view
      tab.setAttribute("aria-selected", String(chosen))
      tab.tabIndex = chosen ? 0 : -1
    }
    for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== bridge.view
  }

  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches
  const terms = () => terms.read ??= JSON.parse(at("terms").textContent)

  // A (?) that says what words mean, by mouse, touch and keyboard.
  function why(...words) {
    const button = document.createElement("button")
    button.className = "why"
    button.textContent = "?"
    button.setAttribute("aria-label", `What is ${words.join(", ")}?`)
    button.addEventListener("click", () => explain(button, words))
    return button
  }

  function explain(button, words) {
    const box = at("term")
    box.replaceChildren(...words.map(word => {
      const line = document.createElement("p"), name = document.createElement("b"), source = document.createElement("cite")
      name.textContent = word
      source.textContent = terms()[word][1]
      line.append(name, " " + terms()[word][0] + " ", source)
      return line
    }))
    box.showPopover()
    const [left, top] = beside(button, box.offsetWidth, box.offsetHeight)
    box.style.left = Math.max(8, Math.min(left, innerWidth - box.offsetWidth - 8)) + "px"
    box.style.top = Math.max(8, Math.min(top, innerHeight - box.offsetHeight - 8)) + "px"
  }

  // Where a box of some size does not cover the values that it explains: below the headline of the readouts; beside
  // the controls if there is room, else above their heading.
  function beside(button, width, height) {
    const {left, top} = button.getBoundingClientRect(), readouts = button.closest("#status")
    if (readouts !== null) return [left, at("watch").getBoundingClientRect().bottom + 8]
    const {right} = (button.getRootNode().host ?? button).getBoundingClientRect()
    return right + 24 + width < innerWidth ? [right + 24, top] : [left, top - height - 8]
  }

  // Those who listen hear the sentence at most once in two seconds.
  function tell() {
    telling = 0
    if (at("told").textContent !== at("verdict").textContent) at("told").textContent = at("verdict").textContent
  }

  // Show a sentence in the room of the longest one so far in this view, so that the figures below stand still.
  function steady(line, text) {
    const place = `${bridge.view} ${innerWidth}`
    if (line.dataset.place !== place) line.style.minHeight = ""
    line.dataset.place = place
    line.textContent = text
    line.style.minHeight = line.offsetHeight + "px"
  }

  function seen() {
    // Until the first one, what the page came with; and a view that is awaited is all that is said.
    if (bridge.verdict !== "" && awaited === "") steady(at("verdict"), bridge.verdict)
    telling ||= setTimeout(tell, 2000)
    steady(at("watch"), bridge.watch)
    for (const button of document.querySelectorAll("[data-preset]")) {
      const view = button.closest("[data-of]").dataset.of
      button.setAttribute("aria-pressed", String(view === bridge.view && button.dataset.preset === bridge.preset))
    }
  }

  function script() {
    at("script-text").textContent = bridge.script[1]
    at("script").showModal()
    const copied = navigator.clipboard?.writeText(bridge.script[1]) ?? Promise.reject()
    copied.then(() => { at("copied").textContent = "Copied to the clipboard." },
                () => { at("copied").textContent = "Select the text to copy it." })
  }

  function download() {
    const [, name, type, bytes] = bridge.download
    const link = document.createElement("a")
    link.href = URL.createObjectURL(new Blob([bytes], {type}))
    link.download = name
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10000)
  }

  // Name controls for those who do not see them: Bokeh writes titles beside them, which do not belong to them.
  // The arrows of a number field are keys there, and no stops of their own.
  function nameControls() {
    for (const root of Bokeh.index.roots) {
      for (const {shadow_el, model} of root.owner.query(found => found.shadow_el !== undefined)) {
        for (const control of shadow_el.querySelectorAll(".noUi-handle, input[type=checkbox]")) {
          control.ariaLabel ??= model.title ?? model.label
        }
        for (const arrow of shadow_el.querySelectorAll(".bk-spin-btn")) arrow.tabIndex = -1
        for (const surface of shadow_el.querySelectorAll(".bk-events")) surface.removeAttribute("tabindex")
        if (model.type === "Spinner") watchLimits(shadow_el.querySelector("input.bk-input"), model)
      }
    }
  }

  // Bokeh lets a number beyond the limits stand in its field, and tells no one.
  // Nor does it tell that a refused number was corrected to the one in force.
  function watchLimits(input, model) {
    if (input === null || input.dataset.watched) return
    input.dataset.watched = "yes"
    let typing = false
    const committed = () => {
      if (typing && input.value !== "" && Number(input.value) === model.value) command("accepted")
      typing = false
    }
    input.addEventListener("input", event => {
      typing = true
      event.stopImmediatePropagation()  // Bokeh would drop the point of 3.7, which is 37 then
    }, true)
    input.addEventListener("keydown", event => { if (event.key === "Enter") committed() })
    input.addEventListener("blur", committed)
    input.addEventListener("change", event => {
      const text = input.value.trim(), typed = Number(text), {title, low, high, mode} = model
      const fits = (mode !== "int" || /^[-+]?\d+$/.test(text)) && typed >= low && typed <= high
      if (text === "" || fits) return
      event.stopImmediatePropagation()
      typing = false
      command("refused", `${title} must be a ${mode === "int" ? "whole " : ""}number from ${low} to ${high}, got ${text}`)
      input.value = String(model.value)
    }, true)
  }

  // Height of the controls of the view on the stage, which come last on a narrow page.
  function controlsHeight() {
    for (const root of Bokeh.index.roots) {
      for (const view of root.owner.query(found => found.model.tags?.includes("controls"))) {
        if (view.el.offsetHeight > 0) return view.el.offsetHeight + 60
      }
    }
    return innerHeight
  }

  // Let a file be chosen, and send it to the server, which keeps it as long as this page lives.
  function upload() {
    const picker = document.createElement("input")
    picker.type = "file"
    picker.accept = ".h5,.hdf5,.partial"
    picker.addEventListener("change", () => { if (picker.files.length > 0) send(picker.files[0]) })
    picker.click()
  }

  async function send(file) {
    if (file.size > 2 ** 28) {
      say("error", `${file.name} must have at most ${2 ** 28} bytes to be uploaded, got ${file.size}; ` +
        "start the explorer with the file as an argument instead")
      return
    }
    say("note", `Uploading ${file.name} …`)
    const address = new URL(location.href)
    address.pathname += "upload"
    address.searchParams.set("name", file.name)
    try {
      const answer = await fetch(address, {method: "POST", body: file}), text = await answer.text()
      say(answer.ok ? "note" : "error", answer.ok ? "" : text.trim())
      if (answer.ok) command("uploaded", [text, file.name])
    } catch {
      say("error", `${file.name} could not be sent to the server`)
    }
  }

  // The session has gone with its server, or with the connection: say so, and come back to the state of the link
  // when the server is back. One that was started again has another token, and answers to another link.
  function lost() {
    say("error", "The connection to the server is lost. This page reloads as soon as the server is back.")
    document.body.classList.add("lost")
    bridge = null
    const asking = setInterval(() => fetch(location.href, {method: "HEAD", cache: "no-store"}).then(answer => {
      clearInterval(asking)
      if (answer.status !== 403) location.reload()
      else say("error", "The server was restarted: open the link that it has printed.")
    }, () => {}), 1000)
  }

  // Write the state into the address, while it changes all the time at most once in two seconds.
  function address(now = false) {
    const state = "#" + bridge.link, rests = now || bridge.playing !== 1 || performance.now() - written > 2000
    if (!rests || state === "#" || location.hash === state) return
    written = performance.now()
    history.replaceState(null, "", state)
  }

  // Open a view: the first time it plays, unless files wait, or less motion is wanted.
  function open(view) {
    expect(view)
    const first = document.querySelector(`[data-of=${view}] [data-preset]`)
    const plays = !opened.has(view) && at("play").dataset.plays === "1" && !calm()
    if (plays) command("preset", `${view}/${first.dataset.preset}`)
    else command("view", view)
    return plays
  }

  // Begin as a new page without a link does: playing, which the button says at once.
  function begin() {
    const play = at("play")
    if (play.dataset.plays !== "1") return
    opened.clear()
    if (open(document.querySelector("[role=tab]").dataset.view)) {
      Object.assign(play, {textContent: "Pause"}).dataset.command = "pause"
    }
  }

  function connect(model) {
    bridge = model
    const listen = (name, react) => {
      model.properties[name].change.connect(() => { if (bridge !== null) react() })
    }
    listen("frame", acknowledge)
    listen("status", readouts)
    listen("playing", transport)
    listen("speed", transport)
    listen("view", tabs)
    listen("script", script)
    listen("download", download)
    listen("verdict", seen)
    listen("watch", seen)
    listen("preset", seen)
    listen("link", () => address())
    listen("lacks", () => { if (bridge.lacks !== "") say("note", bridge.lacks) })
    listen("playing", () => address())
    listen("message", () => {
      say(bridge.message[1], bridge.message[2])
      if (bridge.message[1] === "error") {
        transport()
        expect("")
        seen()
      }
    })
    at("play").disabled = false
    readouts()
    transport()
    tabs()
    if (bridge.message[2] !== "") say(bridge.message[1], bridge.message[2])  // of a file that could not be opened
    command("ready")
    nameControls()
    setInterval(nameControls, 300)  // they come with their views, and are made anew when their ends change
    seen()
    if (location.hash.length > 1) command("open", location.hash.slice(1))
    else begin()
    addEventListener("hashchange", () => { if (location.hash !== "#" + bridge?.link) command("open", location.hash.slice(1)) })
    document.body.classList.add("ready")
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-command]")) {
      button.addEventListener("click", () => command(button.dataset.command))
    }
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.addEventListener("click", () => open(tab.dataset.view))
    }
    const nav = document.querySelector("[role=tablist]")
    nav.addEventListener("keydown", event => {
      const all = [...nav.children], from = all.indexOf(document.activeElement)
      const to = {ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: all.length - 1}[event.key]
      if (to === undefined) return
      event.preventDefault()
      const tab = all[(to + all.length) % all.length]
      tab.focus()
      tab.click()
    })
    for (const button of document.querySelectorAll("[data-preset]")) {
      const name = `${button.closest("[data-of]").dataset.of}/${button.dataset.preset}`
      button.addEventListener("click", () => command("preset", name))
    }
    for (const button of document.querySelectorAll("[data-upload]")) button.addEventListener("click", upload)
    at("link").addEventListener("click", () => {
      address(true)
      const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject()
      const shared = "It holds the access token of this server: to others, give only what begins with #, which opens " +
        "this state at the end of the address of their own explorer. " + bridge.lacks
      copied.then(() => say("done", `The address is copied. ${shared}`),
                  () => say("note", `Copy the address of this page from the browser. ${shared}`))
    })
    at("stage").addEventListener("keydown", event => {
      if (event.target !== at("stage") || event.ctrlKey || event.metaKey || event.altKey) return
      if (!event.key.startsWith("Arrow") && event.key !== "Enter") return
      event.preventDefault()
      command("key", (event.shiftKey ? "Shift+" : "") + event.key)
    })
    // On a narrow page the controls stand below the figures: a button leads there, and back.
    at("controls").addEventListener("click", () => {
      const down = scrollY < 40 || at("controls").dataset.to !== "top"
      at("controls").dataset.to = down ? "top" : ""
      at("controls").textContent = down ? "Figures" : "Controls"
      const end = at("stage").getBoundingClientRect().bottom + scrollY
      scrollTo({top: down ? Math.max(0, end - controlsHeight()) : at("stage").offsetTop - 10})
    })
    // Keys belong to the stage after a click or a drag in a figure, too; only those who came by key see its frame.
    at("stage").addEventListener("pointerdown", event => {
      if (!event.composedPath()[0].closest?.(".bk-events")) return
      at("stage").classList.add("pointed")
      at("stage").focus({preventScroll: true})
    })
    document.addEventListener("keydown", event => { if (event.key === "Tab") at("stage").classList.remove("pointed") })
    at("dismiss").addEventListener("click", () => say("note", ""))
    document.addEventListener("dragover", event => { event.preventDefault() })
    document.addEventListener("drop", event => {
      event.preventDefault()
      if (event.dataTransfer.files.length > 0) send(event.dataTransfer.files[0])
    })
    const speed = at("speed"), speeds = speed.dataset.speeds.split(" ").map(Number)
    speed.addEventListener("input", () => command("speed", speeds[speed.value]))
    document.addEventListener("keydown", event => {
      const typing = event.composedPath()[0]?.matches?.("input, select, textarea, button, summary, [tabindex]:not(#stage)")
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === " ") { event.preventDefault(); at("play").click() }
      if (event.key === ".") at("step").click()
    })
  }, {once: true})  // a polyfill among the libraries fires the event again

  return {connect, lost, upload, explain: (button, words) => explain(button, words.split("|"))}
})()
