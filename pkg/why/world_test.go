package why_test

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

// TestOtherVersion: what the server has in another version only is not absent, and nobody knows what there is.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for version, unseen := range map[string]string{"": "", "v2": "",
		"v1": "The server has horizontalpodautoscalers.autoscaling as v1, and not as v2, which is read here."} {
		s := whytest.Parse(t, "")
		s.Versions = map[string]string{"horizontalpodautoscalers": version}
		w := why.NewWorld(s)
		h, known := why.Get[autoscalingv2.HorizontalPodAutoscaler](t.Context(), w, "shop", "web")
		list, complete := why.List[autoscalingv2.HorizontalPodAutoscaler](t.Context(), w, "shop", nil)
		said := strings.Join(why.NewCase(w, whytest.Now, why.Explainers{}).Finish(why.Answer{}).Unseen, " ")
		if h != nil || len(list) > 0 || known != (unseen == "") || complete != (unseen == "") || said != unseen {
			t.Errorf("%s: %v, %v, %v, %v, %q", version, h, known, list, complete, said)
		}
	}
}
