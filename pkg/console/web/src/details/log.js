// A container's log, as it grows.
import { getJSON, lines, pathOf, request } from '../api.js'
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
    const query = new URLSearchParams({
      container,
      tailLines: 500,
      ...(previous ? { previous: true } : { follow: true }),
    })
    try {
      const response = await request(`${path}/log?${query}`, { signal: own, accept: '*/*' })
      const kept = []
      let waiting = false // for the next drawing: many lines may come at once
      for await (const text of lines(response, longestShown)) {
        kept.push(line(text))
        if (kept.length > mostLines) kept.shift()
        if (waiting) continue
        waiting = true
        requestAnimationFrame(() => {
          waiting = false
          if (own.aborted) return
          const end = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4 // who reads further up stays there
          pre.textContent = kept.join('\n')
          if (end) pre.scrollTop = pre.scrollHeight
        })
      }
      if (kept.length === 0 && !own.aborted) pre.textContent = 'The log is empty.'
    } catch (e) {
      if (!own.aborted) pre.textContent = line(e.message)
    }
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
