// Users with few rights: each sees what the API server lets them see, is told what it refuses, and nothing else.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'

import { apply, go, kubeconfigOf, kubectl, own, start, views, visit } from './harness.js'

const namespace = own(`console-rights-${process.pid}`)
const other = own(`console-other-${process.pid}`)
const clusterWide = `console-pods-${process.pid}`

before(() => {
  const account = (name) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } })
  const pod = (name, ns) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: ns, labels: { app: name } },
    spec: { schedulerName: 'nobody', containers: [{ name: 'main', image: 'none' }] },
  })
  const rbac = (kind, name, rest) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind,
    metadata: { name, ...(!kind.startsWith('Cluster') && { namespace }) },
    ...rest,
  })
  apply(
    account('nobody'),
    account('clerk'),
    account('counter'),
    pod('mine', namespace),
    pod('theirs', other),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'mine', namespace },
      spec: { selector: { app: 'mine' }, ports: [{ port: 80 }] },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace }, data: { a: 'b' } },
    rbac('RoleBinding', 'clerk', {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'clerk', namespace }],
    }),
    rbac('ClusterRole', clusterWide, {
      rules: [{ apiGroups: [''], resources: ['pods', 'services', 'namespaces'], verbs: ['list', 'watch'] }],
    }),
    rbac('ClusterRoleBinding', clusterWide, {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterWide },
      subjects: [{ kind: 'ServiceAccount', name: 'counter', namespace }],
    }),
  )
})
test.after(() => kubectl(`delete clusterrolebinding,clusterrole ${clusterWide}`))

const problems = (page) => page.locator('#problems')

test('who may see nothing is told so in every view', async (t) => {
  const page = await visit(t, await start('--kubeconfig', kubeconfigOf('nobody', namespace)))
  for (const [view, kinds] of Object.entries({
    Cluster: ['nodes', 'pods'],
    Workloads: ['deployments', 'jobs', 'pods'],
    Services: ['services', 'endpointslices'],
    Events: ['events'],
  })) {
    await page.getByRole('button', { name: view, exact: true }).click()
    for (const k of kinds)
      await problems(page)
        .getByText(new RegExp(`You may not list .*\\b${k}\\b`))
        .waitFor()
    assert.equal(await page.locator('#main').getByRole('button').count(), 0, view)
  }
  await problems(page).locator('summary').click()
  await problems(page)
    .getByText(/events is forbidden: User "system:serviceaccount:.*:nobody" cannot list resource "events"/)
    .waitFor()
  await page.getByRole('button', { name: 'Resources' }).click()
  await page
    .locator('#main')
    .getByRole('alert')
    .getByText(/configmaps is forbidden/)
    .waitFor()
  assert.equal(await page.locator('#main table').count(), 0)
})

test('who may see one namespace sees that one', async (t) => {
  const page = await visit(t, await start('--kubeconfig', kubeconfigOf('clerk', namespace)))
  const text = []
  const chosen = page.getByRole('textbox', { name: 'Namespace' })
  await chosen.waitFor()
  assert.equal(await chosen.inputValue(), namespace, "not the kubeconfig's namespace")
  for (const view of views) {
    await page.getByRole('button', { name: view, exact: true }).click()
    if (view !== 'Events') await page.locator('#main').getByRole('button', { name: /mine/ }).first().waitFor()
    text.push(await page.locator('body').textContent())
  }
  assert.doesNotMatch(text.join('\n'), /theirs/)
  await page.getByRole('button', { name: 'Cluster', exact: true }).click()
  await problems(page).getByText('You may not list namespaces, nodes.').waitFor()
  // Changes show there, too.
  kubectl(`label pod mine -n ${namespace} a=b`)
  kubectl(`delete pod mine -n ${namespace} --grace-period=0 --force`)
  await page.getByRole('button', { name: /Pod .*mine/ }).waitFor({ state: 'detached' })
  // An edit is refused by the dry run, in the server's words.
  await page.getByRole('button', { name: 'Resources' }).click()
  await page.getByRole('button', { name: 'mine', exact: true }).click()
  await page.getByRole('tab', { name: 'YAML' }).click()
  const area = page.getByRole('textbox', { name: 'YAML' })
  await area.waitFor()
  await area.fill((await area.inputValue()).replace('a: b', 'a: c'))
  await page.getByRole('button', { name: 'Show what would change' }).click()

  await page
    .locator('#panel')
    .getByRole('alert')
    .getByText(/configmaps "mine" is forbidden: .* cannot update/)
    .waitFor()
  assert.equal(await page.getByRole('button', { name: 'Apply this change' }).count(), 0)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.getByLabel('Kind').selectOption({ label: 'secrets' })
  await page
    .locator('#main')
    .getByRole('alert')
    .getByText(/secrets is forbidden/)
    .waitFor()
  // In a namespace of others there is nothing to see.
  await page.getByRole('button', { name: 'Cluster', exact: true }).click()
  await chosen.fill(other)
  await chosen.press('Enter')
  await problems(page).getByText('You may not list namespaces, nodes, pods.').waitFor()
  assert.equal(await page.locator('#main').getByRole('button').count(), 0)
  await chosen.fill(namespace)
  await chosen.press('Enter')
  await problems(page).getByText('You may not list namespaces, nodes.').waitFor()
})

test('what may not be seen is not taken for absent', async (t) => {
  const pods = JSON.parse(kubectl('get pods -A --field-selector spec.nodeName!= -o json')).items
  if (pods.length === 0) return t.skip('no pod has a node')
  const page = await visit(t, await start('--kubeconfig', kubeconfigOf('counter', namespace)))
  await go(page, 'Cluster', '')
  const node = page.getByRole('region', { name: `Node ${pods[0].spec.nodeName}`, exact: true })
  await node.getByText('the node itself is not to be seen').waitFor()
  const waiting = page.getByRole('region', { name: 'Pods without a node' })
  await waiting.getByRole('button', { name: new RegExp(`Pod ${other}/theirs`) }).waitFor()
  // all at once: pods of others come and go
  const labels = await waiting.getByRole('button').evaluateAll((list) => list.map((b) => b.getAttribute('aria-label')))
  for (const label of labels) assert.doesNotMatch(label, /: Ready/)
  await go(page, 'Services', namespace)
  const service = page.getByRole('region', { name: `Service ${namespace}/mine` })
  await service.getByText('not to be seen').nth(1).waitFor() // endpoints and policies
  assert.doesNotMatch(await service.textContent(), /0 of 0/)
})
