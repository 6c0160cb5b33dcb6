package pod

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/safetext"
	"bonsai/pkg/why"
)

// program is what is known of the program in a container that does not do what it should: its command and what it said.
type program struct {
	*inquiry
	c    *corev1.Container
	what string // "container" or "init container"
	// said are the last lines of its log and its termination message, the newest last.
	said []string
	// message is the termination message alone.
	message string
	// told are its command, its arguments and the values of its variables: what it was told to do.
	told []string
	// probe is the command of a probe that fails, if one is asked about.
	probe probeCommand
	// called are the callees, with their ports, that were looked at, down those that have a cause already.
	called, down map[string]bool
}

// probeCommand is a command that a kubelet runs in a container as its probe: the field that has it, its words, and what
// the kubelet says about it.
type probeCommand struct{ field, text, message string }

// maxNamed bounds how many files, and how many hosts of a place, are looked at in one text: commands and variables can
// have a megabyte.
const maxNamed = 64

// program reads what a container's program said, in the run before its present one if previous.
func (q *inquiry) program(ctx context.Context, c *corev1.Container, what string, previous bool,
	message string) *program {
	p := &program{inquiry: q, c: c, what: what, message: message, called: map[string]bool{},
		down: map[string]bool{}}
	p.said = q.LastLines(ctx, why.Log{Namespace: q.pod.Namespace, Pod: q.pod.Name, Container: c.Name,
		Previous: previous})
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(p.said, line) {
			p.said = append(p.said, line)
		}
	}
	p.told = slices.Concat(c.Command, c.Args)
	for _, v := range c.Env {
		if v.Value != "" {
			p.told = append(p.told, v.Value)
		}
	}
	return p
}

// complaint matches the words by which programs say that something went wrong.
var complaint = regexp.MustCompile(`(?i)\b(error|fatal|panic|failed|failure|cannot|can't|could not|couldn't|denied|` +
	`refused|forbidden|unauthorized|invalid|missing|required|unknown|no such|not found|not permitted|read-only|` +
	`exception|unable|unreachable|timed out|bad address|(is|not) a directory|in use)\b`)

// words are the line of what the program said that tells most: the last one that complains, otherwise the last one.
// Passwords of URLs are left out: people show answers to others.
func (p *program) words() string {
	if len(p.said) == 0 {
		return ""
	}
	line := p.said[len(p.said)-1]
	for _, l := range slices.Backward(p.said) {
		if complaint.MatchString(l) {
			line = l
			break
		}
	}
	return safetext.URLs(line)
}

// log names its log, as evidence does.
func (p *program) log() string { return fmt.Sprintf("the log of %s %s", p.what, p.c.Name) }

// evidence is where the words stand.
func (p *program) evidence() []why.Evidence {
	words, where := p.words(), p.log()
	switch {
	case words == "":
		return nil
	case strings.Contains(p.message, words):
		where = fmt.Sprintf("the termination message of %s %s", p.what, p.c.Name)
	}
	return []why.Evidence{why.See(p.self, where, words)}
}

// because explains why the program does not do what it should, by what it said and what it was told: what it may not
// do, files that it does not find or may not use, and hosts that do not answer. What it said comes first, since that is
// what stopped it; environment, which is what its variables say, comes before hosts that it was only told of.
func (p *program) because(ctx context.Context, environment []why.Cause) []why.Cause {
	list := slices.Concat(p.forbidden(ctx), p.files(ctx), p.ports(), callsItself(ctx, p),
		p.names(ctx, strings.Join(p.said, "\n")), p.hosts(ctx, p.saidHosts()), environment,
		p.hosts(ctx, p.toldHosts()))
	list = withStale(ctx, p, list)
	return list[:min(len(list), maxHints)]
}

// refusal is how clients quote an API server's 403. The texts are bounded: a container can say anything.
var refusal = regexp.MustCompile(`User "(system:serviceaccount:[^"]{1,500})" cannot ([a-z]{1,30}) resource ` +
	`"([a-z0-9./-]{1,250})" in API group "([a-z0-9.-]{0,250})"(?: in the namespace "([a-z0-9-]{1,63})")?`)

// forbidden explains a program whose requests to the API server were refused. Only words about the pod's own account
// count, and a bare 403 if it is known what was asked for.
func (p *program) forbidden(ctx context.Context) (causes []why.Cause) {
	asked := map[string]bool{}
	account := accountOf(p.pod)
	for _, line := range slices.Backward(p.said) {
		m := refusal.FindStringSubmatch(line)
		if m == nil || m[1] != "system:serviceaccount:"+p.pod.Namespace+":"+account {
			continue
		}
		if len(asked) == maxHints || asked[m[0]] {
			continue
		}
		asked[m[0]] = true
		resource, sub, _ := strings.Cut(m[3], "/")
		answer, err := p.access(ctx, p.Case, why.Access{User: m[1], Verb: m[2], Resource: resource,
			Subresource: sub, Group: m[4], Namespace: m[5]})
		if err != nil || answer.Well {
			continue
		}
		causes = append(causes, why.Cause{Code: "Forbidden", Text: answer.State,
			Because: withAccount(ctx, p.inquiry, answer.Causes),
			Evidence: []why.Evidence{why.See(p.self, p.log(), m[0]),
				why.See(p.self, ".spec.serviceAccountName", account)}})
	}
	if len(causes) == 0 {
		return toldRequests(ctx, p)
	}
	return causes
}
