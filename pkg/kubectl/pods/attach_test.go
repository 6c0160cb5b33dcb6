package pods

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moby/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

// said is a session in which the container says what it hears, until its input ends.
type said struct{}

func (s said) Stream(o remotecommand.StreamOptions) error {
	return s.StreamWithContext(context.Background(), o)
}

func (said) StreamWithContext(_ context.Context, o remotecommand.StreamOptions) error {
	_, err := io.Copy(o.Stdout, o.Stdin)
	return err
}

// TestDetachKeys: the keys end the session and nothing of them or after them arrives; a part of them does.
func TestDetachKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys, typed, want string
		left              bool
	}{
		{"ctrl-p,ctrl-q", "ab\x10\x11cd", "ab", true},
		{"ctrl-p,ctrl-q", "ab\x10cd", "ab\x10cd", false},
		{"x", "abxcd", "ab", true},
		{"x,y", "xxz", "xxz", false},
	} {
		codes, err := term.ToBytes(c.keys)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		d := &detachable{in: term.NewEscapeProxy(iotest.OneByteReader(strings.NewReader(c.typed)), codes), out: &out,
			left: make(chan struct{})}
		if err := d.stream(t.Context(), said{}, remotecommand.StreamOptions{}); err != nil {
			t.Errorf("%q: %v", c.typed, err)
		}
		left := false
		select {
		case <-d.left:
			left = true
			if _, err := d.Write([]byte("later")); err != nil {
				t.Error(err)
			}
		default:
		}
		if out.String() != c.want || left != c.left {
			t.Errorf("%s, %q typed: %q arrived, left: %t; want %q, %t", c.keys, c.typed, out.String(), left, c.want,
				c.left)
		}
	}
}

func TestTerminalOf(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "a"}, {Name: "b", TTY: true}},
		InitContainers: []corev1.Container{{Name: "i", TTY: true}},
		EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", TTY: true}}},
	}}
	for name, want := range map[string][2]bool{"a": {false, false}, "b": {true, false}, "i": {true, false},
		"e": {true, true}, "none": {}} {
		if tty, ephemeral := terminalOf(p, name); tty != want[0] || ephemeral != want[1] {
			t.Errorf("%s: %t, %t; want %v", name, tty, ephemeral, want)
		}
	}
}
