// The events of one object.
import { getJSON } from '../api.js'
import { h, show } from '../dom.js'
import { table } from '../views/events.js'

export async function events({ o, body, signal }) {
  const selector = `involvedObject.name=${o.metadata.name},involvedObject.kind=${o.kind}`
  const ns = o.metadata.namespace ?? 'default'
  const list = await getJSON(
    `/api/v1/namespaces/${encodeURIComponent(ns)}/events?limit=200&fieldSelector=${encodeURIComponent(selector)}`,
    { signal },
  )
  show(
    body,
    list.items.length
      ? h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Events' }, table(list.items))
      : h('p', { class: 'quiet' }, 'No events are left.'),
  )
}
