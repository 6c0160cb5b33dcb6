// Elements of the page. All text goes in as text, never as markup: names and messages are other people's.
import { visible } from './text.js'

const drawings = new Set(['svg', 'path', 'rect', 'text', 'title', 'line'])
const spoken = new Set(['title', 'aria-label', 'placeholder']) // attributes that people read or hear
const handlers = new WeakMap() // of elements, by the name of the event

// h makes an element: h('button', { class: 'x', onclick: f }, 'text', child, [children], null).
export function h(tag, props = {}, ...children) {
  const e = drawings.has(tag)
    ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) listen(e, name.slice(2), value)
    else e.setAttribute(name, value === true ? '' : spoken.has(name) ? visible(String(value)) : value)
  }
  e.append(...present(children))
  return e
}

// present flattens children and leaves out those that are none.
function present(children) {
  return children
    .flat(4)
    .filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(visible(String(c)))))
}

// listen calls the handler that an element has at the time of the event: update may give it another.
function listen(e, event, f) {
  if (!handlers.has(e)) handlers.set(e, {})
  const own = handlers.get(e)
  if (!(event in own)) e.addEventListener(event, (x) => own[event]?.(x))
  own[event] = f
}

// show replaces what an element holds.
export function show(parent, ...children) {
  parent.replaceChildren(...present(children))
}

// update changes what an element holds into the children given, and keeps elements that stay: their focus, what is
// selected in them, how far they are scrolled, and the click that is under way. Siblings with a data-key, or around an
// element that has one, are told apart by it. The children given must not be used afterwards.
export function update(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined
  reconcile(parent, present(children))
  if (focused && document.activeElement?.dataset.key !== focused) {
    parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }
}

const keyOf = (n) => n.dataset?.key ?? n.firstElementChild?.dataset?.key

function reconcile(parent, wanted) {
  const keyed = new Map()
  for (const n of parent.childNodes) if (keyOf(n)) keyed.set(keyOf(n), n)
  const keys = new Set(wanted.map(keyOf))
  let at = parent.firstChild
  for (const w of wanted) {
    while (at && keyOf(at) && !keys.has(keyOf(at))) at = removed(at) // its object has gone
    const key = keyOf(w)
    const old = key ? keyed.get(key) : at && !keyOf(at) ? at : undefined
    if (!old || old.nodeName !== w.nodeName) {
      parent.insertBefore(w, at)
      continue
    }
    keyed.delete(key)
    if (old === at) at = at.nextSibling
    else parent.insertBefore(old, at)
    become(old, w)
  }
  while (at) at = removed(at)
}

function removed(n) {
  const next = n.nextSibling
  n.remove()
  return next
}

// become gives a node what another of its kind has.
function become(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data
    return
  }
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name)
  for (const { name, value } of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  const own = handlers.get(old)
  for (const event of Object.keys(own ?? {})) own[event] = undefined
  for (const [event, f] of Object.entries(handlers.get(wanted) ?? {})) listen(old, event, f)
  reconcile(old, [...wanted.childNodes])
}
