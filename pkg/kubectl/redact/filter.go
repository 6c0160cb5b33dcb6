// Package redact keeps secrets out of what -v logs, at every level, and control characters of others.
//
// client-go masks the Authorization header itself; the bodies of requests and answers it logs as they are, from level 8
// on.
package redact

import (
	"errors"
	"fmt"
	"regexp"

	"bonsai/pkg/kubectl/printers"
)

// masked stands where a secret was.
const masked = "<masked>"

// Filter is klog's filter of everything that it writes (klog.SetLogFilter).
type Filter struct{}

// Filter is for klog.Info and its like.
func (Filter) Filter(args []any) []any { return clean(args) }

// FilterF is for klog.Infof and its like; the formats are in the program, and no secret.
func (Filter) FilterF(format string, args []any) (string, []any) { return format, clean(args) }

// FilterS is for klog.InfoS and its like.
func (Filter) FilterS(message string, pairs []any) (string, []any) {
	out := clean(pairs)
	for i := 0; i+1 < len(out); i += 2 {
		if body, ok := out[i+1].(string); ok && out[i] == "body" {
			out[i+1] = Body(body)
		}
	}
	return message, out
}

// clean returns args with the text in them made fit for a log. It leaves args as they are: they are the caller's.
func clean(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
		switch v := a.(type) {
		case string:
			out[i] = line(v)
		case error:
			if was := v.Error(); line(was) != was {
				out[i] = errors.New(line(was))
			}
		case fmt.Stringer:
			if was := v.String(); line(was) != was {
				out[i] = line(was)
			}
		}
	}
	return out
}

var (
	// userinfo is the name and password in a URL.
	userinfo = regexp.MustCompile(`(://)[^/@\s'"]+@`)
	// cookie is what a proxy in front of the server may log a user in with.
	cookie = regexp.MustCompile(`(?m)^(\s*Set-Cookie: ).*$`)
)

func line(s string) string {
	s = userinfo.ReplaceAllString(s, "${1}"+masked+"@")
	s = cookie.ReplaceAllString(s, "${1}"+masked)
	return printers.Escape(s)
}
