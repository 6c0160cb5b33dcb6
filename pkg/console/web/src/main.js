// The page: its views, what all of them share, and the keyboard.
import { h, show } from './dom.js'
import { openPanel } from './panel.js'
import { collection } from './store.js'
import { cluster } from './views/cluster.js'
import { events } from './views/events.js'
import { resources } from './views/resources.js'
import { services } from './views/services.js'
import { workloads } from './views/workloads.js'

const views = { Cluster: cluster, Workloads: workloads, Services: services, Events: events, Resources: resources }
const main = document.getElementById('main')
const panel = document.getElementById('panel')
const namespaceSelect = document.getElementById('namespace')
const find = document.getElementById('find')

// page is what views know of the rest of the page.
const page = {
  namespace: '',
  finds: (text) => text.toLowerCase().includes(find.value.trim().toLowerCase()),
  inNamespace: (o) => !page.namespace || o.metadata.namespace === page.namespace,
  wanted: (o) => page.inNamespace(o) && page.finds(o.metadata.name),
  open: (o, where) => openPanel(panel, o, where),
  // problem says what could not be read. What the user may not see is said, not hidden as if it were not there.
  problem: (...sources) => {
    const failed = sources.filter((s) => s.error)
    return failed.length > 0 && h('p', { class: 'problem', role: 'alert' }, failed.map((s) => `${s.kind.resource}: ${s.error} `))
  },
}

let view
let unsubscribe = []

function choose(name) {
  view?.end?.()
  for (const f of unsubscribe) f()
  const root = h('div', {})
  show(main, root)
  view = views[name](root, page)
  unsubscribe = view.sources.map((s) => s.subscribe(() => view.draw()))
  view.draw()
  for (const b of document.querySelectorAll('#views button')) b.setAttribute('aria-current', String(b.textContent === name))
  document.title = `${name} – Bonsai console`
}

document.getElementById('views').append(...Object.keys(views).map((name) => h('button', { onclick: () => choose(name) }, name)))

const namespaces = collection('namespaces')
namespaces.subscribe(() => {
  const names = namespaces.all.map((n) => n.metadata.name).sort()
  show(namespaceSelect, h('option', { value: '' }, 'all'), names.map((n) => h('option', { value: n }, n)))
  namespaceSelect.value = names.includes(page.namespace) ? page.namespace : ''
  page.namespace = namespaceSelect.value
  document.getElementById('connection').textContent = namespaces.error ? `⚠ ${namespaces.error}` : ''
})
namespaceSelect.addEventListener('change', () => {
  page.namespace = namespaceSelect.value
  view.draw()
})
find.addEventListener('input', () => view.draw())

// Keys: / finds, 1 to 5 choose a view. They are for nobody who is writing.
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return
  if (e.key === '/') {
    e.preventDefault()
    find.focus()
  }
  const name = Object.keys(views)[Number(e.key) - 1]
  if (name) choose(name)
})

choose('Cluster')
