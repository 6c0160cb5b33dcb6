// The page's watches, all in one response of its server: browsers keep six connections to a server at most.
import { lines, request } from './api.js'

let next = 0
let current // a promise of { name, watches } of the stream that is open
let close = new AbortController() // ends it

// restart ends the stream, and so all watches: whoever watches begins again.
export const restart = () => close.abort()

// open begins a stream. Its watches end with it; whoever watches begins again, on the next stream.
function open() {
  current ??= (async () => {
    const stream = { watches: new Map() }
    close = new AbortController()
    const all = lines(await request('/console/stream', { signal: close.signal }))
    stream.name = (await all.next()).value
    ;(async () => {
      try {
        for await (const line of all) {
          const space = line.indexOf(' ')
          const id = Number(space < 0 ? line : line.slice(0, space))
          stream.watches.get(id)?.(space < 0 ? undefined : JSON.parse(line.slice(space + 1)))
        }
      } catch {
        /* the server has gone, as the next request says, or restart was called */
      }
      current = undefined
      for (const end of stream.watches.values()) end(undefined)
    })()
    return stream
  })()
  current.catch(() => {
    current = undefined
  })
  return current
}

// watch yields the events of a watch until it ends.
export async function* watch(path) {
  const stream = await open()
  const id = next++
  const waiting = []
  let wake = () => {}
  stream.watches.set(id, (event) => {
    waiting.push(event)
    wake()
  })
  try {
    await request(`/console/watch?${new URLSearchParams({ stream: stream.name, id, path })}`, { method: 'POST' })
    for (;;) {
      while (waiting.length) {
        const event = waiting.shift()
        if (event === undefined) return
        yield event
      }
      await new Promise((r) => {
        wake = r
      })
    }
  } finally {
    stream.watches.delete(id)
  }
}
