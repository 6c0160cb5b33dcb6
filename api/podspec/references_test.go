package podspec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Every field of a pod whose type or name says that it names a secret, config map or claim is visited: fill sets each
// of them, one after the other, to a name of its own, and that name must come.
func TestReferencesKnowEveryField(t *testing.T) {
	t.Parallel()
	for _, path := range referenceFields(reflect.TypeFor[corev1.PodSpec](), "spec", 0) {
		p := &corev1.Pod{}
		setReference(reflect.ValueOf(&p.Spec).Elem(), strings.Split(path, ".")[1:], "named")
		if !slices.ContainsFunc(slices.Collect(References(p)), func(r Reference) bool { return r.Name == "named" }) {
			t.Errorf("%s is not visited", path)
		}
	}
}

// referenceFields finds the paths of the strings by which a type names secrets, config maps, claims, accounts or
// bundles.
func referenceFields(t reflect.Type, path string, depth int) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return referenceFields(t.Elem(), path, depth)
	case reflect.Struct:
	default:
		return nil
	}
	if depth > 7 {
		return nil
	}
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		at := path + "." + f.Name
		element := f.Type
		if element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		if element.Kind() != reflect.String {
			all = append(all, referenceFields(f.Type, at, depth+1)...)
			continue
		}
		named := slices.Contains([]string{"SecretName", "ClaimName", "ServiceAccountName", "ResourceClaimName"}, f.Name)
		of := t.Name()
		if f.Name == "Name" && (of == "LocalObjectReference" || of == "SecretReference" ||
			of == "ClusterTrustBundleProjection") {
			named = true
		}
		if named {
			all = append(all, at)
		}
	}
	return all
}

// setReference sets the string at the path below v, making what is on the way.
func setReference(v reflect.Value, path []string, to string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setReference(v.Elem(), path, to)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setReference(v.Index(0), path, to)
	case reflect.String:
		v.SetString(to)
	default:
		setReference(v.FieldByName(path[0]), path[1:], to)
	}
}

func TestReferencesStop(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "a",
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}, {Name: "c"}}}}
	count := 0
	for range References(p) {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d references after the first", count)
	}
}

// What the status names was made for the pod: by templates, and for its extended resources.
func TestReferencesOfStatus(t *testing.T) {
	t.Parallel()
	template := "by-template"
	p := &corev1.Pod{Status: corev1.PodStatus{
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "a", ResourceClaimName: &template},
			{Name: "none"}},
		ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"},
	}}
	for _, name := range []string{template, "extended"} {
		if !slices.Contains(slices.Collect(References(p)), Reference{Resource: RefResourceClaims, Name: name}) {
			t.Errorf("%s is not visited", name)
		}
	}
}
