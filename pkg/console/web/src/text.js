// Texts of others, made visible: what steers a terminal or turns the direction of writing stands there as a sign, so
// that no name or message looks like another one. These are pure functions.

const controls = /[\u0000-\u0008\u000b-\u001f\u007f]/g // all below space but tab and newline
const unseen =
  /[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu
const marks = /(\p{M}{4})\p{M}+/gu // piled up, they reach into the lines above and below

// visible shows control characters by their pictures (␛), and other characters that cannot be seen by their number.
export function visible(text) {
  return text
    .replace(controls, (c) => String.fromCodePoint(c === '\u007f' ? 0x2421 : 0x2400 + c.charCodeAt(0)))
    .replace(unseen, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`)
    .replace(marks, '$1')
}

// line shows a line of a log: without its colours, and without the return at its end.
export function line(text) {
  return visible(text.replace(/\r$/, '').replace(/\u001b\[[0-9;:]*m/g, ''))
}

// hidden lists the characters of a text that visible would show otherwise, each once, as "U+202E in line 3".
export function hidden(text) {
  const found = new Map()
  text.split('\n').forEach((l, i) => {
    for (const [c] of [...l.matchAll(controls), ...l.matchAll(unseen)]) if (!found.has(c)) found.set(c, i + 1)
  })
  return [...found].map(([c, n]) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')} in line ${n}`)
}
