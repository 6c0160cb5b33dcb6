// Services, the pods behind them, and the policies over those.
import { h, show } from '../dom.js'
import { collection } from '../store.js'
import { matches, podState } from '../state.js'

export function services(root, page) {
  const all = ['services', 'pods', 'endpointslices', 'networkpolicies'].map(collection)
  const [list, pods, slices, policies] = all
  const draw = () => {
    const rows = list.all.filter(page.wanted).sort((a, b) =>
      (a.metadata.namespace + a.metadata.name).localeCompare(b.metadata.namespace + b.metadata.name))
      .map((s) => service(s, pods.all, slices.all, policies.all, page))
    show(root, page.problem(...all), rows.length === 0 && h('p', { class: 'quiet' }, 'Nothing matches.'), h('div', { class: 'cards wide' }, rows))
  }
  return { draw, sources: all }
}

function service(s, pods, slices, policies, page) {
  const ns = s.metadata.namespace
  const mine = slices.filter((x) => x.metadata.namespace === ns && x.metadata.labels?.['kubernetes.io/service-name'] === s.metadata.name)
  const endpoints = mine.flatMap((x) => x.endpoints ?? [])
  const ready = endpoints.filter((e) => e.conditions?.ready !== false)
  const selected = pods.filter((p) => p.metadata.namespace === ns && matches(s.spec.selector, p.metadata.labels))
  const over = policies.filter((n) => n.metadata.namespace === ns && selected.some((p) => selects(n.spec.podSelector, p.metadata.labels)))
  const tone = s.spec.type === 'ExternalName' || ready.length > 0 ? 'good' : 'bad'
  const ports = (s.spec.ports ?? []).map((p) => `${p.port}→${p.targetPort}${p.protocol === 'TCP' ? '' : ` ${p.protocol}`}`).join(', ')
  return h('section', { class: 'card', 'aria-label': `Service ${ns}/${s.metadata.name}` },
    h('button', { class: `title ${tone}`, 'data-key': s.metadata.uid, onclick: () => page.open(s) },
      `${ns}/`, h('strong', {}, s.metadata.name), ` ${s.spec.type}`),
    h('p', { class: 'quiet' }, `${s.spec.clusterIP ?? s.spec.externalName ?? ''} ${ports}`),
    h('p', {}, `${ready.length} of ${endpoints.length} endpoints ready`),
    h('ul', { class: 'squares' }, selected.map((p) => {
      const state = podState(p)
      const label = `Pod ${p.metadata.name}: ${state.word}`
      return h('li', {}, h('button', { class: `square ${state.tone}`, title: label, 'aria-label': label,
        'data-key': `${s.metadata.uid}/${p.metadata.uid}`, onclick: () => page.open(p) }))
    })),
    over.length > 0 && h('p', { class: 'quiet' }, 'Policies: ', over.map((n) =>
      h('button', { class: 'link', onclick: () => page.open(n) }, n.metadata.name))))
}

// selects reports whether a label selector selects labels; an empty one selects all.
function selects(selector, labels = {}) {
  const pairs = Object.entries(selector?.matchLabels ?? {})
  return pairs.every(([k, v]) => labels[k] === v) && (selector?.matchExpressions ?? []).every((e) => {
    const has = e.key in labels
    if (e.operator === 'Exists') return has
    if (e.operator === 'DoesNotExist') return !has
    const inside = has && e.values.includes(labels[e.key])
    return e.operator === 'In' ? inside : !inside
  })
}
