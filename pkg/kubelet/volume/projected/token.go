package projected

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A token is replaced when 80 % of its life or a day has passed, whichever is first: the rule of KEP-1205, which
// applications rely on to read the file again.
const (
	tokenLifePercent = 80
	tokenMaxAge      = 24 * time.Hour
	tokenDefaultLife = time.Hour
)

// tokenCache holds each pod's service-account tokens and replaces them in time.
//
// The workers of all pods share it. It has at most one token for each pod, audience and life, and expired ones are
// dropped with the next request.
type tokenCache struct {
	api Tokens
	now func() time.Time
	log *slog.Logger

	mu     sync.Mutex
	tokens map[tokenKey]heldToken
}

type tokenKey struct {
	pod      types.UID
	audience string
	seconds  int64
}

// heldToken has wall-clock times alone, as its reader compares them: a clock that jumps is to be followed. Before from
// a token is not valid yet, which is so after the clock was put back.
type heldToken struct {
	value                  string
	from, renew, expiresAt time.Time
}

// usable reports whether the token is valid at now.
func (t heldToken) usable(now time.Time) bool { return !now.Before(t.from) && now.Before(t.expiresAt) }

func newTokenCache(api Tokens, now func() time.Time, log *slog.Logger) *tokenCache {
	return &tokenCache{api: api, now: now, log: log, tokens: map[tokenKey]heldToken{}}
}

// get returns a token bound to the pod. With renew it replaces one that is due, if the API server answers. Without
// renew a token that is still valid is good enough, and the API server is not asked.
//
// The API server is asked without the lock; two callers may ask at once, and the last answer stays.
func (c *tokenCache) get(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection,
	renew bool) (string, error) {
	life := int64(tokenDefaultLife / time.Second)
	if s.ExpirationSeconds != nil {
		life = *s.ExpirationSeconds
	}
	key := tokenKey{pod.UID, s.Audience, life}
	c.mu.Lock()
	held, ok := c.tokens[key]
	c.mu.Unlock()
	if now := c.now(); ok && held.usable(now) && (now.Before(held.renew) || !renew) {
		return held.value, nil
	}
	fresh, err := c.request(ctx, pod, s.Audience, life)
	if err != nil {
		if ok && held.usable(c.now()) {
			c.log.Warn("service account token not renewed, the old one is kept", "pod", pod.Namespace+"/"+pod.Name,
				"expires", held.expiresAt, "err", err)
			return held.value, nil
		}
		return "", fmt.Errorf("failed to fetch token: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// of pods forgotten while they were asked for
	maps.DeleteFunc(c.tokens, func(_ tokenKey, t heldToken) bool { return !c.now().Before(t.expiresAt) })
	c.tokens[key] = fresh
	return fresh.value, nil
}

func (c *tokenCache) request(ctx context.Context, pod *corev1.Pod, audience string, seconds int64) (heldToken, error) {
	req := &authv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace},
		Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds,
			BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}
	if audience != "" {
		req.Spec.Audiences = []string{audience}
	}
	start := c.now().Round(0) // without its monotonic reading
	got, err := c.api.CreateToken(ctx, pod.Namespace, pod.Spec.ServiceAccountName, req)
	if err != nil {
		return heldToken{}, err
	}
	expires := got.Status.ExpirationTimestamp.Time
	age := min(expires.Sub(start)*tokenLifePercent/100, tokenMaxAge)
	return heldToken{value: got.Status.Token, from: start.Truncate(time.Second), renew: start.Add(age),
		expiresAt: expires}, nil
}

// forget drops the pod's tokens.
func (c *tokenCache) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.tokens {
		if k.pod == uid {
			delete(c.tokens, k)
		}
	}
}

// commonUser is the user all containers of the pod run as, if the spec says that and it is the same one.
func commonUser(pod *corev1.Pod) *int64 {
	var byPod, common *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		byPod = sc.RunAsUser
	}
	same := true
	see := func(sc *corev1.SecurityContext) {
		user := byPod
		if sc != nil && sc.RunAsUser != nil {
			user = sc.RunAsUser
		}
		switch {
		case user == nil || common != nil && *common != *user:
			same = false
		default:
			common = user
		}
	}
	for i := range pod.Spec.InitContainers {
		see(pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		see(pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		see(pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	if !same {
		return nil
	}
	return common
}
