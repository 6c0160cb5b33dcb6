// Package why holds `kubectl why` against a catalogue of situations that people ask about: broken clusters, and healthy
// ones. Each file of testdata/situations brings a cluster into one state, asks one question and says which cause the
// answer must name first. The catalogue knows nothing about how the answer is found.
package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// Situation is one state of a cluster, one question about it, and the answer that is true.
//
// In setup, pretend, files, ask and cleanup, $NS stands for the situation's own namespace, and $NODE1, $NODE2, … for
// the nodes that pods may be scheduled to, by name.
type Situation struct {
	// Name is the file's name without its ending, and Story the comment at its top.
	Name  string `json:"-"`
	Story string `json:"-"`

	// Question is what a person would ask, and Seen the address where people did.
	Question string `json:"question"`
	Seen     string `json:"seen,omitempty"`

	// Nodes is the number of nodes that the cluster must have, On the kinds of clusters that the situation is for (all
	// if empty), and Needs what else the cluster must have, or not have (the keys of needs).
	Nodes int      `json:"nodes,omitempty"`
	On    []string `json:"on,omitempty"`
	Needs []string `json:"needs,omitempty"`
	// Alone keeps other situations away while this one lasts: it changes something that all of them see.
	Alone bool `json:"alone,omitempty"`

	// Pretend are Nodes without a machine, which make it certain where pods fit. A situation with such nodes runs
	// alone.
	Pretend []Pretend `json:"pretend,omitempty"`
	// Files are in the directory in which the question is asked, by name.
	Files map[string]string `json:"files,omitempty"`
	// Setup brings the cluster into the state. Cleanup undoes what deleting the namespace does not undo.
	Setup   []Step `json:"setup"`
	Cleanup []Step `json:"cleanup,omitempty"`

	// Ask are the arguments of `kubectl why`.
	Ask string `json:"ask"`
	// Well is set if nothing is wrong: the answer must say so.
	Well bool `json:"well,omitempty"`
	// First are regular expressions that all must match the text of the first cause or of the chain below it, Never
	// those that may not, and Fix one that must match a change that is offered for it.
	First []string `json:"first,omitempty"`
	Never []string `json:"never,omitempty"`
	Fix   string   `json:"fix,omitempty"`
	// Says must match the answer's state or any of its causes. A situation with Says alone is neither well nor broken.
	Says []string `json:"says,omitempty"`
}

// Pretend is a Node object whose kubelet is played by the runner: it is Ready, and pods that are bound to it never
// start. A taint keeps away the pods of others, which would be lost there: the situation's pods must tolerate the key
// pretended with the value $NS.
type Pretend struct {
	Name          string            `json:"name"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []corev1.Taint    `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	// Capacity is what the node has, by resource (by default 4 CPUs, 8Gi of memory and 20 pods).
	Capacity map[string]string `json:"capacity,omitempty"`
	// Silent ends the heartbeats with the first one: the node is lost after the grace period of the cluster.
	Silent bool `json:"silent,omitempty"`
}

// Step is one of: manifests to apply in the situation's namespace, a command to run, or a command to repeat until its
// output matches. Only single quotes group the words of a command; there is no shell.
type Step struct {
	Apply string `json:"apply,omitempty"`
	Run   string `json:"run,omitempty"`
	// Fails says that Run must fail, or Until be repeated until it fails, with an error that matches.
	Fails   string `json:"fails,omitempty"`
	Until   string `json:"until,omitempty"`
	Matches string `json:"matches,omitempty"`
	// Within bounds Until (by default 2m, at most 5m).
	Within string `json:"within,omitempty"`
}

// pretended is the key of the taint of nodes without a machine.
const pretended = "example.com/pretended"

// untilDefault and untilMost bound a wait for a state.
const (
	untilDefault = 2 * time.Minute
	untilMost    = 5 * time.Minute
)

// sides are the kinds of clusters.
var sides = []string{"bonsai", "reference"}

// needs are the requests that show whether a cluster has something, by the name of what a situation needs. What begins
// with "no-" must not be there.
var needs = map[string]string{
	"metrics":    "/apis/metrics.k8s.io/v1beta1",
	"no-metrics": "/apis/metrics.k8s.io/v1beta1",
}

// within returns the bound of a wait.
func (s Step) within() (time.Duration, error) {
	d, err := time.ParseDuration(cmp.Or(s.Within, untilDefault.String()))
	if err == nil && (d <= 0 || d > untilMost) {
		err = fmt.Errorf("within: %s is not between 0 and %s", s.Within, untilMost)
	}
	return d, err
}

// Load reads the situations of a directory, by name.
func Load(dir string) ([]*Situation, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*Situation
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := Parse(strings.TrimSuffix(filepath.Base(file), ".yaml"), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// name is what a situation may be called: with the prefix and the suffix of its namespace it has at most 63 characters.
var name = regexp.MustCompile(`^[a-z][a-z0-9-]{2,44}$`)

// Parse reads one file, and refuses what is not in the format or makes no question with an answer.
func Parse(called string, data []byte) (*Situation, error) {
	s := &Situation{Name: called}
	if !name.MatchString(called) {
		return nil, fmt.Errorf("the name %q does not match %s", called, name)
	}
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		s.Story += comment
	}
	if s.Story == "" {
		return nil, fmt.Errorf("no story: begin with a comment")
	}
	if err := decode(data, s); err != nil {
		return nil, err
	}
	if s.Question == "" || s.Ask == "" || len(s.Setup) == 0 {
		return nil, fmt.Errorf("question, setup and ask are required")
	}
	switch {
	case s.Well && (len(s.First) > 0 || s.Fix != ""):
		return nil, fmt.Errorf("what is well has no first cause and no fix")
	case !s.Well && len(s.First) == 0 && (len(s.Says) == 0 || s.Fix != "" || len(s.Never) > 0):
		return nil, fmt.Errorf("first is missing: what must the answer name?")
	}
	for _, side := range s.On {
		if !slices.Contains(sides, side) {
			return nil, fmt.Errorf("on: unknown cluster %q (known: %s)", side, strings.Join(sides, ", "))
		}
	}
	for _, need := range s.Needs {
		if needs[need] == "" {
			return nil, fmt.Errorf("needs: unknown %q", need)
		}
	}
	for i, step := range slices.Concat(s.Setup, s.Cleanup) {
		if err := step.check(); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if _, err := words(s.Ask); err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	for _, expression := range slices.Concat(s.First, s.Never, s.Says, []string{s.Fix}) {
		if _, err := regexp.Compile(expression); err != nil {
			return nil, err
		}
	}
	s.Alone = s.Alone || len(s.Pretend) > 0
	return s, nil
}

// decode reads YAML 1.2, in which the key "on" is a text, and refuses unknown fields and fields that are there twice.
func decode(data []byte, into any) error {
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return err
	}
	document, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(document))
	strict.DisallowUnknownFields()
	return strict.Decode(into)
}

// check refuses a step that is not exactly one thing to do.
func (s Step) check() error {
	kinds := 0
	for _, text := range []string{s.Apply, s.Run, s.Until} {
		if text != "" {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("write one of apply, run and until")
	case s.Until == "" && s.Matches != "" || s.Until != "" && (s.Matches == "") == (s.Fails == ""):
		return fmt.Errorf("until and one of matches and fails belong together")
	case s.Fails != "" && s.Apply != "":
		return fmt.Errorf("fails belongs to run or until")
	case s.Within != "" && s.Until == "":
		return fmt.Errorf("within belongs to until")
	}
	for _, command := range []string{s.Run, s.Until} {
		if _, err := words(command); err != nil {
			return err
		}
	}
	for _, expression := range []string{s.Matches, s.Fails} {
		if _, err := regexp.Compile(expression); err != nil {
			return err
		}
	}
	_, err := s.within()
	return err
}

// words splits a command at spaces. Single quotes keep spaces in a word, and are not part of it.
func words(command string) ([]string, error) {
	var (
		all           []string
		word          strings.Builder
		quoted, begun bool
	)
	for _, r := range command {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case !quoted && (r == ' ' || r == '\n'):
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed: %s", command)
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
