// What the tests share: consoles, pages that fail for whatever goes wrong in them, kubectl, and kubeconfigs of others.
// They need BONSAI (the program), KUBECTL, KUBECONFIG (a cluster; any make) and CHROMIUM.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

import { chromium } from 'playwright-core'

const { BONSAI, KUBECTL, CHROMIUM = '/usr/bin/chromium' } = process.env

export const views = ['Cluster', 'Workloads', 'Services', 'Events', 'Resources']
export const phone = { width: 360, height: 740 }

// kubectl runs it with arguments without spaces and returns what it printed.
export const kubectl = (args, input) =>
  execFileSync(KUBECTL, args.split(' '), {
    input,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['pipe', 'pipe', 'pipe'],
  })

// apply applies objects.
export const apply = (...objects) =>
  kubectl('apply --server-side -f -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))

// own makes a namespace for a test file, and deletes it at the end. One that there is already is left to its owner.
export function own(name) {
  kubectl(`create namespace ${name}`)
  after(() => kubectl(`delete namespace ${name} --wait=false`))
  return name
}

const children = []
let browser

after(async () => {
  await browser?.close()
  for (const c of children) c.kill('SIGINT')
})

// start runs a console and returns its link.
export const start = async (...args) => (await startProcess(...args)).link

// startProcess runs a console and returns its link and its process.
export async function startProcess(...args) {
  const child = spawn(BONSAI, ['console', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  let text = ''
  for await (const chunk of child.stdout) {
    text += chunk
    const found = /http:\S+(?=\s)/.exec(text)
    if (found) return { link: found[0], child }
  }
  throw new Error('the console ended without a link')
}

// visit opens a page and fails the test for whatever goes wrong in it: errors of its scripts, dialogs, requests to
// others, and what its policy forbids.
export async function visit(t, link, options = {}) {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  const context = await browser.newContext({ viewport: { width: 1200, height: 750 }, ...options })
  context.setDefaultTimeout(20000)
  const page = await context.newPage()
  const wrong = []
  page.on('pageerror', (e) => wrong.push(e.message))
  page.on('console', (m) => /Content.Security.Policy/i.test(m.text()) && wrong.push(m.text()))
  page.on('dialog', (d) => {
    wrong.push(`dialog ${d.message()}`)
    d.dismiss()
  })
  page.on(
    'request',
    (r) =>
      new URL(r.url()).origin !== new URL(link).origin && !r.url().startsWith('data:') && wrong.push(`asks ${r.url()}`),
  )
  t.after(async () => {
    await context.close()
    assert.deepEqual(wrong, [])
  })
  await page.goto(link)
  return page
}

// go chooses a view and waits for what it shows of a namespace.
export async function go(page, view, namespace) {
  await page.getByRole('button', { name: view, exact: true }).click()
  if (namespace !== undefined) await page.getByLabel('Namespace').first().selectOption(namespace)
  await page.locator('#main').locator('section, .tree, table, .quiet').first().waitFor()
}

// kubeconfig writes one of the same cluster. change gets it before.
export function kubeconfig(change) {
  const config = JSON.parse(kubectl('config view --raw --minify -o json'))
  change(config)
  const path = join(mkdtempSync(join(tmpdir(), 'console-')), 'kubeconfig')
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return path
}

// kubeconfigOf is that of a ServiceAccount, with its namespace as the chosen one.
export function kubeconfigOf(account, namespace) {
  const token = kubectl(`create token ${account} -n ${namespace}`).trim()
  return kubeconfig((config) => {
    config.users = [{ name: account, user: { token } }]
    config.contexts[0].context = { ...config.contexts[0].context, user: account, namespace }
  })
}
