package docbounds

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type generated interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func pods(containers int) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, containers)}}
}

func TestProtobuf(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	amounts := corev1.ResourceList{}
	for i := range 150 {
		labels[strings.Repeat("l", i)] = "v"
		amounts[corev1.ResourceName(strings.Repeat("l", i))] = resource.MustParse("1")
	}
	var m Messages
	for name, c := range map[string]struct {
		obj  generated
		want error
	}{
		"a pod":           {pods(20), nil},
		"many containers": {pods(101), ErrBeyond},
		"many in a template": {
			&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pods(101).Spec}}},
			ErrBeyond},
		"many strings": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, 101)}},
			ErrBeyond},
		"many labels": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, ErrBeyond},
		"many amounts": {&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: amounts}},
			ErrBeyond},
		"many extras of a user": {
			&authenticationv1.UserInfo{Extra: map[string]authenticationv1.ExtraValue{"a": make([]string, 101)}},
			ErrBeyond},
		"much text": {&corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("\n\x00", 5000)}},
			nil},
		"bytes that look like fields": {
			&corev1.Secret{Data: map[string][]byte{"a": []byte(strings.Repeat("\n\x00", 5000))}}, nil},
	} {
		b, err := c.obj.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Protobuf(b, c.obj, bounds); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestProtobufMapEntries: a value that reaches beyond its entry is read again as what it reaches into.
func TestProtobufMapEntries(t *testing.T) {
	t.Parallel()
	var m Messages
	const data, key, value = 2<<3 | wireBytes, 1<<3 | wireBytes, 2<<3 | wireBytes
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"whole":                    {[]byte{data, 6, key, 1, 'a', value, 1, 'b', data, 0}, nil},
		"beyond its entry":         {[]byte{data, 6, key, 1, 'a', value, 3, 'b', data, 0}, ErrBroken},
		"length that is no length": {[]byte{data, 6, key, 1, 'a', 2<<3 | wireVarint, 3, 'b', data, 0}, ErrBroken},
		"broken behind it":         {[]byte{data, 6, key, 1, 'a', value, 1, 'b', data}, nil}, // the decoder's to refuse
	} {
		if err := m.Protobuf(c.b, &corev1.ConfigMap{}, bounds); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// The damage that is prevented: two letters become three, one of them read twice.
	var got corev1.ConfigMap
	if err := got.Unmarshal([]byte{data, 6, key, 1, 'a', value, 3, 'b', data, 0}); err != nil ||
		got.Data["a"] != "b\x12\x00" {
		t.Errorf("decoders have learnt to see the end of an entry: %v %q", err, got.Data)
	}
}

// link is a type that contains itself.
type link struct {
	Next  *link            `protobuf:"bytes,1,opt,name=next"`
	Named map[string]*link `protobuf:"bytes,2,rep,name=named"`
}

func TestProtobufDepth(t *testing.T) {
	t.Parallel()
	var m Messages
	for name, tags := range map[string][]byte{"in a field": {1<<3 | wireBytes}, "in a map": {2<<3 | wireBytes}} {
		for levels, want := range map[int]error{4: nil, 30: ErrDeep} {
			var b []byte
			for range levels {
				b = append(append(slices.Clone(tags), byte(len(b))), b...)
			}
			if err := m.Protobuf(b, &link{}, bounds); !errors.Is(err, want) {
				t.Errorf("%s, %d levels: %v, want %v", name, levels, err, want)
			}
		}
	}
}

// TestProtobufSeesWhatIsDecoded: no encoding, however damaged, becomes more than was measured.
func TestProtobufSeesWhatIsDecoded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	pod := pods(2)
	pod.Labels = map[string]string{"a": "b", "c": "d"}
	pod.OwnerReferences = []metav1.OwnerReference{{Name: "o", Controller: new(true)}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroups: []int64{1, 2, 3}}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("100m")}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{
		{Name: "n", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}
	pod.Spec.Containers[0].Args = []string{"", "x"}
	whole, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var m Messages
	decoded := 0
	for range 20_000 {
		b := slices.Clone(whole)
		for range random.IntN(4) {
			switch at := random.IntN(len(b)); random.IntN(3) {
			case 0:
				b[at] = byte(random.IntN(256))
			case 1:
				b = slices.Insert(b, at, byte(random.IntN(256)))
			case 2:
				b = append(b, whole[min(at, len(whole)):]...)
			}
		}
		got := &corev1.Pod{}
		if got.Unmarshal(b) == nil {
			decoded++
		}
		n := grown(reflect.ValueOf(got))
		if n < 2 {
			continue
		}
		if err := m.Protobuf(b, got, Bounds{Values: n - 1, Depth: 100}); !errors.Is(err, ErrBeyond) &&
			!errors.Is(err, ErrBroken) {
			t.Fatalf("%x has %d values when it is decoded, and is measured as less: %v", b, n, err)
		}
	}
	if decoded < 1000 {
		t.Errorf("only %d could be decoded", decoded)
	}
}

// grown counts the messages, list items and map entries of a decoded value.
func grown(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return 0
		}
		return grown(v.Elem())
	case reflect.Struct:
		if v.IsZero() {
			return 0 // embedded as such, or not there
		}
		n := 0
		if t := v.Type(); t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[metav1.Time]() {
			return 1
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("protobuf") != "" {
				n += grown(v.Field(i))
			}
		}
		return n + 1
	case reflect.Map:
		n := v.Len()
		for _, k := range v.MapKeys() {
			n += grown(v.MapIndex(k))
		}
		return n
	case reflect.Slice:
		n := 0
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		for i := range v.Len() {
			n += max(1, grown(v.Index(i)))
		}
		return n
	}
	return 0
}
