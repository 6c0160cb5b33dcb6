package pod

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// What points to a value that a program has from a ConfigMap or a Secret: words about credentials, and the names of
// variables that have some.
var (
	aboutCredentials = regexp.MustCompile(`(?i)passw|authenticat|unauthori[sz]ed|access denied|credential|log ?in|` +
		`invalid (token|key)|\b401\b`)
	forCredentials = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|user|cred|auth|login`)
)

// withStale adds to the causes of a program what it has from ConfigMaps and Secrets as they were before a change: first
// if what it says points to that, and last if nothing else explains the program. Otherwise a change is a coincidence.
func withStale(ctx context.Context, p *program, causes []why.Cause) []why.Cause {
	started, ended := ran(p)
	if started.IsZero() {
		return causes
	}
	var first, last []why.Cause
	for _, f := range outdated(ctx, p.inquiry, p.c, p.what, started) {
		values := valuesOf(ctx, p.inquiry, f)
		f.what += namesOf(values)
		cause := staleCause(p.inquiry, p.c, f, ended)
		if text := points(ctx, p, f, values); text != "" {
			cause.Text += " " + text
			first = append(first, cause)
			continue
		}
		cause.Text += " Nothing says that the program fails for that."
		last = append(last, cause)
	}
	if len(first)+len(causes) > 0 {
		last = nil
	}
	return slices.Concat(first, causes, last)
}

// ran is when the container was started last, zero if it never was, and whether that run is over.
func ran(p *program) (started time.Time, ended bool) {
	s := status(p.pod.Status.ContainerStatuses, p.c.Name)
	if p.what != "container" {
		s = status(p.pod.Status.InitContainerStatuses, p.c.Name)
	}
	switch {
	case s == nil:
		return started, false
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time, false
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt.Time, true
	case s.LastTerminationState.Terminated != nil:
		return s.LastTerminationState.Terminated.StartedAt.Time, true
	}
	return started, false
}

// dataOf are the values of a ConfigMap or a Secret as they are now.
func dataOf(ctx context.Context, q *inquiry, kind, name string) map[string]string {
	data := map[string]string{}
	if kind == "Secret" {
		if s, _ := why.Get[corev1.Secret](ctx, q.World, q.pod.Namespace, name); s != nil {
			for k, v := range s.Data {
				data[k] = string(v)
			}
		}
	} else if m, _ := why.Get[corev1.ConfigMap](ctx, q.World, q.pod.Namespace, name); m != nil {
		maps.Copy(data, m.Data)
	}
	return data
}

// valuesOf are the variables that a container has from a source, with the values that are there now.
func valuesOf(ctx context.Context, q *inquiry, f source) map[string]string {
	data, values := dataOf(ctx, q, f.kind, f.name), map[string]string{}
	for variable, key := range f.variables {
		values[variable] = data[key]
	}
	for _, prefix := range f.prefixes {
		for k, v := range data {
			values[prefix+k] = v
		}
	}
	return values
}

// namesOf names variables in brackets; nothing for files.
func namesOf(values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	return " (" + why.And(slices.Sorted(maps.Keys(values))) + ")"
}

// points says how what the program said points to a source, "" if it does not. values are its variables.
func points(ctx context.Context, p *program, f source, values map[string]string) string {
	words := p.words()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != strings.ToLower(name) && hasWord(words, name) { // others are words like host and port
			return "The program speaks of " + name + "."
		}
	}
	for _, file := range paths(words) {
		for _, mounted := range f.paths {
			if under(file, mounted) {
				return "The program speaks of " + file + "."
			}
		}
	}
	if aboutCredentials.MatchString(words) && slices.ContainsFunc(slices.Collect(maps.Keys(values)),
		forCredentials.MatchString) {
		return "The program speaks of credentials."
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(name string) bool {
		return maybeHost(ctx, p, name, values[name])
	}) {
		return ""
	}
	now := valuesNow(ctx, p)
	for _, host := range saidNames(p) {
		if !slices.ContainsFunc(now, func(text string) bool { return hasWord(text, host) }) {
			return "The program calls " + host + ", which no value that it would get now has."
		}
	}
	return ""
}

// saidNames are the hosts that the program says it does not reach, also its own pod.
func saidNames(p *program) (list []string) {
	for _, e := range p.saidHosts() {
		// What is guessed may be a file and its line, or a code: main.go:12.
		server := !strings.Contains(e.host, ".") && (e.port >= 1024 || e.port == 80 || e.port == 443)
		if !e.guessed || server {
			list = append(list, e.host)
		}
	}
	for _, line := range p.said {
		if m := loopbackSaid.FindStringSubmatch(line); m != nil && m[1] == "localhost" && refused.MatchString(line) {
			list = append(list, m[1])
		}
	}
	return list
}

// maybeHost reports whether a variable may have a host: by its name, by its value, or since the command has it.
func maybeHost(ctx context.Context, p *program, name, value string) bool {
	if forHosts.MatchString(name) || len(endpoints(value, inURL, withPort)) > 0 {
		return true
	}
	command := strings.Join(slices.Concat(p.c.Command, p.c.Args), " ")
	for _, reference := range []string{"$(" + name + ")", "${" + name + "}", "$" + name} {
		if strings.Contains(command, reference) {
			return true
		}
	}
	s, _ := why.Get[corev1.Service](ctx, p.World, p.pod.Namespace, value)
	return value != "" && onlyHost.MatchString(value) && s != nil
}

// valuesNow are all texts that the container would get if it started now: its command, its variables, and the files of
// ConfigMaps and Secrets.
func valuesNow(ctx context.Context, p *program) []string {
	list := slices.Clone(p.told)
	take := func(kind, name string) {
		list = slices.AppendSeq(list, maps.Values(dataOf(ctx, p.inquiry, kind, name)))
	}
	for _, f := range fixed(p.pod, p.c, p.what) {
		take(f.kind, f.name)
	}
	for _, m := range p.c.VolumeMounts {
		switch v := p.volume(m.Name); {
		case v == nil:
		case v.ConfigMap != nil:
			take("ConfigMap", v.ConfigMap.Name)
		case v.Secret != nil:
			take("Secret", v.Secret.SecretName)
		}
	}
	return list
}

// hasWord reports whether a text has a name that is no part of a longer one.
func hasWord(text, word string) bool {
	part := func(c byte) bool {
		return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !part(text[start-1])) && (end == len(text) || !part(text[end]) ||
			text[end] == '.' && (end+1 == len(text) || !part(text[end+1]))) {
			return true
		}
		from = start + 1
	}
}
