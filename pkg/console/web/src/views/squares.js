// Pods as squares: a word for who listens or points, a colour and a sign for who looks.
import { h } from '../dom.js'
import { podState } from '../state.js'

// squares has a square for each pod, beside its name if named. place tells lists apart that may have the same pod.
export function squares(pods, page, named, place = '') {
  return (
    pods.length > 0 &&
    h(
      'ul',
      { class: 'squares' },
      pods.map((p) => {
        const state = podState(p)
        const label = `Pod ${p.metadata.namespace}/${p.metadata.name}: ${state.word}`
        const square = (tag, props) => h(tag, { ...props, class: `square ${state.tone}` }, state.tone === 'bad' && '!')
        const props = {
          title: label,
          'aria-label': label,
          'data-key': place + p.metadata.uid,
          onclick: () => page.open(p),
        }
        return h(
          'li',
          {},
          named
            ? h('button', { ...props, class: 'pod' }, square('i', {}), h('span', {}, p.metadata.name))
            : square('button', props),
        )
      }),
    )
  )
}
