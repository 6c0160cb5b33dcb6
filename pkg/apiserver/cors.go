package apiserver

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// CompileOrigins reads the expressions of --cors-allowed-origins. Each must name a whole host: "example.com" would
// match https://example.com.evil.net too.
func CompileOrigins(expressions []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, e := range expressions {
		compiled, err := regexp.Compile(e)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(e, "^") && !strings.Contains(e, "//") ||
			!strings.Contains(e, "$") && !strings.Contains(e, ":") {
			return nil, errors.New("regular expression does not pin to start/end of host in the origin header")
		}
		out = append(out, compiled)
	}
	return out, nil
}

// cors lets scripts of the allowed origins use the API in browsers, which ask before they send anything unusual: by
// OPTIONS, without credentials. Such a question is answered here, before anybody is authenticated; it reads nothing.
// Other origins get no header, and their browsers keep the answers from them. Without origins it adds no filter at all.
func (s *Server) cors(next http.HandlerFunc) http.HandlerFunc {
	if len(s.Origins) == 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		allowed := origin != "" &&
			slices.ContainsFunc(s.Origins, func(e *regexp.Regexp) bool { return e.MatchString(origin) })
		if !allowed {
			next(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, "+
			"Authorization, X-Requested-With, If-Modified-Since")
		h.Set("Access-Control-Expose-Headers", "Date")
		h.Set("Access-Control-Allow-Credentials", "true")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next(w, r)
	}
}
