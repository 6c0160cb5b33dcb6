import assert from 'node:assert/strict'
import { test } from 'node:test'

import { diff } from './diff.js'
import { age, matches, nodeState, podState, workloadState } from './state.js'

test('a diff has what was removed before what came', () => {
  const text = (a, b) => diff(a, b).map(([s, l]) => s + l).join('|')
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
    assert.equal(d.filter(([s]) => s !== '-').map(([, l]) => l).join('\n'), b)
    assert.equal(d.filter(([s]) => s !== '+').map(([, l]) => l).join('\n'), a)
  }
})

test('the state of a pod is the first thing that is wrong', () => {
  const pod = (status, metadata = {}) => podState({ metadata, status })
  assert.deepEqual(pod({ phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }), { word: 'Ready', tone: 'good' })
  assert.deepEqual(pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }),
    { word: 'Unschedulable', tone: 'bad' })
  assert.deepEqual(pod({ phase: 'Running', containerStatuses: [{ state: { waiting: { reason: 'CrashLoopBackOff' } } }] }),
    { word: 'CrashLoopBackOff', tone: 'bad' })
  assert.deepEqual(pod({ phase: 'Pending', containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }] }),
    { word: 'Starting', tone: 'busy' })
  assert.deepEqual(pod({ phase: 'Failed', reason: 'Evicted' }), { word: 'Evicted', tone: 'bad' })
  assert.deepEqual(pod({}, { deletionTimestamp: 'x' }), { word: 'Terminating', tone: 'busy' })
})

test('nodes and workloads', () => {
  assert.equal(nodeState({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }).word, 'NotReady')
  assert.equal(nodeState({ spec: { unschedulable: true }, status: { conditions: [{ type: 'Ready', status: 'True' }] } }).word,
    'Cordoned')
  assert.deepEqual(workloadState({ kind: 'Deployment', metadata: {}, spec: { replicas: 3 }, status: { availableReplicas: 1 } }),
    { word: '1/3', tone: 'busy' })
  assert.deepEqual(workloadState({ kind: 'Job', metadata: {}, spec: {}, status: { conditions: [{ type: 'Failed', status: 'True' }] } }),
    { word: 'Failed', tone: 'bad' })
})

test('ages and selectors', () => {
  const at = (s) => age('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:00Z') + s * 1000)
  assert.deepEqual([at(5), at(65), at(7200), at(90000), at(-3)], ['5s', '1m', '2h', '1d', '0s'])
  assert.equal(matches({}, { a: 'b' }), false)
  assert.equal(matches({ a: 'b' }, { a: 'b', c: 'd' }), true)
  assert.equal(matches({ a: 'b' }, undefined), false)
})
