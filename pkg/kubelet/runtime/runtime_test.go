package runtime

import (
	"strings"
	"testing"
)

func TestContainerID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		want  ContainerID
		fails bool
	}{
		{text: "containerd://abc", want: ContainerID{"containerd", "abc"}},
		{text: `"containerd://abc"`, want: ContainerID{"containerd", "abc"}},
		{text: "cri-o://a://b", want: ContainerID{"cri-o", "a://b"}},
		{text: "", fails: true},
		{text: "abc", fails: true},
		{text: "://abc", fails: true},
		{text: "containerd://", fails: true},
	} {
		got, err := ParseContainerID(c.text)
		if (err != nil) != c.fails || got != c.want {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "container id") {
			t.Errorf("%q: %v", c.text, err)
		}
		if err == nil && got.String() != strings.Trim(c.text, `"`) {
			t.Errorf("%q becomes %q", c.text, got)
		}
	}
	if got := (ContainerID{Type: "containerd"}).String(); got != "" {
		t.Errorf("a container without id is %q: statuses must not show half an id", got)
	}
}

func TestPodStatusFindsTheNewest(t *testing.T) {
	t.Parallel()
	p := &PodStatus{
		Sandboxes: []Sandbox{{ID: "s2"}, {ID: "s1", Ready: true}},
		Containers: []Container{{Name: "b", Attempt: 5}, {Name: "a", Attempt: 2}, {Name: "a", Attempt: 1},
			{Name: "a", Attempt: 0}},
	}
	if got := p.Sandbox(); got == nil || got.ID != "s2" {
		t.Errorf("sandbox %+v", got)
	}
	if got := p.Container("a"); got == nil || got.Attempt != 2 {
		t.Errorf("container %+v", got)
	}
	if got := p.Previous("a"); got == nil || got.Attempt != 1 {
		t.Errorf("previous %+v", got)
	}
	if p.Previous("b") != nil || p.Container("c") != nil {
		t.Error("found what is not there")
	}
	p.Container("a").Reason = "changed"
	if p.Containers[1].Reason != "changed" {
		t.Error("a copy was found, not the container")
	}
	var none *PodStatus
	if none.Sandbox() != nil || none.Container("a") != nil || none.Previous("a") != nil ||
		(&PodStatus{}).Sandbox() != nil {
		t.Error("an unknown pod has something")
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	for state, want := range map[State]bool{StateCreated: false, StateRunning: true, StateExited: false,
		StateUnknown: true} {
		p := &PodStatus{Containers: []Container{{State: StateExited}, {State: state}}}
		if got := p.Running(); got != want {
			t.Errorf("a container in state %s: running %v, want %v", state, got, want)
		}
	}
	for _, list := range [][]Sandbox{nil, {{}}, {{}, {Ready: true}}} {
		p := &PodStatus{Sandboxes: list}
		if got := p.SandboxReady(); got != (len(list) == 2) {
			t.Errorf("sandboxes %+v: ready %v", list, got)
		}
	}
}
