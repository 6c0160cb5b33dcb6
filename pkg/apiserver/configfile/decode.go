package configfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// Decode reads a file of a kind of the group apiserver.config.k8s.io strictly. Its errors name fields. The kind has the
// versions v1, v1beta1 and v1alpha1, which are alike.
func Decode(text []byte, kind string, into any) error {
	return Kind{Group: "apiserver.config.k8s.io", Name: kind,
		Versions: []string{"v1", "v1beta1", "v1alpha1"}}.Decode(text, into)
}

// Kind is the kind of a file.
type Kind struct {
	Group, Name string
	// Versions are alike. The first is the one to use.
	Versions []string
}

// Decode reads a file of the kind strictly. Its errors name fields.
func (k Kind) Decode(text []byte, into any) error {
	if err := docbounds.YAML(text, docbounds.Bounds{Bytes: maxFile, Values: 20_000, Depth: 50}); err != nil {
		return err
	}
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return runtime.NewStrictDecodingError([]error{err})
	}
	of, err := named(doc, text)
	if err != nil {
		return err
	}
	strict, err := sigsjson.UnmarshalStrict(doc, into)
	if err != nil {
		return err
	}
	version, ok := strings.CutPrefix(of.APIVersion, k.Group+"/")
	if of.Kind != k.Name || !ok || !slices.Contains(k.Versions, version) {
		return fmt.Errorf("no kind %q is registered for version %q: it must be of kind %s of %s/%s", of.Kind,
			of.APIVersion, k.Name, k.Group, k.Versions[0])
	}
	if len(strict) > 0 {
		return runtime.NewStrictDecodingError(strict)
	}
	return nil
}

// named returns what a document says that it is. It fails if the document does not.
func named(doc, text []byte) (of metav1.TypeMeta, err error) {
	if err := json.Unmarshal(doc, &of); err != nil {
		return of, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	switch {
	case of.Kind == "":
		return of, runtime.NewMissingKindErr(string(text))
	case of.APIVersion == "":
		return of, runtime.NewMissingVersionErr(string(text))
	}
	return of, nil
}
