package certificates

import (
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStoredDecisions: the answers are those of a kube-apiserver v1.36.3 to updates of objects that were written to its
// etcd, as no request makes a decision without times or two decisions of a type.
func TestStoredDecisions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	old := metav1.NewTime(now.AddDate(0, -1, 0))
	type conditions = []certificatesv1.CertificateSigningRequestCondition
	made := func(kind certificatesv1.RequestConditionType, reason string, updated,
		moved metav1.Time) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue,
			Reason: reason, LastUpdateTime: updated, LastTransitionTime: moved}
	}
	approved, denied, failed := certificatesv1.CertificateApproved, certificatesv1.CertificateDenied,
		certificatesv1.CertificateFailed
	var none metav1.Time
	timed, other := made(approved, "r", old, old), made(approved, "other", old, old)
	sent := made(approved, "sent", none, none)
	modify := func(kind, diff string) []string {
		return []string{"status.conditions: Forbidden: updates may not modify a condition of type \"" + kind + "\"\n" +
			diff}
	}
	stamped := func(kind string) string {
		return `@@ -3,7 +3,7 @@
   "type": "` + kind + `",
   "status": "True",
   "reason": "r",
-  "lastUpdateTime": null,
-  "lastTransitionTime": null
+  "lastUpdateTime": "2026-02-01T00:00:00Z",
+  "lastTransitionTime": "2026-02-01T00:00:00Z"
  }
 ]
`
	}
	const moved = `@@ -4,6 +4,6 @@
   "status": "True",
   "reason": "r",
   "lastUpdateTime": "2026-01-01T00:00:00Z",
-  "lastTransitionTime": null
+  "lastTransitionTime": "2026-02-01T00:00:00Z"
  }
 ]
`
	remove := []string{`status.conditions: Forbidden: updates may not remove a condition of type "Approved"`}
	for name, c := range map[string]struct {
		stored, sent     conditions
		signing, approve []string // errors of /status and of /approval
		reasons          string   // what /status stores
	}{
		"without times": {stored: conditions{made(approved, "r", none, none)},
			sent: conditions{made(approved, "r", none, none)}, signing: modify("Approved", stamped("Approved"))},
		"without times, times sent": {stored: conditions{made(approved, "r", none, none)}, sent: conditions{timed},
			signing: modify("Approved", stamped("Approved"))},
		"without a transition": {stored: conditions{made(approved, "r", old, none)},
			sent: conditions{made(approved, "r", old, none)}, signing: modify("Approved", moved)},
		"denied without times": {stored: conditions{made(denied, "r", none, none)},
			sent: conditions{made(denied, "r", none, none)}, signing: modify("Denied", stamped("Denied"))},
		"failed without times": {stored: conditions{made(failed, "r", none, none)},
			sent: conditions{made(failed, "r", none, none)}, reasons: "r"},
		"another sent":        {stored: conditions{timed}, sent: conditions{sent}, reasons: "r"},
		"two, in other order": {stored: conditions{timed, other}, sent: conditions{other, timed}, reasons: "r other"},
		"two, others sent":    {stored: conditions{timed, other}, sent: conditions{sent, sent}, reasons: "r other"},
		"one of two sent": {stored: conditions{timed, other}, sent: conditions{timed}, signing: remove,
			approve: remove},
		"a third sent": {stored: conditions{timed, other}, sent: conditions{sent, sent, sent},
			signing: []string{`status.conditions: Forbidden: updates may not add a condition of type "Approved"`}},
		"one of two failures sent": {stored: conditions{made(failed, "r", old, old), made(failed, "s", old, old)},
			sent: conditions{made(failed, "s", old, old)},
			signing: []string{
				`status.conditions: Forbidden: updates may not remove a condition of type "Failed"`},
			approve: []string{
				`status.conditions: Forbidden: updates may not remove a condition of type "Failed"`}},
	} {
		stored := &signingRequest{Status: certificatesv1.CertificateSigningRequestStatus{Conditions: c.stored}}
		clock := func() time.Time { return now }
		for what, strategy := range map[string]struct {
			of   func(obj, old *signingRequest) []string
			want []string
		}{
			"status": {func(obj, old *signingRequest) []string {
				s := signingStrategy(clock)
				s.PrepareUpdate(obj, old)
				return conditionErrors(s.ValidateUpdate(obj, old).ToAggregate())
			}, c.signing},
			"approval": {func(obj, old *signingRequest) []string {
				s := approvalStrategy(clock)
				s.PrepareUpdate(obj, old)
				return conditionErrors(s.ValidateUpdate(obj, old).ToAggregate())
			}, c.approve},
		} {
			obj := &signingRequest{Status: certificatesv1.CertificateSigningRequestStatus{
				Conditions: slices.Clone(c.sent)}}
			if got := strategy.of(obj, stored); !slices.Equal(got, strategy.want) {
				t.Errorf("%s, %s: %q, want %q", name, what, got, strategy.want)
			}
			var reasons []string
			for _, one := range obj.Status.Conditions {
				reasons = append(reasons, one.Reason)
			}
			if got := strings.Join(reasons, " "); what == "status" && c.reasons != "" && got != c.reasons {
				t.Errorf("%s: %s, want %s", name, got, c.reasons)
			}
		}
	}
}

// conditionErrors returns the errors of the conditions as a whole.
func conditionErrors(err interface{ Errors() []error }) (out []string) {
	if err == nil {
		return nil
	}
	for _, one := range err.Errors() {
		if strings.HasPrefix(one.Error(), "status.conditions: ") {
			out = append(out, one.Error())
		}
	}
	return out
}
