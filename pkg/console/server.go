package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits bound what the page can make this server hold.
const (
	// maxBody is the most that one request may send, in bytes: what an API server takes for an object.
	maxBody = 3 << 20
	// maxRequests is how many requests are under way at once, watches included. A page has a watch for each kind that
	// it
	// shows, some 20.
	maxRequests = 200
	// askTime is how long an explanation may take.
	askTime = time.Minute
	// maxAsked is how many explanations are made at once; each is a process.
	maxAsked = 2
)

// Config is what a server needs; all fields are required.
type Config struct {
	// Upstream is the address of the API server, and Transport sends requests to it with the user's credentials.
	Upstream  *url.URL
	Transport http.RoundTripper
	// Host is this server's address as browsers name it: 127.0.0.1:8001.
	Host string
	// Token is what requests for data must carry.
	Token string
	// Page are the files of the page.
	Page fs.FS
	// Ask runs one of the programs that explain: "why" or "trace". It returns what the program printed, as JSON.
	Ask func(ctx context.Context, program string, args []string) ([]byte, error)
	Log *slog.Logger
}

// NewToken returns a fresh token of 256 random bits.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// New returns the server's handler.
func New(cfg Config) (http.Handler, error) {
	switch {
	case cfg.Upstream == nil || cfg.Transport == nil || cfg.Page == nil || cfg.Ask == nil || cfg.Log == nil:
		return nil, errors.New("console: Upstream, Transport, Page, Ask and Log are required")
	case cfg.Host == "":
		return nil, errors.New("console: Host is required")
	case len(cfg.Token) < 32:
		return nil, errors.New("console: the token must have at least 32 characters")
	}
	s := &server{Config: cfg, requests: make(chan struct{}, maxRequests), asked: make(chan struct{}, maxAsked)}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(cfg.Page))
	for _, path := range []string{"/api", "/api/", "/apis", "/apis/", "/openapi/", "/version"} {
		mux.Handle(path, s.guarded(s.proxy()))
	}
	watches := &streams{server: s, open: map[string]*stream{}}
	mux.Handle("/console/stream", s.guarded(http.HandlerFunc(watches.serve)))
	mux.Handle("/console/watch", s.guarded(http.HandlerFunc(watches.watch)))
	mux.Handle("/console/why", s.guarded(s.explain("why")))
	mux.Handle("/console/trace", s.guarded(s.explain("trace")))
	return s.headers(mux), nil
}

type server struct {
	Config
	requests chan struct{} // a slot for each request that is under way
	asked    chan struct{} // a slot for each explanation
}

// headers refuses other hosts, and sets what keeps other sites out of the page: no frame, no script but ours, no
// address
// of this server in what the page links to.
func (s *server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != s.Host {
			http.Error(w, fmt.Sprintf("This server answers at http://%s only.", s.Host), http.StatusMisdirectedRequest)
			return
		}
		secure(w.Header())
		next.ServeHTTP(w, r)
	})
}

// secure sets the headers of all answers.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "+
		"data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// guarded lets only requests with the token through, a bounded number at once.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) != 1 {
			http.Error(w, "The token is missing or wrong: open the link that bonsai console printed.",
				http.StatusUnauthorized)
			return
		}
		select {
		case s.requests <- struct{}{}:
			defer func() { <-s.requests }()
		default:
			http.Error(w, "Too many requests are under way.", http.StatusTooManyRequests)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
