package authn

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"bonsai/pkg/apiserver/request"
)

// TokenAuthenticator recognises bearer tokens of one kind.
type TokenAuthenticator interface {
	// AuthenticateToken returns the bearer of token and the audiences that both the token and the caller's list have; a
	// bearer without audiences has a token that names none: it is for the API server itself. It returns (nil, nil, nil)
	// when the token is not of this kind, an error when it is and is not valid. An empty list of audiences stands for
	// the API server's own.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User, []string, error)
}

// errInvalidToken is reported when a request carries a bearer token that no authenticator knows.
var errInvalidToken = errors.New("invalid bearer token")

// Bearer returns an Authenticator that reads the bearer token of a request ("Authorization: Bearer …", or the WebSocket
// sub-protocol base64url.bearer.authorization.k8s.io.<token>) and gives it to t. A token that t does not know is an
// error.
func Bearer(t TokenAuthenticator) Authenticator { return bearer{t} }

type bearer struct{ tokens TokenAuthenticator }

// Authenticate implements Authenticator. A request without a token is (nil, nil), so that Union can try other ways, and
// at last anonymous. One with a bad token is an error and never becomes anonymous: a client with an expired token gets
// 401 and can renew it.
func (b bearer) Authenticate(r *http.Request) (*request.User, error) {
	token, protocols := bearerHeader(r), []string(nil)
	if token == "" {
		var err error
		if token, protocols, err = bearerProtocol(r); err != nil {
			return nil, err
		}
	}
	if token == "" {
		return nil, nil
	}
	user, _, err := b.tokens.AuthenticateToken(r.Context(), token, nil)
	if err != nil {
		return nil, err
	}
	if user == nil {
		return nil, errInvalidToken
	}
	if protocols != nil {
		// The server must not choose the sub-protocol that carries the credential.
		r.Header.Set("Sec-WebSocket-Protocol", strings.Join(protocols, ","))
	}
	return user, nil
}

// bearerHeader returns "" for any other scheme, and for a token with spaces before or in it: such a header carries no
// bearer token.
func bearerHeader(r *http.Request) string {
	scheme, token, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || strings.ContainsAny(token, " \t") {
		return ""
	}
	return token
}

const protocolPrefix = "base64url.bearer.authorization.k8s.io."

// bearerProtocol returns the token among the WebSocket sub-protocols of an upgrade request, and the other
// sub-protocols. Browsers cannot set the Authorization header of a WebSocket, hence this way. At least one other
// sub-protocol must be there, because the server has to choose one and must not echo the token.
func bearerProtocol(r *http.Request) (token string, rest []string, err error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", nil, nil
	}
	for _, h := range r.Header["Sec-Websocket-Protocol"] {
		for p := range strings.SplitSeq(h, ",") {
			p = strings.TrimSpace(p)
			encoded, ok := strings.CutPrefix(p, protocolPrefix)
			if !ok {
				rest = append(rest, p)
				continue
			}
			if token != "" {
				return "", nil, errors.New("multiple base64.bearer.authorization tokens specified")
			}
			b, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || !utf8.Valid(b) {
				return "", nil, errors.New("invalid base64.bearer.authorization token encoding")
			}
			token = string(b)
		}
	}
	if token != "" && len(rest) == 0 {
		return "", nil, errors.New("missing additional subprotocol")
	}
	return token, rest, nil
}

// Tokens returns a TokenAuthenticator that asks each of list in order, as Union does.
func Tokens(list ...TokenAuthenticator) TokenAuthenticator { return tokens(list) }

type tokens []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator. An error of one does not end the search: two kinds of tokens may
// look alike, and a later authenticator may know this one. If none does, the client gets all errors.
func (ts tokens) AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User, []string,
	error) {
	var errs []error
	for _, t := range ts {
		user, auds, err := t.AuthenticateToken(ctx, token, audiences)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if user != nil {
			return user, auds, nil
		}
	}
	return nil, nil, errors.Join(errs...)
}

// Intersect returns the audiences of want that have has too, in want's order; nil if there are none.
func Intersect(want, have []string) []string {
	var both []string
	for _, a := range want {
		if slices.Contains(have, a) {
			both = append(both, a)
		}
	}
	return both
}
