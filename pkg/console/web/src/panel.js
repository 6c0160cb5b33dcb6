// The details of one object: why it is as it is, its life, its events, its logs, and itself as YAML.
import { getJSON, getText, lines, pathOf, request } from './api.js'
import { diff } from './diff.js'
import { h, show } from './dom.js'
import { kinds } from './store.js'
import { lastSeen, table } from './views/events.js'

const mostLines = 2000 // of a log that are kept in the page
const longestShown = 4000 // characters of one of them

// placeOf returns where an object's kind is served.
function placeOf(o) {
  return Object.values(kinds).find((k) => k.kind === o.kind)
}

// openPanel shows an object. where says where its kind is served, if it is none of the usual ones.
export function openPanel(panel, o, where = placeOf(o), onClose) {
  const before = document.activeElement
  const abort = new AbortController()
  const body = h('div', { class: 'body', role: 'tabpanel' })
  const tabs = [['Why', why], ...(o.kind === 'Pod' ? [['Life', life], ['Logs', logs]] : []), ['Events', events], ['YAML', yaml]]
  let current
  const buttons = tabs.map(([name, f]) => h('button', { role: 'tab', 'aria-selected': 'false', onclick: () => choose(name, f) }, name))
  const choose = (name, f) => {
    current?.abort()
    current = new AbortController()
    for (const b of buttons) b.setAttribute('aria-selected', String(b.textContent === name))
    show(body, h('p', { class: 'quiet' }, 'One moment …'))
    f({ o, where, body, signal: current.signal }).catch((e) => {
      if (e.name !== 'AbortError') show(body, h('p', { class: 'problem', role: 'alert' }, e.message))
    })
  }
  const close = () => {
    current?.abort()
    abort.abort()
    panel.hidden = true
    panel.replaceChildren()
    before?.focus?.()
    onClose?.()
  }
  const title = `${o.kind} ${o.metadata.namespace ? o.metadata.namespace + '/' : ''}${o.metadata.name}`
  panel.replaceChildren(
    h('div', { class: 'bar' }, h('h2', {}, title), h('button', { 'aria-label': 'Close', onclick: close }, '✕')),
    h('div', { role: 'tablist', class: 'tabs' }, buttons), body)
  panel.hidden = false
  panel.addEventListener('keydown', (e) => e.key === 'Escape' && close(), { signal: abort.signal })
  buttons[0].focus()
  choose(...tabs[0])
  return close
}

const question = (o, where) => new URLSearchParams({ kind: where.group ? `${where.resource}.${where.group}` : where.resource, name: o.metadata.name,
  ...(o.metadata.namespace && { namespace: o.metadata.namespace }) })

async function why({ o, where, body, signal }) {
  const a = await getJSON(`/console/why?${question(o, where)}`, { signal })
  show(body, h('p', { class: a.well ? 'good sentence' : 'sentence' }, a.state), h('ol', { class: 'causes' }, (a.causes ?? []).map((c) => cause(c))),
    a.unseen?.length > 0 && [h('p', { class: 'quiet' }, 'Not all could be read:'), h('ul', {}, a.unseen.map((u) => h('li', {}, u)))])
}

function cause(c) {
  return h('li', {}, h('p', {}, c.text),
    c.fixes?.length > 0 && h('ul', { class: 'fixes' }, c.fixes.map((f) => h('li', {}, f.text, f.command && command(f.command)))),
    c.because?.length > 0 && [h('p', { class: 'quiet' }, 'because'), h('ul', {}, c.because.map((b) => cause(b)))],
    c.evidence?.length > 0 && h('details', {}, h('summary', {}, 'Evidence'), h('ul', {}, c.evidence.map((e) =>
      h('li', {}, `${e.object.kind} ${e.object.name} ${e.field ?? ''} = ${e.value ?? ''}`)))))
}

function command(text) {
  const copy = h('button', { class: 'link', onclick: () => navigator.clipboard.writeText(text).then(() => { copy.textContent = 'copied' }) }, 'copy')
  return h('div', { class: 'command' }, h('code', {}, text), ' ', copy)
}

// life shows a pod's steps as a waterfall: by its trace, or by its conditions, as kubectl trace finds them.
async function life({ o, where, body, signal }) {
  const story = await getJSON(`/console/trace?${question(o, where)}`, { signal })
  show(body, waterfall(story))
}

// waterfall draws the phases of a story, as kubectl trace -o json has them.
function waterfall(story) {
  const phases = (story.phases ?? []).filter((p) => p.steps?.length)
  return [(story.notes ?? []).map((n) => h('p', { class: 'quiet' }, n)), phases.length === 0 && h('p', { class: 'quiet' }, 'No steps are known.'),
    phases.map(phase)]
}

// phase shows one part of a life, such as its start: the steps that decided how long it took are darker.
function phase(p) {
  const steps = flatten(p.steps, 0)
  const begin = Date.parse(p.start)
  const end = Math.max(...steps.map((s) => s.start + s.length), begin + 1)
  return [h('h3', {}, p.name, ' ', h('span', { class: 'quiet' }, duration(end - begin))), h('table', { class: 'waterfall' },
    h('thead', { class: 'unseen' }, h('tr', {}, ['Step', 'Time', 'Duration'].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, steps.map((s) => h('tr', {},
      h('th', { scope: 'row', class: `depth${Math.min(s.depth, 3)}` }, s.name, s.error && ` ⚠ ${s.error}`,
        s.critical && h('span', { class: 'unseen' }, ' (on the critical path)')),
      h('td', { class: 'track' }, bar(s, begin, end)), h('td', { class: 'number' }, duration(s.length))))))]
}

// bar is a step's part of the whole, as a drawing: styles in attributes are forbidden by the page's policy.
function bar(s, begin, end) {
  const x = Math.max(100 * (s.start - begin) / (end - begin), 0) // a controller's round may have begun before
  const width = Math.max(100 * (s.start + s.length - begin) / (end - begin) - x, 0.6)
  return h('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': `after ${duration(Math.max(s.start - begin, 0))}` },
    h('rect', { x: Math.min(x, 99.4), y: 1, width, height: 8, class: s.critical ? 'critical' : 'step' }))
}

// flatten brings a phase's steps into one list, times in milliseconds. A step with a part of the critical path is
// critical. What took no time to speak of inside another step is left out.
function flatten(list, depth) {
  const least = 0.05
  return list.flatMap((s) => {
    const step = { name: s.detail && depth === 0 ? `${s.name} ${s.detail}` : s.name, start: Date.parse(s.start), length: (s.duration ?? 0) / 1e6,
      critical: s.onPath > 0, error: s.error, depth }
    return [...(depth > 0 && step.length < least ? [] : [step]), ...flatten(s.steps ?? [], depth + 1)]
  })
}

const duration = (ms) => (ms >= 10000 ? `${(ms / 1000).toFixed(0)} s` : ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`)

async function events({ o, body, signal }) {
  const selector = `involvedObject.name=${o.metadata.name},involvedObject.kind=${o.kind}`
  const ns = o.metadata.namespace ?? 'default'
  const list = await getJSON(`/api/v1/namespaces/${encodeURIComponent(ns)}/events?limit=200&fieldSelector=${encodeURIComponent(selector)}`, { signal })
  list.items.sort((a, b) => Date.parse(lastSeen(b)) - Date.parse(lastSeen(a)))
  show(body, list.items.length ? h('div', { class: 'scroll' }, table(list.items)) : h('p', { class: 'quiet' }, 'No events are left.'))
}

async function logs({ o, body, signal }) {
  const pod = await getJSON(pathOf(kinds.pods, o.metadata.namespace, o.metadata.name), { signal })
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.name)
  const pre = h('pre', { class: 'log', tabindex: '0', 'aria-label': 'Log' })
  let stop = new AbortController()
  signal.addEventListener('abort', () => stop.abort())
  const follow = async (container, previous) => {
    stop.abort()
    stop = new AbortController()
    pre.textContent = ''
    const query = new URLSearchParams({ container, tailLines: 500, ...(previous ? { previous: true } : { follow: true }) })
    try {
      const r = await request(`${pathOf(kinds.pods, o.metadata.namespace, o.metadata.name)}/log?${query}`, { signal: stop.signal, accept: '*/*' })
      const kept = []
      let waiting = false // for the next drawing: many lines may come at once
      for await (const line of lines(r)) {
        kept.push(line.slice(0, longestShown))
        if (kept.length > mostLines) kept.shift()
        if (waiting) continue
        waiting = true
        requestAnimationFrame(() => {
          waiting = false
          pre.textContent = kept.join('\n')
          pre.scrollTop = pre.scrollHeight
        })
      }
    } catch (e) {
      if (e.name !== 'AbortError') pre.textContent = e.message
    }
  }
  const select = h('select', { 'aria-label': 'Container', onchange: () => follow(select.value, previous.checked) }, names.map((n) => h('option', {}, n)))
  const previous = h('input', { type: 'checkbox', onchange: () => follow(select.value, previous.checked) })
  show(body, h('p', {}, select, ' ', h('label', {}, previous, ' before the last restart')), pre)
  select.value = pod.spec.containers[0].name
  follow(select.value, false)
}

// withoutManagers leaves managedFields out, as kubectl does: they are long, and the server keeps them when a change lacks
// them. The server writes them as a list of maps right below metadata.
function withoutManagers(text) {
  let inside = false
  return text.split('\n').filter((line) => {
    if (line === '  managedFields:') inside = true
    else if (inside && !/^ {2}(- | )/.test(line)) inside = false
    return !inside
  }).join('\n')
}

// yaml shows an object for editing. A change is tried by a dry run first, and its effect is shown before it is made.
async function yaml({ o, where, body, signal }) {
  const path = pathOf(where, o.metadata.namespace, o.metadata.name)
  const accept = 'application/yaml'
  const live = withoutManagers(await getText(path, { accept, signal }))
  const area = h('textarea', { spellcheck: 'false', 'aria-label': 'YAML' })
  area.value = live
  const result = h('div', { 'aria-live': 'polite' })
  const put = async (query) => withoutManagers(await getText(path + query, { method: 'PUT', body: area.value, type: accept, accept, signal }))
  const fail = (e) => e.name !== 'AbortError' && show(result, h('p', { class: 'problem', role: 'alert' }, e.message))
  const check = async () => {
    const after = await put('?dryRun=All&fieldManager=bonsai-console&fieldValidation=Strict')
    const changed = diff(live, after).filter(([s]) => s !== ' ')
    show(result, changed.length === 0 ? h('p', {}, 'Nothing would change.') : [h('pre', { class: 'diff' }, changed.map(([s, l]) =>
      h('span', { class: s === '+' ? 'plus' : 'minus' }, `${s} ${l}\n`))), h('button', { onclick: () => apply().catch(fail) }, 'Apply this change')])
  }
  const apply = async () => {
    await put('?fieldManager=bonsai-console&fieldValidation=Strict')
    await yaml({ o, where, body, signal })
  }
  show(body, area, h('p', {}, h('button', { onclick: () => check().catch(fail) }, 'Show what would change')), result)
}
