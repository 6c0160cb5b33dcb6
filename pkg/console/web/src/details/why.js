// Why an object is as it is, as kubectl why says.
import { getJSON } from '../api.js'
import { h, show } from '../dom.js'
import { hidden } from '../text.js'
import { question } from './question.js'

export async function why({ o, where, body, signal }) {
  const a = await getJSON(`/console/why?${question(o, where)}`, { signal })
  show(
    body,
    h('p', { class: `sentence ${a.well ? 'good' : 'bad'}` }, a.state),
    h(
      'ol',
      { class: 'causes' },
      (a.causes ?? []).map((c) => cause(c)),
    ),
    a.unseen?.length > 0 && [
      h('p', { class: 'quiet' }, 'Not all could be read:'),
      h(
        'ul',
        {},
        a.unseen.map((u) => h('li', {}, u)),
      ),
    ],
  )
}

function cause(c) {
  return h(
    'li',
    {},
    h('p', {}, c.text),
    c.fixes?.length > 0 &&
      h(
        'ul',
        { class: 'fixes' },
        c.fixes.map((f) => h('li', {}, f.text, f.command && command(f.command))),
      ),
    c.because?.length > 0 && [
      h('p', { class: 'quiet' }, 'because'),
      h(
        'ul',
        {},
        c.because.map((b) => cause(b)),
      ),
    ],
    c.evidence?.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, 'Evidence'),
        h(
          'ul',
          {},
          c.evidence.map((e) => h('li', {}, `${e.object.kind} ${e.object.name} ${e.field ?? ''} = ${e.value ?? ''}`)),
        ),
      ),
  )
}

// command shows a command, with a button that copies it if it is just what can be seen.
function command(text) {
  const copy = h(
    'button',
    {
      class: 'link',
      onclick: () =>
        navigator.clipboard.writeText(text).then(() => {
          copy.textContent = 'copied'
        }),
    },
    'copy',
  )
  return h(
    'div',
    { class: 'command' },
    h('code', {}, text),
    hidden(text).length === 0 && !text.includes('\n') && [' ', copy],
  )
}
