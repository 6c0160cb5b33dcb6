// What the page asks of its own server, which passes it on with the user's credentials.

// The token comes in the fragment of the link, which no server sees and no log has. It is kept for this tab, and leaves
// the address bar at once.
function take() {
  const given = new URLSearchParams(location.hash.slice(1))
  if (given.has('token')) for (const name of ['token', 'namespace']) sessionStorage.setItem(name, given.get(name) ?? '')
  history.replaceState(null, '', location.pathname)
  return { token: sessionStorage.getItem('token') ?? '', namespace: sessionStorage.getItem('namespace') || 'default' }
}

// defaultNamespace is the one of the kubeconfig.
const { token, namespace: defaultNamespace } = take()
export { defaultNamespace }

// Refusal is an answer of the server that is no success. status is its HTTP code, 0 if there was no answer.
export class Refusal extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

const expired =
  'The API server does not accept the credentials of your kubeconfig. They may have expired: renew them, ' +
  'then start bonsai console again.'

// request sends a request and returns the response if it is a success.
export async function request(path, { method = 'GET', body, type, accept = 'application/json', signal } = {}) {
  let r
  try {
    r = await fetch(path, {
      method,
      body,
      signal,
      headers: { Authorization: `Bearer ${token}`, Accept: accept, ...(type && { 'Content-Type': type }) },
    })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    throw new Refusal(0, 'bonsai console does not answer. Is it still running?')
  }
  if (r.ok) return r
  const text = await whole(r)
  let message = text
  try {
    const status = JSON.parse(text)
    message = status.code === 401 ? expired : (status.message ?? text)
  } catch {
    /* not a Status object */
  }
  throw new Refusal(r.status, message || `The server answered ${r.status}.`)
}

export const getJSON = async (path, options) => JSON.parse(await getText(path, options))
export const getText = async (path, options) => whole(await request(path, options))

export const mostAnswer = 64 << 20 // characters of an answer that are held at once: the server's own bound

// texts yields the text of a response as it comes.
export async function* texts(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel() // whoever reads no further wants no more
  }
}

// whole returns the text of a response, and refuses one that is too long to hold.
export async function whole(response, most = mostAnswer) {
  const parts = []
  let length = 0
  for await (const text of texts(response)) {
    if ((length += text.length) > most) {
      throw new Refusal(0, `The answer is too large to show: it has more than ${most >> 20} MiB.`)
    }
    parts.push(text)
  }
  return parts.join('')
}

// pathOf is where a resource is served; name and namespace may be empty.
export function pathOf({ group, version, resource }, namespace, name) {
  const parts = [
    group ? ['apis', group] : 'api',
    version,
    namespace ? ['namespaces', namespace] : [],
    resource,
    name || [],
  ]
  return '/' + parts.flat().map(encodeURIComponent).join('/')
}

const longestLine = 16 << 20 // characters: an object as an event

// lines yields the lines of a response as they come. Of a line that is too long the beginning comes.
export async function* lines(response, longest = longestLine) {
  let parts = [] // of the line that has not ended
  let room = longest
  const add = (text) => {
    if (text && room > 0) parts.push(text.slice(0, room))
    room -= text.length
  }
  for await (const value of texts(response)) {
    let from = 0
    for (let at; (at = value.indexOf('\n', from)) >= 0; from = at + 1) {
      add(value.slice(from, at))
      yield parts.join('')
      parts = []
      room = longest
    }
    add(value.slice(from))
  }
  if (parts.length) yield parts.join('')
}
