// Live collections: the objects of a resource, kept up to date by a watch.
import { getJSON, pathOf } from './api.js'
import { restart, watch } from './stream.js'

const pageSize = 500
const retryAfter = 3000 // milliseconds until a failed list or watch is tried again
const restAfter = 500 // milliseconds between a watch that ended and the next list

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

// Collection holds the objects of one resource by UID. error is the Refusal because of which they may be old or
// missing.
class Collection {
  objects = new Map()
  error = undefined
  known = false // whether there has been an answer, if only a refusal
  narrow = false // whether it holds one namespace, since the user may not list them all
  #subscribers = new Set()
  #scheduled = false
  #again = () => {}

  constructor(kind) {
    this.kind = kind
    this.#follow()
  }

  get all() {
    return [...this.objects.values()]
  }

  subscribe(f) {
    this.#subscribers.add(f)
    return () => this.#subscribers.delete(f)
  }

  // retry ends the wait for the next try.
  retry() {
    this.#again()
  }

  // #changed tells the subscribers, once for all changes of a moment.
  #changed() {
    if (this.#scheduled) return
    this.#scheduled = true
    setTimeout(() => {
      this.#scheduled = false
      for (const f of this.#subscribers) f()
    }, 50)
  }

  async #follow() {
    for (;;) {
      let wait = restAfter
      const again = new Promise((r) => {
        this.#again = r
      })
      try {
        const { path, version } = await this.#list()
        await this.#watch(path, version)
      } catch (e) {
        wait = retryAfter
        this.error = e
        this.known = true
        if (e.status === 403) this.objects = new Map() // without an answer, what was seen stays, though it may be old
        this.#changed()
      }
      await Promise.race([again, new Promise((r) => setTimeout(r, wait))])
    }
  }

  // #list lists the whole cluster, or the chosen namespace for those who may not.
  async #list() {
    const path = pathOf(this.kind)
    try {
      this.narrow = false
      return await this.#pages(path)
    } catch (e) {
      if (e.status !== 403 || this.kind.cluster || !namespace) throw e
      this.narrow = true
      const asked = namespace
      const found = await this.#pages(pathOf(this.kind, asked))
      return asked === namespace ? found : this.#list() // another one has been chosen meanwhile
    }
  }

  async #pages(path) {
    const found = new Map()
    let next = ''
    let version
    do {
      const page = await getJSON(`${path}?limit=${pageSize}&continue=${encodeURIComponent(next)}`)
      for (const o of page.items) found.set(o.metadata.uid, { kind: this.kind.kind, ...o })
      next = page.metadata.continue ?? ''
      version = page.metadata.resourceVersion
    } while (next)
    this.objects = found
    this.error = undefined
    this.known = true
    this.#changed()
    return { path, version }
  }

  async #watch(path, version) {
    for await (const { type, object } of watch(`${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`)) {
      if (type === 'ERROR') return // too old: list again
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') this.objects.delete(object.metadata.uid)
      else this.objects.set(object.metadata.uid, object)
      this.#changed()
    }
  }
}

const collections = new Map()
let namespace = ''

// lookIn says in which namespace to look for what the user may not list in all of them.
export function lookIn(name) {
  if (name === namespace) return
  namespace = name
  const all = [...collections.values()]
  if (all.some((c) => c.narrow)) restart()
  for (const c of all) c.retry()
}

// collection returns the live objects of a resource. A watch begins at the first call and lasts as long as the page.
export function collection(name) {
  if (!collections.has(name)) collections.set(name, new Collection(kinds[name]))
  return collections.get(name)
}
