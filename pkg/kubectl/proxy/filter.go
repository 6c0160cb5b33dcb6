package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// filterFlags are lists of regular expressions, comma separated, as the flags give them.
type filterFlags struct {
	acceptHosts, acceptPaths, rejectPaths, rejectMethods string
}

func (f *filterFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.acceptPaths, "accept-paths", "^.*", "Regular expression for paths that the proxy should accept.")
	fs.StringVar(&f.rejectPaths, "reject-paths", "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach",
		"Regular expression for paths that the proxy should reject. Paths specified here will be rejected even accepted by --accept-paths.")
	fs.StringVar(&f.acceptHosts, "accept-hosts", `^localhost$,^127\.0\.0\.1$,^\[::1\]$`,
		"Regular expression for hosts that the proxy should accept.")
	fs.StringVar(&f.rejectMethods, "reject-methods", "^$",
		"Regular expression for HTTP methods that the proxy should reject (example --reject-methods='POST,PUT,PATCH').")
}

// expressions are what any of matches.
type expressions []*regexp.Regexp

func (e expressions) match(s string) bool {
	for _, one := range e {
		if one.MatchString(s) {
			return true
		}
	}
	return false
}

func compile(flag, list string) (expressions, error) {
	var out expressions
	for _, one := range strings.Split(list, ",") {
		re, err := regexp.Compile(one)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		out = append(out, re)
	}
	return out, nil
}

// wrap lets through what the filter accepts and answers 403 to the rest.
func (f filterFlags) wrap(next http.Handler) (http.Handler, error) {
	acceptHosts, err1 := compile("accept-hosts", f.acceptHosts)
	acceptPaths, err2 := compile("accept-paths", f.acceptPaths)
	rejectPaths, err3 := compile("reject-paths", f.rejectPaths)
	rejectMethods, err4 := compile("reject-methods", f.rejectMethods)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted := acceptHosts.match(hostOf(r.Host)) && acceptPaths.match(r.URL.Path) &&
			!rejectPaths.match(r.URL.Path) && !rejectMethods.match(r.Method)
		if !accepted {
			http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// hostOf is the host of a Host header without its port; an IPv6 address keeps its brackets.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		return header
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
