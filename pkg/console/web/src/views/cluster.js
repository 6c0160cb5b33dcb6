// The cluster as a picture: a card for each node, a square for each of its pods.
import { h, show } from '../dom.js'
import { collection } from '../store.js'
import { nodeState, podState } from '../state.js'

// cluster draws into root and returns what it draws from.
export function cluster(root, page) {
  const nodes = collection('nodes')
  const pods = collection('pods')
  const draw = () => {
    const byNode = new Map()
    for (const p of pods.all.filter(page.wanted)) {
      const name = p.spec.nodeName ?? ''
      if (!byNode.has(name)) byNode.set(name, [])
      byNode.get(name).push(p)
    }
    const cards = nodes.all.sort(byName).map((n) => card(n, byNode.get(n.metadata.name) ?? [], page))
    const waiting = [...byNode].filter(([name]) => !nodes.all.some((n) => n.metadata.name === name)).flatMap(([, list]) => list)
    if (waiting.length) cards.push(waitingCard(waiting, page))
    show(root, page.problem(nodes, pods), legend(), h('div', { class: 'cards' }, cards))
  }
  return { draw, sources: [nodes, pods] }
}

const byName = (a, b) => a.metadata.name.localeCompare(b.metadata.name, undefined, { numeric: true })

function card(node, pods, page) {
  const state = nodeState(node)
  return h('section', { class: 'card', 'aria-label': `Node ${node.metadata.name}` },
    h('button', { class: `title ${state.tone}`, 'data-key': node.metadata.uid, onclick: () => page.open(node) },
      h('strong', {}, node.metadata.name), ' ', state.word),
    h('p', { class: 'quiet' }, `${pods.length} pods · ${node.status?.capacity?.cpu ?? '?'} CPU · ${memory(node.status?.capacity?.memory)}`),
    squares(pods, page))
}

function waitingCard(pods, page) {
  return h('section', { class: 'card waiting', 'aria-label': 'Pods without a node' },
    h('p', { class: 'title bad' }, h('strong', {}, 'No node'), ` ${pods.length} waiting`), squares(pods, page))
}

function squares(pods, page) {
  return h('ul', { class: 'squares' }, pods.sort(byName).map((p) => {
    const state = podState(p)
    const label = `Pod ${p.metadata.namespace}/${p.metadata.name}: ${state.word}`
    return h('li', {}, h('button', { class: `square ${state.tone}`, title: label, 'aria-label': label, 'data-key': p.metadata.uid,
      onclick: () => page.open(p) }, state.tone === 'bad' ? '!' : ''))
  }))
}

function legend() {
  return h('p', { class: 'legend', 'aria-hidden': 'true' }, [['good', 'ready'], ['busy', 'on its way'], ['bad', 'in trouble'], ['done', 'completed']]
    .map(([tone, word]) => h('span', {}, h('i', { class: `square ${tone}` }), ` ${word} `)))
}

// memory shows a quantity of bytes in GiB.
function memory(quantity) {
  const m = /^(\d+)Ki$/.exec(quantity ?? '')
  return m ? `${(m[1] / 1048576).toFixed(1)} GiB` : quantity ?? '?'
}
