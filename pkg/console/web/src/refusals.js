// What could not be read, and why.
import { h } from './dom.js'

// refusals says it of collections, once for all that failed for the same reason, or nothing. What the user may not see
// is said, not hidden as if it were not there.
export function refusals(collections) {
  const failed = collections.filter((c) => c.error)
  const names = (list) => list.map((c) => c.kind.resource).join(', ')
  const forbidden = failed.filter((c) => c.error.status === 403)
  const others = Map.groupBy(
    failed.filter((c) => c.error.status !== 403),
    (c) => c.error.message,
  )
  return [
    forbidden.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, `You may not list ${names(forbidden)}.`),
        h(
          'ul',
          {},
          forbidden.map((c) => h('li', {}, c.error.message)),
        ),
      ),
    [...others].map(([message, list]) => h('p', {}, message, ' ', h('span', { class: 'quiet' }, `(${names(list)})`))),
  ]
}
