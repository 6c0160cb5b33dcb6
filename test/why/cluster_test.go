package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// What bounds a command, the time between two looks at a state, between two heartbeats, and the size of an output.
const (
	commandTime  = 3 * time.Minute
	lookInterval = time.Second
	beatInterval = 10 * time.Second
	mostOutput   = 1 << 20
)

// cluster is the cluster on which situations are made.
type cluster struct {
	kubectl    string
	kubeconfig map[string]any
	// nodes are the nodes that any pod can be scheduled to, by name.
	nodes []string
}

// place is where one situation happens: a namespace, and a directory whose kubeconfig leads to it.
type place struct {
	*cluster
	t    *testing.T
	ns   string
	dir  string
	vars *strings.Replacer
	// quoted replaces the variables in regular expressions.
	quoted *strings.Replacer
}

// connect reads the kubeconfig and looks which nodes there are.
func connect(t *testing.T, kubectl, kubeconfig string) *cluster {
	c := &cluster{kubectl: kubectl}
	file, err := filepath.Abs(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t.Context(), "", file, "", kubectl, "config", "view", "--raw", "--minify", "--flatten")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(out), &c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	out, err = run(t.Context(), "", file, "", kubectl, "get", "nodes", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.NodeList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if ready && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 {
			c.nodes = append(c.nodes, n.Name)
		}
	}
	slices.Sort(c.nodes)
	return c
}

// has reports whether the cluster has what a situation needs.
func (c *cluster) has(p *place, need string) bool {
	_, err := p.command(p.t.Context(), "", c.kubectl, "get", "--raw", needs[need])
	return (err == nil) != strings.HasPrefix(need, "no-")
}

// enter makes the namespace of a situation, which goes with the test.
func (c *cluster) enter(t *testing.T, s *Situation) *place {
	ns := namespaceOf(s)
	vars := []string{"$NS", ns}
	for i := max(len(c.nodes), 9); i > 0; i-- {
		node := "no-such-node"
		if i <= len(c.nodes) {
			node = c.nodes[i-1]
		}
		vars = append(vars, "$NODE"+strconv.Itoa(i), node)
	}
	quoted := slices.Clone(vars)
	for i := 1; i < len(quoted); i += 2 {
		quoted[i] = regexp.QuoteMeta(quoted[i])
	}
	p := &place{cluster: c, t: t, ns: ns, dir: t.TempDir(), vars: strings.NewReplacer(vars...),
		quoted: strings.NewReplacer(quoted...)}
	config, err := p.config()
	if err != nil {
		t.Fatal(err)
	}
	p.write("kubeconfig", config)
	for file, content := range s.Files {
		p.write(file, p.vars.Replace(content))
	}
	if _, err := p.command(t.Context(), "", c.kubectl, "create", "namespace", ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.leave(s) })
	// Pods are refused before their namespace has its service account.
	if err := p.until(t.Context(), Step{Until: "kubectl get serviceaccounts", Matches: "(?m)^default "},
		untilDefault); err != nil {
		t.Fatal(err)
	}
	return p
}

// namespaceOf returns a name for the namespace of a situation that no earlier run has taken.
func namespaceOf(s *Situation) string {
	return fmt.Sprintf("why-%s-%04x", s.Name, uint16(time.Now().UnixNano()/1000))
}

// config returns the kubeconfig with the namespace in its context.
func (p *place) config() (string, error) {
	config := maps.Clone(p.kubeconfig)
	contexts, _ := config["contexts"].([]any)
	if len(contexts) != 1 {
		return "", errors.New("the kubeconfig has no current context")
	}
	entry, _ := contexts[0].(map[string]any)
	entry = maps.Clone(entry)
	inner, _ := entry["context"].(map[string]any)
	inner = maps.Clone(inner)
	inner["namespace"] = p.ns
	entry["context"] = inner
	config["contexts"] = []any{entry}
	out, err := yaml.Marshal(config)
	return string(out), err
}

// write puts a file beside the kubeconfig.
func (p *place) write(file, content string) {
	if err := os.WriteFile(filepath.Join(p.dir, file), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command runs a program in the situation's directory, as the kubeconfig's user.
func (p *place) command(ctx context.Context, input, program string, args ...string) (string, error) {
	return run(ctx, p.dir, filepath.Join(p.dir, "kubeconfig"), input, program, args...)
}

// run returns what a program printed. A program that fails is an error that quotes it.
func run(ctx context.Context, dir, kubeconfig, input, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	text := out.String()
	if len(text) > mostOutput {
		return "", fmt.Errorf("%s printed %d bytes, more than %d", filepath.Base(program), len(text), mostOutput)
	}
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s%s", filepath.Base(program), strings.Join(args, " "), err,
			errs.String(), text)
	}
	return text, nil
}

// typed runs a command as a situation has it.
func (p *place) typed(ctx context.Context, command string) (string, error) {
	args, err := words(p.vars.Replace(command))
	if err != nil {
		return "", err
	}
	program := args[0]
	if program == "kubectl" {
		program = p.kubectl
	}
	return p.command(ctx, "", program, args[1:]...)
}

// do does one step.
func (p *place) do(ctx context.Context, s Step) error {
	switch {
	case s.Apply != "":
		_, err := p.command(ctx, p.vars.Replace(s.Apply), p.kubectl, "apply", "-f", "-")
		return err
	case s.Run != "":
		out, err := p.typed(ctx, s.Run)
		if s.Fails == "" {
			return err
		}
		if err == nil {
			return fmt.Errorf("%s did not fail: %s", s.Run, out)
		}
		if !regexp.MustCompile(p.quoted.Replace(s.Fails)).MatchString(err.Error()) {
			return fmt.Errorf("%s failed, but not with %q: %w", s.Run, s.Fails, err)
		}
		return nil
	}
	bound, err := s.within()
	if err != nil {
		return err
	}
	return p.until(ctx, s, bound)
}

// until repeats a command until its output, or its error, matches. The last output is in the error.
func (p *place) until(ctx context.Context, s Step, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	wanted := regexp.MustCompile(p.quoted.Replace(s.Matches + s.Fails))
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	last := ""
	for {
		out, err := p.typed(ctx, s.Until)
		if err != nil {
			out = err.Error()
		}
		if ctx.Err() == nil { // a command that the bound ended shows nothing
			last = out
			if (err != nil) == (s.Fails != "") && wanted.MatchString(out) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s, the output of %s does not match %q: %s", bound, s.Until, wanted, last)
		case <-ticker.C:
		}
	}
}

// pretend makes a node, and plays its kubelet until the test ends.
func (p *place) pretend(n Pretend) error {
	now := metav1.Now()
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: p.vars.Replace(n.Name), Labels: map[string]string{
			corev1.LabelHostname: p.vars.Replace(n.Name), corev1.LabelOSStable: "linux"}},
		Spec: corev1.NodeSpec{Taints: n.Taints, Unschedulable: n.Unschedulable},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{}, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				Message: "kubelet is posting ready status", LastHeartbeatTime: now, LastTransitionTime: now}}}}
	if !n.Unschedulable {
		node.Spec.Taints = append(slices.Clone(n.Taints), corev1.Taint{Key: pretended, Value: p.ns,
			Effect: corev1.TaintEffectNoSchedule})
	}
	for key, value := range n.Labels {
		node.Labels[key] = p.vars.Replace(value)
	}
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: c,
			Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now})
	}
	capacity := map[string]string{"cpu": "4", "memory": "8Gi", "pods": "20"}
	maps.Copy(capacity, n.Capacity)
	for what, value := range capacity {
		amount, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("capacity of %s: %s: %w", n.Name, what, err)
		}
		node.Status.Capacity[corev1.ResourceName(what)] = amount
	}
	node.Status.Allocatable = node.Status.Capacity
	manifest, err := json.Marshal(node)
	if err != nil {
		return err
	}
	ctx := p.t.Context()
	if _, err := p.command(ctx, string(manifest), p.kubectl, "create", "-f", "-"); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.t.Cleanup(func() {
		<-ended
		p.forget(node.Name)
	})
	go func() {
		defer close(ended)
		if !n.Silent {
			p.beat(ctx, node.Name)
		}
	}()
	// The server taints every new node, until a controller has seen that it is Ready.
	return p.until(ctx, Step{Until: "kubectl get node " + node.Name +
		` -o jsonpath={.spec.taints[?(@.key=="node.kubernetes.io/not-ready")].key}`, Matches: "^$"}, untilDefault)
}

// beat renews the heartbeat of a node until the test ends.
func (p *place) beat(ctx context.Context, node string) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`,
			time.Now().UTC().Format(time.RFC3339))
		if _, err := p.command(ctx, "", p.kubectl, "patch", "node", node, "--subresource=status", "-p",
			patch); err != nil && ctx.Err() == nil {
			p.t.Log("heartbeat:", err)
		}
	}
}

// forget removes a pretended node and its pods, which no kubelet ends.
func (p *place) forget(node string) {
	ctx := context.Background()
	for _, args := range [][]string{
		{"delete", "node", node, "--ignore-not-found"},
		{"delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false"},
	} {
		if _, err := p.command(ctx, "", p.kubectl, args...); err != nil {
			p.t.Error(err)
		}
	}
}

// leave cleans up: what the situation says, and the namespace, which must go.
func (p *place) leave(s *Situation) {
	ctx := context.Background() // the test's own context has ended
	for _, step := range s.Cleanup {
		if err := p.do(ctx, step); err != nil {
			p.t.Error("cleanup:", err)
		}
	}
	if _, err := p.command(ctx, "", p.kubectl, "delete", "namespace", p.ns,
		"--timeout="+untilDefault.String()); err != nil {
		p.t.Error("the namespace does not go:", err)
	}
}
