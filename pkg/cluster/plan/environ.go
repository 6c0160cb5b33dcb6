package plan

import (
	"slices"
	"strings"
)

// inherited are the variables of a user's environment that count for a cluster's processes: where programs are, time
// zone and certificates of the machine, proxies, and what tunes Go programs.
var inherited = [...]string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY",
	"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GOCOVERDIR"}

// isInherited reports whether a cluster's processes inherit a variable. Names of proxies have no case. A variable of
// Bonsai's own is for them.
func isInherited(name string) bool {
	upper := name
	if strings.HasSuffix(name, "_proxy") {
		upper = strings.ToUpper(name)
	}
	return strings.HasPrefix(name, "BONSAI_") || slices.Contains(inherited[:], upper)
}

// Environ returns the environment of the cluster's processes, made of a user's. Nothing else of that counts: a cluster
// is the same whoever starts it, in a desktop's session or as a service. XDG_RUNTIME_DIR is a directory that no node
// has, and containerd writes there; etcd takes every ETCD_ variable for a flag.
//
// If environ names a proxy for HTTP, the processes talk to each other, to pods and to Services without it. They still
// pull images through it.
func (c Config) Environ(environ []string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !isInherited(name)
	})
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
	for _, p := range c.Peers {
		direct = append(direct, p.API.Addr().String())
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
