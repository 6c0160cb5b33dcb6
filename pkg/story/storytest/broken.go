package storytest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
)

// Broken are the traces of a shop in which little works: a pod that was Ready and is killed for its memory since, one
// whose program is missing, one that never passes its probe, and one of a Job that had to wait for its ServiceAccount.
func Broken() []*traces.Trace {
	crashing := begun("ledger-0", "00000000-0000-4000-8000-0000000000a0", 100)
	crashing.Spans = append(crashing.Spans, span("0001", "", "pod", "kubelet", 0, 968),
		step("start", 700, 200), step("ready", 900, 68))
	for i, at := range []float64{45, 90, 200, 400} {
		crashing.Spans = append(crashing.Spans, step("create", at*1000, 20+float64(i)), step("start", at*1000+40, 90))
	}
	missing := begun("front-5d9c-aaaaa", "00000000-0000-4000-8000-0000000000b1", 100)
	for i, at := range []float64{1.2, 15, 45, 590} {
		failed := step("start", at*1000+30, 60)
		failed.Error = "RunContainerError"
		missing.Spans = append(missing.Spans, step("create", at*1000, 25+float64(i)), failed)
	}
	probed := begun("front-5d9c-bbbbb", "00000000-0000-4000-8000-0000000000b2", 110)
	probed.Spans = append(probed.Spans, step("start", 1200, 90))
	job := begun("import-zzzzz", "00000000-0000-4000-8000-0000000000c1", 140_100)
	job.Spans = append(job.Spans, span("0001", "", "pod", "kubelet", 140_000, 968), step("start", 140_700, 200),
		step("ready", 140_900, 68), step("unsandbox", 143_400, 80))
	return []*traces.Trace{done(crashing), done(missing), done(probed), done(job)}
}

// step is a kubelet's step of the one container.
func step(name string, from, took float64) traces.Span {
	s := span("", "", "kubelet."+name, "kubelet", from, took, "k8s.container.name", "web")
	s.Instance = "n1"
	return s
}

// begun is the trace of a pod of the shop until its sandbox is there. Its request, which began after so many
// milliseconds, has the steps of one for which a client asked.
func begun(name string, uid types.UID, from float64) *traces.Trace {
	t := trace("Pod", "pods", "store", name, uid)
	t.Spans = []traces.Span{
		span("0002", "", "POST /api/v1/namespaces/{namespace}/pods", "kube-apiserver", from, 9),
		span("0003", "0002", "authentication", "kube-apiserver", from+0.1, 0.008),
		span("0004", "0002", "authorization", "kube-apiserver", from+0.2, 0.012),
		span("0005", "0002", "admission", "kube-apiserver", from+0.3, 1.4),
		span("0007", "0002", "apiserver.create", "kube-apiserver", from+2, 6),
		span("0008", "0001", "scheduler.queue", "kube-scheduler", from+10, 2),
		span("0009", "0001", "scheduler.decide", "kube-scheduler", from+12, 3),
		span("000a", "0001", "scheduler.bind", "kube-scheduler", from+15, 9),
	}
	for i := range 12 {
		t.Spans = append(t.Spans, span(fmt.Sprintf("1%03d", i), "0005", "webhook", "kube-apiserver",
			from+0.4+float64(i)*0.1, 0.09))
	}
	for i := range t.Spans {
		if t.Spans[i].Component == "kube-apiserver" { // the request has a trace of its own
			t.Spans[i].TraceID = strings.Repeat("b", 32)
		}
	}
	sandbox := span("000b", "0001", "kubelet.sandbox", "kubelet", from+40, 301)
	sandbox.Instance = "n1"
	t.Spans = append(t.Spans, sandbox)
	return t
}
