package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/openapi"
	"bonsai/api/scheme"
)

// property returns a definition's property as plain JSON.
func property(t *testing.T, b *openapi.Builder, name, field string) map[string]any {
	t.Helper()
	def, ok := b.Definitions()[name]
	if !ok {
		t.Fatalf("no definition %s", name)
	}
	var value any = def
	if field != "" {
		p, ok := def.Properties[field]
		if !ok {
			t.Fatalf("no property %s of %s", field, name)
		}
		value = p
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	delete(out, "description")
	return out
}

// TestEnumerations: a field of an enumeration names its values, those with blanks and the empty one too, and what they
// mean.
func TestEnumerations(t *testing.T) {
	t.Parallel()
	b := openapi.NewBuilder(scheme.New(), openapi.V3)
	for _, gvk := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Pod"),
		certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")} {
		if _, err := b.Add(gvk); err != nil {
			t.Fatal(err)
		}
	}
	defs := b.Definitions()
	for name, want := range map[string]string{
		"Toleration.operator":       "\n\nPossible enum values:\n - `\"Equal\"`\n - `\"Exists\"`\n - `\"Gt\"`\n - `\"Lt\"`",
		"HostPathVolumeSource.type": "\n\nPossible enum values:\n - `\"\"` For backwards compatible, leave it empty if unset\n - `\"BlockDevice\"` A block device must exist",
		"ContainerPort.protocol":    "\n\nPossible enum values:\n - `\"SCTP\"` is the SCTP protocol.\n - `\"TCP\"` is the TCP protocol.\n - `\"UDP\"` is the UDP protocol.",
	} {
		kind, field, _ := strings.Cut(name, ".")
		if got := defs["io.k8s.api.core.v1."+kind].Properties[field].Description; !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}
	slices := openapi.NewBuilder(scheme.New(), openapi.V2)
	if _, err := slices.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")); err != nil {
		t.Fatal(err)
	}
	if got := slices.Definitions()["io.k8s.api.discovery.v1.EndpointSlice"].Properties["addressType"].Enum; len(got) !=
		3 || got[1] != "IPv4" {
		t.Errorf("address types are %q", got) // constants of another package are two of them
	}
	usages := defs["io.k8s.api.certificates.v1.CertificateSigningRequestSpec"].Properties["usages"]
	if got := usages.Items.Schema.Enum; len(got) != 23 || got[1] != "cert sign" || got[15] != "key encipherment" {
		t.Errorf("usages are %q", got)
	}
	if strings.Contains(usages.Description, "Possible enum values") {
		t.Errorf("a list's description has the values of its items: %q", usages.Description)
	}
}

// TestGenerated: types that do not describe themselves are described all the same, and apply knows the lists of an
// APIService.
func TestGenerated(t *testing.T) {
	t.Parallel()
	b := openapi.NewBuilder(scheme.New(), openapi.V2)
	for _, gvk := range []schema.GroupVersionKind{
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
	} {
		if _, err := b.Add(gvk); err != nil {
			t.Fatal(err)
		}
	}
	const crd, service = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
		"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."
	defs := b.Definitions()
	for name, got := range map[string]string{
		"a definition":       defs[crd+"CustomResourceDefinition"].Description,
		"a field of it":      defs[crd+"CustomResourceDefinitionSpec"].Properties["versions"].Description,
		"an APIService":      defs[service+"APIService"].Description,
		"a field of it, too": defs[service+"APIServiceSpec"].Properties["caBundle"].Description,
	} {
		if got == "" {
			t.Errorf("%s has no description", name)
		}
	}
	if got, _ := defs[service+"APIServiceStatus"].Properties["conditions"].Extensions.GetStringSlice(
		"x-kubernetes-list-map-keys"); len(got) != 1 || got[0] != "type" {
		t.Errorf("the key of an APIService's conditions is %q", got)
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	const core, meta = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
	for _, c := range []struct {
		version          openapi.Version
		name, prop, want string
	}{
		{openapi.V2, core + "PodSpec", "containers",
			`{"type":"array","items":{"$ref":"#/definitions/io.k8s.api.core.v1.Container"},
			"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{openapi.V3, core + "PodSpec", "containers",
			`{"type":"array","items":{"$ref":"#/components/schemas/io.k8s.api.core.v1.Container"},
			"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{openapi.V2, core + "Container", "command",
			`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"}`},
		{openapi.V2, core + "PodSpec", "restartPolicy", `{"type":"string","enum":["Always","Never","OnFailure"]}`},
		{openapi.V2, core + "PodSpec", "nodeSelector",
			`{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-map-type":"atomic"}`},
		{openapi.V2, core + "PersistentVolumeSpec", "claimRef",
			`{"$ref":"#/definitions/io.k8s.api.core.v1.ObjectReference","x-kubernetes-map-type":"granular"}`},
		{openapi.V2, core + "Secret", "data",
			`{"type":"object","additionalProperties":{"type":"string","format":"byte"}}`},
		{openapi.V3, core + "ContainerPort", "protocol",
			`{"type":"string","default":"TCP","enum":["SCTP","TCP","UDP"]}`},
		{openapi.V2, meta + "Time", "", `{"type":"string","format":"date-time"}`},
		{openapi.V2, meta + "FieldsV1", "", `{"type":"object"}`},
		{openapi.V2, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "",
			`{"type":"string","format":"int-or-string"}`},
		{openapi.V3, "io.k8s.apimachinery.pkg.api.resource.Quantity", "",
			`{"oneOf":[{"type":"string"},{"type":"number"}]}`},
		{openapi.V2, meta + "OwnerReference", "uid", `{"type":"string"}`},
	} {
		t.Run(c.name+"."+c.prop, func(t *testing.T) {
			t.Parallel()
			b := openapi.NewBuilder(scheme.New(), c.version)
			for _, kind := range []string{"Pod", "Secret", "Service", "PersistentVolume"} {
				if _, err := b.Add(corev1.SchemeGroupVersion.WithKind(kind)); err != nil {
					t.Fatal(err)
				}
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, property(t, b, c.name, c.prop)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKindsAndRequired(t *testing.T) {
	t.Parallel()
	b := openapi.NewBuilder(scheme.New(), openapi.V2)
	if _, err := b.Add(appsv1.SchemeGroupVersion.WithKind("Deployment")); err != nil {
		t.Fatal(err)
	}
	got := property(t, b, "io.k8s.api.apps.v1.Deployment", "")
	want := []any{map[string]any{"group": "apps", "kind": "Deployment", "version": "v1"}}
	if diff := cmp.Diff(want, got["x-kubernetes-group-version-kind"]); diff != "" {
		t.Error(diff)
	}
	spec := b.Definitions()["io.k8s.api.apps.v1.DeploymentSpec"]
	if diff := cmp.Diff([]string{"selector", "template"}, spec.Required); diff != "" {
		t.Error(diff)
	}
	if d := spec.Properties["replicas"].Description; !strings.Contains(d, "Number of desired pods") {
		t.Errorf("description of replicas: %q", d)
	}
}

func TestReferencesAreClosed(t *testing.T) {
	t.Parallel()
	b := openapi.NewBuilder(scheme.New(), openapi.V2)
	for gvk := range scheme.New().AllKnownTypes() {
		if gvk.Version == "v1" {
			if _, err := b.Add(gvk); err != nil {
				t.Fatal(err)
			}
		}
	}
	raw, err := json.Marshal(b.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(raw), `"#/definitions/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if _, ok := b.Definitions()[name]; !ok {
			t.Errorf("%s is referred to and not defined", name)
		}
	}
}
