package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

const (
	completions = 500
	parallelism = 50
	jobsPath    = "/apis/batch/v1/namespaces/" + namespace + "/jobs"
)

// measureJobs times a Job, from its creation to its condition Complete, whose pods succeed as soon as fake nodes see
// them: what is measured is the controller, and the API server below it.
func measureJobs(ctx context.Context, s side) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return withManager(ctx, s, "job-controller,garbage-collector-controller", `{"status":{"phase":"Succeeded"}}`,
		func(l *load, manager *proc) ([]figure, error) {
			began := time.Now()
			body := fmt.Appendf(nil,
				`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"completions":%d,"parallelism":%d,"completionMode":"Indexed","template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x"}]}}}}`, completions, parallelism)
			if err := l.do(ctx, request{method: "POST", path: jobsPath, body: body, want: 201}); err != nil {
				return nil, err
			}
			complete := func(event []byte) bool { return bytes.Contains(event, []byte(`"type":"Complete"`)) }
			if err := l.follow(ctx, jobsPath, complete); err != nil {
				return nil, err
			}
			took := time.Since(began)
			return []figure{
				{fmt.Sprintf("a Job of %d completions, %d at a time", completions, parallelism), "s", took.Seconds()},
				{"  controller manager CPU for each pod", "ms", manager.cpu() * 1000 / completions},
				{"  controller manager RSS", "MB", manager.memory("VmRSS")},
			}, nil
		})
}
