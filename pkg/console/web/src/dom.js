// Elements of the page. All text goes in as text, never as markup: names and messages are other people's.

// h makes an element: h('button', { class: 'x', onclick: f }, 'text', child, [children], null).
export function h(tag, props = {}, ...children) {
  const e = tag === 'svg' || tag === 'path' || tag === 'rect' || tag === 'text' || tag === 'title' || tag === 'line'
    ? document.createElementNS('http://www.w3.org/2000/svg', tag)
    : document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value)
    else e.setAttribute(name, value === true ? '' : value)
  }
  e.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false))
  return e
}

// show replaces what an element holds, and keeps the focus on the element with the same data-key.
export function show(parent, ...children) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined
  parent.replaceChildren(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false))
  if (key) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus()
}
