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
  const text = await r.text()
  let message = text
  try {
    const status = JSON.parse(text)
    message = status.code === 401 ? expired : (status.message ?? text)
  } catch {
    /* not a Status object */
  }
  throw new Refusal(r.status, message || `The server answered ${r.status}.`)
}

export const getJSON = async (path, options) => (await request(path, options)).json()
export const getText = async (path, options) => (await request(path, options)).text()

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

const longestLine = 16 << 20 // characters: an object as an event; a longer line is cut, or it could grow for ever

// lines yields the lines of a response as they come.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    const parts = (rest + value).split('\n')
    rest = parts.pop()
    yield* parts
    if (rest.length > longestLine) {
      yield rest
      rest = ''
    }
  }
  if (rest) yield rest
}
