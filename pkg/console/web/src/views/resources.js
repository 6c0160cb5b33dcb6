// Objects of any kind as tables with the columns that the server says, custom resources included.
import { h, show } from '../dom.js'
import { getJSON, pathOf } from '../api.js'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const refresh = 5000 // milliseconds: tables of any kind are read again, not watched

export function resources(root, page) {
  let served = []
  let chosen
  let problem = ''
  let table
  let shown = 0 // counts choices, so that a late answer to an earlier one is dropped
  const draw = () => {
    const select = h('select', { 'aria-label': 'Kind', 'data-key': 'kind', onchange: (e) => choose(served[e.target.value]) },
      served.map((r, i) => h('option', { value: i, selected: r === chosen }, `${r.resource}${r.group ? '.' + r.group : ''}`)))
    show(root, problem && h('p', { class: 'problem', role: 'alert' }, problem), h('p', {}, select), table && h('div', { class: 'scroll' }, rows()))
  }
  const rows = () => {
    const columns = table.columnDefinitions.map((c, i) => ({ ...c, i })).filter((c) => c.priority === 0)
    const items = (table.rows ?? []).filter((r) => page.finds(r.object.metadata.name))
    return h('table', {}, h('thead', {}, h('tr', {}, !chosen.cluster && h('th', { scope: 'col' }, 'Namespace'),
      columns.map((c) => h('th', { scope: 'col', title: c.description }, c.name)))),
    h('tbody', {}, items.map((r) => h('tr', {}, !chosen.cluster && h('td', {}, r.object.metadata.namespace ?? ''),
      columns.map((c, n) => h('td', {}, n === 0
        ? h('button', { class: 'link', 'data-key': r.object.metadata.uid,
          onclick: () => page.open({ kind: chosen.kind, metadata: r.object.metadata }, chosen) }, String(r.cells[c.i]))
        : String(r.cells[c.i] ?? '')))))))
  }
  const load = async (turn) => {
    try {
      const answer = await getJSON(`${pathOf(chosen, chosen.cluster ? '' : page.namespace)}?limit=500&includeObject=Metadata`, { accept: tables })
      if (turn !== shown) return
      problem = answer.kind === 'Table' ? '' : 'The server has no table of this kind.'
      table = answer.kind === 'Table' ? answer : undefined
    } catch (e) {
      if (turn !== shown) return
      problem = e.message
      table = undefined
    }
    draw()
  }
  const choose = (r) => {
    chosen = r
    table = undefined
    load(++shown)
  }
  const timer = setInterval(() => chosen && load(shown), refresh)
  discover().then((list) => {
    served = list
    choose(list.find((r) => r.resource === 'configmaps') ?? list[0])
  }, (e) => {
    problem = e.message
    draw()
  })
  return { draw: () => (chosen ? load(shown) : draw()), sources: [], end: () => { clearInterval(timer); shown = -1 } }
}

// discover returns every resource that can be listed, in its preferred version.
export async function discover() {
  const accept = 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList'
  const groups = (await Promise.all([getJSON('/api', { accept }), getJSON('/apis', { accept })])).flatMap((l) => l.items ?? [])
  const list = []
  for (const g of groups) {
    const seen = new Set()
    for (const v of g.versions ?? []) {
      for (const r of v.resources ?? []) {
        if (seen.has(r.resource) || !r.verbs.includes('list')) continue
        seen.add(r.resource)
        list.push({ group: g.metadata.name ?? '', version: v.version, resource: r.resource, kind: r.responseKind.kind, cluster: r.scope === 'Cluster' })
      }
    }
  }
  return list.sort((a, b) => a.resource.localeCompare(b.resource))
}
