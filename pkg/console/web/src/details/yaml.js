// An object as YAML, and its change.
import { getText, pathOf, request } from '../api.js'
import { diff } from '../diff.js'
import { h, show } from '../dom.js'
import { hidden } from '../text.js'

const type = 'application/yaml'
const writer = 'fieldManager=bonsai-console&fieldValidation=Strict'

// withoutManagers leaves managedFields out, as kubectl does: they are long, and the server keeps them when a change
// lacks them. The server writes them as a list of maps right below metadata.
function withoutManagers(text) {
  let inside = false
  return text
    .split('\n')
    .filter((line) => {
      if (line === '  managedFields:') inside = true
      else if (inside && !/^ {2}(- | )/.test(line)) inside = false
      return !inside
    })
    .join('\n')
}

// ask returns the answer to a request that changes nothing, as YAML. It is asked for as JSON first: an error would be
// YAML, too, and the page reads none.
async function ask(path, options) {
  await request(path, options)
  return withoutManagers(await getText(path, { ...options, accept: type }))
}

// yaml shows an object for editing. A change is tried by a dry run first, and its effect is shown before it is made.
export async function yaml({ o, where, body, signal, said }) {
  const path = pathOf(where, o.metadata.namespace, o.metadata.name)
  const live = await ask(path, { signal })
  const area = h('textarea', { spellcheck: 'false', 'aria-label': 'YAML', rows: live.split('\n').length })
  area.defaultValue = live // which the text is compared with when it is left
  const result = h('div', { 'aria-live': 'polite', tabindex: '-1' }, said)
  const put = () => ({ method: 'PUT', body: area.value, type, signal })
  const fail = (e) => !signal.aborted && show(result, h('p', { class: 'problem', role: 'alert' }, e.message))
  const check = async () => {
    const checked = area.value
    const changed = hunks(diff(live, await ask(`${path}?dryRun=All&${writer}`, put())))
    show(
      result,
      changed.length === 0
        ? h('p', {}, 'Nothing would change.')
        : [
            h(
              'pre',
              { class: 'diff', tabindex: '0', role: 'region', 'aria-label': 'What would change' },
              changed.map(([sign, text]) =>
                h('span', { class: { '+': 'plus', '-': 'minus' }[sign] }, `${sign} ${text}\n`),
              ),
            ),
            h(
              'button',
              { class: 'main', onclick: () => (area.value === checked ? apply() : check()).catch(fail) },
              'Apply this change',
            ),
          ],
    )
  }
  const apply = async () => {
    await request(`${path}?${writer}`, put())
    await yaml({ o, where, body, signal, said: h('p', {}, 'The change has been made.') })
    body.querySelector('[aria-live]').focus()
  }
  const strange = hidden(live)
  show(
    body,
    strange.length > 0 &&
      h('p', { class: 'problem' }, `This text has characters that cannot be seen: ${strange.slice(0, 5).join(', ')}.`),
    area,
    h('p', {}, h('button', { onclick: () => check().catch(fail) }, 'Show what would change')),
    result,
  )
}

// hunks keeps the lines that changed, and a few around them, to know where they are. Gaps are marked.
function hunks(lines) {
  const around = 2
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - around), i + around + 1).some(([s]) => s !== ' '))
  return lines.flatMap((l, i) => (near[i] ? [l] : near[i - 1] && near.indexOf(true, i) > 0 ? [['…', '']] : []))
}
