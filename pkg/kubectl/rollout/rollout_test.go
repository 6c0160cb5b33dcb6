package rollout

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write/writetest"
)

// command is rollout with a template that shows labels and annotations only.
func command(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return NewCommand(func(w io.Writer, t corev1.PodTemplateSpec) {
		fmt.Fprintf(w, "Pod Template:\n  %v %v\n", t.Labels, t.Annotations)
	})(f, streams)
}

// controllerRevision is one of the daemon set agent.
func controllerRevision(number int, cause, template string) string {
	template = strings.Replace(template, `{"metadata"`, `{"$patch":"replace","metadata"`, 1)
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"agent-%d","namespace":"default","labels":{"app":"agent"},"annotations":{"x":"y"%s},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d","controller":true}]},"revision":%d,"data":{"spec":{%s}}}`, number, cause, number, template)
}

// objects are the deployment web at its second revision, which is paused or not, a daemon set at its second, and pods.
func objects(paused bool) []string {
	template := func(version string) string {
		return `"template":{"metadata":{"labels":{"app":"web","v":"` + version +
			`"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	}
	replicaSet := func(version, cause string) string {
		return `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-` + version +
			`","namespace":"default","annotations":{"deployment.kubernetes.io/revision":"` + version +
			`"` + cause + `},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]},"spec":{` + template(version) + `}}`
	}
	return []string{
		fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","uid":"u","generation":2,"annotations":{"deployment.kubernetes.io/revision":"2"}},`+
			`"spec":{"replicas":1,"paused":%t,"selector":{"matchLabels":{"app":"web"}},%s},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`, paused, template("2")),
		replicaSet("1", `,"kubernetes.io/change-cause":"first"`), replicaSet("2", ""),
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent","namespace":"default","uid":"d"},"spec":{"selector":{"matchLabels":{"app":"agent"}},` + template("2") + `}}`,
		controllerRevision(1, `,"kubernetes.io/change-cause":"first"`, template("1")),
		controllerRevision(2, "", template("2")),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"default"}}`,
	}
}

// TestRollout pins what the subcommands say and what they ask of the server.
func TestRollout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		paused bool
		want   string
		code   int
		sent   string // a part of the last request
	}{
		{"history deploy web", false,
			"deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         <none>\n\n", 0, ""},
		{"history deploy web --revision=1", false,
			"deployment.apps/web with revision #1\nPod Template:\n  map[app:web v:1] map[kubernetes.io/change-cause:first]\n\n", 0, ""},
		{"history deploy web -o name", false, "replicaset.apps/web-1\nreplicaset.apps/web-2\n", 0, ""},
		{"history deploy web --revision=2 -o jsonpath={.kind}/{.metadata.name}", false, "ReplicaSet/web-2", 0, ""},
		{"history deploy web --revision=3", false, "error: unable to find the specified revision\n", 1, ""},
		{"history deploy web --revision=-1", false, "error: revision must be a positive integer: -1\n", 1, ""},
		{"undo deploy web --dry-run=client", false,
			"deployment.apps/web Pod Template:\n  map[app:web v:1] map[]\n (dry run)\n", 0, "GET"},
		{"undo deploy web --dry-run=client -o jsonpath={.spec.template.metadata.labels.v}", false, "2", 0, "GET"},
		{"undo deploy web --dry-run=client --to-revision=2", false,
			"deployment.apps/web Pod Template:\n  map[app:web v:2] map[]\n (dry run)\n", 0, "GET"},
		{"undo deploy web --dry-run=server", false, "deployment.apps/web rolled back (server dry run)\n", 0,
			"dryRun=All"},
		{"undo deploy web --to-revision=2", false,
			"deployment.apps/web skipped rollback (current template already matches revision 2)\n", 0, "GET"},
		{"undo deploy web --to-revision=9", false, "error: unable to find specified revision 9 in history\n", 1, "GET"},
		{"undo deploy web", false, "deployment.apps/web rolled back\n", 0, `"v":"1"`},
		{"undo deploy web", false, "deployment.apps/web rolled back\n", 0,
			`"value":{"deployment.kubernetes.io/revision":"2","kubernetes.io/change-cause":"first"}}`},
		{"undo deploy web", true,
			"error: you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again\n", 1, "GET"},
		{"undo deploy web --dry-run=foo", false,
			"error: Invalid dry-run value (foo). Must be \"none\", \"server\", or \"client\".\n", 1, ""},
		{"undo deploy web --field-manager=x", false, "error: unknown flag: --field-manager\n", 1, ""},
		{"undo pod p", false, "error: no rollbacker has been implemented for \"Pod\"\n", 1, ""},
		{"history ds agent", false,
			"daemonset.apps/agent \nREVISION  CHANGE-CAUSE\n1         first\n2         <none>\n\n", 0, ""},
		{"history ds agent --revision=1", false,
			"daemonset.apps/agent with revision #1\nPod Template:\n  map[app:web v:1] map[]\n\n", 0, ""},
		{"history ds agent --revision=1 -o jsonpath={.kind}/{.spec.template.metadata.labels.v}", false, "DaemonSet/1",
			0, ""},
		{"undo ds agent --dry-run=client", false,
			"daemonset.apps/agent will roll back to Pod Template:\n  map[app:web v:1] map[]\n (dry run)\n", 0, "GET"},
		{"undo ds agent --to-revision=2", false,
			"daemonset.apps/agent skipped rollback (current template already matches revision 2)\n", 0, "GET"},
		{"undo ds agent", false, "daemonset.apps/agent rolled back\n", 0, `"$patch":"replace"`},
		{"restart ds agent", false, "daemonset.apps/agent restarted\n", 0, "restartedAt"},
		{"pause ds agent", false, "error: daemonsets.apps \"agent\" pausing is not supported\n", 1, "GET"},
		{"restart deploy web", false, "deployment.apps/web restarted\n", 0, "fieldManager=kubectl-rollout"},
		{"restart deploy web", true,
			"error: deployments.apps \"web\" can't restart paused deployment (run rollout resume first)\n", 1, "GET"},
		{"restart deploy web --dry-run=server", false, "error: unknown flag: --dry-run\n", 1, ""},
		{"restart pod p", false, "error: pods \"p\" restarting is not supported\n", 1, "GET"},
		{"restart pod/p pod/q", false,
			"error: pods \"p\" restarting is not supported\nerror: pods \"q\" restarting is not supported\n", 1, "GET"},
		{"pause deploy web --field-manager=me", false, "deployment.apps/web paused\n", 0, "fieldManager=me"},
		{"pause deploy web", true, "error: deployments.apps \"web\" is already paused\n", 1, "GET"},
		{"resume deploy web", true, "deployment.apps/web resumed\n", 0, "PATCH"},
		{"resume deploy web", false, "error: deployments.apps \"web\" is not paused\n", 1, "GET"},
		{"status deploy web", false, "deployment \"web\" successfully rolled out\n", 0, ""},
		{"status deploy web --revision=1", false,
			"error: desired revision (1) is different from the running revision (2)\n", 1, ""},
		{"status rs web-1", false, "error: no status viewer has been implemented for ReplicaSet.apps\n", 1, ""},
		{"status", false, "error: required resource not specified\n", 1, ""},
		{"odd", false, "error: unknown command \"odd\"\nSee 'kubectl rollout -h' for help and examples\n", 1, ""},
	} {
		s := writetest.NewServer(t, objects(c.paused)...)
		got, code := writetest.Run(t, command, s.URL, "", append([]string{"rollout"}, strings.Fields(c.args)...)...)
		got = regexp.MustCompile(`See 'kubectl rollout \w+ --help'.*\n`).ReplaceAllString(got, "")
		if got != c.want || code != c.code {
			t.Errorf("rollout %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
		if log := s.Log(); c.sent != "" && (len(log) == 0 || !strings.Contains(log[len(log)-1], c.sent)) {
			t.Errorf("rollout %s: requests %q, want %q in the last", c.args, log, c.sent)
		}
	}
}
