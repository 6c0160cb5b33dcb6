package pod

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// accountFile reports whether a file is where the token of a pod's service account is mounted.
func accountFile(file string) bool {
	const directory = "/run/secrets/kubernetes.io/serviceaccount" // which /var/run leads to
	return under(file, directory) || under(file, "/var"+directory)
}

// withoutToken matches what clients of the API server say when they find no token of their account, without the name of
// its file: client-go and programs that use it, kubectl and Helm (which then ask localhost), the clients in Python,
// Rust and C#, and what the API server answers to those that send no token.
var withoutToken = regexp.MustCompile(`(?i)(load|infer|read|get|creat|build|find)\w* (the )?in[- ]?cluster ?` +
	`(\w+ )?(kube)?conf|no configuration has been provided, try setting KUBERNETES_MASTER|` +
	`service token file does(n't| not) exists?|connection to the server localhost:8080 was refused|` +
	`localhost:8080/(api|version|openapi/v\d)\?timeout=|cluster unreachable: Get .{0,2}http://localhost:8080/|` +
	`failed to infer config|User .{1,2}system:anonymous.{1,2} cannot `)

// saysNoToken reports whether a program's words mean that it found no token.
func saysNoToken(said []string) bool { return slices.ContainsFunc(said, withoutToken.MatchString) }

// noToken explains a program that finds no token of its service account, since the pod or the account wants none to be
// mounted; ok is false if the container has one.
func noToken(ctx context.Context, p *program) (cause why.Cause, ok bool) {
	if slices.ContainsFunc(p.c.VolumeMounts, func(m corev1.VolumeMount) bool { return accountFile(m.MountPath) }) {
		return why.Cause{}, false
	}
	const field = "automountServiceAccountToken"
	name := accountOf(p.pod)
	cause = why.Cause{Code: "NoToken", Fixes: []why.Fix{wantToken(p.inquiry)}}
	if own := p.pod.Spec.AutomountServiceAccountToken; own != nil && !*own {
		cause.Text = fmt.Sprintf("The pod gets no token of its service account, which the program uses: its %s is false.",
			field)
		cause.Evidence = []why.Evidence{why.See(p.self, ".spec."+field, "false")}
		return cause, true
	} else if own != nil {
		return why.Cause{}, false // one was mounted, and where is another matter
	}
	a, _ := why.Get[corev1.ServiceAccount](ctx, p.World, p.pod.Namespace, name)
	if a == nil || p.pod.Annotations[corev1.MirrorPodAnnotationKey] != "" { // pods of a kubelet never have one
		return why.Cause{}, false
	}
	self := why.ObjectOf("", "ServiceAccount", a)
	if own := a.AutomountServiceAccountToken; own == nil || *own {
		value := "not set"
		if own != nil {
			value = "true"
		}
		cause.Text = fmt.Sprintf("The pod was made without a token of the ServiceAccount %s, which the program uses. The "+
			"account allows one now (its %s is %s): a new pod gets it.", name, field, value)
		cause.Evidence = []why.Evidence{why.See(self, "."+field, value),
			why.See(p.self, specField(p.what, p.c.Name, "volumeMounts"), "none of a token"), why.SeeMade(p.self, p.pod)}
		cause.Fixes = []why.Fix{remade(p.inquiry)}
		return cause, true
	}
	cause.Text = fmt.Sprintf("Pods of the ServiceAccount %s get no token, which the program uses: its %s is false, and the "+
		"pod does not say otherwise.", name, field)
	cause.Evidence = []why.Evidence{why.See(self, "."+field, "false")}
	cause.Fixes = append(cause.Fixes, why.Fix{Text: "Or let all pods of the account have one; those that there are " +
		"must be made again.", Command: why.Command("kubectl patch serviceaccount %s%s -p %s", name, p.self.Flag(),
		`{"`+field+`":true}`)})
	return cause, true
}

// wantToken is the change by which a pod gets a token: in the template of what made it.
func wantToken(q *inquiry) why.Fix {
	const field = `{"spec":{"automountServiceAccountToken":true}}`
	owner := q.workload()
	if owner == nil {
		return why.Fix{Text: "If the program is to call the API server: make the pod again with " +
			"automountServiceAccountToken: true."}
	}
	f := why.Fix{Text: "If the program is to call the API server: set automountServiceAccountToken: true in the pod's " +
		"template."}
	if slices.Contains(withTemplates, owner.Kind) {
		f.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(),
			`{"spec":{"template":`+field+`}}`)
	}
	return f
}

// withTemplates are the kinds that replace their pods when their template changes.
var withTemplates = []string{"Deployment", "StatefulSet", "DaemonSet"}

// remade lets a pod be made again as it is.
func remade(q *inquiry) why.Fix {
	owner := q.workload()
	switch {
	case owner == nil:
		return why.Fix{Text: "Make the pod again."}
	case slices.Contains(withTemplates, owner.Kind):
		return why.Fix{Text: "Let its pods be made again.",
			Command: why.Command("kubectl rollout restart %s%s", owner.Arg(), owner.Flag())}
	}
	return why.Fix{Text: "Delete the pod, and another one is made.",
		Command: why.Command("kubectl delete pod %s%s", q.pod.Name, q.self.Flag())}
}
