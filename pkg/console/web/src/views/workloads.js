// What makes pods, as trees of owners: Deployment, ReplicaSet, pod.
import { h, show } from '../dom.js'
import { collection } from '../store.js'
import { age, podState, workloadState } from '../state.js'

const tops = ['deployments', 'statefulsets', 'daemonsets', 'cronjobs', 'jobs', 'replicasets', 'pods']

export function workloads(root, page) {
  const sources = tops.map(collection)
  const draw = () => {
    const all = sources.flatMap((s) => s.all)
    const uids = new Set(all.map((o) => o.metadata.uid))
    const children = new Map()
    const roots = []
    for (const o of all.filter((x) => page.inNamespace(x))) {
      const owner = o.metadata.ownerReferences?.find((r) => r.controller && uids.has(r.uid))
      if (!owner) roots.push(o)
      else {
        if (!children.has(owner.uid)) children.set(owner.uid, [])
        children.get(owner.uid).push(o)
      }
    }
    const sorted = roots.filter((o) => found(o, children, page)).sort((a, b) =>
      (a.metadata.namespace + a.kind + a.metadata.name).localeCompare(b.metadata.namespace + b.kind + b.metadata.name))
    show(root, page.problem(...sources), sorted.length === 0 && h('p', { class: 'quiet' }, 'Nothing matches.'),
      h('ul', { class: 'tree' }, sorted.map((o) => branch(o, children, page))))
  }
  return { draw, sources }
}

// found reports whether an object or one below it is searched for.
function found(o, children, page) {
  return page.wanted(o) || (children.get(o.metadata.uid) ?? []).some((c) => found(c, children, page))
}

function branch(o, children, page) {
  const below = (children.get(o.metadata.uid) ?? []).filter((c) => !idle(c))
  const state = o.kind === 'Pod' ? podState(o) : workloadState(o)
  return h('li', {},
    h('button', { class: `row ${state.tone}`, 'data-key': o.metadata.uid, onclick: () => page.open(o) },
      h('span', { class: 'kind' }, o.kind), ' ', o.metadata.namespace, '/', h('strong', {}, o.metadata.name), ' ',
      h('span', { class: 'state' }, state.word), ' ', h('span', { class: 'quiet' }, age(o.metadata.creationTimestamp))),
    below.length > 0 && h('ul', {}, below.map((c) => branch(c, children, page))))
}

// idle are the ReplicaSets of old revisions.
const idle = (o) => o.kind === 'ReplicaSet' && (o.spec.replicas ?? 1) === 0 && (o.status?.replicas ?? 0) === 0
