// What breaks while a page is open: connections, the API server, credentials, the console itself. The page says so,
// keeps what it has, and goes on by itself.
import assert from 'node:assert/strict'
import { createServer, connect } from 'node:net'
import { before, test } from 'node:test'

import { apply, go, kubeconfig, kubeconfigOf, kubectl, own, start, startProcess, visit } from './harness.js'
import { until } from './scene.js'

const namespace = own(`console-broken-${process.pid}`)

const service = (name) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { type: 'ExternalName', externalName: 'a.example' },
})
const region = (page, name) => page.getByRole('region', { name: `Service ${namespace}/${name}` })
const problems = (page) => page.locator('#problems')

before(() => {
  const rbac = (kind, rest) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind,
    metadata: { name: 'passing', namespace },
    ...rest,
  })
  apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'passing', namespace } },
    rbac('RoleBinding', {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'ServiceAccount', name: 'passing', namespace }],
    }),
    service('first'),
  )
})

// wire passes connections on to the API server of a kubeconfig, until it is cut. It makes a kubeconfig that leads
// there.
async function wire(t, path) {
  const config = JSON.parse(kubectl(`config view --raw --minify -o json${path ? ` --kubeconfig ${path}` : ''}`))
  const server = new URL(config.clusters[0].cluster.server)
  const open = new Set()
  const listener = createServer((client) => {
    const peer = connect(Number(server.port || 443), server.hostname)
    for (const [a, b] of [
      [client, peer],
      [peer, client],
    ]) {
      open.add(a)
      a.pipe(b)
      a.on('error', () => {})
      a.on('close', () => {
        open.delete(a)
        b.destroy()
      })
    }
  })
  const listen = (port) => new Promise((r) => listener.listen(port, '127.0.0.1', r))
  await listen(0)
  const { port } = listener.address()
  const cut = () => {
    for (const s of open) s.destroy()
    open.clear()
  }
  const down = () =>
    new Promise((r) => {
      listener.close(r)
      cut()
    })
  t.after(() => {
    listener.close()
    cut()
  })
  config.clusters[0].cluster = {
    ...config.clusters[0].cluster,
    server: `https://127.0.0.1:${port}`,
    'tls-server-name': config.clusters[0].cluster['tls-server-name'] ?? server.hostname,
  }
  return { path: kubeconfig((c) => Object.assign(c, config)), cut, down, up: () => listen(port) }
}

test('watches that break go on', async (t) => {
  const to = await wire(t)
  const page = await visit(t, await start('--kubeconfig', to.path))
  await go(page, 'Services', namespace)
  await region(page, 'first').waitFor()
  to.cut()
  apply(service('while-cut'))
  await region(page, 'while-cut').waitFor()
  apply(service('after-cut'))
  await region(page, 'after-cut').waitFor()
  kubectl(`delete service while-cut after-cut -n ${namespace}`)
  await region(page, 'after-cut').waitFor({ state: 'detached' })
  assert.equal(await problems(page).textContent(), '')
})

test('an API server that is away comes back', async (t) => {
  const to = await wire(t)
  const page = await visit(t, await start('--kubeconfig', to.path))
  await go(page, 'Services', namespace)
  await region(page, 'first').waitFor()
  await to.down()
  const said = problems(page).getByText(/The API server does not answer/)
  await said.waitFor()
  assert.equal(await said.count(), 1, 'the same is said of each kind')
  await region(page, 'first').waitFor() // what was seen stays
  apply(service('while-away'))
  await region(page, 'first').getByRole('button').click()
  await page.locator('#panel').getByRole('alert').waitFor() // why cannot be asked
  await page.keyboard.press('Escape')
  await to.up()
  await region(page, 'while-away').waitFor()
  await page.waitForFunction(() => document.getElementById('problems').textContent === '')
})

test('credentials that are no longer valid are said to be', async (t) => {
  const own = kubeconfigOf('passing', namespace)
  const to = await wire(t, own)
  const page = await visit(t, await start('--kubeconfig', to.path))
  await page.getByRole('button', { name: 'Services', exact: true }).click()
  await region(page, 'first').waitFor()
  kubectl(`delete serviceaccount passing -n ${namespace}`)
  // An API server may know a token from before for some seconds.
  await until('the page says that the credentials are not accepted', async () => {
    to.cut()
    const said = problems(page).getByText(/does not accept the credentials of your kubeconfig/)
    return await said.waitFor({ timeout: 3000 }).then(
      () => true,
      () => false,
    )
  })
  await page.getByRole('button', { name: 'Resources', exact: true }).click()
  await page
    .locator('#main')
    .getByRole('alert')
    .getByText(/does not accept the credentials/)
    .waitFor()
})

test('a console that has ended is said to have', async (t) => {
  const { link, child } = await startProcess()
  const page = await visit(t, link)
  await go(page, 'Services', namespace)
  await region(page, 'first').waitFor()
  child.kill('SIGINT')
  await problems(page).getByText('bonsai console does not answer. Is it still running?').waitFor()
  // Another one at the same address has another token.
  await startProcess('--port', new URL(link).port)
  await problems(page)
    .getByText(/token is missing or wrong/)
    .waitFor()
})
