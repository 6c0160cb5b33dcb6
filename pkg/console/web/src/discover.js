// What the server serves.
import { getJSON } from './api.js'

const accept = 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList'

// discover returns every resource that can be listed, in its preferred version.
export async function discover() {
  const groups = (await Promise.all([getJSON('/api', { accept }), getJSON('/apis', { accept })])).flatMap(
    (l) => l.items ?? [],
  )
  const list = []
  for (const g of groups) {
    const seen = new Set()
    for (const v of g.versions ?? []) {
      for (const r of v.resources ?? []) {
        if (seen.has(r.resource) || !r.verbs.includes('list')) continue
        seen.add(r.resource)
        list.push({
          group: g.metadata.name ?? '',
          version: v.version,
          resource: r.resource,
          kind: r.responseKind.kind,
          cluster: r.scope === 'Cluster',
        })
      }
    }
  }
  return list.sort((a, b) => a.resource.localeCompare(b.resource))
}

// placeOfReference returns where the kind of a reference, such as an event's involvedObject, is served.
export async function placeOfReference({ apiVersion = 'v1', kind }) {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return (await discover()).find((r) => r.kind === kind && r.group === group)
}
