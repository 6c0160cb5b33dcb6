// A container's log, as it grows.
import { getJSON, pathOf, request, texts } from '../api.js'
import { h, show } from '../dom.js'
import { kinds } from '../store.js'
import { line } from '../text.js'

const mostLines = 2000 // that are kept in the page
const longestShown = 4000 // characters of one of them

export async function log({ o, body, signal }) {
  const path = pathOf(kinds.pods, o.metadata.namespace, o.metadata.name)
  const pod = await getJSON(path, { signal })
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.name)
  const pre = h('pre', { class: 'log', tabindex: '0', role: 'region', 'aria-label': 'Log' })
  let stop = new AbortController()
  signal.addEventListener('abort', () => stop.abort())
  const follow = async (container, previous) => {
    stop.abort()
    stop = new AbortController()
    const own = stop.signal
    pre.textContent = ''
    const kept = []
    let rest = '' // of a line that has not ended
    let waiting = false // for the next drawing: many lines may come at once
    const later = () => {
      if (waiting || own.aborted) return
      waiting = true
      requestAnimationFrame(() => {
        waiting = false
        if (own.aborted) return
        const end = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4 // who reads further up stays there
        pre.textContent = [...kept, ...(rest ? [line(rest)] : [])].join('\n')
        if (end) pre.scrollTop = pre.scrollHeight
      })
    }
    const query = new URLSearchParams({
      container,
      tailLines: 500,
      ...(previous ? { previous: true } : { follow: true }),
    })
    try {
      for await (const text of texts(await request(`${path}/log?${query}`, { signal: own, accept: '*/*' }))) {
        const parts = (rest + text).split('\n')
        rest = parts.pop().slice(0, longestShown)
        for (const p of parts.slice(-mostLines)) kept.push(line(p.slice(0, longestShown)))
        kept.splice(0, kept.length - mostLines)
        later()
      }
      if (kept.length === 0 && rest === '') kept.push('The log is empty.')
    } catch (e) {
      if (rest) kept.push(line(rest))
      rest = ''
      kept.push(line(e.status === undefined ? `The log has broken off: ${e.message}.` : e.message))
    }
    later()
  }
  const again = () => follow(select.value, previous.checked)
  const select = h(
    'select',
    { 'aria-label': 'Container', onchange: again },
    names.map((n) => h('option', { value: n }, n)),
  )
  const previous = h('input', { type: 'checkbox', onchange: again })
  show(body, h('p', { class: 'choice' }, select, h('label', {}, previous, ' before the last restart')), pre)
  select.value = pod.spec.containers[0].name
  again()
}
