// A small shop: objects of many kinds, well and in trouble, as the pictures of docs/guides/console.md show them.
import { apply, kubectl } from './harness.js'

// IMAGE has a shell. The cluster's nodes have it, or can pull it.
export const image = process.env.IMAGE ?? 'localhost/busybox:1.0'

// until waits until f returns something, and returns that. what says what was waited for.
export async function until(what, f, seconds = 120) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const found = await f()
    if (found) return found
    if (Date.now() > end) throw new Error(`not within ${seconds} seconds: ${what}`)
    await new Promise((r) => setTimeout(r, 300))
  }
}

const container = (script, more = {}) => ({
  name: 'main',
  image,
  command: ['sh', '-c', script],
  resources: { requests: { cpu: '10m', memory: '16Mi' } },
  ...more,
})
const template = (app, c, more = {}) => ({
  metadata: { labels: { app } },
  spec: { terminationGracePeriodSeconds: 0, containers: [c], ...more },
})

const served =
  'trap exit TERM; mkdir /www && echo shop > /www/index.html && httpd -p 8080 -h /www; ' +
  'i=0; for path in / /basket /order /search?q=tea / /basket /pay /order; do i=$((i+1)); ' +
  'echo "request $i: GET $path 200 in $((i*3 % 7 + 1)) ms"; done; sleep 100000 & wait'

// shop returns the objects of the scene in a namespace.
export function shop(namespace) {
  const o = (apiVersion, kind, name, rest) => ({
    apiVersion,
    kind,
    metadata: { name, namespace, ...rest.metadata },
    ...rest.body,
  })
  const workload = (kind, name, spec) =>
    o('apps/v1', kind, name, { body: { spec: { selector: { matchLabels: { app: name } }, ...spec } } })
  const service = (name, spec) =>
    o('v1', 'Service', name, {
      body: { spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec } },
    })
  const from = (name, app, ingress) =>
    o('networking.k8s.io/v1', 'NetworkPolicy', name, {
      body: { spec: { podSelector: { matchLabels: { app } }, policyTypes: ['Ingress'], ingress } },
    })
  const ready = { readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 } }
  return [
    workload('Deployment', 'web', { replicas: 3, template: template('web', container(served, ready)) }),
    service('web', {}),
    from('web-from-anywhere', 'web', [{}]),
    workload('StatefulSet', 'database', {
      serviceName: 'database',
      replicas: 2,
      podManagementPolicy: 'Parallel',
      template: template('database', container(served, ready)),
    }),
    service('database', { clusterIP: 'None', ports: [{ name: 'sql', port: 5432, targetPort: 8080 }] }),
    from('database-from-web', 'database', [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }] }]),
    workload('StatefulSet', 'checkout', {
      serviceName: 'checkout',
      replicas: 2,
      podManagementPolicy: 'Parallel',
      template: template('checkout', container('sleep 100000 & wait', ready)),
    }),
    service('checkout', {}),
    workload('StatefulSet', 'search', {
      serviceName: 'search',
      replicas: 1,
      template: template('search', container('sleep 100000 & wait'), { nodeSelector: { 'shop.example/disk': 'fast' } }),
    }),
    workload('StatefulSet', 'mail', {
      serviceName: 'mail',
      replicas: 1,
      template: template('mail', container('echo "connect to mail.example: no route to host"; exit 1')),
    }),
    workload('DaemonSet', 'metrics', { template: template('metrics', container('sleep 100000 & wait')) }),
    o('batch/v1', 'CronJob', 'nightly-report', {
      body: {
        spec: {
          schedule: '0 3 * * *',
          jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [container('true')] } } } },
        },
      },
    }),
    o('batch/v1', 'Job', 'import-catalogue', {
      body: {
        spec: {
          template: {
            metadata: { labels: { app: 'import' } },
            spec: { restartPolicy: 'Never', containers: [container('echo 1204 articles')] },
          },
        },
      },
    }),
    o('v1', 'ConfigMap', 'settings', {
      body: { data: { currency: 'EUR', greeting: 'Welcome to the shop', 'items-per-page': '20' } },
    }),
  ]
}

// orders is a custom resource with columns of its own.
export const orders = (group) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `orders.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'orders', singular: 'order', kind: 'Order', listKind: 'OrderList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        additionalPrinterColumns: [
          ['Customer', 'string', '.spec.customer'],
          ['Articles', 'integer', '.spec.articles'],
          ['State', 'string', '.spec.state'],
        ].map(([name, type, jsonPath]) => ({ name, type, jsonPath })),
      },
    ],
  },
})

// raise makes the shop in a namespace that there is, and waits until all of it is as it will be.
export async function raise(namespace, group) {
  apply(...shop(namespace), orders(group))
  kubectl(`wait --for=condition=Established crd/orders.${group} --timeout=60s`)
  apply(
    ...[
      ['Ada', 3, 'paid'],
      ['Grace', 1, 'packed'],
      ['Katherine', 12, 'sent'],
      ['Margaret', 2, 'returned'],
    ].map(([customer, articles, state], i) => ({
      apiVersion: `${group}/v1`,
      kind: 'Order',
      metadata: { name: `order-${1001 + i}`, namespace },
      spec: { customer, articles, state },
    })),
  )
  kubectl(`rollout status deployment/web -n ${namespace} --timeout=180s`)
  kubectl(`rollout status statefulset/database -n ${namespace} --timeout=180s`)
  kubectl(`rollout status daemonset/metrics -n ${namespace} --timeout=180s`)
  kubectl(`wait --for=condition=Complete job/import-catalogue -n ${namespace} --timeout=120s`)
  const pod = (name) => JSON.parse(kubectl(`get pod ${name} -n ${namespace} -o json`))
  await until(
    'checkout runs',
    () => pod('checkout-0').status.phase === 'Running' && pod('checkout-1').status.phase === 'Running',
  )
  await until('search has no node', () => pod('search-0').status.conditions?.some((c) => c.reason === 'Unschedulable'))
  await until(
    'mail has failed twice',
    () => pod('mail-0').status.containerStatuses?.[0].state.waiting?.reason === 'CrashLoopBackOff',
  )
}
