package apiextensions

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// What a kube-apiserver v1.36.3 says of selectable fields of versions with and without schemas, and of a version
// without a name.
func TestVersionErrors(t *testing.T) {
	t.Parallel()
	with := &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}}}}
	other := &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	for name, c := range map[string]struct {
		name   string
		first  *apiextensionsv1.CustomResourceValidation
		second *apiextensionsv1.CustomResourceValidation
		path   string
		// more: the second version has the fields, too.
		more bool
		want string
	}{
		"fine": {"v1", with, other, ".color", false, ""},
		"no schema of its own": {"v1", nil, other, ".color", false,
			"spec.versions[0].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"},
		"all fields and no schema": {"v1", nil, nil, ".color", true,
			`spec.selectableFields: Invalid value: "": may only be set when validations.schema is included`},
		"a path that does not end": {"v1", with, other, ".color.", false,
			`spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".color.": is an invalid path: unexpected end of JSON path`},
		"no path that does not end": {"v1", with, other, ".x.", false,
			`spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".x.": is an invalid path: does not refer to a valid field`},
		"a wrong name is told twice": {"V", with, other, ".color", false, "spec.version: "},
		"a missing one is told once": {"", with, other, ".color", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := &definition{}
			fields := []apiextensionsv1.SelectableField{{JSONPath: c.path}}
			crd.Spec.Versions = []version{{Name: c.name, Storage: true, Schema: c.first, SelectableFields: fields},
				{Name: "v2", Schema: c.second}}
			if c.more {
				crd.Spec.Versions[1].SelectableFields = fields
			}
			prepareCreate(crd)
			found := c.want == ""
			for _, err := range append(validateSpec(crd), validateStored(crd)...) {
				text := err.Error()
				switch err.Field {
				case "spec.version", "spec.selectableFields", "spec.versions[0].selectableFields",
					"spec.versions[0].selectableFields[0].jsonPath", "status.storedVersions":
					if c.want == "" || len(text) < len(c.want) || text[:len(c.want)] != c.want {
						t.Errorf("told: %s", text)
					}
					found = true
				}
			}
			if !found {
				t.Errorf("not told: %s", c.want)
			}
		})
	}
}
