package apiserver_test

import (
	"strings"
	"testing"
)

// TestOrphanedUnasked: who deletes jobs without saying what is to become of their pods orphans them, and is warned of
// that once, as kube-apiserver v1.36.3 does; who says it is not, and cron jobs take their jobs with them.
func TestOrphanedUnasked(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	const template = `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x"}]}}`
	jobs, crons := url+"/apis/batch/v1/namespaces/default/jobs", url+"/apis/batch/v1/namespaces/default/cronjobs"
	add := func(at, name, spec string) {
		t.Helper()
		kind := map[string]string{jobs: "Job", crons: "CronJob"}[at]
		if code, _, body := call(t, "POST", at,
			`{"apiVersion":"batch/v1","kind":"`+kind+`","metadata":{"name":"`+name+`"},"spec":{`+spec+`}}`); code !=
			201 {
			t.Fatalf("%d %s", code, body)
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		add(jobs, name, template)
	}
	add(crons, "a", `"schedule":"@hourly","jobTemplate":{"spec":{`+template+`}}`)
	for _, c := range []struct {
		url    string
		orphan bool
		warned bool
	}{
		{jobs + "/a", true, true},
		{jobs + "/b?propagationPolicy=Background", false, false},
		{jobs + "/c?propagationPolicy=Orphan", true, false},
		{jobs + "?fieldSelector=status.successful%3D0", true, true},
		{crons + "/a", false, false},
	} {
		code, header, body := call(t, "DELETE", c.url, "")
		warned := strings.HasPrefix(strings.Join(header["Warning"], ""),
			`299 - "child pods are preserved by default when jobs are deleted;`)
		if code != 200 || warned != c.warned || len(header["Warning"]) > 1 {
			t.Errorf("%s: %d, warnings %q\n%s", c.url, code, header["Warning"], body)
		}
		tail, single := strings.CutPrefix(c.url, jobs+"/")
		name, _, _ := strings.Cut(tail, "?")
		if code, _, body := call(t, "GET", jobs+"/"+name, ""); single &&
			(code == 200 && strings.Contains(body, `"finalizers":["orphan"]`)) != c.orphan {
			t.Errorf("after %s: %d %s", c.url, code, body)
		}
	}
}
