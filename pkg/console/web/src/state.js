// What a status means, in one word and one class of colour. These are pure functions.

// podState returns how a pod is: { word, tone }, tone being good, busy, bad or done.
export function podState(pod) {
  const s = pod.status ?? {}
  if (pod.metadata.deletionTimestamp) return { word: 'Terminating', tone: 'busy' }
  if (s.phase === 'Succeeded') return { word: 'Completed', tone: 'done' }
  if (s.phase === 'Failed') return { word: s.reason ?? 'Failed', tone: 'bad' }
  const statuses = [...(s.initContainerStatuses ?? []), ...(s.containerStatuses ?? [])]
  for (const c of statuses) {
    const reason = c.state?.waiting?.reason
    if (reason && !['ContainerCreating', 'PodInitializing'].includes(reason)) return { word: reason, tone: 'bad' }
    const ended = c.state?.terminated
    if (ended && ended.exitCode !== 0) return { word: ended.reason ?? 'Error', tone: 'bad' }
  }
  const condition = (t) => s.conditions?.find((c) => c.type === t)
  if (condition('PodScheduled')?.status === 'False')
    return { word: condition('PodScheduled').reason ?? 'Pending', tone: 'bad' }
  if (condition('Ready')?.status === 'True') return { word: 'Ready', tone: 'good' }
  return { word: s.phase === 'Running' ? 'Not ready' : 'Starting', tone: 'busy' }
}

// nodeState returns how a node is.
export function nodeState(node) {
  const condition = (t) => node.status?.conditions?.find((c) => c.type === t)
  if (condition('Ready')?.status !== 'True') return { word: 'NotReady', tone: 'bad' }
  const pressure = node.status.conditions.find((c) => c.type.endsWith('Pressure') && c.status === 'True')
  if (pressure) return { word: pressure.type, tone: 'bad' }
  return node.spec?.unschedulable ? { word: 'Cordoned', tone: 'busy' } : { word: 'Ready', tone: 'good' }
}

// workloadState returns how a Deployment, set or Job is.
export function workloadState(o) {
  const s = o.status ?? {}
  if (o.metadata.deletionTimestamp) return { word: 'Terminating', tone: 'busy' }
  if (o.kind === 'Job') {
    const ended = s.conditions?.find((c) => c.status === 'True' && ['Complete', 'Failed'].includes(c.type))
    if (ended) return { word: ended.type, tone: ended.type === 'Failed' ? 'bad' : 'done' }
    return o.spec.suspend ? { word: 'Suspended', tone: 'busy' } : { word: `${s.active ?? 0} active`, tone: 'busy' }
  }
  if (o.kind === 'CronJob')
    return o.spec.suspend ? { word: 'Suspended', tone: 'busy' } : { word: o.spec.schedule, tone: 'good' }
  const want = o.kind === 'DaemonSet' ? (s.desiredNumberScheduled ?? 0) : (o.spec.replicas ?? 1)
  const has = o.kind === 'DaemonSet' ? (s.numberAvailable ?? 0) : (s.availableReplicas ?? s.readyReplicas ?? 0)
  return { word: `${has}/${want}`, tone: has === want ? 'good' : has === 0 ? 'bad' : 'busy' }
}

// age says how long ago a time was, in its largest unit.
export function age(time, now = Date.now()) {
  const s = Math.max(0, Math.floor((now - Date.parse(time)) / 1000))
  for (const [unit, size] of [
    ['d', 86400],
    ['h', 3600],
    ['m', 60],
  ])
    if (s >= size) return `${Math.floor(s / size)}${unit}`
  return `${s}s`
}

// matches reports whether labels have all that a selector of a Service wants; an empty selector selects nothing.
export function matches(selector, labels = {}) {
  const entries = Object.entries(selector ?? {})
  return entries.length > 0 && entries.every(([k, v]) => labels[k] === v)
}

const collator = new Intl.Collator(undefined, { numeric: true }) // made once: it costs more than a comparison

// byName, byPlace and byKind are orders of objects: by name, as people count; by namespace, then name; by namespace,
// kind, then name.
export const byName = (a, b) => collator.compare(a.metadata.name, b.metadata.name)
export const byPlace = (a, b) =>
  collator.compare(a.metadata.namespace ?? '', b.metadata.namespace ?? '') || byName(a, b)
export const byKind = (a, b) =>
  collator.compare(a.metadata.namespace ?? '', b.metadata.namespace ?? '') ||
  collator.compare(a.kind, b.kind) ||
  byName(a, b)

// selects reports whether a label selector selects labels; an empty one selects all.
export function selects(selector, labels = {}) {
  const pairs = Object.entries(selector?.matchLabels ?? {})
  return (
    pairs.every(([k, v]) => labels[k] === v) &&
    (selector?.matchExpressions ?? []).every((e) => {
      const has = Object.hasOwn(labels, e.key)
      if (e.operator === 'Exists') return has
      if (e.operator === 'DoesNotExist') return !has
      const inside = has && e.values.includes(labels[e.key])
      return e.operator === 'In' ? inside : !inside
    })
  )
}
