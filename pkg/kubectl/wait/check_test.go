package wait

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestParse(t *testing.T) {
	t.Parallel()
	pod := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"phase": "Running", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True"},
			map[string]any{"type": "Old", "status": "True", "observedGeneration": int64(1)},
		}},
	}}
	for want, c := range map[string]struct{ there, gone bool }{
		"delete":                           {false, true},
		"create":                           {true, false},
		"condition=ready":                  {true, false},
		"condition=Ready=false":            {false, false},
		"condition=Old":                    {false, false},
		"jsonpath={.status.phase}=Running": {true, false},
		"jsonpath={.status.phase}=Failed":  {false, false},
		"jsonpath={.status.phase}":         {true, false},
		"jsonpath={.status.nope}":          {false, false},
	} {
		check, err := parse(want)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		there, _ := check(pod)
		gone, _ := check(nil)
		if there != c.there || gone != c.gone {
			t.Errorf("%s: there %v, gone %v", want, there, gone)
		}
	}
	for _, bad := range []string{"", "foo", "jsonpath={.x}="} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
