package pod

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/safetext"
	"bonsai/pkg/why"
)

// Where texts name the pod itself, with the port if it follows. What programs say has it after a colon or the word
// port, commands also after a space.
var (
	loopbackHost  = `(?i:(?:^|[^\w.:-])(localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)`
	loopbackSaid  = regexp.MustCompile(loopbackHost + `(?:[)\]"']*(?::|,? port:? )(\d{1,5})\b)?)`)
	loopbackGiven = regexp.MustCompile(loopbackHost + `(?:(?::|\s+)(\d{1,5})\b)?)`)
	portOption    = regexp.MustCompile(`(?:^|\s)(?:-p|-P|--port)[= ]?(\d{1,5})\b`)
	beforeHost    = regexp.MustCompile(`([a-z][a-z0-9+.-]*)://(?:[^/@\s"']*@)?$`)
	refused       = regexp.MustCompile(`(?i)refused|can(?:no|')t connect|could ?n[o']t connect|failed to connect|\(111\)`)
	forListening  = regexp.MustCompile(`(?i)listen|bind|^(?:(?:server|http|web|app|admin|management)_?)?port$`)
	betweenWords  = regexp.MustCompile(`[^a-z0-9]+`)
	// onlyAddress matches values that have an address and no user, password or parameter.
	onlyAddress   = regexp.MustCompile(`^[^\s@?=&]*$`)
	simpleCommand = regexp.MustCompile(`[;|&\n]+`)
)

// usualPorts are those of URLs without one.
var usualPorts = map[string]int32{"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432, "mysql": 3306,
	"redis": 6379, "amqp": 5672, "mongodb": 27017, "nats": 4222}

// ownCall is what a program calls at its own pod, by a name or address that never leaves it.
type ownCall struct {
	host string
	port int32 // 0 if nothing says it
	// text is what told the program so, field where it stands, variable the name of the variable that has it, "" for a
	// command, and configMap from where it comes, "" if the container has it.
	text, field, variable, configMap string
}

// callsItself explains a program that gets no connection at localhost: that is its own pod, in which nothing has that
// port. The author probably meant a Service, which localhost was on another machine.
func callsItself(ctx context.Context, p *program) (causes []why.Cause) {
	if p.pod.Spec.HostNetwork { // localhost is the node's
		return nil
	}
	told := ownCalls(ctx, p)
	onlyItself := !slices.ContainsFunc(p.toldHosts(), func(e endpoint) bool {
		return !loopbackGiven.MatchString(e.host)
	})
	seen := map[int32]bool{}
	for _, line := range slices.Backward(p.said) {
		if !refused.MatchString(line) || lookupFailed.MatchString(line) || strings.Contains(line, "lookup ") ||
			withoutToken.MatchString(line) {
			continue
		}
		call, ok := saidCall(line, told)
		if !ok && len(told) > 0 && len(unreached([]string{line})) == 0 && onlyItself {
			call, ok = told[0], true // it names nothing, and was told of nothing else
		}
		alone := len(p.pod.Spec.Containers)+len(p.pod.Spec.InitContainers) == 1
		if !ok || seen[call.port] || len(seen) == maxHints || call.port == 0 && !alone || listens(ctx, p, call.port) {
			continue
		}
		seen[call.port] = true
		causes = append(causes, explainItself(ctx, p, line, call))
	}
	return causes
}

// saidCall is what a line says is not reached at the pod itself, with what the program was told about it.
func saidCall(line string, told []ownCall) (call ownCall, ok bool) {
	for _, m := range loopbackSaid.FindAllStringSubmatch(line, maxNamed) {
		port, _ := strconv.ParseUint(m[2], 10, 16)
		if !ok || call.port == 0 && port != 0 {
			call, ok = ownCall{host: m[1], port: int32(port)}, true
		}
	}
	if !ok {
		return call, false
	}
	for _, t := range told {
		if call.port == 0 || t.port == call.port {
			return t, true
		}
	}
	for _, t := range told {
		if t.port == 0 { // its port stands elsewhere
			t.port = call.port
			return t, true
		}
	}
	return call, true
}

// ownCalls are the places in which the container's command, its arguments and its variables name the pod itself.
func ownCalls(ctx context.Context, p *program) (list []ownCall) {
	take := func(c ownCall) {
		if len(list) == maxNamed || c.variable != "" && forListening.MatchString(c.variable) {
			return
		}
		m := loopbackGiven.FindStringSubmatchIndex(c.text)
		if m == nil {
			return
		}
		c.host = c.text[m[2]:m[3]]
		switch option := portOption.FindStringSubmatch(c.text); {
		case m[4] >= 0:
			c.port = portOf(c.text[m[4]:m[5]])
		case c.variable == "" && option != nil:
			c.port = portOf(option[1])
		default:
			if scheme := beforeHost.FindStringSubmatch(c.text[:m[2]]); scheme != nil {
				c.port = usualPorts[scheme[1]]
			}
		}
		list = append(list, c)
	}
	for _, v := range p.c.Env {
		field := specField(p.what, p.c.Name, fmt.Sprintf(`env[?(@.name=="%s")]`, v.Name))
		if v.ValueFrom != nil && v.ValueFrom.ConfigMapKeyRef != nil {
			r := v.ValueFrom.ConfigMapKeyRef
			if m, _ := why.Get[corev1.ConfigMap](ctx, p.World, p.pod.Namespace, r.Name); m != nil {
				take(ownCall{text: m.Data[r.Key], field: field, variable: v.Name, configMap: r.Name})
			}
			continue
		}
		take(ownCall{text: v.Value, field: field + ".value", variable: v.Name})
	}
	for i, from := range p.c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		m, _ := why.Get[corev1.ConfigMap](ctx, p.World, p.pod.Namespace, from.ConfigMapRef.Name)
		if m == nil {
			continue
		}
		for _, k := range sorted(keysOf(m.Data)) {
			take(ownCall{text: m.Data[k], field: specField(p.what, p.c.Name, fmt.Sprintf("envFrom[%d]", i)),
				variable: from.Prefix + k, configMap: m.Name})
		}
	}
	take(ownCall{text: strings.Join(p.c.Command, " "), field: specField(p.what, p.c.Name, "command")})
	take(ownCall{text: strings.Join(p.c.Args, " "), field: specField(p.what, p.c.Name, "args")})
	for i := range list {
		if list[i].port == 0 { // DB_HOST has its port in DB_PORT
			list[i].port = portBeside(p, list[i].variable)
		}
	}
	return list
}

func keysOf(data map[string]string) map[string]bool {
	keys := map[string]bool{}
	for k := range data {
		keys[k] = true
	}
	return keys
}

func portOf(text string) int32 {
	n, _ := strconv.ParseUint(text, 10, 16)
	return int32(n)
}

// portBeside is the value of the variable that has the port for a variable with a host.
func portBeside(p *program, variable string) int32 {
	i := strings.LastIndexByte(variable, '_')
	if i < 0 {
		return 0
	}
	for _, v := range p.c.Env {
		if v.Name == variable[:i+1]+"PORT" {
			return portOf(v.Value)
		}
	}
	return 0
}

// listens reports whether something says that the pod has a port: a container that declares it, a probe, a Service that
// leads there, or the command or the variables of one. What names it in order to call it does not count.
func listens(ctx context.Context, p *program, port int32) bool {
	if port == 0 {
		return false
	}
	number := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, port))
	for _, c := range slices.Concat(p.pod.Spec.InitContainers, p.pod.Spec.Containers) {
		own := c.Name == p.c.Name
		for _, kind := range []string{"Startup", "Liveness", "Readiness"} {
			if pr := probe(&c, kind); pr != nil {
				if at, given := probePort(pr); given && at == intstr.FromInt32(port) {
					return true
				}
			}
		}
		if numbered(&c, port) {
			return true
		}
		for _, command := range simpleCommand.Split(strings.Join(slices.Concat(c.Command, c.Args), " "), maxNamed) {
			if number.MatchString(command) && (!own || !loopbackGiven.MatchString(command)) {
				return true
			}
		}
		for _, v := range c.Env {
			if number.MatchString(v.Value) && (!own || forListening.MatchString(v.Name)) {
				return true
			}
		}
	}
	services, _ := why.List[corev1.Service](ctx, p.World, p.pod.Namespace, nil)
	return slices.ContainsFunc(services, func(s *corev1.Service) bool {
		return selects(s, p.pod) && slices.ContainsFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool {
			return targetOf(&sp, p.pod) == port
		})
	})
}

// selects reports whether a Service leads to a pod.
func selects(s *corev1.Service, pod *corev1.Pod) bool {
	return len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
}

// explainItself is the cause of one call, with the Services that were probably meant.
func explainItself(ctx context.Context, p *program, line string, call ownCall) why.Cause {
	at, lacks := "", "and no container of it is known to listen"
	if call.port != 0 {
		at = fmt.Sprintf(" at port %d", call.port)
		lacks = fmt.Sprintf("and no container of it declares port %d", call.port)
	}
	by := ""
	if call.variable != "" {
		by = " (" + call.variable + ")"
	}
	cause := why.Cause{Code: "CallsItself",
		Text: fmt.Sprintf("It calls %s%s%s: within a pod, that is the pod itself, %s.", call.host, at, by, lacks),
		Evidence: []why.Evidence{why.See(p.self, p.log(), safetext.URLs(line)),
			why.See(p.self, specField(p.what, p.c.Name, "ports"), why.And(portTexts(p.c)))}}
	if call.field != "" {
		value := safetext.URLs(call.text)
		if call.variable != "" && !onlyAddress.MatchString(call.text) {
			value = call.host // the rest may have a password
		}
		cause.Evidence = append(cause.Evidence, why.See(p.self, call.field, value))
	}
	meant, sure := meantServices(ctx, p, call)
	var names []string
	for _, s := range meant {
		names = append(names, s.Name)
		cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Service", s), ".spec.ports",
			why.And(servicePorts(s))))
	}
	switch {
	case len(meant) == 0:
		cause.Fixes = []why.Fix{{Text: "Let it call the server by the name of its Service."}}
		return cause
	case sure:
		cause.Text += fmt.Sprintf(" Probably Service %s was meant (port %s).", names[0],
			why.And(servicePorts(meant[0])))
	default:
		cause.Text += fmt.Sprintf(" Services of the namespace that may be meant: %s.", why.And(names))
	}
	cause.Fixes = []why.Fix{callInstead(p, call, meant[0], sure)}
	return cause
}

func servicePorts(s *corev1.Service) (list []string) {
	for _, sp := range s.Spec.Ports {
		list = append(list, fmt.Sprint(sp.Port))
	}
	return list
}

// meantServices are the Services that a call to the pod itself was probably meant for: those whose name the variable
// has, and those that have the port. sure says that the first one is better than all others.
func meantServices(ctx context.Context, p *program, call ownCall) (list []*corev1.Service, sure bool) {
	const most = 3
	services, _ := why.List[corev1.Service](ctx, p.World, p.pod.Namespace, nil)
	words := betweenWords.Split(strings.ToLower(call.variable), -1)
	if call.variable == "" {
		words = nil
	}
	score := func(s *corev1.Service) (n int) {
		if slices.ContainsFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool { return sp.Port == call.port }) {
			n++
		}
		parts := betweenWords.Split(s.Name, -1)
		if slices.ContainsFunc(words, func(w string) bool { return w != "" && slices.Contains(parts, w) }) {
			n += 2
		}
		return n
	}
	for _, s := range services {
		if score(s) > 0 && !selects(s, p.pod) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *corev1.Service) int { return cmp.Compare(score(b), score(a)) })
	sure = len(list) == 1 || len(list) > 1 && score(list[0]) > score(list[1])
	return list[:min(len(list), most)], sure
}

// callInstead is the change by which a program calls a Service in place of its own pod.
func callInstead(p *program, call ownCall, s *corev1.Service, sure bool) why.Fix {
	f := why.Fix{Text: fmt.Sprintf("Let it call %s.", s.Name)}
	owner := p.workload()
	switch {
	case call.configMap != "":
		f.Text = fmt.Sprintf("Write %s in place of %s in the ConfigMap %s (%s), and let the pods start again.", s.Name,
			call.host, call.configMap, call.variable)
	case call.variable == "" || !sure || !onlyAddress.MatchString(call.text):
	case owner != nil && slices.Contains(withTemplates, owner.Kind):
		value := strings.Replace(call.text, call.host, s.Name, 1)
		has := slices.ContainsFunc(s.Spec.Ports, func(sp corev1.ServicePort) bool { return sp.Port == call.port })
		if len(s.Spec.Ports) == 1 && !has {
			value = strings.Replace(value, fmt.Sprintf("%s:%d", s.Name, call.port), fmt.Sprintf("%s:%d", s.Name,
				s.Spec.Ports[0].Port), 1)
		}
		f.Command = why.Command("kubectl set env %s%s -c %s %s", owner.Arg(), owner.Flag(), p.c.Name,
			call.variable+"="+value)
	}
	return f
}
