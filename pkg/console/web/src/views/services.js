// Services as the way that traffic takes: the Service, its endpoints, the policies over their pods, and the pods.
import { h, update } from '../dom.js'
import { collection } from '../store.js'
import { byName, byPlace, matches, selects } from '../state.js'
import { squares } from './squares.js'

const mostNamed = 6 // pods of a Service whose names are written
const mostShown = 200 // pods of a Service that are drawn

export function services(root, page) {
  const all = ['services', 'pods', 'endpointslices', 'networkpolicies'].map(collection)
  const [list, pods, slices, policies] = all
  const draw = () => {
    const of = (c) => Map.groupBy(c.all, (o) => o.metadata.namespace)
    const around = {
      pods: of(pods),
      slices: of(slices),
      policies: of(policies),
      refused: (c) => c.error?.status === 403,
      page,
    }
    const rows = list.all
      .filter(page.wanted)
      .sort(byPlace)
      .map((s) => service(s, around, { pods, slices, policies }))
    update(root, rows.length === 0 && h('p', { class: 'quiet' }, 'Nothing matches.'), rows)
  }
  return { draw, sources: all }
}

function service(s, around, sources) {
  const { page } = around
  const ns = s.metadata.namespace
  const mine = (around.slices.get(ns) ?? []).filter(
    (x) => x.metadata.labels?.['kubernetes.io/service-name'] === s.metadata.name,
  )
  const endpoints = mine.flatMap((x) => x.endpoints ?? [])
  const ready = endpoints.filter((e) => e.conditions?.ready !== false)
  const selected = (around.pods.get(ns) ?? []).filter((p) => matches(s.spec.selector, p.metadata.labels)).sort(byName)
  const over = (around.policies.get(ns) ?? [])
    .filter((n) => selected.some((p) => selects(n.spec.podSelector, p.metadata.labels)))
    .sort(byName)
  const external = s.spec.type === 'ExternalName'
  const unknown = around.refused(sources.slices)
  const tone = external || ready.length > 0 ? 'good' : unknown ? 'busy' : 'bad'
  const step = (name, source, ...what) =>
    h(
      'div',
      { class: 'step' },
      h('p', { class: 'part' }, name),
      around.refused(source) ? h('p', { class: 'quiet' }, 'not to be seen') : what,
    )
  return h(
    'section',
    { class: `card way ${tone}`, 'aria-label': `Service ${ns}/${s.metadata.name}` },
    h(
      'div',
      { class: 'step', 'data-key': `way/${s.metadata.uid}` },
      h(
        'button',
        { class: 'title', 'data-key': s.metadata.uid, onclick: () => page.open(s) },
        page.place(s),
        h('strong', {}, s.metadata.name),
      ),
      h('p', { class: 'quiet' }, [s.spec.type, external ? s.spec.externalName : s.spec.clusterIP].join(' ')),
      (s.spec.ports ?? []).map((p) => h('p', { class: 'quiet' }, port(p))),
    ),
    external
      ? h('p', { class: 'quiet' }, 'a name outside the cluster')
      : [
          step(
            'Endpoints',
            sources.slices,
            h('p', { class: ready.length ? '' : 'problem' }, `${ready.length} of ${endpoints.length} ready`),
          ),
          step(
            'Policies',
            sources.policies,
            over.length
              ? over.map((n) =>
                  h(
                    'p',
                    {},
                    h(
                      'button',
                      { class: 'link', 'data-key': `${s.metadata.uid}/${n.metadata.uid}`, onclick: () => page.open(n) },
                      n.metadata.name,
                    ),
                  ),
                )
              : h('p', { class: 'quiet' }, 'none'),
          ),
          step(
            'Pods',
            sources.pods,
            selected.length
              ? [
                  squares(selected.slice(0, mostShown), page, selected.length <= mostNamed, `${s.metadata.uid}/`),
                  selected.length > mostShown && h('p', { class: 'quiet' }, `and ${selected.length - mostShown} more`),
                ]
              : h('p', { class: 'quiet' }, s.spec.selector ? 'none is selected' : 'no selector'),
          ),
        ],
  )
}

const port = (p) =>
  `${p.name ? p.name + ' ' : ''}${p.port}${p.targetPort && p.targetPort !== p.port ? ' → ' + p.targetPort : ''}` +
  (p.protocol && p.protocol !== 'TCP' ? ` ${p.protocol}` : '')
