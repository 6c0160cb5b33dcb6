package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// labeller is a mutating webhook on loopback that gives every pod a label.
type labeller struct {
	*httptest.Server
	called atomic.Int64
}

func newLabeller() *labeller {
	l := &labeller{}
	patch := []byte(`[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`)
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.called.Add(1)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch,
			PatchType: &kind}
		review.Request = nil
		json.NewEncoder(w).Encode(&review) //nolint:errcheck // the server under test sees it
	}))
	return l
}

// configuration names the webhook for the creation of pods.
func (l *labeller) configuration() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
	return fmt.Appendf(nil, `{"metadata":{"name":"bench"},"webhooks":[{"name":"bench.example.com","sideEffects":"None","admissionReviewVersions":["v1"],
		"clientConfig":{"url":%q,"caBundle":%q},"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}]}`,
		l.URL, base64.StdEncoding.EncodeToString(ca))
}

// createThroughWebhook makes n pods that one webhook labels.
func createThroughWebhook(ctx context.Context, l *load, n int) (float64, error) {
	hook := newLabeller()
	defer hook.Close()
	const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	once := func(r request) error {
		_, err := l.many(ctx, 1, 1, func(int) request { return r })
		return err
	}
	if err := once(request{method: "POST", path: path, body: hook.configuration(), want: 201}); err != nil {
		return 0, err
	}
	for hook.called.Load() == 0 { // until the configuration is in force
		if err := once(request{method: "POST", path: podsPath + "?dryRun=All", body: pod(1_999_999, ""),
			want: 201}); err != nil {
			return 0, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	rate, err := l.many(ctx, n, 16, func(i int) request {
		return request{method: "POST", path: podsPath, body: pod(1_000_000+i, ""), want: 201}
	})
	if err != nil {
		return 0, err
	}
	return rate, once(request{method: "DELETE", path: path + "/bench", want: 200})
}
