// Package console serves `bonsai console`: one page that shows a cluster in the browser, and what that page asks for.
//
// The page is static files, embedded in the program (dist). It reads and writes the cluster through this server, with
// the credentials of the kubeconfig that the server was given: it sees and does what their owner may, and nothing else.
//
// Who may come in: only a browser on this machine whose user has the link that the server printed. The server listens
// on
// loopback. Each request for data carries the token of that link in a header, which another site's page cannot know or
// set, and names the server's own address as its Host, which a name that leads to 127.0.0.1 (DNS rebinding) does not.
// The files of the page have nothing secret and need no token. Bounds: Limits.
package console
