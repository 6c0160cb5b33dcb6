package aggregator

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/proxy"

	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/request"
)

// Requests that are handed on at a time, of all servers and to one, streams not counted: fewer than the server takes in
// all, so that servers which answer slowly do not keep it from answering for itself.
const (
	maxInFlight       = 120
	maxServerInFlight = 60
)

// loopMessage answers a request that has been here before.
const loopMessage = "the APIService leads back to this API server"

// Serves reports whether a request is for another server.
func (a *Aggregator) Serves(info *request.Info) bool { return a.serviceOf(info) != nil }

// serviceOf is who serves what is asked for; nil if this server does.
func (a *Aggregator) serviceOf(info *request.Info) *Service {
	now := a.Index()
	if now.remotes == 0 {
		return nil
	}
	if info.IsResource {
		return now.Of(schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion})
	}
	rest, ok := strings.CutPrefix(info.Path, "/apis/")
	if !ok {
		return nil
	}
	group, version, ok := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	if !ok {
		return nil
	}
	version, _, _ = strings.Cut(version, "/")
	return now.Of(schema.GroupVersion{Group: group, Version: version})
}

// Proxy hands a request on that was authenticated and authorized, and reports whether it is one for another server; if
// not, nothing was written. stream tells that it lasts.
func (a *Aggregator) Proxy(w http.ResponseWriter, r *http.Request, stream bool) bool {
	info := request.InfoFrom(r.Context())
	s := a.serviceOf(info)
	if s == nil {
		return false
	}
	a.handOn(w, r, s, stream)
	return true
}

func (a *Aggregator) handOn(w http.ResponseWriter, r *http.Request, s *Service, stream bool) {
	user := request.UserFrom(r.Context())
	switch {
	case user == nil:
		http.Error(w, "missing user", http.StatusInternalServerError)
		return
	case strings.Contains(strings.Join(r.Header.Values("Via"), ","), a.via):
		http.Error(w, loopMessage, http.StatusLoopDetected)
		return
	case dotted(r.URL.Path):
		// What was authorized is the path as it stands; the server would take it for another one.
		http.Error(w, "the path has dots for segments", http.StatusBadRequest)
		return
	case !s.Available():
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	if !stream {
		held := a.inFlight.Hold(inflight.Others, s.Object.Name, nil)
		if !held.Take(1) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests for this server are under way, please try again later",
				http.StatusTooManyRequests)
			return
		}
		defer held.Give()
	}
	addresses, err := a.cfg.Cluster.addresses(r.Context(), s.Object.Spec.Service)
	if err != nil {
		a.cfg.Log.Warn("the server of an APIService cannot be found", "name", s.Object.Name, "err", err)
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	location := &url.URL{Scheme: "https", Host: addresses[0], Path: r.URL.Path, RawQuery: r.URL.Query().Encode()}
	out := a.asked(r, user, location)
	out.Header.Set("Audit-Id", w.Header().Get("Audit-Id")) // so that the audit logs of both servers can be joined
	h := proxy.NewUpgradeAwareHandler(location, egress.Answers{Transport: s.remote.transport}, false,
		httpstream.IsUpgradeRequest(r), unreachable{})
	h.RejectForwardingRedirects = !a.cfg.FollowRedirects
	h.ServeHTTP(w, out)
}

// asked is the request as the other server gets it.
func (a *Aggregator) asked(r *http.Request, user *request.User, location *url.URL) *http.Request {
	out := r.Clone(r.Context())
	out.URL, out.Host = location, location.Host
	a.identify(out, user)
	out.Header.Add("Via", a.via)
	out.Header.Set("X-Forwarded-Host", location.Host)
	out.Header.Set("X-Forwarded-Proto", location.Scheme)
	out.Header.Set("X-Forwarded-Uri", location.Path)
	return out
}

// dotted reports whether a path has "." or ".." for a segment.
func dotted(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// unreachable answers when the server does not, in upstream's words.
type unreachable struct{}

// Error implements proxy.ErrorResponder.
func (unreachable) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, "error trying to reach service: "+err.Error(), http.StatusServiceUnavailable)
}
