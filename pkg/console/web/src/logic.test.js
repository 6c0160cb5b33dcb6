import assert from 'node:assert/strict'
import { test } from 'node:test'

import { diff } from './diff.js'
import { age, byName, matches, nodeState, podState, selects, workloadState } from './state.js'
import { hidden, line, visible } from './text.js'

// api is the module, which looks for its token in the page's address.
async function api() {
  globalThis.location = { hash: '', pathname: '/' }
  globalThis.history = { replaceState() {} }
  globalThis.sessionStorage = { getItem: () => 'token', setItem() {} }
  return import('./api.js')
}

const stream = (chunks) =>
  new ReadableStream({
    start(c) {
      for (const text of chunks) c.enqueue(new TextEncoder().encode(text))
      c.close()
    },
  })

test('a diff has what was removed before what came', () => {
  const text = (a, b) =>
    diff(a, b)
      .map(([s, l]) => s + l)
      .join('|')
  assert.equal(text('a\nb\nc', 'a\nx\nc'), ' a|-b|+x| c')
  assert.equal(text('a', 'a'), ' a')
  assert.equal(text('', 'a'), '-|+a')
  assert.equal(text('a\nb\nc\nd', 'b\nd\ne'), '-a| b|-c| d|+e')
})

test('a diff, applied, gives the new text', () => {
  let seed = 7
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
  for (let k = 0; k < 300; k++) {
    const text = () => Array.from({ length: random(9) }, () => 'abc'[random(3)]).join('\n')
    const [a, b] = [text(), text()]
    const d = diff(a, b)
    assert.equal(
      d
        .filter(([s]) => s !== '-')
        .map(([, l]) => l)
        .join('\n'),
      b,
    )
    assert.equal(
      d
        .filter(([s]) => s !== '+')
        .map(([, l]) => l)
        .join('\n'),
      a,
    )
  }
})

test('the state of a pod is the first thing that is wrong', () => {
  const pod = (status, metadata = {}) => podState({ metadata, status })
  assert.deepEqual(pod({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }), {
    word: 'Ready',
    tone: 'good',
  })
  assert.deepEqual(
    pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }),
    { word: 'Unschedulable', tone: 'bad' },
  )
  assert.deepEqual(
    pod({ phase: 'Running', containerStatuses: [{ state: { waiting: { reason: 'CrashLoopBackOff' } } }] }),
    { word: 'CrashLoopBackOff', tone: 'bad' },
  )
  assert.deepEqual(
    pod({ phase: 'Pending', containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }] }),
    { word: 'Starting', tone: 'busy' },
  )
  assert.deepEqual(pod({ phase: 'Failed', reason: 'Evicted' }), { word: 'Evicted', tone: 'bad' })
  assert.deepEqual(pod({}, { deletionTimestamp: 'x' }), { word: 'Terminating', tone: 'busy' })
})

test('nodes and workloads', () => {
  assert.equal(nodeState({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }).word, 'NotReady')
  assert.equal(
    nodeState({ spec: { unschedulable: true }, status: { conditions: [{ type: 'Ready', status: 'True' }] } }).word,
    'Cordoned',
  )
  assert.deepEqual(
    workloadState({ kind: 'Deployment', metadata: {}, spec: { replicas: 3 }, status: { availableReplicas: 1 } }),
    { word: '1/3', tone: 'busy' },
  )
  assert.deepEqual(
    workloadState({
      kind: 'Job',
      metadata: {},
      spec: {},
      status: { conditions: [{ type: 'Failed', status: 'True' }] },
    }),
    { word: 'Failed', tone: 'bad' },
  )
})

test('lines come whole however they arrive, and long ones cut', async () => {
  const { lines } = await api()
  const all = async (chunks, longest) => {
    const got = []
    for await (const line of lines(new Response(stream(chunks)), longest)) got.push(line)
    return got
  }
  assert.deepEqual(await all(['a\nb', 'c\n', '\nd'], 10), ['a', 'bc', '', 'd'])
  assert.deepEqual(await all(['0123', '4567', '89\nx', 'y\n'], 5), ['01234', 'xy'])
  assert.deepEqual(await all([], 5), [])
})

test('an answer that is too long is not held', async () => {
  const { whole } = await api()
  assert.equal(await whole(new Response(stream(['ab', 'c'])), 3), 'abc')
  let read = 0
  const endless = new ReadableStream({ pull: (c) => c.enqueue(new TextEncoder().encode('x'.repeat(1 + read++))) })
  await assert.rejects(whole(new Response(endless), 100), /too large/)
  assert.ok(read < 30)
})

test('ages and selectors', () => {
  const at = (s) => age('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:00Z') + s * 1000)
  assert.deepEqual([at(5), at(65), at(7200), at(90000), at(-3)], ['5s', '1m', '2h', '1d', '0s'])
  assert.equal(matches({}, { a: 'b' }), false)
  assert.equal(matches({ a: 'b' }, { a: 'b', c: 'd' }), true)
  assert.equal(matches({ a: 'b' }, undefined), false)
})

test('a selector of labels with expressions', () => {
  const expression = (operator, values) => ({ matchExpressions: [{ key: 'a', operator, values }] })
  assert.equal(selects({}, undefined), true)
  assert.equal(selects({ matchLabels: { a: 'b' } }, { a: 'c' }), false)
  for (const [operator, values, labels, want] of [
    ['Exists', undefined, { a: '' }, true],
    ['Exists', undefined, {}, false],
    ['DoesNotExist', undefined, {}, true],
    ['In', ['b'], { a: 'b' }, true],
    ['In', ['b'], {}, false],
    ['NotIn', ['b'], {}, true],
    ['NotIn', ['b'], { a: 'b' }, false],
  ]) {
    assert.equal(selects(expression(operator, values), labels), want, `${operator} ${JSON.stringify(labels)}`)
  }
  assert.equal(selects({ matchExpressions: [{ key: 'toString', operator: 'Exists' }] }, {}), false)
})

test('names are in the order in which people count', () => {
  const sorted = (...names) =>
    names
      .map((name) => ({ metadata: { name } }))
      .sort(byName)
      .map((o) => o.metadata.name)
      .join()
  assert.equal(sorted('n10', 'n9', 'n1'), 'n1,n9,n10')
})

test('what cannot be seen is shown by a sign', () => {
  for (const [text, want] of [
    ['plain\ttext\nof ünïcode 日本 👩\u200d🚀', undefined],
    ['\u001b[31m\u0000\u007f', '␛[31m␀␡'],
    ['a\u202eb', 'a⟨U+202E⟩b'],
    ['\u009b\u200b\ufeff', '⟨U+009B⟩⟨U+200B⟩⟨U+FEFF⟩'],
    ['\u{e0041}', '⟨U+E0041⟩'],
    ['\ud800', '⟨U+D800⟩'],
    ['e' + '\u0301'.repeat(9), 'e' + '\u0301'.repeat(4)],
  ]) {
    assert.equal(visible(text), want ?? text)
  }
})

test('a line of a log loses its colours alone', () => {
  assert.equal(line('\u001b[1;31mred\u001b[0m\r'), 'red')
  assert.equal(line('10%\r20%\u001b[2J'), '10%␍20%␛[2J')
})

test('characters that cannot be seen are found in a text', () => {
  assert.deepEqual(hidden('a\n\u202eb\u202e\n\u0007'), ['U+202E in line 2', 'U+0007 in line 3'])
  assert.deepEqual(hidden('a: ü\n'), [])
})
