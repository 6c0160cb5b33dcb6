package why

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"bonsai/api/scheme"
)

// catalogue has the situations, and fewest is how many there must be.
const (
	catalogue = "testdata/situations"
	fewest    = 80
)

// image matches the images of manifests: the one that clusters have, and names that lead nowhere.
var image = regexp.MustCompile(`image: *"?([^\s",}]+)`)

// TestCatalogue: every file is a situation, no two ask the same, and its manifests are what the API takes.
func TestCatalogue(t *testing.T) {
	all, err := Load(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < fewest {
		t.Errorf("%d situations, fewer than %d", len(all), fewest)
	}
	types := scheme.New()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types,
		json.SerializerOptions{Yaml: true, Strict: true})
	questions := map[string]string{}
	expand := strings.NewReplacer("$NS", "why-x-0000", "$NODE", "n")
	for _, s := range all {
		if other := questions[s.Question]; other != "" {
			t.Errorf("%s asks what %s asks: %s", s.Name, other, s.Question)
		}
		questions[s.Question] = s.Name
		manifests := []string{}
		for _, step := range slices.Concat(s.Setup, s.Cleanup) {
			manifests = append(manifests, step.Apply)
		}
		for _, content := range s.Files {
			manifests = append(manifests, content)
		}
		for _, manifest := range manifests {
			if err := readAll(strict, expand.Replace(manifest)); err != nil {
				t.Errorf("%s: %v in\n%s", s.Name, err, manifest)
			}
			if len(s.Pretend) > 0 && strings.Count(manifest, "containers:") != strings.Count(manifest, pretended) {
				t.Errorf("%s: a pod does not tolerate the taint of pretended nodes, %s", s.Name, pretended)
			}
			for _, m := range image.FindAllStringSubmatch(manifest, -1) {
				if !strings.HasPrefix(m[1], "localhost/") {
					t.Errorf("%s pulls %s: images are of localhost/", s.Name, m[1])
				}
			}
		}
	}
}

// TestNamespaceIsNoAnswer: no expression matches an answer that says nothing but the namespace, whose name has that of
// the situation in it.
func TestNamespaceIsNoAnswer(t *testing.T) {
	t.Parallel()
	all, err := Load(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		ns := namespaceOf(s)
		c := Cause{Text: ns, Fixes: []Fix{{Text: ns, Command: ns}}}
		for _, expression := range slices.Concat(s.First, s.Says, []string{s.Fix}) {
			if expression == "" {
				continue
			}
			one := &Situation{First: []string{expression}, Says: []string{expression}, Fix: expression}
			faults := Judge(one, Answer{State: ns, Causes: []Cause{c}}, ns, strings.NewReplacer("$NODE", "n").Replace)
			if len(faults) != 3 { // First, Says and Fix
				t.Errorf("%s: %q matches the namespace %s alone", s.Name, expression, ns)
			}
		}
	}
}

// readAll reads documents as the API does. Kinds that the API does not have must be of a group of their own.
func readAll(strict runtime.Decoder, manifest string) error {
	for docs := kyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		_, kind, err := strict.Decode(doc, nil, nil)
		if runtime.IsNotRegisteredError(err) && kind != nil && strings.HasSuffix(kind.Group, ".example.com") {
			continue
		}
		if err != nil {
			return err
		}
	}
}
