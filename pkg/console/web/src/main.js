// The page: its views, what all of them share, and the keyboard.
import { defaultNamespace } from './api.js'
import { placeOfReference } from './discover.js'
import { h, show, update } from './dom.js'
import { closePanel, openPanel } from './panel.js'
import { refusals } from './refusals.js'
import { collection, lookIn } from './store.js'
import { cluster } from './views/cluster.js'
import { events } from './views/events.js'
import { resources } from './views/resources.js'
import { services } from './views/services.js'
import { workloads } from './views/workloads.js'

const views = { Cluster: cluster, Workloads: workloads, Services: services, Events: events, Resources: resources }
const main = document.getElementById('main')
const problems = document.getElementById('problems')
const namespaceSelect = document.getElementById('namespace')
const namespaceInput = document.getElementById('namespace-name')
const find = document.getElementById('find')
const namespaces = collection('namespaces')

// page is what views know of the rest of the page.
const page = {
  namespace: '',
  finds: (text) => text.toLowerCase().includes(find.value.trim().toLowerCase()),
  inNamespace: (o) => !page.namespace || o.metadata.namespace === page.namespace,
  wanted: (o) => page.inNamespace(o) && page.finds(o.metadata.name),
  place: (o) => (page.namespace || !o.metadata.namespace ? '' : `${o.metadata.namespace}/`), // before its name
  open: openPanel,
  openReference: async ({ apiVersion, kind, name, namespace }) => {
    const where = await placeOfReference({ apiVersion, kind }).catch(() => undefined)
    openPanel({ kind, metadata: { name, namespace: where?.cluster ? undefined : namespace } }, where)
  },
  redraw: () => later(),
}

let view
let unsubscribe = []
let drawing // the timer of the next drawing
let cost = 0 // milliseconds that the last one took

// later draws soon: once for all that has changed until then, and so seldom that most of the time is the user's.
function later() {
  drawing ??= setTimeout(draw, Math.min(50 + 4 * cost, 2000))
}

function draw() {
  clearTimeout(drawing)
  drawing = undefined
  const start = performance.now()
  // A part of the picture would mislead: pods without their owners, a Service without its endpoints.
  if (view.sources.every((s) => s.known)) view.draw()
  else update(view.root, h('p', { class: 'quiet' }, 'One moment …'))
  cost = performance.now() - start
  const said = refusals([...new Set([namespaces, ...view.sources])])
  if (
    problems.dataset.said !==
    said
      .flat()
      .map((e) => e && e.textContent)
      .join()
  ) {
    // or it would be read out each time
    problems.dataset.said = said
      .flat()
      .map((e) => e && e.textContent)
      .join()
    show(problems, said)
  }
}

function choose(name) {
  view?.end?.()
  for (const f of unsubscribe) f()
  const lost = main.contains(document.activeElement)
  const root = h('div', {})
  main.replaceChildren(root)
  if (lost) main.focus()
  view = { root, ...views[name](root, page) }
  unsubscribe = view.sources.map((s) => s.subscribe(later))
  draw()
  for (const b of document.querySelectorAll('#views button')) {
    if (b.textContent === name) b.setAttribute('aria-current', 'page')
    else b.removeAttribute('aria-current')
  }
  document.title = `${name} – Bonsai console`
}

document
  .getElementById('views')
  .append(...Object.keys(views).map((name) => h('button', { onclick: () => choose(name) }, name)))

function chooseNamespace(name) {
  page.namespace = name
  lookIn(name)
  draw()
}

// Who may not list namespaces writes the name of one.
namespaces.subscribe(() => {
  const names = namespaces.all.map((n) => n.metadata.name).sort()
  const refused = namespaces.error?.status === 403
  namespaceSelect.hidden = refused
  if (refused) {
    if (namespaceInput.hidden) chooseNamespace((namespaceInput.value = page.namespace || defaultNamespace))
  } else if (!namespaces.error) {
    update(
      namespaceSelect,
      h('option', { value: '' }, 'all namespaces'),
      names.map((n) => h('option', { value: n, 'data-key': n }, n)),
    )
    namespaceSelect.value = names.includes(page.namespace) ? page.namespace : ''
    if (namespaceSelect.value !== page.namespace) chooseNamespace(namespaceSelect.value)
  }
  namespaceInput.hidden = !refused
  later()
})
for (const e of [namespaceSelect, namespaceInput]) e.addEventListener('change', () => chooseNamespace(e.value.trim()))
find.addEventListener('input', later)

// Keys: / finds, 1 to 5 choose a view, for nobody who is writing. Escape closes the details.
document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape') closePanel(e)
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return
  if (e.key === '/') {
    e.preventDefault()
    find.focus()
  }
  const name = Object.keys(views)[Number(e.key) - 1]
  if (name) choose(name)
})

choose('Cluster')
