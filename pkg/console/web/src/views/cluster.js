// The cluster as a picture: a card for each node, a square for each of its pods.
import { h, update } from '../dom.js'
import { collection } from '../store.js'
import { byName, nodeState, podState } from '../state.js'
import { squares } from './squares.js'

const mostNamed = 60 // pods in the picture whose names are written beside their squares

// cluster draws into root and returns what it draws from.
export function cluster(root, page) {
  const nodes = collection('nodes')
  const pods = collection('pods')
  const draw = () => {
    const wanted = pods.all.filter(page.wanted)
    const named = wanted.length <= mostNamed
    const byNode = Map.groupBy(wanted, (p) => p.spec.nodeName ?? '')
    const take = (name) => {
      const list = byNode.get(name) ?? []
      byNode.delete(name)
      return list.sort(byName)
    }
    const cards = nodes.all.sort(byName).map((n) => card(n, take(n.metadata.name), page, named))
    const waiting = take('')
    if (waiting.length)
      cards.unshift(group('No node', 'bad', 'Pods without a node', `${waiting.length} waiting`, waiting, page, named))
    // Nodes that have gone, or that the user may not see.
    for (const name of [...byNode.keys()].sort()) {
      const list = take(name)
      cards.push(
        group(name, 'busy', `Node ${name}`, `${count(list)} · the node itself is not to be seen`, list, page, named),
      )
    }
    update(root, legend(), h('div', { class: 'cards' }, cards))
  }
  return { draw, sources: [nodes, pods] }
}

const count = (list) => `${list.length} ${list.length === 1 ? 'pod' : 'pods'}`

function card(node, pods, page, named) {
  const state = nodeState(node)
  return h(
    'section',
    { class: `card ${state.tone}`, 'aria-label': `Node ${node.metadata.name}` },
    h(
      'button',
      { class: 'title', 'data-key': node.metadata.uid, onclick: () => page.open(node) },
      h('strong', {}, node.metadata.name),
      ' ',
      h('span', { class: 'state' }, state.word),
    ),
    h(
      'p',
      { class: 'quiet' },
      `${count(pods)} · ${node.status?.capacity?.cpu ?? '?'} CPU · ${memory(node.status?.capacity?.memory)}`,
    ),
    squares(pods, page, named),
  )
}

// group is a card of pods that have no node that could be shown.
function group(name, tone, label, text, pods, page, named) {
  return h(
    'section',
    { class: `card ${tone}`, 'aria-label': label, 'data-key': `without/${name}` },
    h('p', { class: 'title' }, h('strong', {}, name)),
    h('p', { class: 'quiet' }, text),
    squares(pods, page, named),
  )
}

function legend() {
  return h(
    'p',
    { class: 'legend', 'aria-hidden': 'true' },
    [
      ['good', 'ready'],
      ['busy', 'on its way'],
      ['bad', 'in trouble'],
      ['done', 'completed'],
    ].map(([tone, word]) => h('span', {}, h('i', { class: `square ${tone}` }, tone === 'bad' && '!'), ` ${word}`)),
  )
}

// memory shows a quantity of bytes in GiB.
function memory(quantity) {
  const m = /^(\d+)Ki$/.exec(quantity ?? '')
  return m ? `${(m[1] / 1048576).toFixed(1)} GiB` : (quantity ?? '?')
}
