package env

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type fakeSources map[string]map[string]string

func (f fakeSources) ConfigMap(_ context.Context, ns, name string) (*corev1.ConfigMap, error) {
	if d, ok := f["cm/"+ns+"/"+name]; ok {
		return &corev1.ConfigMap{Data: d}, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

func (f fakeSources) Secret(_ context.Context, ns, name string) (*corev1.Secret, error) {
	d, ok := f["secret/"+ns+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
	}
	s := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range d {
		s.Data[k] = []byte(v)
	}
	return s, nil
}

func (f fakeSources) File(volume, path string) ([]byte, error) {
	if d, ok := f["file/"+volume]; ok {
		if text, ok := d[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", volume)
}

func testPod(c corev1.Container) (*corev1.Pod, *corev1.Container) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u",
		Labels:      map[string]string{"app": "x", "b": `q"`},
		Annotations: map[string]string{"Note": "n"}},
		Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "sa", Containers: []corev1.Container{c}}}
	return p, &p.Spec.Containers[0]
}

func service(ns, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	src := fakeSources{"cm/ns/cfg": {"a": "1", "data-1": "2", "bad=key": "x"}, "secret/ns/s": {"pw": "hush"},
		"file/v": {"ok": "# a comment\n\n  A = 'one'  \nB='two\n  #2 $X \\'\nA='last'", "bare": "A=one\n",
			"double": "A='x'\nB=\"two\"\n", "joined": "A='x''y'",
			"open": "A='x\n", "long": "A='" + strings.Repeat("x", 32<<10+1) + "'"}}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	cm := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	cmKey := func(n, obj, key string, opt *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: n,
			ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: cm(obj), Key: key, Optional: opt}}}
	}
	secretKey := func(n, obj, key string, opt *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: n,
			ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: cm(obj), Key: key, Optional: opt}}}
	}
	fileKey := func(n, volume, path, key string, opt *bool) corev1.Container {
		return corev1.Container{
			Env: []corev1.EnvVar{{Name: n,
				ValueFrom: &corev1.EnvVarSource{
					FileKeyRef: &corev1.FileKeySelector{VolumeName: volume, Path: path, Key: key, Optional: opt}}}}}
	}
	tests := []struct {
		name string
		c    corev1.Container
		want []Var
		err  string
	}{
		{name: "values refer to earlier ones only",
			c: corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "x$(B)"}, {Name: "B", Value: "b"},
				{Name: "C", Value: "$(A)-$(B)-$$(B)"}, {Name: "E"}}},
			want: []Var{{"A", "x$(B)"}, {"B", "b"}, {"C", "x$(B)-b-$(B)"}, {"E", ""}}},
		{name: "fields", c: corev1.Container{
			Env: []corev1.EnvVar{field("N", "metadata.name"), field("IP", "status.podIP"),
				field("IPS", "status.podIPs"), field("H", "status.hostIP"),
				field("HS", "status.hostIPs"), field("L", "metadata.labels['app']"), field("NODE", "spec.nodeName"),
				field("SA", "spec.serviceAccountName"), field("U", "metadata.uid"),
				field("AN", "metadata.annotations['Note']")}},
			want: []Var{{"N", "p"}, {"IP", "10.0.0.1"}, {"IPS", "10.0.0.1,fd00::1"}, {"H", "192.0.2.1"},
				{"HS", "192.0.2.1"}, {"L", "x"}, {"NODE", "node"}, {"SA", "sa"}, {"U", "u"}, {"AN", "n"}}},
		{name: "unknown field", c: corev1.Container{Env: []corev1.EnvVar{field("N", "status.phase")}},
			err: "unsupported fieldPath: status.phase"},
		{name: "envFrom with prefix, env wins", c: corev1.Container{
			EnvFrom: []corev1.EnvFromSource{
				{Prefix: "p_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: cm("cfg")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: cm("s")}}},
			Env: []corev1.EnvVar{{Name: "p_a", Value: "$(pw)"}}},
			want: []Var{{"p_a", "hush"}, {"p_data-1", "2"}, {"pw", "hush"}}},
		{name: "envFrom missing",
			c: corev1.Container{EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: cm("none"), Optional: &no}}}},
			err: `configmap "none" not found`},
		{name: "envFrom missing optional",
			c: corev1.Container{EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: cm("none"), Optional: &yes}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: cm("none"), Optional: &yes}}}}},
		{name: "keys", c: corev1.Container{
			Env: []corev1.EnvVar{cmKey("A", "cfg", "a", nil), secretKey("S", "s", "pw", nil),
				cmKey("X", "cfg", "x", &yes), secretKey("Y", "none", "x", &yes)}},
			want: []Var{{"A", "1"}, {"S", "hush"}}},
		{name: "config map key missing", c: corev1.Container{Env: []corev1.EnvVar{cmKey("A", "cfg", "x", nil)}},
			err: "couldn't find key x in ConfigMap ns/cfg"},
		{name: "secret key missing", c: corev1.Container{Env: []corev1.EnvVar{secretKey("A", "s", "x", &no)}},
			err: "couldn't find key x in Secret ns/s"},
		{name: "file", c: fileKey("X", "v", "ok", "B", nil), want: []Var{{"X", "two\n  #2 $X \\"}}},
		{name: "file, the last one counts", c: fileKey("A", "v", "ok", "A", &no), want: []Var{{"A", "last"}}},
		{name: "file missing", c: fileKey("A", "v", "none", "A", &no), err: "file does not exist"},
		{name: "file missing optional", c: fileKey("A", "v", "none", "A", &yes)},
		{name: "file's key missing", c: fileKey("A", "v", "ok", "C", &no),
			err: `environment variable key "C" not found in file "ok"`},
		{name: "file's key missing optional", c: fileKey("A", "v", "ok", "C", &yes)},
		{name: "file's volume missing", c: fileKey("A", "w", "ok", "A", &yes),
			err: `cannot find the volume "w" referenced by FileKeyRef`},
		{name: "file without quotes", c: fileKey("A", "v", "bare", "A", &yes),
			err: `couldn't parse env file "bare" of volume "v": line 1 is not of the form KEY='value'`},
		{name: "file with double quotes", c: fileKey("A", "v", "double", "A", nil),
			err: `couldn't parse env file "double" of volume "v": line 2 is not`},
		{name: "file with two strings", c: fileKey("A", "v", "joined", "A", nil),
			err: `couldn't parse env file "joined" of volume "v": line 1 goes on`},
		{name: "file with an open quote", c: fileKey("A", "v", "open", "A", nil),
			err: `couldn't parse env file "open" of volume "v": the quote that line 1 opens is not closed`},
		{name: "file with a long value", c: fileKey("A", "v", "long", "A", nil),
			err: `environment variable value for key "A" exceeds maximum size of 32KB`},
		{name: "file's key too long", c: fileKey("A", "v", "ok", strings.Repeat("k", 129), nil),
			err: `environment variable key "kk`},
		{name: "secret missing", c: corev1.Container{Env: []corev1.EnvVar{secretKey("A", "none", "x", nil)}},
			err: `secret "none" not found`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, c := testPod(tc.c)
			got, err := Build(context.Background(),
				Input{Pod: p, Container: c, PodIPs: []string{"10.0.0.1", "fd00::1"}, HostIPs: []string{"192.0.2.1"}},
				src)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err && !strings.HasPrefix(err.Error(), tc.err) {
					t.Fatalf("error %v, want %s", err, tc.err)
				}
				return
			}
			if d := cmp.Diff(tc.want, got); err != nil || d != "" {
				t.Fatal(err, d)
			}
		})
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	services := []*corev1.Service{
		service("ns", "my-db", "10.96.0.9", corev1.ServicePort{Name: "pg-main", Port: 5432},
			corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}),
		service("ns", "headless", "None", corev1.ServicePort{Port: 1}),
		service("other", "x", "10.96.0.8", corev1.ServicePort{Port: 1}),
		service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443}),
		service("default", "y", "10.96.0.2", corev1.ServicePort{Port: 1}),
	}
	kube := map[string]string{"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "443", "KUBERNETES_PORT": "tcp://10.96.0.1:443",
		"KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443", "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
		"KUBERNETES_PORT_443_TCP_PORT": "443", "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1"}
	p, c := testPod(corev1.Container{})
	off := false
	p.Spec.EnableServiceLinks = &off
	if d := cmp.Diff(kube, serviceVars(Input{Pod: p, Container: c, Services: services})); d != "" {
		t.Error("without links:", d)
	}
	p.Spec.EnableServiceLinks = nil
	got := serviceVars(Input{Pod: p, Container: c, Services: services})
	if got["MY_DB_SERVICE_PORT_PG_MAIN"] != "5432" || got["MY_DB_PORT_53_UDP"] != "udp://10.96.0.9:53" ||
		got["MY_DB_PORT"] != "tcp://10.96.0.9:5432" || got["HEADLESS_SERVICE_HOST"] != "" ||
		got["X_SERVICE_HOST"] != "" || len(got) != 8+13 {
		t.Errorf("with links: %v", got)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	get := func(n string) (string, bool) {
		v, ok := map[string]string{"A": "1", "B": "$(A)", "": "none"}[n]
		return v, ok
	}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "$(B)": "$(A)", "$(C)": "$(C)", "$$(A)": "$(A)", "$$$(A)": "$1",
		"$$$$(A)": "$$(A)", "$A": "$A", "$": "$", "a$": "a$", "$(A": "$(A",
		"$(A)$(A)": "11", "$$": "$", "$(C)$(A)": "$(C)1", "$()": "none", "foo\\$(A)": "foo\\1",
		"--$(A)=$(Z)$": "--1=$(Z)$",
	} {
		if got := expand(in, get); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
	cmd, args := Command(&corev1.Container{Command: []string{"sh", "$(X)"}, Args: []string{"$$(X)", "$(Y)"}},
		[]Var{{"X", "v"}})
	if d := cmp.Diff([][]string{{"sh", "v"}, {"$(X)", "$(Y)"}}, [][]string{cmd, args}); d != "" {
		t.Error(d)
	}
	if _, err := SubPath("a/$(Q)", nil); err == nil || err.Error() != `missing value for "Q"` {
		t.Error(err)
	}
	if s, err := SubPath("a/$(Q)", []Var{{"Q", "q"}}); err != nil || s != "a/q" {
		t.Error(s, err)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"$(A)", "$$(A)", "$(A", "$", "a$$$(A)b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// Without a $ nothing changes, and with no variable known only $$ does.
		out := expand(s, func(string) (string, bool) { return "", false })
		if len(out) > len(s) || !strings.Contains(s, "$$") && out != s {
			t.Fatalf("Expand(%q) = %q", s, out)
		}
	})
}

func TestFieldLines(t *testing.T) {
	t.Parallel()
	p, _ := testPod(corev1.Container{})
	if got, err := Field(p, "metadata.labels"); err != nil || got != "app=\"x\"\nb=\"q\\\"\"" {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"metadata.name['x']", "metadata.labels['']", "spec.foo", "metadata.labels[x]"} {
		if _, err := Field(p, bad); err == nil {
			t.Error(bad, "accepted")
		}
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	q := resource.MustParse
	c := &corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": q("250m"), "memory": q("32Mi")},
		Limits:   corev1.ResourceList{"cpu": q("1250m")}}}
	alloc := corev1.ResourceList{"memory": q("1Gi"), "cpu": q("4")}
	for _, tc := range []struct{ res, div, want string }{
		{"requests.cpu", "", "1"}, {"requests.cpu", "1m", "250"}, {"limits.cpu", "", "2"},
		{"limits.memory", "1Mi", "1024"}, {"requests.memory", "", "33554432"}, {"requests.memory", "1Gi", "1"},
		{"requests.ephemeral-storage", "", "0"}, {"requests.hugepages-2Mi", "", "0"},
	} {
		sel := &corev1.ResourceFieldSelector{Resource: tc.res}
		if tc.div != "" {
			sel.Divisor = q(tc.div)
		}
		if got, err := resourceValue(c, sel, alloc); err != nil || got != tc.want {
			t.Errorf("%v: %q %v", tc, got, err)
		}
	}
	if _, err := resourceValue(c, &corev1.ResourceFieldSelector{Resource: "limits.gpu"}, alloc); err == nil {
		t.Error("unknown resource accepted")
	}
	if _, err := ResourceOf(&corev1.Pod{}, "x", &corev1.ResourceFieldSelector{Resource: "limits.cpu"},
		alloc); err == nil {
		t.Error("found a container that is not there")
	}
}
