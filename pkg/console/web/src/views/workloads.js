// What makes pods, as trees of owners: Deployment, ReplicaSet, pod.
import { h, update } from '../dom.js'
import { collection } from '../store.js'
import { age, byKind, podState, workloadState } from '../state.js'

const tops = ['deployments', 'statefulsets', 'daemonsets', 'cronjobs', 'jobs', 'replicasets', 'pods']
const most = 50 // branches of one object that are shown at first

export function workloads(root, page) {
  const sources = tops.map(collection)
  const whole = new Set() // whose branches are all shown
  const draw = () => {
    const all = sources.flatMap((s) => s.all).filter(page.inNamespace)
    const uids = new Set(all.map((o) => o.metadata.uid))
    const owner = (o) => o.metadata.ownerReferences?.find((r) => r.controller && uids.has(r.uid))?.uid ?? ''
    const children = Map.groupBy(all.filter((o) => !idle(o)).sort(byKind), owner)
    const tree = { page, whole, below: (uid) => children.get(uid) ?? [] }
    const roots = tree.below('').filter((o) => found(o, tree))
    update(root, roots.length === 0 && h('p', { class: 'quiet' }, 'Nothing matches.'), branches(roots, '', tree))
  }
  return { draw, sources }
}

// found reports whether an object or one below it is searched for.
function found(o, tree) {
  return tree.page.wanted(o) || tree.below(o.metadata.uid).some((c) => found(c, tree))
}

// branches is the list of what an owner has, "" for what has no owner.
function branches(list, owner, tree) {
  const shown = tree.whole.has(owner) ? list : list.slice(0, most)
  return (
    list.length > 0 &&
    h(
      'ul',
      owner ? {} : { class: 'tree' },
      shown.map((o) => branch(o, tree)),
      shown.length < list.length &&
        h(
          'li',
          {},
          h(
            'button',
            {
              class: 'link',
              'data-key': `more/${owner}`,
              onclick: () => {
                tree.whole.add(owner)
                tree.page.redraw()
              },
            },
            `Show the other ${list.length - shown.length}`,
          ),
        ),
    )
  )
}

function branch(o, tree) {
  const state = o.kind === 'Pod' ? podState(o) : workloadState(o)
  return h(
    'li',
    {},
    h(
      'button',
      { class: `row ${state.tone}`, 'data-key': o.metadata.uid, onclick: () => tree.page.open(o) },
      h('span', {}, h('span', { class: 'kind' }, o.kind), ' ', tree.page.place(o), h('strong', {}, o.metadata.name)),
      ' ',
      h('span', { class: 'state' }, state.word),
      ' ',
      h('span', { class: 'age' }, age(o.metadata.creationTimestamp)),
    ),
    branches(tree.below(o.metadata.uid), o.metadata.uid, tree),
  )
}

// idle are the ReplicaSets of old revisions.
const idle = (o) => o.kind === 'ReplicaSet' && (o.spec.replicas ?? 1) === 0 && (o.status?.replicas ?? 0) === 0
