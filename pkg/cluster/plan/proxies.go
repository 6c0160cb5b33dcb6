package plan

import (
	"slices"
	"strings"
)

// Environ returns the environment of the cluster's processes. If environ names a proxy for HTTP, the processes talk to
// each other, to pods and to Services without it. They still pull images through it.
func (c Config) Environ(environ []string) []string {
	value := func(name string) string {
		found := ""
		for _, e := range environ {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				found = v // the last one counts, as in exec
			}
		}
		return found
	}
	named := func(name string) bool { return value(name) != "" || value(strings.ToLower(name)) != "" }
	if !named("HTTP_PROXY") && !named("HTTPS_PROXY") && !named("ALL_PROXY") {
		return environ
	}
	direct := []string{"localhost", "127.0.0.0/8", "::1", ".svc", ".cluster.local"}
	for _, n := range c.Networks().All() {
		direct = append(direct, n.String())
	}
	if c.Joined != nil {
		direct = append(direct, c.Joined.Server.Addr().String())
	}
	// The supervisor inherits the variable, and its children inherit it from the supervisor. Without this check the
	// list would grow with each generation.
	var all []string
	for _, d := range slices.Concat(strings.Split(value("NO_PROXY"), ","), strings.Split(value("no_proxy"), ","),
		direct) {
		if d = strings.TrimSpace(d); d != "" && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	list := strings.Join(all, ",")
	return append(slices.Clip(environ), "NO_PROXY="+list, "no_proxy="+list)
}
