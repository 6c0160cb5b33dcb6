package projected

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuer gives tokens with a number.
type issuer struct {
	issued int
	now    time.Time
	down   bool
}

func (a *issuer) CreateToken(_ context.Context, ns, account string, req *authv1.TokenRequest) (*authv1.TokenRequest,
	error) {
	if a.down {
		return nil, errors.New("connection refused")
	}
	a.issued++
	req.Status = authv1.TokenRequestStatus{
		Token:               fmt.Sprintf("%s/%s %v #%d", ns, account, req.Spec.Audiences, a.issued),
		ExpirationTimestamp: metav1.NewTime(a.now.Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second))}
	return req, nil
}

func TestTokenSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	a := &issuer{now: time.Unix(1000, 0)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
	var log bytes.Buffer
	c := newTokenCache(a, func() time.Time { return a.now }, slog.New(slog.NewTextHandler(&log, nil)))
	s := &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: new(int64(1000))}
	for _, step := range []struct {
		advance time.Duration
		down    bool
		want    string
	}{
		{0, false, "ns/sa [vault] #1"}, {799 * time.Second, false, "ns/sa [vault] #1"},
		{time.Second, true, "ns/sa [vault] #1"}, {time.Second, false, "ns/sa [vault] #2"},
		{1000 * time.Second, true, ""}, {0, false, "ns/sa [vault] #3"},
		// the clock was put back
		{-time.Second, false, "ns/sa [vault] #4"}, {-time.Hour, true, ""}, {0, false, "ns/sa [vault] #5"},
	} {
		a.now = a.now.Add(step.advance)
		a.down = step.down
		got, err := c.get(t.Context(), pod, s, true)
		if got != step.want || (err == nil) != (step.want != "") {
			t.Errorf("%+v: %q, %v", step, got, err)
		}
	}
	if strings.Contains(log.String(), "vault") {
		t.Error("the log shows a token:", log.String())
	}
	c.forget("uid-1")
	if len(c.tokens) != 0 {
		t.Error("tokens kept")
	}
}

// TestTokenFollowsTheClock: the times kept have no monotonic reading, by which a clock that was put forward would not
// be seen.
func TestTokenFollowsTheClock(t *testing.T) {
	t.Parallel()
	a := &issuer{now: time.Now()}
	c := newTokenCache(a, time.Now, slog.New(slog.DiscardHandler))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
	if _, err := c.get(t.Context(), pod, &corev1.ServiceAccountTokenProjection{}, true); err != nil {
		t.Fatal(err)
	}
	for _, held := range c.tokens {
		if held.from != held.from.Round(0) || held.renew != held.renew.Round(0) {
			t.Errorf("a monotonic reading: %+v", held)
		}
	}
}
