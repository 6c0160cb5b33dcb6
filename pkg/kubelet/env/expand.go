package env

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// expand replaces each $(NAME) in s by what lookup knows of NAME. A reference that lookup does not know stays as it is,
// $$ stands for one $ (so that $$(NAME) gives the text $(NAME)), and any other $ stands for itself.
//
// It works once from left to right: what a value expands to is not expanded again.
func expand(s string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 {
				out.WriteString("$(")
				i++
				continue
			}
			if v, ok := lookup(s[i+2 : i+end]); ok {
				out.WriteString(v)
			} else {
				out.WriteString(s[i : i+end+1])
			}
			i += end
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

// Command returns the container's command and arguments with the references to its environment expanded.
func Command(c *corev1.Container, vars []Var) (command, args []string) {
	get := lookupIn(vars)
	for _, s := range c.Command {
		command = append(command, expand(s, get))
	}
	for _, s := range c.Args {
		args = append(args, expand(s, get))
	}
	return command, args
}

// SubPath expands a volume mount's subPathExpr. Unlike elsewhere a reference to an unknown variable is an error.
func SubPath(expr string, vars []Var) (string, error) {
	var missing string
	get := lookupIn(vars)
	out := expand(expr, func(name string) (string, bool) {
		v, ok := get(name)
		if !ok && missing == "" {
			missing = name
		}
		return v, ok
	})
	if missing != "" {
		return "", fmt.Errorf("missing value for %q", missing)
	}
	return out, nil
}

func lookupIn(vars []Var) func(string) (string, bool) {
	m := make(map[string]string, len(vars))
	for _, v := range vars {
		m[v.Name] = v.Value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}
