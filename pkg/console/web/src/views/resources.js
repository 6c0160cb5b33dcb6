// Objects of any kind as tables with the columns that the server says, custom resources included.
import { h, update } from '../dom.js'
import { getJSON, pathOf } from '../api.js'
import { discover } from '../discover.js'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const refresh = 5000 // milliseconds: tables of any kind are read again, not watched
const most = 500 // objects of a kind

export function resources(root, page) {
  let served = []
  let chosen
  let problem = ''
  let table
  let shown = 0 // counts choices, so that a late answer to an earlier one is dropped
  let asked = '' // the namespace of the table
  const draw = () => {
    if (chosen && page.namespace !== asked) load(++shown)
    const select = h(
      'select',
      { 'aria-label': 'Kind', onchange: (e) => choose(served[e.target.value]) },
      served.map((r, i) =>
        h('option', { value: i, selected: r === chosen }, r.group ? `${r.resource}.${r.group}` : r.resource),
      ),
    )
    update(
      root,
      served.length > 0 &&
        h(
          'p',
          { class: 'choice' },
          select,
          table?.metadata?.continue && h('span', { class: 'quiet' }, ` The first ${most}.`),
        ),
      h('div', { role: 'alert' }, problem && h('p', { class: 'problem' }, problem)),
      table &&
        h(
          'div',
          { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Objects', 'data-key': `table/${shown}` },
          rows(),
        ),
    )
  }
  const rows = () => {
    const spaces = !chosen.cluster && !page.namespace
    const columns = table.columnDefinitions.map((c, i) => ({ ...c, i })).filter((c) => c.priority === 0)
    const items = (table.rows ?? []).filter((r) => page.finds(r.object.metadata.name))
    if (items.length === 0) return h('p', { class: 'quiet' }, 'Nothing matches.')
    return h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          spaces && h('th', { scope: 'col' }, 'Namespace'),
          columns.map((c) => h('th', { scope: 'col', title: c.description }, c.name)),
        ),
      ),
      h(
        'tbody',
        {},
        items.map((r) =>
          h(
            'tr',
            { 'data-key': r.object.metadata.uid },
            spaces && h('td', {}, r.object.metadata.namespace ?? ''),
            columns.map((c, n) =>
              h(
                'td',
                {},
                n === 0
                  ? h(
                      'button',
                      {
                        class: 'link',
                        'data-key': `object/${r.object.metadata.uid}`,
                        onclick: () => page.open({ kind: chosen.kind, metadata: r.object.metadata }, chosen),
                      },
                      String(r.cells[c.i]),
                    )
                  : String(r.cells[c.i] ?? ''),
              ),
            ),
          ),
        ),
      ),
    )
  }
  const load = async (turn) => {
    asked = page.namespace
    try {
      const answer = await getJSON(
        `${pathOf(chosen, chosen.cluster ? '' : asked)}?limit=${most}&includeObject=Metadata`,
        { accept: tables },
      )
      if (turn !== shown) return
      problem = answer.kind === 'Table' ? '' : 'The server has no table of this kind.'
      table = answer.kind === 'Table' ? answer : undefined
    } catch (e) {
      if (turn !== shown) return
      problem = e.message
      if (e.status) table = undefined
    }
    page.redraw()
  }
  const choose = (r) => {
    chosen = r
    table = undefined
    load(++shown)
  }
  const timer = setInterval(() => chosen && load(shown), refresh)
  discover()
    .then((list) => {
      served = list
      choose(list.find((r) => r.resource === 'configmaps') ?? list[0])
    })
    .catch((e) => {
      problem = e.message
      page.redraw()
    })
  return {
    draw,
    sources: [],
    end: () => {
      clearInterval(timer)
      shown = -1
    },
  }
}
