// A pod's life as a waterfall.
import { getJSON } from '../api.js'
import { h, show } from '../dom.js'
import { question } from './question.js'

// life shows a pod's steps as a waterfall: by its trace, or by its conditions, as kubectl trace finds them.
export async function life({ o, where, body, signal }) {
  const story = await getJSON(`/console/trace?${question(o, where)}`, { signal })
  show(body, waterfall(story))
}

// waterfall draws the phases of a story, as kubectl trace -o json has them.
function waterfall(story) {
  const phases = (story.phases ?? []).filter((p) => p.steps?.length)
  return [
    (story.notes ?? []).map((n) => h('p', { class: 'quiet' }, n)),
    phases.length === 0 && h('p', { class: 'quiet' }, 'No steps are known.'),
    phases.length > 0 &&
      h(
        'p',
        { class: 'legend', 'aria-hidden': 'true' },
        h('span', {}, h('i', { class: 'swatch critical' }), ' on the critical path'),
        h('span', {}, h('i', { class: 'swatch' }), ' beside it'),
      ),
    phases.map(phase),
  ]
}

// phase shows one part of a life, such as its start: the steps that decided how long it took are darker.
function phase(p) {
  const steps = flatten(p.steps, 0)
  const begin = Date.parse(p.start)
  const end = Math.max(...steps.map((s) => s.start + s.length), begin + 1)
  return [
    h('h3', {}, p.name, ' ', h('span', { class: 'quiet' }, duration(end - begin))),
    h(
      'div',
      { class: 'scroll' },
      h(
        'table',
        { class: 'waterfall' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', { scope: 'col' }, 'Step'),
            h(
              'th',
              { scope: 'col', 'aria-label': 'When' },
              h('span', { class: 'axis' }, h('span', {}, '0'), h('span', {}, duration(end - begin))),
            ),
            h('th', { scope: 'col', class: 'number' }, 'Duration'),
          ),
        ),
        h(
          'tbody',
          {},
          steps.map((s) =>
            h(
              'tr',
              {},
              h(
                'th',
                { scope: 'row', class: `depth${Math.min(s.depth, 3)}` },
                breakable(s.name),
                s.error && ` ⚠ ${s.error}`,
                s.critical && h('span', { class: 'unseen' }, ' (on the critical path)'),
              ),
              h('td', { class: 'track' }, bar(s, begin, end)),
              h('td', { class: 'number' }, duration(s.length)),
            ),
          ),
        ),
      ),
    ),
  ]
}

// breakable lets a path go on in the next line after a slash or a full stop.
const breakable = (text) => text.split(/(?<=[/.])/).flatMap((part) => [h('wbr'), part])

// bar is a step's part of the whole, as a drawing: styles in attributes are forbidden by the page's policy.
function bar(s, begin, end) {
  const x = Math.max((100 * (s.start - begin)) / (end - begin), 0) // a controller's round may have begun before
  const width = Math.max((100 * (s.start + s.length - begin)) / (end - begin) - x, 0.6)
  return h(
    'svg',
    {
      viewBox: '0 0 100 10',
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `after ${duration(Math.max(s.start - begin, 0))}`,
    },
    h('rect', { x: Math.min(x, 99.4), y: 1, width, height: 8, class: s.critical ? 'critical' : 'step' }),
  )
}

// flatten brings a phase's steps into one list, times in milliseconds. A step with a part of the critical path is
// critical. What took no time to speak of inside another step is left out.
function flatten(list, depth) {
  const least = 0.05
  return list.flatMap((s) => {
    const step = {
      name: s.detail && depth === 0 ? `${s.name} ${s.detail}` : s.name,
      start: Date.parse(s.start),
      length: (s.duration ?? 0) / 1e6,
      critical: s.onPath > 0,
      error: s.error,
      depth,
    }
    return [...(depth > 0 && step.length < least ? [] : [step]), ...flatten(s.steps ?? [], depth + 1)]
  })
}

const duration = (ms) =>
  ms < 0.05
    ? '0 ms'
    : ms >= 10000
      ? `${(ms / 1000).toFixed(0)} s`
      : ms >= 1000
        ? `${(ms / 1000).toFixed(1)} s`
        : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`
