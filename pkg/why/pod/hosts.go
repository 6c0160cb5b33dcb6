package pod

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/safetext"
	"bonsai/pkg/why"
)

// unreachable matches the messages of programs that get no answer from a server.
var unreachable = regexp.MustCompile(`(?i)refused|timed? ?out|unreachable|no route to host|reset by peer|` +
	`ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|can(no|')t connect|could not connect|failed to connect|` +
	`waiting for`)

// Where a command, a variable or a message names a host: in an URL, before a port, after the name of a program or an
// option that takes one, or in the words of clients (connect to db port 5432).
var (
	hostName = `([a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)`
	inURL    = regexp.MustCompile(`[a-z][a-z0-9+.-]*://(?:[^/@\s"']*@)?` + hostName + `(?::(\d{1,5}))?(?:[/?\s"',)]|$)`)
	withPort = regexp.MustCompile(`(?:^|[\s"'=,(\[])` + hostName + `:(\d{1,5})(?:[\s"',)/:\]]|$)`)
	asTarget = regexp.MustCompile(`(?:^|[\s/(;|&])(?:nc|ncat|telnet|nslookup|ping|host|dig|getent hosts|getent ahosts)` +
		`(?:\s+-\w+(?:\s+\d+)?)*\s+` + hostName + `(?:\s+(\d{1,5}))?(?:[\s;|&)]|$)`)
	asOption = regexp.MustCompile(`(?:^|\s)(?:-h|--host|--hostname|--server)[= ]` + hostName + `(?:[\s;|&]|$)()`)
	lookedUp = regexp.MustCompile(`(?i)(?:lookup|getaddrinfo|resolve(?: host)?(?: address)?:?|bad address|host(?: name)?|` +
		`server can't find|ENOTFOUND|EAI_AGAIN|UnknownHostException:)\s+['"\x{2018}\x{201c}]?` + hostName + `()`)
	inWords = regexp.MustCompile(`(?i)(?:connect(?:ing|ion)? to (?:server at |host )?|\(host=)["']?` + hostName +
		`["']?(?:,? port:?[ =]|:)(\d{1,5})`)
	// forHosts matches the names of variables whose values are hosts.
	forHosts = regexp.MustCompile(`(?i)(host|hostname|addr|address|url|uri|endpoint|server|broker|dsn|service)s?$`)
	onlyHost = regexp.MustCompile(`^` + hostName + `()$`)
)

// fillers are words that follow the words of lookedUp without being a name.
var fillers = []string{"not", "on", "in", "to", "for", "is", "was", "the", "by", "name", "address", "at", "and", "or",
	"port", "from", "with", "of", "a", "failed", "error", "key", "unknown"}

// endpoint is a host, and its port if it is known.
type endpoint struct {
	host string
	port int32
	// guessed says that the place may have something else than a host, such as a file and its line: such a name counts
	// only if there is a Service of that name.
	guessed bool
}

// endpoints are the hosts that a text names in these places, the first maxNamed in each.
func endpoints(text string, places ...*regexp.Regexp) (list []endpoint) {
	for _, place := range places {
		for _, m := range place.FindAllStringSubmatch(text, maxNamed) {
			port, _ := strconv.ParseUint(m[2], 10, 16)
			e := endpoint{m[1], int32(port), place == withPort || place == inWords}
			if !slices.Contains(list, e) && !slices.Contains(fillers, strings.ToLower(e.host)) {
				list = append(list, e)
			}
		}
	}
	return list
}

// ofVariable are the hosts that a variable of a container names.
func ofVariable(v corev1.EnvVar) []endpoint {
	if !forHosts.MatchString(v.Name) {
		return endpoints(v.Value, inURL, withPort)
	}
	list := endpoints(v.Value, inURL, withPort, onlyHost)
	for i := range list {
		list[i].guessed = false
	}
	return list
}

// probed are the hosts that a probe's command asks, by what it said and what it was told. It runs in the container, and
// so has the pod's network.
func (p *program) probed(kind string, command []string, message string) []endpoint {
	p.probe = probeCommand{specField(p.what, p.c.Name, strings.ToLower(kind)+"Probe.exec.command"),
		strings.Join(command, " "), message}
	return append(unreached([]string{message}), endpoints(p.probe.text, inURL, withPort, asTarget, asOption)...)
}

// saidHosts are the hosts that the program says it does not reach.
func (p *program) saidHosts() []endpoint { return unreached(p.said) }

// unreached are the hosts that lines say are not reached.
func unreached(lines []string) (list []endpoint) {
	for _, line := range slices.Backward(lines) {
		switch {
		case lookupFailed.MatchString(line):
			// An address is that of the DNS server, which has answered.
			list = append(list, slices.DeleteFunc(endpoints(line, lookedUp, inURL, withPort), isAddress)...)
		case unreachable.MatchString(line):
			list = append(list, slices.DeleteFunc(endpoints(line, inURL, withPort, asTarget, inWords), isAddress)...)
			list = append(list, addresses(line)...)
		}
	}
	return list
}

// isAddress reports whether a host is an address, and no name.
func isAddress(e endpoint) bool {
	_, err := netip.ParseAddr(e.host)
	return err == nil
}

// toldHosts are the hosts that its command and its variables name.
func (p *program) toldHosts() (list []endpoint) {
	for _, words := range [][]string{p.c.Command, p.c.Args} {
		list = append(list, endpoints(strings.Join(words, " "), inURL, withPort, asTarget, asOption)...)
	}
	for _, v := range p.c.Env {
		list = append(list, ofVariable(v)...)
	}
	return list
}

// hosts explains a program by what it calls: Services and pods that do not exist, have nobody to answer, or are out of
// its reach.
func (p *program) hosts(ctx context.Context, list []endpoint) (causes []why.Cause) {
	for _, e := range list {
		to, ok := p.callee(ctx, e.host)
		key := fmt.Sprintf("%s:%d", to.id(), e.port)
		if !ok || p.called[key] || len(p.called) == maxHints {
			continue
		}
		if p.called[key] = true; p.down[to.id()] || p.down[to.ofService()] {
			continue
		}
		causes = append(causes, p.host(ctx, e, to)...)
	}
	return causes
}

// alias reports whether the pod itself knows a name: as its own, or by its hostAliases.
func (p *program) alias(host string) bool {
	return host == cmp.Or(p.pod.Spec.Hostname, p.pod.Name) ||
		slices.ContainsFunc(p.pod.Spec.HostAliases, func(a corev1.HostAlias) bool {
			return slices.Contains(a.Hostnames, host)
		})
}

// host explains what a program calls; there is no cause if it is well.
func (p *program) host(ctx context.Context, e endpoint, to callee) []why.Cause {
	if to.service == "" {
		return p.outOfReach(ctx, e, to, nil)
	}
	s, known := why.Get[corev1.Service](ctx, p.World, to.namespace, to.service)
	if s == nil && (!known || e.guessed) {
		return nil
	}
	if to.pod != "" {
		if cause, ok := explainPodName(ctx, p, e, to, s); ok {
			p.down[to.id()] = true
			return []why.Cause{cause}
		}
	}
	if s == nil {
		p.down[to.ofService()] = true
		if cause, ok := explainBarePodName(ctx, p, e, to); ok {
			return []why.Cause{cause}
		}
		return []why.Cause{p.noService(ctx, e.host, to.namespace, to.service)}
	}
	o := why.ObjectOf("", "Service", s)
	a, err := p.Explain(ctx, o)
	if err != nil {
		return nil
	}
	if all(a.Causes, "NetworkPolicyDenies") { // what this one client lacks is nearer than what all do
		if causes := p.outOfReach(ctx, e, to, s); len(causes) > 0 {
			return causes
		}
	}
	if !a.Well && len(a.Causes) > 0 {
		p.down[to.ofService()] = true
		return []why.Cause{{Code: "ServiceDown", Text: fmt.Sprintf("It calls %s. %s", to.shown, a.State),
			Because: a.Causes, Evidence: []why.Evidence{p.calls(e)}}}
	}
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.Type == corev1.ServiceTypeExternalName
	if e.port == 0 || headless ||
		slices.ContainsFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool { return sp.Port == e.port }) {
		return p.outOfReach(ctx, e, to, s)
	}
	var ports []string
	for _, sp := range s.Spec.Ports {
		ports = append(ports, fmt.Sprint(sp.Port))
	}
	return []why.Cause{{Code: "ServicePortMissing",
		Text: fmt.Sprintf("It calls port %d of %s, and the Service has no such port. It has: %s.", e.port, to.shown,
			why.And(ports)),
		Evidence: []why.Evidence{p.calls(e), why.See(o, ".spec.ports", why.And(ports))}}}
}

// all reports whether there are causes, and all have a code.
func all(causes []why.Cause, code string) bool {
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c why.Cause) bool { return c.Code != code })
}

// calls is evidence of where the program names a host.
func (p *program) calls(e endpoint) why.Evidence {
	switch {
	case strings.Contains(p.probe.text, e.host):
		return why.See(p.self, p.probe.field, safetext.URLs(p.probe.text))
	case strings.Contains(p.probe.message, e.host):
		return why.See(p.self, "the message of its probe", safetext.URLs(p.probe.message))
	}
	for _, v := range p.c.Env {
		if strings.Contains(v.Value, e.host) {
			return why.See(p.self, specField(p.what, p.c.Name, fmt.Sprintf(`env[?(@.name=="%s")].value`, v.Name)),
				safetext.URLs(v.Value))
		}
	}
	for _, list := range []struct {
		field string
		words []string
	}{{"command", p.c.Command}, {"args", p.c.Args}} {
		if text := strings.Join(list.words, " "); strings.Contains(text, e.host) {
			return why.See(p.self, specField(p.what, p.c.Name, list.field), safetext.URLs(text))
		}
	}
	for _, line := range slices.Backward(p.said) {
		if strings.Contains(line, e.host) {
			return why.See(p.self, p.log(), safetext.URLs(line))
		}
	}
	return why.See(p.self, "", e.host)
}

// noService explains a name for which there is no Service: by a Service of that name in another namespace, or by those
// that are there.
func (p *program) noService(ctx context.Context, host, namespace, name string) why.Cause {
	cause := why.Cause{Code: "ServiceMissing",
		Text:     fmt.Sprintf("It calls %s, and there is no Service %s in namespace %s.", host, name, namespace),
		Evidence: []why.Evidence{why.Absent("Service", namespace, name), p.calls(endpoint{host: host})}}
	all, _ := why.List[corev1.Service](ctx, p.World, "", nil)
	var here []string
	for _, s := range all {
		if s.Name == name {
			cause.Text += fmt.Sprintf(" Namespace %s has one.", s.Namespace)
			cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Call it by the name %s.%s.", name, s.Namespace)}}
			return cause
		}
		if s.Namespace == namespace {
			here = append(here, s.Name)
		}
	}
	cause.Text += fmt.Sprintf(" Services there: %s.", why.And(here))
	return cause
}
