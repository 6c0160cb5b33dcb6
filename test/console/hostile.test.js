// Texts of others in every field of the page that takes any: markup, scripts, signs that steer a terminal or turn the
// direction of writing, piles of marks, and lengths. None may become markup, none may look like what it is not.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'

import { apply, go, kubectl, own, phone, start, visit } from './harness.js'
import { image, until } from './scene.js'

const namespace = own(`console-hostile-${process.pid}`)
const group = `hostile${process.pid}.example`
const role = `console-${process.pid}<img src=x onerror=alert(1)>\u202e`
const policy = `console-hostile-${process.pid}`
const evil = (where) =>
  `${where} <script>alert(1)</script><img src=x onerror="alert(2)"> \u001b[2J\u0007\u202eelif\u2066\u200b\ufeff` +
  ` Z${'\u0301'.repeat(300)} {{7*7}} javascript:alert(3) ]]>--><svg onload=alert(4)>`
const seen = '<script>alert(1)</script>' // what must be read where a text is shown
let link

before(
  async () => {
    const pod = {
      restartPolicy: 'Never',
      containers: [
        {
          name: 'main',
          image,
          command: [
            'sh',
            '-c',
            `printf '\\033[31mred\\033[0m <script>alert(1)</script> \\a\\033]0;title\\007 \\342\\200\\256turned\\r\\n'; ` +
              `head -c 1000000 /dev/zero | tr '\\0' x; sleep 100000 & wait`,
          ],
        },
      ],
    }
    apply(
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'told', namespace, labels: { app: 'told' }, annotations: { note: evil('annotation') } },
        spec: { schedulerName: 'nobody', containers: [{ name: 'main', image: '<img/src=x/onerror=alert(5)>\u202e' }] },
      },
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'speaks', namespace }, spec: pod },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'told', namespace },
        spec: { selector: { app: 'told' }, ports: [{ port: 80 }] },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'told', namespace, annotations: { note: evil('annotation') } },
        data: { text: evil('data') },
      },
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'told', namespace },
        involvedObject: { kind: evil('kind'), name: evil('name'), namespace },
        reason: evil('reason').slice(0, 120),
        type: 'Warning',
        message: evil('message'),
      },
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'told-pod', namespace },
        involvedObject: { kind: 'Pod', name: 'told', namespace },
        reason: evil('reason').slice(0, 120),
        type: 'Warning',
        message: evil('message'),
      },
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: role }, rules: [] },
      {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `tales.${group}` },
        spec: {
          group,
          scope: 'Namespaced',
          names: { plural: 'tales', singular: 'tale', kind: 'Tale', listKind: 'TaleList' },
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
              additionalPrinterColumns: [
                { name: evil('column'), type: 'string', jsonPath: '.spec.text', description: evil('description') },
              ],
            },
          ],
        },
      },
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicy',
        metadata: { name: policy },
        spec: {
          matchConstraints: {
            resourceRules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['configmaps'] },
            ],
          },
          validations: [{ expression: 'false', message: evil('refusal') }],
        },
      },
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: policy },
        spec: {
          policyName: policy,
          validationActions: ['Deny'],
          matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
        },
      },
    )
    kubectl(`wait --for=condition=Established crd/tales.${group} --timeout=60s`)
    apply({
      apiVersion: `${group}/v1`,
      kind: 'Tale',
      metadata: { name: 'told', namespace },
      spec: { text: evil('value') },
    })
    kubectl(
      `replace --subresource=status -f -`,
      JSON.stringify({
        ...JSON.parse(kubectl(`get pod told -n ${namespace} -o json`)),
        status: {
          phase: 'Pending',
          conditions: [
            { type: 'PodScheduled', status: 'False', reason: evil('condition'), message: evil('condition') },
          ],
          containerStatuses: [
            {
              name: 'main',
              image: evil('image'),
              imageID: '',
              ready: false,
              restartCount: 0,
              state: { waiting: { reason: evil('waiting'), message: evil('waiting') } },
            },
          ],
        },
      }),
    )
    await until(
      'the pod speaks',
      () => kubectl(`get pod speaks -n ${namespace} -o jsonpath={.status.phase}`) === 'Running',
    )
    link = await start()
  },
  { timeout: 120000 },
)
test.after(() => {
  kubectl(`delete crd tales.${group} --wait=false`)
  kubectl(`delete validatingadmissionpolicybinding,validatingadmissionpolicy ${policy}`)
  kubectl(
    'delete -f -',
    JSON.stringify({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: role } }),
  )
})

// harmless looks at all that the page shows: no element but its own, no sign that cannot be seen, no line over others.
async function harmless(page, where) {
  const found = await page.evaluate(() => {
    const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/
    const wrong = [
      ...document.querySelectorAll(
        'img, iframe, object, embed, style, b, svg[onload], script:not([src]), a:not(.skip), [onerror], [onload]',
      ),
    ].map((e) => e.outerHTML.slice(0, 100))
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT)
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      if (n.nodeType === Node.TEXT_NODE && !n.parentElement.closest('textarea') && odd.test(n.data))
        wrong.push(`text ${JSON.stringify(n.data.slice(0, 200))}`)
      for (const a of n.attributes ?? [])
        if (a.name !== 'value' && a.name !== 'data-key' && odd.test(a.value))
          wrong.push(`${a.name} ${JSON.stringify(a.value.slice(0, 200))}`)
      if (n.nodeType === Node.TEXT_NODE && /\u0301{5}/.test(n.data) && !n.parentElement.closest('textarea'))
        wrong.push('a pile of marks')
    }
    return { wrong, wide: document.documentElement.scrollWidth - innerWidth }
  })
  assert.deepEqual(found.wrong, [], where)
  assert.ok(found.wide <= 0, `${where} is ${found.wide} pixels too wide`)
  assert.match(await page.title(), /Bonsai console$/)
}

for (const viewport of [{ width: 1200, height: 750 }, phone]) {
  const size = `${viewport.width} pixels`
  test(`hostile texts in every view, ${size}`, async (t) => {
    const page = await visit(t, link, { viewport })
    await go(page, 'Cluster', namespace)
    await page.getByRole('button', { name: /Pod .*told: .*<script>/ }).waitFor()
    await harmless(page, 'Cluster')
    await go(page, 'Workloads')
    await page.locator('.row').filter({ hasText: 'told' }).filter({ hasText: seen }).waitFor()
    await harmless(page, 'Workloads')
    await go(page, 'Services')
    await page
      .getByRole('region', { name: /told/ })
      .getByRole('button', { name: /<script>/ })
      .waitFor()
    await harmless(page, 'Services')
    await go(page, 'Events')
    for (const field of ['reason', 'kind', 'message'])
      await page
        .locator('td')
        .filter({ hasText: new RegExp(`^${field} <script>`) })
        .first()
        .waitFor()
    await harmless(page, 'Events')
    await page.getByRole('button', { name: /^kind <script>/ }).click() // an object of no kind
    await page.locator('#panel [role="alert"]').filter({ hasText: seen }).waitFor()
    await harmless(page, 'an object of no kind')
    await page.getByRole('button', { name: 'Close' }).click()
    await go(page, 'Resources')
    const kind = page.getByLabel('Kind')
    await kind.selectOption({ label: `tales.${group}` })
    await page.getByRole('columnheader', { name: /<script>/ }).waitFor()
    await page.getByRole('cell', { name: /^value <script>/ }).waitFor()
    await harmless(page, 'a custom resource')
    await kind.selectOption({ label: 'clusterroles.rbac.authorization.k8s.io' })
    await page.getByLabel('Find').fill(`console-${process.pid}`)
    const named = page.getByRole('button', { name: /onerror=alert/ })
    await named.waitFor()
    await harmless(page, 'a hostile name')
    await named.click()
    for (const tab of ['Why', 'Events', 'YAML']) {
      await page.getByRole('tab', { name: tab }).click()
      await page
        .locator(tab === 'YAML' ? '#panel textarea' : '#panel .body :not(.quiet)')
        .or(page.getByText('No events are left'))
        .first()
        .waitFor()
      await harmless(page, `${tab} of a hostile name`)
    }
    assert.match(await page.getByRole('textbox', { name: 'YAML' }).inputValue(), /kind: ClusterRole/)
  })

  test(`hostile texts in the details, ${size}`, async (t) => {
    const page = await visit(t, link, { viewport })
    await go(page, 'Cluster', namespace)
    await page.getByRole('button', { name: /Pod .*told: / }).click()
    await page.locator('#panel .sentence').waitFor()
    for (const d of await page.locator('#panel summary').all()) await d.click()
    await harmless(page, 'Why')
    await page.getByRole('tab', { name: 'Life' }).click()
    await page.locator('#panel').locator('.waterfall, .quiet:not(:text("One moment"))').first().waitFor()
    await harmless(page, 'Life')
    await page.getByRole('tab', { name: 'Log' }).click()
    await page.locator('#panel .log:not(:empty)').waitFor()
    await harmless(page, 'no log')
    await page.getByRole('tab', { name: 'Events' }).click()
    await page
      .locator('#panel td')
      .filter({ hasText: /^message <script>/ })
      .waitFor()
    await harmless(page, 'Events')
    await page.getByRole('tab', { name: 'YAML' }).click()
    await page.getByText(/characters that cannot be seen: U\+/).waitFor()
    await harmless(page, 'YAML')
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: /Pod .*speaks: / }).click()
    await page.getByRole('tab', { name: 'Log' }).click()
    await page.locator('.log').filter({ hasText: seen }).waitFor()
    await harmless(page, 'Log')
    assert.match(
      await page.locator('.log').textContent(),
      /^red <script>alert\(1\)<\/script> ␇␛\]0;title␇ ⟨U\+202E⟩turned\nx{4000}$/,
    )
    await page.getByRole('button', { name: 'Close' }).click()
    await go(page, 'Resources')
    await page.getByRole('button', { name: 'told', exact: true }).click()
    await page.getByRole('tab', { name: 'YAML' }).click()
    const area = page.getByRole('textbox', { name: 'YAML' })
    await area.waitFor()
    await area.fill((await area.inputValue()).replace('data:\n', 'data:\n  more: text\n'))
    await until('the policy is at work', async () => {
      await page.getByRole('button', { name: 'Show what would change' }).click()
      return await page
        .locator('#panel [role="alert"]')
        .filter({ hasText: seen })
        .waitFor({ timeout: 2000 })
        .then(
          () => true,
          () => false,
        )
    })
    await harmless(page, "the API server's refusal")
  })
}
