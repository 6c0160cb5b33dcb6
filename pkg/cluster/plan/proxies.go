package plan

import (
	"slices"
	"strings"
)

// withoutProxies returns an environment for the cluster's processes: as environ, but where it names a proxy for
// HTTP, what the cluster's
// processes say to each other, to pods and to Services does not go through it. Images are still pulled through it.
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
	// The supervisor has all of them from whoever started it, and its children from the supervisor: each is named once.
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
