package kubectl

import (
	"regexp"
	"strings"

	"bonsai/api/kubeversion"
)

// rule replaces what differs from run to run.
type rule struct {
	find *regexp.Regexp
	with string
}

var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// rules are applied in this order. An age and an address keep no width: what blanks follow them are two.
var rules = []rule{
	{regexp.MustCompile(`([WEI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \w+\.go:\d+\]`), `$1<log>]`},
	{regexp.MustCompile(`(?m)^\[Debug\] .*\n`), ``}, // of completion
	{regexp.MustCompile(regexp.QuoteMeta(kubeversion.Git)), kubeversion.Release},
	// by who saw first that the connection ended: net/http's reader or its writer
	{regexp.MustCompile(`readLoopPeekFailLocked: `), ``},
	{regexp.MustCompile(`kustomize-\(devel\)`), `kustomize-v5.8.1`}, // the linker is told, for cmd/kubectl
	{regexp.MustCompile(`https?://127\.0\.0\.1:\d+`), `<server>`},
	{regexp.MustCompile(`127\.0\.0\.1:\d{4,5}`), `<address>`},
	{uid, `<uid>`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), `<time>`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}`), `<time>`},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), `<time>`},
	{regexp.MustCompile(`Resource Version:( +)\d+`), `Resource Version:$1<version>`},
	{regexp.MustCompile(`CLUSTER-IP +`), `CLUSTER-IP  `},
	{regexp.MustCompile(`(["']?)resourceVersion(["']?): ?"\d+"`), `${1}resourceVersion${2}: "<version>"`},
	{regexp.MustCompile(`(resource version to be \d+, was) \d+`), `$1 <version>`},
	{regexp.MustCompile(`kustomize-helm-\d+`), `kustomize-helm-<random>`},
	{regexp.MustCompile(`(kubectl-edit|LIVE|MERGED|kubectl)-\d+`), `$1-<random>`},
	{regexp.MustCompile(`\bdebugger-(debugged-node-)?[bcdfghjklmnpqrstvwxz2456789]{5}\b`), `debugger-$1<random>`},
	{regexp.MustCompile(`\b10\.96\.\d+\.\d+\b *`), `<ip>  `},
	{regexp.MustCompile(`\b(nodePort"?: ?|NodePort: .*  |\d+:)3[0-2]\d{3}\b`), `${1}<port>`},
	{regexp.MustCompile(`(^|[ \t\n])(\d+[ydhms]){1,2}($|[ \t\n]) *`), `$1<age>$3`},
	// of two in a row the first one's blank is taken
	{regexp.MustCompile(`(^|[ \t\n])(\d+[ydhms]){1,2}($|[ \t\n]) *`), `$1<age>$3`},
	{regexp.MustCompile(`\bAGE +`), `AGE  `},
	{regexp.MustCompile(`(\(|\(x\d+ over )(\d+[ydhms]){1,2}( ago)?\)`), `$1<age>$3)`},
	{regexp.MustCompile(`(?s)\[signal SIGSEGV: .*`), `<where upstream broke down>`},
	{regexp.MustCompile(` +(\n|$)`), `$1`},
	{regexp.MustCompile(` <age> +`), ` <age>  `},
}

// normal takes out of text what differs from run to run.
func (r *runner) normal(text string) string {
	text = strings.NewReplacer(r.dir, "<dir>", r.home, "<home>").Replace(text)
	for _, each := range rules {
		text = each.find.ReplaceAllString(text, each.with)
	}
	return text
}
