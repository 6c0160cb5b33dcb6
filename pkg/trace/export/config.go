package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// Bounds of a configuration file.
const (
	maxFile   = 64 << 10
	maxValues = 1000
	maxDepth  = 20
)

// TracingConfiguration is the kind of the file, of apiserver.config.k8s.io. Its versions are alike.
type TracingConfiguration struct {
	metav1.TypeMeta
	tracingapi.TracingConfiguration `json:",inline"`
}

const (
	group = "apiserver.config.k8s.io"
	kind  = "TracingConfiguration"
)

// Read returns the content of a file of --tracing-config-file, checked. Its errors are those of upstream's
// kube-apiserver.
func Read(path string) (*tracingapi.TracingConfiguration, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read tracing config: unable to read tracing configuration from %q: %w", path,
			err)
	}
	var f TracingConfiguration
	if err := decode(text, &f); err != nil {
		return nil, fmt.Errorf("failed to read tracing config: unable to decode tracing configuration data: %w", err)
	}
	if err := tracingapi.ValidateTracingConfiguration(&f.TracingConfiguration, nil, nil).ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate tracing configuration: %w", err)
	}
	return &f.TracingConfiguration, nil
}

func read(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("it has more than 64 KiB")
	}
	return text, err
}

// decode reads a file strictly. One that does not say what it is, is taken for what it should be, as upstream does.
func decode(text []byte, into *TracingConfiguration) error {
	if err := docbounds.YAML(text, docbounds.Bounds{Bytes: maxFile, Values: maxValues, Depth: maxDepth}); err != nil {
		return err
	}
	doc := text
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) { // as upstream tells JSON from YAML
		var err error
		if doc, err = yaml.YAMLToJSON(text); err != nil {
			return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
	}
	var of metav1.TypeMeta
	if err := json.Unmarshal(doc, &of); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	if version := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind); !known(version) {
		return fmt.Errorf("no kind %q is registered for version %q: it must be of kind %s of %s/v1", of.Kind,
			of.APIVersion, kind, group)
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		return runtime.NewStrictDecodingError([]error{err})
	}
	strict, err := sigsjson.UnmarshalStrict(doc, into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return runtime.NewStrictDecodingError(strict)
	}
	return nil
}

func known(k schema.GroupVersionKind) bool {
	return (k.Kind == kind || k.Kind == "") && (k.GroupVersion().Empty() ||
		k.Group == group && slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, k.Version))
}
