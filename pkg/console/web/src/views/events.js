// Events, the newest first.
import { h, show } from '../dom.js'
import { collection } from '../store.js'
import { age } from '../state.js'

const most = 300

export const lastSeen = (e) => e.series?.lastObservedTime ?? e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp

// table is a table of events.
export function table(events) {
  return h('table', {}, h('thead', {}, h('tr', {}, ['Age', 'Type', 'Reason', 'Object', 'Message'].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, events.slice(0, most).map((e) => h('tr', { class: e.type === 'Warning' ? 'bad' : '' },
      h('td', {}, age(lastSeen(e))), h('td', {}, e.type), h('td', {}, e.reason),
      h('td', {}, `${e.involvedObject.kind} ${e.involvedObject.name}`), h('td', {}, e.message)))))
}

export function events(root, page) {
  const all = collection('events')
  const draw = () => {
    const list = all.all.filter((e) => page.inNamespace(e) && page.finds(e.involvedObject.name + e.reason + e.message))
      .sort((a, b) => Date.parse(lastSeen(b)) - Date.parse(lastSeen(a)))
    show(root, page.problem(all), list.length > most && h('p', { class: 'quiet' }, `The newest ${most} of ${list.length}.`),
      h('div', { class: 'scroll' }, table(list)))
  }
  return { draw, sources: [all] }
}
