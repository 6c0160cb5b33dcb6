package pod

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// variable matches a name that a program could read from its environment.
var variable = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// dollarReference matches what the kubelet replaces in values and commands. "$$(X)" stays, as its author wants it.
var dollarReference = regexp.MustCompile(`(\$?)\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// environment is what a container that has failed got in its environment.
type environment struct {
	*inquiry
	c    *corev1.Container
	what string // "container" or "init container"
	// t is how it ended.
	t *corev1.ContainerStateTerminated
	// keys are the variables that it gets from whole ConfigMaps and Secrets, as far as they could be read.
	keys map[string]bool
	all  bool
}

// maxHints bounds the causes that one container's environment has.
const maxHints = 5

// explainEnvironment explains a container that has failed by what it got and its author may not know of: variables for
// Services, references that name nothing, and line breaks at the end of values of Secrets.
func explainEnvironment(ctx context.Context, q *inquiry, c *corev1.Container, t *corev1.ContainerStateTerminated,
	what string) []why.Cause {
	e := &environment{inquiry: q, c: c, what: what, t: t, keys: map[string]bool{}, all: true}
	e.read(ctx)
	list := slices.Concat(e.serviceLinks(ctx), e.unresolved(ctx), e.unexpanded(), e.lineBreaks(ctx))
	return list[:min(len(list), maxHints)]
}

// read finds the variables from whole ConfigMaps and Secrets.
func (e *environment) read(ctx context.Context) {
	for _, from := range e.c.EnvFrom {
		if r := from.ConfigMapRef; r != nil {
			keys, known := configMapKeys(ctx, e.World, e.pod.Namespace, r.Name)
			e.take(from.Prefix, keys, known)
		}
		if r := from.SecretRef; r != nil {
			keys, known := secretKeys(ctx, e.World, e.pod.Namespace, r.Name)
			e.take(from.Prefix, keys, known)
		}
	}
}

// take adds keys as variables with a prefix.
func (e *environment) take(prefix string, keys map[string]bool, known bool) {
	e.all = e.all && known
	for k := range keys {
		e.keys[prefix+k] = true
	}
}

// sets reports whether the container itself sets a variable.
func (e *environment) sets(name string) bool {
	return slices.ContainsFunc(e.c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// seen is evidence in a field of one of its variables.
func (e *environment) seen(name, field, value string) why.Evidence {
	return why.See(e.self, specField(e.what, e.c.Name, fmt.Sprintf(`env[?(@.name=="%s")]%s`, name, field)), value)
}

// link is a variable that kubelets set for a Service.
type link struct {
	service     *corev1.Service
	name, value string
}

// links are the variables for Services that existed at a time, zero for all. Those that only say an address or a number
// are left out: no program takes them for something else.
func links(ctx context.Context, q *inquiry, at metav1.Time) (list []link) {
	if s := q.pod.Spec.EnableServiceLinks; s != nil && !*s {
		return nil
	}
	services, _ := why.List[corev1.Service](ctx, q.World, q.pod.Namespace, nil)
	for _, s := range services {
		ip := s.Spec.ClusterIP
		if ip == "" || ip == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 ||
			!at.IsZero() && s.CreationTimestamp.After(at.Time) {
			continue
		}
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]"
		}
		p := s.Spec.Ports[0]
		list = append(list, link{s, strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) + "_PORT",
			fmt.Sprintf("%s://%s:%d", strings.ToLower(cmp.Or(string(p.Protocol), "tcp")), ip, p.Port)})
	}
	return list
}

// serviceLinks explains a program that takes a variable that the kubelet sets for a Service for one of its own:
// NAME_PORT is an URL there. What the program said, its command or its image must point to it, since every pod has such
// variables.
func (e *environment) serviceLinks(ctx context.Context) (causes []why.Cause) {
	words := variable.FindAllString(strings.Join(slices.Concat(e.c.Command, e.c.Args), " "), -1)
	for _, l := range links(ctx, e.inquiry, e.t.StartedAt) {
		reason := ""
		switch {
		case e.keys[l.name] || e.sets(l.name):
			continue
		case strings.Contains(e.t.Message, l.value):
			reason = "its last message has that value"
		case strings.Contains(e.t.Message, l.name):
			reason = "its last message names it"
		case slices.Contains(words, l.name):
			reason = "its command reads that variable"
		case imageName(e.c.Image) == l.service.Name:
			reason = "programs often take their settings from variables with their own name"
		default:
			continue
		}
		causes = append(causes, why.Cause{Code: "ServiceLink",
			Text: fmt.Sprintf("The kubelet sets %s=%s in the container for the Service %s: a program that expects "+
				"something else in %s fails, and %s.", l.name, l.value, l.service.Name, l.name, reason),
			Evidence: []why.Evidence{why.See(e.self, ".spec.enableServiceLinks", "true"),
				why.See(why.ObjectOf("", "Service", l.service), ".spec.clusterIP", l.service.Spec.ClusterIP)},
			Fixes: []why.Fix{withoutLinks(e.inquiry), {Text: fmt.Sprintf("Set %s in the container yourself: that "+
				"comes before what is set for Services.", l.name)}}})
	}
	return causes
}

// withoutLinks switches the variables for Services off.
func withoutLinks(q *inquiry) why.Fix {
	f := why.Fix{Text: "Set enableServiceLinks to false: the pod then gets no variables for Services."}
	if owner := q.workload(); owner != nil && owner.Group == "apps" {
		f.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(),
			`{"spec":{"template":{"spec":{"enableServiceLinks":false}}}}`)
	}
	return f
}

// imageName is the last part of an image's name, without its tag.
func imageName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// unresolved explains values with a reference to a variable that is not set before them: it stays as it is written.
func (e *environment) unresolved(ctx context.Context) (causes []why.Cause) {
	if !e.all {
		return nil
	}
	all := links(ctx, e.inquiry, metav1.Time{})
	linked := func(name string) bool {
		return strings.HasPrefix(name, "KUBERNETES_") || // these are always set
			slices.ContainsFunc(all, func(l link) bool {
				kind, ok := strings.CutPrefix(name, strings.TrimSuffix(l.name, "PORT"))
				return ok && ofService.MatchString(kind)
			})
	}
	before := map[string]bool{}
	for _, v := range e.c.Env {
		for _, m := range dollarReference.FindAllStringSubmatch(v.Value, -1) {
			name := m[2]
			if m[1] != "" || before[name] || e.keys[name] || linked(name) {
				continue
			}
			text := "which is not set"
			if e.sets(name) {
				text = "which is set after it, and values may refer to earlier variables only"
			}
			causes = append(causes, why.Cause{Code: "UnresolvedVariable",
				Text: fmt.Sprintf("The value of %s refers to $(%s), %s: the program gets the text $(%s).", v.Name, name,
					text, name),
				Evidence: []why.Evidence{e.seen(v.Name, ".value", m[0])}})
		}
		before[v.Name] = true
	}
	return causes
}

// ofService matches what follows a Service's name in the names of its variables.
var ofService = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?)$`)

// shells are programs that replace $NAME themselves, or start one that does.
var shells = []string{"sh", "bash", "ash", "dash", "zsh", "ksh", "busybox", "env", "envsubst", "tini", "dumb-init"}

// shellVariable matches $NAME and ${NAME}.
var shellVariable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?`)

// unexpanded explains a command with $NAME that no shell is there to replace: Kubernetes replaces $(NAME) alone.
func (e *environment) unexpanded() []why.Cause {
	if len(e.c.Command) == 0 || slices.Contains(shells, imageName(e.c.Command[0])) {
		return nil
	}
	for _, word := range slices.Concat(e.c.Command, e.c.Args) {
		for _, m := range shellVariable.FindAllStringSubmatch(word, -1) {
			if !e.sets(m[1]) {
				continue
			}
			return []why.Cause{{Code: "NoShell",
				Text: fmt.Sprintf("Its command has %s, which only a shell would replace, and none runs it: the program "+
					"gets this text. Kubernetes replaces $(%s).", m[0], m[1]),
				Evidence: []why.Evidence{why.See(e.self, specField(e.what, e.c.Name, "command"), m[0])},
				Fixes:    []why.Fix{{Text: fmt.Sprintf("Write $(%s), or run the command by sh -c.", m[1])}}}}
		}
	}
	return nil
}

// lineBreaks explains values of Secrets that end with a line break, which a program gets as a part of its password. It
// shows no value.
func (e *environment) lineBreaks(ctx context.Context) (causes []why.Cause) {
	for _, v := range e.c.Env {
		if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef == nil {
			continue
		}
		r := v.ValueFrom.SecretKeyRef
		s, _ := why.Get[corev1.Secret](ctx, e.World, e.pod.Namespace, r.Name)
		if s == nil || !strings.HasSuffix(string(s.Data[r.Key]), "\n") {
			continue
		}
		causes = append(causes, why.Cause{Code: "SecretEndsWithLineBreak",
			Text: fmt.Sprintf("The value of %s, from key %s of Secret %s, ends with a line break, which the program gets, "+
				"too. It was probably encoded by echo without -n.", v.Name, r.Key, r.Name),
			Evidence: []why.Evidence{e.seen(v.Name, "", r.Name+"/"+r.Key)},
			Fixes:    []why.Fix{{Text: "Write the Secret again without the line break, and restart the pod."}}})
	}
	return causes
}
