// Events, the newest first.
import { h, update } from '../dom.js'
import { collection } from '../store.js'
import { age } from '../state.js'

const most = 300

export const lastSeen = (e) =>
  e.series?.lastObservedTime ?? e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp

// newest returns the newest events first, at most that many.
function newest(events) {
  return events
    .map((e) => [Date.parse(lastSeen(e)), e])
    .sort((a, b) => b[0] - a[0])
    .slice(0, most)
    .map(([, e]) => e)
}

// table is a table of events, the newest first. open shows the object of an event; without it all are of the same.
export function table(events, open) {
  const columns = ['Age', 'Type', 'Reason', ...(open ? ['Object'] : []), 'Message']
  return h(
    'table',
    { class: 'events' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        columns.map((t) => h('th', { scope: 'col' }, t)),
      ),
    ),
    h(
      'tbody',
      {},
      newest(events).map((e) =>
        h(
          'tr',
          { class: e.type === 'Warning' ? 'bad' : '', 'data-key': e.metadata.uid },
          h('td', { class: 'short' }, age(lastSeen(e))),
          h('td', { class: 'short' }, e.type),
          h('td', {}, e.reason),
          open && h('td', { class: 'object' }, object(e, open)),
          h('td', { class: 'message' }, e.message),
        ),
      ),
    ),
  )
}

function object(e, open) {
  const o = e.involvedObject
  if (!o.kind || !o.name) return null
  return h(
    'button',
    { class: 'link', 'data-key': `object/${e.metadata.uid}`, onclick: () => open(o) },
    `${o.kind} ${o.name}`,
  )
}

export function events(root, page) {
  const all = collection('events')
  const draw = () => {
    const list = all.all.filter(
      (e) => page.inNamespace(e) && page.finds(`${e.involvedObject.name} ${e.reason} ${e.message}`),
    )
    update(
      root,
      list.length > most && h('p', { class: 'quiet' }, `The newest ${most} of ${list.length}.`),
      list.length === 0
        ? h('p', { class: 'quiet' }, 'No events are left.')
        : h(
            'div',
            { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Events' },
            table(list, page.openReference),
          ),
    )
  }
  return { draw, sources: [all] }
}
