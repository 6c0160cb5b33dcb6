package audit

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

// json is an answer of a media type as JSON; nil if it cannot be shown so.
func (a *Auditor) json(media string, answer []byte) []byte {
	switch media {
	case runtime.ContentTypeJSON:
		return answer
	case runtime.ContentTypeYAML:
		if out, err := yaml.YAMLToJSON(answer); err == nil {
			return out
		}
	case runtime.ContentTypeProtobuf:
		obj, _, err := protobuf.NewSerializer(a.Scheme, a.Scheme).Decode(answer, nil, nil)
		if err != nil {
			a.Log.Error("an answer is left out of the audit log", "err", err)
			return nil
		}
		if out, err := json.Marshal(obj); err == nil {
			return out
		}
	}
	return nil
}

func isJSON(b []byte) bool { return len(bytes.TrimSpace(b)) > 0 && json.Valid(b) }

// withoutManagedFields takes managedFields from an object, the items of a list and the objects in a table; what is no
// JSON object stays as it is.
func withoutManagedFields(doc []byte) []byte {
	if !bytes.Contains(doc, []byte(`"managedFields"`)) {
		return doc
	}
	var obj map[string]any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if d.Decode(&obj) != nil {
		return doc
	}
	dropManagedFields(obj)
	for _, list := range []struct{ in, object string }{{"items", ""}, {"rows", "object"}} {
		entries, _ := obj[list.in].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			if list.object != "" {
				entry, _ = entry[list.object].(map[string]any)
			}
			dropManagedFields(entry)
		}
	}
	out, err := json.Marshal(obj)
	if err != nil {
		return doc
	}
	return out
}

func dropManagedFields(obj map[string]any) {
	if meta, ok := obj["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
}
