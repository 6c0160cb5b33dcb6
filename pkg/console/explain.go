package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"bonsai/pkg/safetext"
)

// argument is what a kind, a name or a namespace may be: never a flag, and nothing that a program reads as another
// object.
var argument = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$`)

// explain answers with a program's explanation of an object: ?kind=deployments.apps&name=web&namespace=shop.
func (s *server) explain(program string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		kind, name, namespace := q.Get("kind"), q.Get("name"), q.Get("namespace")
		for field, value := range map[string]string{"kind": kind, "name": name} {
			if !valid(value) {
				http.Error(w, fmt.Sprintf("%s: %q is no valid value", field, safetext.Text(value)),
					http.StatusBadRequest)
				return
			}
		}
		args := []string{kind + "/" + name, "-o", "json"}
		if namespace != "" {
			if !valid(namespace) {
				http.Error(w, fmt.Sprintf("namespace: %q is no valid value", safetext.Text(namespace)),
					http.StatusBadRequest)
				return
			}
			args = append(args, "--namespace", namespace)
		}
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		defer cancel()
		select {
		case s.asked <- struct{}{}:
			defer func() { <-s.asked }()
		case <-ctx.Done():
			http.Error(w, "Too many explanations are being made.", http.StatusServiceUnavailable)
			return
		}
		out, err := s.Ask(ctx, program, args)
		if err != nil {
			http.Error(w, safetext.Message(err.Error()), http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here is the browser's end.
		_, _ = w.Write(out)
	})
}

func valid(value string) bool {
	const longest = 253 + 253 // a resource with its group
	return len(value) <= longest && argument.MatchString(value) && !strings.Contains(value, "..")
}
