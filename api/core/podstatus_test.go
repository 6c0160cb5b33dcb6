package core

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestPodStatus: what kube-apiserver 1.36.3 says is wrong with the same statuses. NAME stands for the rule of such
// names.
func TestPodStatus(t *testing.T) {
	t.Parallel()
	const families = "may specify no more than one IP for each IP family"
	const valid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
	const request, claim = "must match one of the container's resource requests",
		"must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
	health := func(s string) string {
		return `"containerStatuses":[{"name":"c","allocatedResourcesStatus":[` + s + `]}]`
	}
	const at = "status.containerStatuses[0].allocatedResourcesStatus[0]."
	for name, c := range map[string]struct {
		status string
		want   []string
	}{
		"claims": {`"resourceClaimStatuses":[{"name":"t","resourceClaimName":"y"}]`, nil},
		"unknown claim": {`"resourceClaimStatuses":[{"name":"x","resourceClaimName":"Y_"}]`,
			[]string{"status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`", `status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "Y_": NAME`}},
		"claim twice": {`"resourceClaimStatuses":[{"name":"t"},{"name":"t"}]`,
			[]string{`status.resourceClaimStatuses[1].name: Duplicate value: "t"`}},
		"extended claim": {`"extendedResourceClaimStatus":{}`,
			[]string{"status.extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required", "status.extendedResourceClaimStatus.resourceClaimName: Required value"}},

		"health": {
			health(`{"name":"example.com/gpu","resources":[{"resourceID":"a","health":"Healthy"}]}`), nil},
		"bad health, twice": {
			health(`{"name":"example.com/gpu","resources":[{"resourceID":"a","health":"Healthy"},{"resourceID":"a","health":"Bad"}]}`), []string{at + `resources[1].health: Unsupported value: "Bad": supported values: "Healthy", "Unhealthy", "Unknown"`, at + `resources[1].resourceID: Duplicate value: "a"`}},
		"of what it does not ask": {health(`{"name":"cpu"}`), []string{at + `name: Invalid value: "cpu": ` + request}},
		"of a claim":              {health(`{"name":"claim:t"}`), nil},
		"of an unknown claim": {health(`{"name":"claim:t/r"}`),
			[]string{at + `name: Invalid value: "claim:t/r": ` + claim}},
		"of an ephemeral one": {
			`"ephemeralContainerStatuses":[{"name":"e","allocatedResourcesStatus":[{"name":"cpu"}]}]`,
			[]string{"status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status"}},
		"user": {
			`"containerStatuses":[{"name":"c","user":{"linux":{"uid":-1,"gid":2147483648,"supplementalGroups":[1]}}}]`,
			[]string{"status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 4294967295, inclusive", "status.containerStatuses[0].user.linux.gid: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"}},

		"host":         {`"hostIP":"1.2.3.4","hostIPs":[{"ip":"1.2.3.4"},{"ip":"fd00::1"}]`, nil},
		"hostIP alone": {`"hostIP":"bad"`, nil},
		"hostIPs alone": {`"hostIPs":[{"ip":"1.2.3.4"}]`,
			[]string{"status.hostIPs[0].ip: Invalid value: \"1.2.3.4\": must be equal to `hostIP`"}},
		"host of one family": {`"hostIP":"1.2.3.4","hostIPs":[{"ip":"1.2.3.4"},{"ip":"1.2.3.5"}]`,
			[]string{`status.hostIPs: Invalid value: ["1.2.3.4","1.2.3.5"]: ` + families}},
		"bad address of a host": {`"hostIP":"1.2.3.4","hostIPs":[{"ip":"1.2.3.4"},{"ip":"bad"}]`,
			[]string{`status.hostIPs[1]: Invalid value: "bad": ` + valid,
				"status.hostIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: bad",
				`status.hostIPs: Invalid value: ["1.2.3.4","bad"]: ` + families}},
		"pod of one family": {`"podIP":"1.2.3.4","podIPs":[{"ip":"1.2.3.4"},{"ip":"1.2.3.4"}]`,
			[]string{`status.podIPs: Invalid value: ["1.2.3.4","1.2.3.4"]: ` + families}},
		"generations": {`"observedGeneration":-1,"conditions":[{"observedGeneration":-1}]`,
			[]string{"status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
				"status.observedGeneration: Invalid value: -1: must be a non-negative integer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &corev1.Pod{}
			if err := json.Unmarshal(
				[]byte(`{"spec":{"nodeName":"n","resourceClaims":[{"name":"t"}],"containers":[{"name":"c","resources":{"requests":{"example.com/gpu":"1"},"claims":[{"name":"t"}]}}]}}`), old); err != nil {
				t.Fatal(err)
			}
			pod := old.DeepCopy()
			if err := json.Unmarshal([]byte(`{"status":{`+c.status+`}}`), pod); err != nil {
				t.Fatal(err)
			}
			DefaultPod(pod)
			var got []string
			for _, err := range validatePodStatusUpdate(pod, old) {
				text, _, _ := strings.Cut(err.Error(), "a lowercase RFC 1123 subdomain must consist")
				if text != err.Error() {
					text += "NAME"
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// TestDisabledPodStatus: what features that are off by default tell is not stored, unless it is there already.
func TestDisabledPodStatus(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(
		[]byte(`{"status":{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"a"}],"containerStatuses":[{"name":"c","volumeMounts":[{"name":"v","volumeStatus":{"image":{"imageRef":"i"}}}]}]}}`), pod); err != nil {
		t.Fatal(err)
	}
	kept := pod.DeepCopy()
	if podStatusStrategy().PrepareUpdate(kept, pod); len(kept.Status.NodeAllocatableResourceClaimStatuses) != 1 ||
		kept.Status.ContainerStatuses[0].VolumeMounts[0].VolumeStatus == nil {
		t.Errorf("kept is %+v", kept.Status)
	}
	if podStatusStrategy().PrepareUpdate(pod,
		&corev1.Pod{}); len(pod.Status.NodeAllocatableResourceClaimStatuses) != 0 ||
		pod.Status.ContainerStatuses[0].VolumeMounts[0].VolumeStatus != nil {
		t.Errorf("stored is %+v", pod.Status)
	}
}

// TestKeptClaims: a kube-apiserver v1.37.2 keeps what a status tells of claims if a write leaves it out, and drops what
// a write says is gone.
func TestKeptClaims(t *testing.T) {
	t.Parallel()
	const claims = `"resourceClaimStatuses":[{"name":"a","resourceClaimName":"x"}]`
	const extended = `"extendedResourceClaimStatus":{"requestMappings":null,"resourceClaimName":"e"}`
	const allocatable = `"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"x"}]`
	const all = "{" + claims + "," + extended + "," + allocatable + "}"
	for name, c := range map[string]struct{ old, status, want string }{
		"left out": {all, `{"phase":"Running"}`, `{"phase":"Running",` + all[1:]},
		"gone":     {all, `{"resourceClaimStatuses":[]}`, "{" + extended + "," + allocatable + "}"},
		"others": {all,
			`{"resourceClaimStatuses":[{"name":"b"}]}`,
			`{"resourceClaimStatuses":[{"name":"b"}],` + extended + "," + allocatable + "}"},
		"nothing yet": {`{}`, `{"phase":"Running"}`, `{"phase":"Running"}`},
		"the first":   {`{}`, "{" + claims + "}", "{" + claims + "}"},
	} {
		var old, now, want corev1.Pod
		for to, text := range map[*corev1.PodStatus]string{&old.Status: c.old, &now.Status: c.status,
			&want.Status: c.want} {
			if err := json.Unmarshal([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		podStatusStrategy().PrepareUpdate(&now, &old)
		if !equality.Semantic.DeepEqual(now.Status, want.Status) {
			got, _ := json.Marshal(now.Status)
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
