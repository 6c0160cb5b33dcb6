// The console in Chromium, as people use it: clicks, keys, a small screen, a dark one, and a user who may see little.
// It needs BONSAI (the program), KUBECTL, KUBECONFIG (a cluster with a node; any make) and CHROMIUM.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { chromium } from 'playwright-core'

const { BONSAI, KUBECTL, CHROMIUM = '/usr/bin/chromium' } = process.env
const namespace = `console-${process.pid}`
const kubectl = (args, input) => execFileSync(KUBECTL, args.split(' '), { input, encoding: 'utf8' })

const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: ${namespace}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: ${namespace}, labels: {app: waits}}
spec:
  nodeSelector: {no-node-has: this}
  containers: [{name: c, image: localhost/busybox:1.0}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${namespace}}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}}
data: {greeting: "<img src=x onerror=alert(1)>"}
---
apiVersion: v1
kind: Event
metadata: {name: evil, namespace: ${namespace}}
involvedObject: {kind: Pod, name: waits, namespace: ${namespace}}
reason: Evil
type: Warning
message: "<script>document.title='taken'</script><b>bold</b>"
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: little, namespace: ${namespace}}
`

let browser
let link
const children = []

// start runs a console and returns its link.
async function start(...args) {
  const child = spawn(BONSAI, ['console', ...args])
  children.push(child)
  for await (const chunk of child.stdout) {
    const found = /http:\S+/.exec(String(chunk))
    if (found) return found[0]
  }
  throw new Error('the console ended without a link')
}

before(async () => {
  kubectl('apply -f -', manifests)
  link = await start()
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
})

after(async () => {
  await browser?.close()
  for (const c of children) c.kill('SIGINT')
  kubectl(`delete namespace ${namespace} --wait=false`)
})

// visit opens a page and fails the test for whatever goes wrong in it.
async function visit(t, options = {}, to = link) {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const wrong = []
  page.on('pageerror', (e) => wrong.push(e.message))
  page.on('dialog', (d) => { wrong.push(`dialog ${d.message()}`); d.dismiss() })
  page.on('request', (r) => new URL(r.url()).origin !== new URL(to).origin && !r.url().startsWith('data:') && wrong.push(`asks ${r.url()}`))
  t.after(async () => {
    await context.close()
    assert.deepEqual(wrong, [])
  })
  await page.goto(to)
  return page
}

test('the picture has a card for each node, and a pod that waits', async (t) => {
  const page = await visit(t)
  const nodes = kubectl('get nodes -o name').trim().split('\n').map((n) => n.replace('node/', ''))
  for (const n of nodes) await page.getByRole('region', { name: `Node ${n}`, exact: true }).waitFor()
  await page.getByRole('button', { name: `Pod ${namespace}/waits: Unschedulable` }).waitFor()
  assert.equal(new URL(page.url()).hash, '', 'the token stays in the address bar')
})

test('why, with the keyboard alone', async (t) => {
  const page = await visit(t)
  await page.keyboard.press('/')
  await page.keyboard.type('waits')
  const pod = page.getByRole('button', { name: `Pod ${namespace}/waits: Unschedulable` })
  await pod.waitFor()
  await pod.focus()
  await page.keyboard.press('Enter')
  await page.getByText(/no-node-has/).first().waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary').waitFor({ state: 'hidden' })
  assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /waits/, 'the focus does not come back')
})

test("a pod's life is a waterfall", async (t) => {
  const [ns, name] = kubectl('get pods -A --field-selector status.phase=Running -o jsonpath={.items[0].metadata.namespace}/{.items[0].metadata.name}').split('/')
  const page = await visit(t)
  await page.getByRole('button', { name: new RegExp(`^Pod ${ns}/${name}: `) }).click()
  await page.getByRole('tab', { name: 'Life' }).click()
  await page.locator('.waterfall tbody tr').nth(2).waitFor()
})

test('an object is changed after its effect was shown', async (t) => {
  const page = await visit(t)
  await page.getByRole('button', { name: 'Resources' }).click()
  await page.getByLabel('Namespace').selectOption(namespace)
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
  await page.getByRole('button', { name: 'Apply this change' }).waitFor({ state: 'detached' })
  assert.match(kubectl(`get configmap settings -n ${namespace} -o yaml --show-managed-fields`), /colour: green[\s\S]*bonsai-console/)
  await area.fill('kind: nonsense')
  await page.getByRole('button', { name: 'Show what would change' }).click()
  await page.getByRole('alert').waitFor()
})

test('text of others is text', async (t) => {
  const page = await visit(t)
  await page.getByRole('button', { name: 'Events' }).click()
  await page.getByText("<script>document.title='taken'</script><b>bold</b>").waitFor()
  assert.notEqual(await page.title(), 'taken')
})

test('a change shows by itself', async (t) => {
  const page = await visit(t)
  await page.getByRole('button', { name: 'Services' }).click()
  await page.getByRole('region', { name: `Service ${namespace}/web` }).getByText('0 of 0 endpoints ready').waitFor()
  kubectl('apply -f -', `{apiVersion: v1, kind: Service, metadata: {name: later, namespace: ${namespace}}, spec: {clusterIP: None, ports: [{port: 1}]}}`)
  await page.getByRole('region', { name: `Service ${namespace}/later` }).waitFor()
})

test('every control has a name, and a phone shows it all', async (t) => {
  const page = await visit(t, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' })
  for (const view of ['Cluster', 'Workloads', 'Services', 'Events', 'Resources']) {
    await page.getByRole('button', { name: view, exact: true }).click()
    await page.locator('main').locator('button, td, select').first().waitFor()
    const found = await page.evaluate(() => ({
      unnamed: [...document.querySelectorAll('button, input, select, textarea')].filter((e) =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label') || e.labels?.length)).map((e) => e.outerHTML),
      wide: document.documentElement.scrollWidth - innerWidth,
    }))
    assert.deepEqual(found.unnamed, [], view)
    assert.ok(found.wide <= 0, `${view} is ${found.wide} pixels too wide`)
  }
})

test('without the token there is nothing to see', async (t) => {
  const page = await visit(t, {}, new URL('/', link).href)
  await page.getByText(/token is missing or wrong/).first().waitFor()
  const answer = await page.evaluate(async () => (await fetch('/api/v1/secrets')).status)
  assert.equal(answer, 401)
})

test('who may see little is told so', async (t) => {
  const token = kubectl(`create token little -n ${namespace}`).trim()
  const config = JSON.parse(kubectl('config view --raw --minify -o json'))
  config.users = [{ name: 'little', user: { token } }]
  config.contexts[0].context.user = 'little'
  const path = join(mkdtempSync(join(tmpdir(), 'console-')), 'kubeconfig')
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  const page = await visit(t, {}, await start('--kubeconfig', path))
  await page.getByText(/nodes: nodes is forbidden/).waitFor()
})
