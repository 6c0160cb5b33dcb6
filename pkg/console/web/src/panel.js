// The details of one object, in a panel beside the view, or over it where there is no room.
import { h, show } from './dom.js'
import { events } from './details/events.js'
import { life } from './details/life.js'
import { log } from './details/log.js'
import { why } from './details/why.js'
import { yaml } from './details/yaml.js'
import { kinds } from './store.js'

const panel = document.getElementById('panel')
const main = document.getElementById('main')
const behind = [...document.body.children].filter((e) => e !== panel)
const narrow = matchMedia('(max-width: 700px)') // as in style.css: the panel covers the page
let leave // ends what the open details do

narrow.addEventListener('change', cover)

// cover keeps the focus out of what lies behind the panel.
function cover() {
  for (const e of behind) e.inert = !panel.hidden && narrow.matches
}

// placeOf returns where an object's kind is served.
const placeOf = (o) => Object.values(kinds).find((k) => k.kind === o.kind)

// openPanel shows an object. where says where its kind is served, if it is none of the usual ones.
export function openPanel(o, where = placeOf(o)) {
  const from = panel.contains(document.activeElement) ? panel.dataset.from : document.activeElement?.dataset.key
  leave?.()
  const tabs = [
    ['Why', why],
    ...(o.kind === 'Pod'
      ? [
          ['Life', life],
          ['Log', log],
        ]
      : []),
    ['Events', events],
    ['YAML', yaml],
  ]
  const body = h('div', { class: 'body', role: 'tabpanel', id: 'details', tabindex: '-1' })
  let stop = new AbortController()
  const buttons = tabs.map(([name, f]) =>
    h('button', { role: 'tab', id: `tab-${name}`, 'aria-controls': 'details', onclick: () => choose(name, f) }, name),
  )
  const choose = (name, f) => {
    stop.abort()
    stop = new AbortController()
    const { signal } = stop
    for (const b of buttons) {
      b.setAttribute('aria-selected', String(b.textContent === name))
      b.tabIndex = b.textContent === name ? 0 : -1
    }
    body.setAttribute('aria-labelledby', `tab-${name}`)
    show(body, h('p', { class: 'quiet' }, 'One moment …'))
    if (!where)
      return show(body, h('p', { class: 'problem', role: 'alert' }, `The server does not serve the kind ${o.kind}.`))
    f({ o, where, body, signal }).catch((e) => {
      if (!signal.aborted) show(body, h('p', { class: 'problem', role: 'alert' }, e.message))
    })
  }
  leave = () => stop.abort()
  panel.dataset.from = from ?? ''
  show(
    panel,
    h(
      'div',
      { class: 'bar' },
      h(
        'h2',
        {},
        h('span', { class: 'kind' }, o.kind),
        ' ',
        o.metadata.namespace && [o.metadata.namespace, '/'],
        h('strong', {}, o.metadata.name),
      ),
      h('button', { 'aria-label': 'Close', onclick: () => closePanel() }, '✕'),
    ),
    h('div', { role: 'tablist', 'aria-label': 'Details', class: 'tabs', onkeydown: (e) => turn(e, buttons) }, buttons),
    body,
  )
  panel.hidden = false
  cover()
  choose(...tabs[0])
  buttons[0].focus()
}

// turn goes to the next tab, or the one before, by the arrow keys.
function turn(e, buttons) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]
  if (!step) return
  const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length]
  next.click()
  next.focus()
}

// closePanel closes the details, and leads the focus back to the object that they were of. Escape in a text that has
// been changed leaves the text alone at first.
export function closePanel(event) {
  if (panel.hidden) return
  if (event?.target.tagName === 'TEXTAREA' && event.target.value !== event.target.defaultValue) {
    panel.querySelector('[aria-selected="true"]').focus()
    return
  }
  leave?.()
  leave = undefined
  const inside = panel.contains(document.activeElement)
  panel.hidden = true
  panel.replaceChildren()
  cover()
  if (!inside) return
  const back = panel.dataset.from && main.querySelector(`[data-key="${CSS.escape(panel.dataset.from)}"]`)
  ;(back || main).focus()
}
