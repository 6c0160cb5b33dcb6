package pod

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"bonsai/pkg/safetext"
	"bonsai/pkg/why"
)

// What programs that only see the status say of a 403, and where a command or a variable has a request to the API
// server: its path, the namespace and the name in it.
var (
	denied403 = regexp.MustCompile(`(?i)\b403\b.{0,20}forbidden|forbidden.{0,20}\b403\b|error: 403|code[ :=]{1,2}403\b`)
	requested = regexp.MustCompile(`(?:kubernetes\.default|\$[({]?KUBERNETES_SERVICE_HOST)[^/\s"']{0,80}/` +
		`(?:api/v1|apis/([a-z0-9.-]{1,250})/v[a-z0-9]{1,20})(?:/namespaces/([^/\s"'?]{1,80}))?/([a-z]{1,63})` +
		`(?:/([^/\s"'?;)]{1,253}))?(?:[?\s"';)]|$)`)
	changes = regexp.MustCompile(`(?i)-X ?(post|put|patch|delete)|--request|--method|--post-|--data|--json|--upload`)
)

// toldRequests explain a program that only says that it got a 403, by the requests to the API server that its command
// has: those that read. The authorizers are asked about each.
func toldRequests(ctx context.Context, p *program) (causes []why.Cause) {
	i := slices.IndexFunc(p.said, denied403.MatchString)
	if i < 0 {
		return nil
	}
	account := accountOf(p.pod)
	for _, text := range p.told {
		if changes.MatchString(text) {
			continue
		}
		for _, m := range requested.FindAllStringSubmatch(text, maxHints) {
			a := why.Access{User: "system:serviceaccount:" + p.pod.Namespace + ":" + account, Verb: "list", Group: m[1],
				Namespace: m[2], Resource: m[3]}
			if strings.Contains(a.Namespace, "$") { // mostly its own
				a.Namespace = p.pod.Namespace
			}
			switch {
			case strings.Contains(m[4], "$"):
				continue
			case m[4] != "":
				a.Verb, a.Name = "get", m[4]
			}
			answer, err := p.access(ctx, p.Case, a)
			if err != nil || answer.Well || len(answer.Causes) == 0 {
				continue
			}
			causes = append(causes, why.Cause{Code: "Forbidden", Text: answer.State,
				Because: withAccount(ctx, p.inquiry, answer.Causes),
				Evidence: []why.Evidence{why.See(p.self, p.log(), safetext.URLs(p.said[i])),
					why.See(p.self, ".spec.serviceAccountName", account)}})
		}
	}
	return causes[:min(len(causes), maxHints)]
}
