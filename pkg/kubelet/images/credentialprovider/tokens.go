package credentialprovider

import (
	"context"
	"sync"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tokens keeps pods' tokens for as long as they are young, so that a provider whose answers are kept by token is not
// asked each time.
type tokens struct {
	accounts Accounts
	now      func() time.Time

	mu    sync.Mutex
	known map[tokenOf]token
}

type tokenOf struct {
	pod      types.UID
	account  string
	audience string
}

// token has wall-clock times alone, so that a clock that jumps is followed. Before from, to which the clock may be put
// back, it is not valid.
type token struct {
	text             string
	from, old, ended time.Time
}

func newTokens(accounts Accounts, now func() time.Time) *tokens {
	return &tokens{accounts: accounts, now: now, known: map[tokenOf]token{}}
}

// get returns a token of the pod's service account that is bound to the pod. It has at least a fifth of its life before
// it.
func (t *tokens) get(ctx context.Context, pod *corev1.Pod, audience string) (string, error) {
	of := tokenOf{pod.UID, pod.Spec.ServiceAccountName, audience}
	t.mu.Lock()
	known, ok := t.known[of]
	t.mu.Unlock()
	begun := t.now().Round(0) // without its monotonic reading
	if ok && begun.Before(known.old) && !begun.Before(known.from) {
		return known.text, nil
	}
	r, err := t.accounts.CreateToken(ctx, pod.Namespace, pod.Spec.ServiceAccountName,
		&authnv1.TokenRequest{Spec: authnv1.TokenRequestSpec{Audiences: []string{audience},
			BoundObjectRef: &authnv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
				UID: pod.UID}}})
	if err != nil {
		return "", err
	}
	end := r.Status.ExpirationTimestamp.Time
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, o := range t.known {
		if !begun.Before(o.ended) {
			delete(t.known, k)
		}
	}
	t.known[of] = token{text: r.Status.Token, from: begun.Truncate(time.Second), old: begun.Add(end.Sub(begun) * 4 / 5),
		ended: end}
	return r.Status.Token, nil
}
