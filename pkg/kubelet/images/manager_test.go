package images

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// service is an image service with one image at most.
type service struct {
	present map[string]bool
	fail    bool
	auths   []*runtime.Auth
}

func (s *service) Image(_ context.Context, name string) (*runtime.Image, error) {
	if s.present[name] {
		return &runtime.Image{ID: name, Size: 7}, nil
	}
	return nil, nil
}

func (s *service) Pull(_ context.Context, name string, auth *runtime.Auth, _ *corev1.Pod) (string, error) {
	s.auths = append(s.auths, auth)
	if s.fail {
		return "", errors.New("rpc error: no such image")
	}
	s.present[name] = true
	return name, nil
}

// TestFlush: a new image is on the disk before its first container is made. A pull that brings nothing new waits for
// no disk.
func TestFlush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy  corev1.PullPolicy
		present bool
		flushes int
	}{
		{corev1.PullIfNotPresent, false, 1}, {corev1.PullAlways, false, 1},
		{corev1.PullIfNotPresent, true, 0}, {corev1.PullAlways, true, 0},
	} {
		flushes := 0
		m := New(Config{Service: &service{present: map[string]bool{"x:1": c.present}},
			Flush: func(context.Context) error { flushes++; return errors.New("no disk") },
			Log:   slog.New(slog.DiscardHandler)})
		if _, err := m.Ensure(t.Context(), &corev1.Pod{}, "x:1", c.policy, nil, func(_, _, _ string) {}); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if flushes != c.flushes {
			t.Errorf("%v: %d flushes", c, flushes)
		}
	}
}

// said is a part of a Request in words.
func said(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return strconv.FormatBool(*b)
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name, image string
		policy      corev1.PullPolicy
		present     bool
		fail        bool
		pulls       int
		reason      string
		event       string
		request     string
	}{
		{"present", "x:1", corev1.PullIfNotPresent, true, false, 0, "",
			`Container image "x:1" already present on machine`, "IfNotPresent true false"},
		{"missing", "x:1", corev1.PullIfNotPresent, false, false, 1, "",
			`Successfully pulled image "x:1" in 0s (0s including waiting). Image size: 7 bytes.`,
			"IfNotPresent false true"},
		{"always", "x:1", corev1.PullAlways, true, false, 1, "", `Pulling image "x:1"`, "Always true true"},
		{"never", "x:1", corev1.PullNever, false, false, 0, ReasonErrImageNeverPull,
			`Container image "x:1" is not present with pull policy of Never`, "Never false false"},
		{"bad name", "X Y", corev1.PullAlways, false, false, 0, reasonInvalidImageName,
			"Failed to apply default image tag", "Always unknown unknown"},
		{"failing", "x:1", corev1.PullAlways, false, true, 1, ReasonErrImagePull, "Error: ErrImagePull",
			"Always false true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &service{present: map[string]bool{"x:1": c.present}, fail: c.fail}
			request := ""
			m := New(Config{Service: s, Serialize: true, Ensured: func(q Request) {
				request = strings.Join([]string{string(q.Policy), said(q.Present), said(q.Pull)}, " ")
			}, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			var events []string
			_, err := m.Ensure(t.Context(), &corev1.Pod{}, c.image, c.policy, nil, func(_, _, msg string) {
				events = append(events, msg)
			})
			var ie *Error
			if errors.As(err, &ie); (ie == nil) != (c.reason == "") || (ie != nil && ie.Reason != c.reason) {
				t.Errorf("error %v, want reason %q", err, c.reason)
			}
			if request != c.request {
				t.Errorf("counted as %q, want %q", request, c.request)
			}
			if len(s.auths) != c.pulls {
				t.Errorf("%d pulls, want %d", len(s.auths), c.pulls)
			}
			if !strings.Contains(strings.Join(events, "\n"), c.event) {
				t.Errorf("events %q lack %q", events, c.event)
			}
		})
	}
}

func TestPullBackOff(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := &service{present: map[string]bool{}, fail: true}
	m := New(Config{Service: s, Now: func() time.Time {
		return now
	}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ensure := func() *Error {
		_, err := m.Ensure(t.Context(), &corev1.Pod{}, "x:1", corev1.PullAlways, nil, func(_, _, _ string) {})
		var ie *Error
		errors.As(err, &ie)
		return ie
	}
	for _, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if e := ensure(); e.Reason != ReasonErrImagePull || e.Until.Sub(now) != wait*time.Second {
			t.Fatalf("reason %s, wait %v, want %v", e.Reason, e.Until.Sub(now), wait*time.Second)
		}
		if e := ensure(); e.Reason != ReasonImagePullBackOff ||
			e.Error() != `Back-off pulling image "x:1": ErrImagePull: rpc error: no such image` {
			t.Fatalf("while backing off: %s: %v", e.Reason, e)
		}
		now = now.Add(wait * time.Second)
	}
	s.fail = false
	if e := ensure(); e != nil {
		t.Fatalf("after the wait: %v", e)
	}
}

// What is wrong may be the credentials: with others the pull is tried at once.
func TestPullBackOffIsThatOfTheSecrets(t *testing.T) {
	t.Parallel()
	s := &service{present: map[string]bool{}, fail: true}
	m := New(Config{Service: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	reason := func(password string) string {
		secret := corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(password)}}
		_, err := m.Ensure(t.Context(), &corev1.Pod{}, "x:1", corev1.PullAlways, []corev1.Secret{secret},
			func(_, _, _ string) {})
		var ie *Error
		errors.As(err, &ie)
		return ie.Reason
	}
	if a, b, c := reason("old"), reason("old"),
		reason("new"); a != ReasonErrImagePull || b != ReasonImagePullBackOff || c != ReasonErrImagePull {
		t.Error(a, b, c)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	secret := func(text string) corev1.Secret {
		return corev1.Secret{Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(text)}}
	}
	// dTpwOnc= is u:p:w
	for _, c := range []struct {
		name, image, key string
		want             bool
	}{
		{"registry", "reg.example/a/b:1", "reg.example", true},
		{"with scheme and version", "reg.example/a/b:1", "https://reg.example/v1/", true},
		{"path", "reg.example/a/b:1", "reg.example/a", true},
		{"other path", "reg.example/ab/b:1", "reg.example/a", false},
		{"wildcard", "x.reg.example/a", "*.reg.example", true},
		{"wildcard is one label", "y.x.reg.example/a", "*.reg.example", false},
		{"port", "reg.example:5000/a", "reg.example:5000", true},
		{"other port", "reg.example:5000/a", "reg.example", false},
		{"default registry", "busybox", "https://index.docker.io/v1/", true},
	} {
		got, err := credentials(c.image, []corev1.Secret{secret(`{"auths":{"` + c.key + `":{"auth":"dTpwOnc="}}}`)})
		if err != nil || (len(got) == 1) != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		if len(got) == 1 && (got[0].Auth.Username != "u" || got[0].Auth.Password != "p:w") {
			t.Errorf("%s: %+v", c.name, got[0])
		}
	}
	_, err := credentials("x", []corev1.Secret{secret(`{"auths": geheim`)})
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a broken secret: %v", err)
	}
}

func TestVictims(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e6, 0)
	present := []runtime.Image{{ID: "used", Size: 10}, {ID: "old", Size: 10}, {ID: "older", Size: 10},
		{ID: "young", Size: 10}, {ID: "pinned", Size: 10, Pinned: true}}
	known := map[string]seen{"used": {first: now.Add(-9 * time.Hour)},
		"old":   {first: now.Add(-9 * time.Hour), used: now.Add(-time.Hour)},
		"older": {first: now.Add(-9 * time.Hour), used: now.Add(-2 * time.Hour)}, "young": {first: now},
		"pinned": {first: now.Add(-9 * time.Hour)}}
	used := map[string]bool{"used": true}
	p := Policy{High: 85, Low: 80, MinAge: time.Minute}
	for _, c := range []struct {
		name      string
		p         Policy
		available uint64
		want      []string
	}{
		{"enough space", p, 20, nil},
		{"one is enough", p, 12, []string{"older"}},
		{"all that may go", p, 0, []string{"older", "old"}},
		{"too old in any case", Policy{High: 85, Low: 80, MaxAge: 90 * time.Minute}, 50, []string{"older"}},
		{"never", Policy{High: 100, Low: 99}, 0, nil},
	} {
		var got []string
		for _, v := range victims(c.p, toFree(c.p, disk{capacity: 100, available: c.available}), present, known, used,
			now) {
			got = append(got, v.id)
			if age := c.p.MaxAge > 0; age != (v.reason == forAge) {
				t.Errorf("%s: %s goes for %s", c.name, v.id, v.reason)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
