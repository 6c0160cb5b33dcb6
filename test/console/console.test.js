// The console in Chromium, as people use it: the picture, why, a life, a change, and the door. The other files try what
// may go wrong: access.test.js, hostile.test.js, rights.test.js, broken.test.js, many.test.js.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'

import { apply, go, kubectl, own, start, visit } from './harness.js'

const namespace = own(`console-${process.pid}`)
let link

before(async () => {
  apply(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'waits', namespace },
      spec: { nodeSelector: { 'no-node-has': 'this' }, containers: [{ name: 'c', image: 'none' }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace },
      spec: { selector: { app: 'nobody' }, ports: [{ port: 80 }] },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace }, data: { greeting: 'hello' } },
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'waits', namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'waits', namespace },
      reason: 'Told',
      type: 'Normal',
      message: 'as a test',
    },
  )
  link = await start()
})

test('the picture has a card for each node, and a pod that waits', async (t) => {
  const page = await visit(t, link)
  const nodes = kubectl('get nodes -o name')
    .trim()
    .split('\n')
    .map((n) => n.replace('node/', ''))
  for (const n of nodes) await page.getByRole('region', { name: `Node ${n}`, exact: true }).waitFor()
  await page.getByRole('button', { name: `Pod ${namespace}/waits: Unschedulable` }).waitFor()
  assert.equal(new URL(page.url()).hash, '', 'the token stays in the address bar')
})

test('why, by keys', async (t) => {
  const page = await visit(t, link)
  await page.keyboard.press('/')
  await page.keyboard.type('waits')
  const pod = page.getByRole('button', { name: `Pod ${namespace}/waits: Unschedulable` })
  await pod.waitFor()
  await pod.focus()
  await page.keyboard.press('Enter')
  await page
    .getByText(/no-node-has/)
    .first()
    .waitFor()
  await page.keyboard.press('Escape')
  await page.locator('#panel').waitFor({ state: 'hidden' })
  await page.keyboard.press('4')
  await page.waitForFunction(() => document.title.startsWith('Events'))
})

test("a pod's life is a waterfall", async (t) => {
  const [ns, name] = kubectl(
    'get pods -A --field-selector status.phase=Running -o jsonpath={.items[0].metadata.namespace}/{.items[0].metadata.name}',
  ).split('/')
  const page = await visit(t, link)
  await page.getByRole('button', { name: new RegExp(`^Pod ${ns}/${name}: `) }).click()
  await page.getByRole('tab', { name: 'Life' }).click()
  await page.locator('.waterfall tbody tr').nth(2).waitFor()
})

test('an event leads to its object', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Events', namespace)
  await page.getByRole('row').filter({ hasText: 'as a test' }).getByRole('button', { name: 'Pod waits' }).click()
  await page.getByRole('heading', { name: `Pod ${namespace}/waits` }).waitFor()
  await page
    .getByText(/no-node-has/)
    .first()
    .waitFor()
})

test('an object is changed after its effect was shown', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Resources', namespace)
  await page.getByRole('button', { name: 'settings', exact: true }).click()
  await page.getByRole('tab', { name: 'YAML' }).click()
  const area = page.getByRole('textbox', { name: 'YAML' })
  await area.waitFor()
  const text = await area.inputValue()
  assert.doesNotMatch(text, /managedFields/)
  await area.fill(text.replace('data:\n', 'data:\n  colour: green\n'))
  await page.getByRole('button', { name: 'Show what would change' }).click()
  await page.getByText('+   colour: green').waitFor()
  assert.doesNotMatch(kubectl(`get configmap settings -n ${namespace} -o yaml`), /green/, 'the dry run wrote')
  await page.getByRole('button', { name: 'Apply this change' }).click()
  await page.getByText('The change has been made.').waitFor()
  assert.match(
    kubectl(`get configmap settings -n ${namespace} -o yaml --show-managed-fields`),
    /colour: green[\s\S]*bonsai-console/,
  )
  // What is written after the effect was shown is shown first, too.
  await area.fill((await area.inputValue()).replace('green', 'blue'))
  await page.getByRole('button', { name: 'Show what would change' }).click()
  await page.getByText('+   colour: blue').waitFor()
  await area.fill((await area.inputValue()).replace('blue', 'red'))
  await page.getByRole('button', { name: 'Apply this change' }).click()
  await page.getByText('+   colour: red').waitFor()
  assert.match(kubectl(`get configmap settings -n ${namespace} -o yaml`), /colour: green/)
  await area.fill('kind: nonsense')
  await page.getByRole('button', { name: 'Show what would change' }).click()
  await page.locator('#panel').getByRole('alert').waitFor()
})

test('a change shows by itself', async (t) => {
  const page = await visit(t, link)
  await go(page, 'Services', namespace)
  await page
    .getByRole('region', { name: `Service ${namespace}/web` })
    .getByText('0 of 0 ready')
    .waitFor()
  apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'later', namespace },
    spec: { clusterIP: 'None', ports: [{ port: 1 }] },
  })
  await page.getByRole('region', { name: `Service ${namespace}/later` }).waitFor()
})

test('without the token there is nothing to see', async (t) => {
  const page = await visit(t, new URL('/', link).href)
  await page
    .getByText(/token is missing or wrong/)
    .first()
    .waitFor()
  const answer = await page.evaluate(async () => (await fetch('/api/v1/secrets')).status)
  assert.equal(answer, 401)
})
