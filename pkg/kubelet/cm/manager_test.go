package cm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// fake notes what it is asked for, and fails if fail is set.
type fake struct {
	name  string
	notes *[]string
	has   []types.UID
	fail  error
}

func (f *fake) note(what string) error {
	*f.notes = append(*f.notes, f.name+" "+what)
	return f.fail
}

func (f *fake) FailedReason() string                           { return "Failed" + f.name }
func (f *fake) Prepare(_ context.Context, _ *corev1.Pod) error { return f.note("prepare") }
func (f *fake) Unprepare(_ context.Context, uid types.UID) error {
	return f.note("unprepare " + string(uid))
}
func (f *fake) Prepared() ([]types.UID, error)                   { return f.has, nil }
func (f *fake) Sandbox(_ *corev1.Pod, o *runtime.SandboxOptions) { o.Hostname += f.name }
func (f *fake) Container(_ *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	o.Args = append(o.Args, f.name+c.Name)
	return f.fail
}

func setup() (m *Manager, a, b *fake, took func() string) {
	notes := &[]string{}
	a, b = &fake{name: "A", notes: notes}, &fake{name: "B", notes: notes}
	m = &Manager{Providers: []Provider{a, bare{}, b}, Log: slog.New(slog.DiscardHandler),
		Event: func(_ *corev1.Pod, kind, reason, message string) {
			*notes = append(*notes, strings.Join([]string{kind, reason, message}, " "))
		}}
	return m, a, b, func() string { s := strings.Join(*notes, ", "); *notes = nil; return s }
}

// bare is a Provider that only takes back.
type bare struct{}

func (bare) Unprepare(context.Context, types.UID) error { return nil }
func (bare) Prepared() ([]types.UID, error)             { return nil, nil }

// What a pod has is given in order, goes into its sandbox and containers, and is taken back in the opposite order.
func TestManager(t *testing.T) {
	t.Parallel()
	m, a, b, took := setup()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	if err := m.Prepare(t.Context(), pod); err != nil || took() != "A prepare, B prepare" {
		t.Error(err)
	}
	var s runtime.SandboxOptions
	var c runtime.ContainerOptions
	m.Sandbox(pod, &s)
	if err := m.Container(pod, &corev1.Container{Name: "1"},
		&c); err != nil || s.Hostname != "AB" || !slices.Equal(c.Args, []string{"A1", "B1"}) {
		t.Error(err, s.Hostname, c.Args)
	}
	if err := m.Unprepare(t.Context(), "u"); err != nil || took() != "B unprepare u, A unprepare u" {
		t.Error(err)
	}
	a.fail = errors.New("none left")
	if err := m.Prepare(t.Context(), pod); !errors.Is(err, a.fail) {
		t.Error(err)
	}
	if got := took(); got != "A prepare, Warning FailedA none left" {
		t.Error("a prepare that fails:", got)
	}
	if err := m.Container(pod, &corev1.Container{}, &c); !errors.Is(err, a.fail) {
		t.Error(err)
	}
	a.fail, b.fail = nil, errors.New("busy")
	if err := m.Unprepare(t.Context(), "u"); !errors.Is(err, b.fail) || took() != "B unprepare u, A unprepare u" {
		t.Error("one that stays keeps the others:", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := m.Prepare(ended, pod); err == nil || took() != "A prepare, B prepare" {
		t.Error("an event of what was broken off:", err)
	}
}

// What pods have that are gone is taken back, of each once; who has it is asked of all Providers.
func TestReconcile(t *testing.T) {
	t.Parallel()
	m, a, b, took := setup()
	a.has, b.has = []types.UID{"gone", "lives"}, []types.UID{"half", "gone"}
	err := m.Reconcile(t.Context(), func(uid types.UID, f func() error) error {
		if uid == "lives" {
			return nil
		}
		return f()
	})
	if got := took(); err != nil || got != "B unprepare gone, A unprepare gone, B unprepare half, A unprepare half" {
		t.Error(got, err)
	}
}
