// Live collections: the objects of a resource, kept up to date by a watch.
import { getJSON, pathOf } from './api.js'
import { watch } from './stream.js'

const pageSize = 500
const retryAfter = 3000 // milliseconds until a failed list or watch is tried again

export const kinds = {
  nodes: { group: '', version: 'v1', resource: 'nodes', kind: 'Node', cluster: true },
  namespaces: { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', cluster: true },
  pods: { group: '', version: 'v1', resource: 'pods', kind: 'Pod' },
  services: { group: '', version: 'v1', resource: 'services', kind: 'Service' },
  events: { group: '', version: 'v1', resource: 'events', kind: 'Event' },
  deployments: { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment' },
  replicasets: { group: 'apps', version: 'v1', resource: 'replicasets', kind: 'ReplicaSet' },
  statefulsets: { group: 'apps', version: 'v1', resource: 'statefulsets', kind: 'StatefulSet' },
  daemonsets: { group: 'apps', version: 'v1', resource: 'daemonsets', kind: 'DaemonSet' },
  jobs: { group: 'batch', version: 'v1', resource: 'jobs', kind: 'Job' },
  cronjobs: { group: 'batch', version: 'v1', resource: 'cronjobs', kind: 'CronJob' },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', kind: 'EndpointSlice' },
  networkpolicies: { group: 'networking.k8s.io', version: 'v1', resource: 'networkpolicies', kind: 'NetworkPolicy' },
}

// Collection holds the objects of one resource by UID. error is why they may be old or missing, "" for none.
class Collection {
  objects = new Map()
  error = ''
  synced = false
  #subscribers = new Set()
  #scheduled = false

  constructor(kind) {
    this.kind = kind
    this.#follow()
  }

  get all() { return [...this.objects.values()] }

  subscribe(f) {
    this.#subscribers.add(f)
    return () => this.#subscribers.delete(f)
  }

  // #changed tells the subscribers, once for all changes of a moment.
  #changed() {
    if (this.#scheduled) return
    this.#scheduled = true
    setTimeout(() => {
      this.#scheduled = false
      for (const f of this.#subscribers) f()
    }, 100)
  }

  async #follow() {
    for (;;) {
      try {
        await this.#watch(await this.#list())
      } catch (e) {
        this.error = e.message
        this.#changed()
        await new Promise((r) => setTimeout(r, retryAfter))
      }
    }
  }

  async #list() {
    const found = new Map()
    let next = ''
    let version
    do {
      const page = await getJSON(`${pathOf(this.kind)}?limit=${pageSize}&continue=${encodeURIComponent(next)}`)
      for (const o of page.items) found.set(o.metadata.uid, { kind: this.kind.kind, ...o })
      next = page.metadata.continue ?? ''
      version = page.metadata.resourceVersion
    } while (next)
    this.objects = found
    this.error = ''
    this.synced = true
    this.#changed()
    return version
  }

  async #watch(version) {
    for await (const { type, object } of watch(`${pathOf(this.kind)}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`)) {
      if (type === 'ERROR') return // too old: list again
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') this.objects.delete(object.metadata.uid)
      else this.objects.set(object.metadata.uid, object)
      this.#changed()
    }
  }
}

const collections = new Map()

// collection returns the live objects of a resource. A watch begins at the first call and lasts as long as the page.
export function collection(name) {
  if (!collections.has(name)) collections.set(name, new Collection(kinds[name]))
  return collections.get(name)
}
