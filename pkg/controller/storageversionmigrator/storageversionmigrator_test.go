package storageversionmigrator_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apiextensions"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/storagemigration"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/storageversionmigrator"
)

// world is a server with the controller at work.
type world struct {
	*apiclient.Client
	dynamic dynamic.Interface
}

func start(t *testing.T) *world {
	c := controllertest.Start(t)
	w := &world{Client: c.Client(t), dynamic: dynamic.NewForConfigOrDie(c.Admin)}
	d := controller.Deps{Client: w.Client, Informers: controller.NewInformers(w.Client),
		Events: record.NewFakeRecorder(10), Log: slog.New(slog.DiscardHandler), Workers: 3, Now: time.Now}
	ctl, err := storageversionmigrator.New(d)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go d.Informers.Run(t.Context())
	go func() { done <- ctl.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) migrate(t *testing.T, name, group, resource string) {
	t.Helper()
	if _, err := storagemigration.StorageVersionMigrations(w.Client).Create(t.Context(),
		&migrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: migrationv1.StorageVersionMigrationSpec{
				Resource: metav1.GroupResource{Group: group, Resource: resource}}}); err != nil {
		t.Fatal(err)
	}
}

// ends waits until a migration has ended, and returns its conditions and the version that it gives.
func (w *world) ends(t *testing.T, name string) (conditions, version string) {
	t.Helper()
	controllertest.Eventually(t, name+" to end", func() string {
		m, err := storagemigration.StorageVersionMigrations(w.Client).Get(t.Context(), "", name)
		if err != nil {
			return err.Error()
		}
		var out []string
		over := false
		for _, c := range m.Status.Conditions {
			out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			over = over || c.Type == string(migrationv1.MigrationRunning) && c.Status == metav1.ConditionFalse
		}
		conditions, version = strings.Join(out, "\n"), m.Status.ResourceVersion
		if !over {
			return fmt.Sprintf("it has %q", conditions)
		}
		return ""
	})
	return conditions, version
}

const succeeded = "Running False MigrationCompleted: Migration completed\n" +
	"Succeeded True StorageVersionMigrationSucceeded: Migration completed"

// TestMigrations: the conditions and messages are those of a kube-controller-manager v1.37.2.
func TestMigrations(t *testing.T) {
	t.Parallel()
	w := start(t)
	t.Run("custom resources", w.customResources)
	t.Run("nothing to do", w.nothingToDo)
	t.Run("not to be written", w.notWritten)
	t.Run("refused", w.refused)
	t.Run("one after the other", w.oneAfterTheOther)
}

// customResources: objects that are stored in an earlier version are written again, the others are not, and the
// definition names one stored version afterwards.
func (w *world) customResources(t *testing.T) {
	definitions := apiextensions.CustomResourceDefinitions(w.Client)
	schemaOf := &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	if _, err := definitions.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "foos.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "foos", Kind: "Foo"},
			Scope: apiextensionsv1.NamespaceScoped, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schemaOf},
				{Name: "v2", Served: true, Schema: schemaOf}}}}); err != nil {
		t.Fatal(err)
	}
	foos := w.dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2",
		Resource: "foos"}).Namespace("default")
	make := func(name string) (version string) {
		controllertest.Eventually(t, name, func() string {
			o, err := foos.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v2", "kind": "Foo", "metadata": map[string]any{"name": name}}},
				metav1.CreateOptions{})
			if err != nil {
				return err.Error()
			}
			version = o.GetResourceVersion()
			return ""
		})
		return version
	}
	before := make("before")
	if _, err := definitions.Patch(t.Context(), "", "foos.example.com", types.JSONPatchType, []byte(`[
		{"op":"replace","path":"/spec/versions/0/storage","value":false},
		{"op":"replace","path":"/spec/versions/1/storage","value":true}]`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "two stored versions", func() string {
		d, err := definitions.Get(t.Context(), "", "foos.example.com")
		if err != nil || len(d.Status.StoredVersions) != 2 {
			return fmt.Sprint(d, err)
		}
		return ""
	})
	after := make("after")
	w.migrate(t, "foos", "example.com", "foos")
	if conditions, version := w.ends(t, "foos"); conditions != succeeded || version == "" {
		t.Errorf("%s\nfrom version %q", conditions, version)
	}
	for name, was := range map[string]string{"before": before, "after": after} {
		o, err := foos.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if written := o.GetResourceVersion() != was; written != (name == "before") || o.GetGeneration() != 1 {
			t.Errorf("%s was written: %t, generation %d", name, written, o.GetGeneration())
		}
	}
	d, err := definitions.Get(t.Context(), "", "foos.example.com")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == "StorageMigrating"
	})
	if i < 0 || !slices.Equal(d.Status.StoredVersions, []string{"v2"}) {
		text, _ := json.Marshal(d.Status)
		t.Fatalf("the definition says %s", text)
	}
	if c := d.Status.Conditions[i]; c.Status != apiextensionsv1.ConditionFalse || c.Reason != "MigrationSucceeded" ||
		c.Message != "The migration has succeeded and the stored versions have been updated" ||
		c.ObservedGeneration != d.Generation {
		t.Errorf("the definition says %+v", c)
	}

	// The next migration fails. What the first one wrote into the list of versions has to stay: objects are stored so.
	if _, err := definitions.Patch(t.Context(), "", "foos.example.com", types.JSONPatchType, []byte(`[
		{"op":"replace","path":"/spec/versions/0/storage","value":true},
		{"op":"replace","path":"/spec/versions/1/storage","value":false}]`)); err != nil {
		t.Fatal(err)
	}
	w.forbid(t, "example.com", "v2", "foos", "after")
	controllertest.Eventually(t, "the policy", func() string {
		if _, err := foos.Patch(t.Context(), "after", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsInvalid(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	w.migrate(t, "back", "example.com", "foos")
	if conditions, _ := w.ends(t, "back"); !strings.Contains(conditions, "Failed True") {
		t.Error(conditions)
	}
	if d, err = definitions.Get(t.Context(), "", "foos.example.com"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Status.StoredVersions, []string{"v2", "v1"}) {
		t.Errorf("after a migration that failed, objects are said to be stored in %v", d.Status.StoredVersions)
	}
}

// nothingToDo: what is stored as it should be keeps its version, over more than a page of objects.
func (w *world) nothingToDo(t *testing.T) {
	maps := core.ConfigMaps(w.Client)
	was := map[string]string{}
	for i := range 510 {
		o, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m%d", i)}})
		if err != nil {
			t.Fatal(err)
		}
		was[o.Name] = o.ResourceVersion
	}
	w.migrate(t, "maps", "", "configmaps")
	if conditions, _ := w.ends(t, "maps"); conditions != succeeded {
		t.Error(conditions)
	}
	now, err := maps.List(t.Context(), "default", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range now {
		if v, made := was[o.Name]; made && v != o.ResourceVersion {
			t.Fatalf("%s was written again", o.Name)
		}
	}
}

func (w *world) notWritten(t *testing.T) {
	w.migrate(t, "reviews", "authentication.k8s.io", "tokenreviews")
	const want = "Running False MigrationCompleted: Migration completed\n" +
		`Failed True StorageVersionMigrationFailed: resource "authentication.k8s.io/v1, Resource=tokenreviews" ` +
		"does not support discovery operations: [update patch list]"
	if conditions, version := w.ends(t, "reviews"); conditions != want || version != "" {
		t.Errorf("%s\nfrom version %q", conditions, version)
	}
}

// forbid forbids updates of the objects of a resource that have a name.
func (w *world) forbid(t *testing.T, group, version, resource, name string) {
	t.Helper()
	policies := w.dynamic.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicies"})
	bindings := w.dynamic.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingadmissionpolicybindings"})
	for at, body := range map[dynamic.ResourceInterface]string{
		policies: fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy",
			"metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[%q],"apiVersions":[%q],
			"operations":["UPDATE"],"resources":[%[1]q]}]},"validations":[{"expression":"object.metadata.name != '%[4]s'",
			"message":"go away"}]}}`, resource, group, version, name),
		bindings: fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding",
			"metadata":{"name":%q},"spec":{"policyName":%[1]q,"validationActions":["Deny"]}}`, resource),
	} {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if _, err := at.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// refused: an object that cannot be written ends its migration.
func (w *world) refused(t *testing.T) {
	w.forbid(t, "", "v1", "secrets", "b")
	secrets := core.Secrets(w.Client)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := secrets.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	controllertest.Eventually(t, "the policy", func() string {
		if _, err := secrets.Patch(t.Context(), "default", "b", types.MergePatchType,
			[]byte(`{"data":{"x":"eA=="}}`)); !apierrors.IsInvalid(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
	w.migrate(t, "secrets", "", "secrets")
	const want = "Running False MigrationCompleted: Migration completed\n" +
		`Failed True StorageVersionMigrationFailed: 1/3 not yet migrated. migration encountered unhandled error: ` +
		`secrets "b" is forbidden: ValidatingAdmissionPolicy 'secrets' with binding 'secrets' denied request: go away`
	if conditions, _ := w.ends(t, "secrets"); conditions != want {
		t.Error(conditions)
	}
}

// oneAfterTheOther: while a migration runs others of its resource wait, also if it never gets anywhere.
func (w *world) oneAfterTheOther(t *testing.T) {
	w.migrate(t, "first", "example.org", "things")
	migrations := storagemigration.StorageVersionMigrations(w.Client)
	controllertest.Eventually(t, "the first to run", func() string {
		m, err := migrations.Get(t.Context(), "", "first")
		if err != nil || len(m.Status.Conditions) == 0 {
			return fmt.Sprint(m, err)
		}
		return ""
	})
	w.migrate(t, "second", "example.org", "things")
	w.migrate(t, "other", "", "services") // which shows that the controller has seen the second
	w.ends(t, "other")
	if m, err := migrations.Get(t.Context(), "", "second"); err != nil || len(m.Status.Conditions) > 0 {
		t.Errorf("the second does not wait: %+v, %v", m, err)
	}
	if err := migrations.Delete(t.Context(), "", "first", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the second to run", func() string {
		m, err := migrations.Get(t.Context(), "", "second")
		if err != nil || len(m.Status.Conditions) == 0 {
			return fmt.Sprint(m, err)
		}
		return ""
	})
}
