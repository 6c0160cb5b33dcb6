package csinode

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/pkg/kubelet/volume/csi"
)

// server is an API server with one node.
type server struct {
	node      *corev1.Node
	csi       *storagev1.CSINode
	conflicts int // of the next updates
}

func (s *server) Node(context.Context, string) (*corev1.Node, error) { return s.node, nil }

func (s *server) PatchNode(_ context.Context, _ string, _ types.PatchType, patch []byte, _ ...string) (*corev1.Node,
	error) {
	before, err := json.Marshal(s.node)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	if err != nil {
		return nil, err
	}
	s.node = &corev1.Node{}
	return s.node, json.Unmarshal(after, s.node)
}

func (s *server) CSINode(_ context.Context, name string) (*storagev1.CSINode, error) {
	if s.csi == nil {
		return nil, apierrors.NewNotFound(storagev1.Resource("csinodes"), name)
	}
	return s.csi, nil
}

func (s *server) CreateCSINode(_ context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	s.csi = n
	return n, nil
}

func (s *server) UpdateCSINode(_ context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	if s.conflicts > 0 {
		s.conflicts--
		return nil, apierrors.NewConflict(storagev1.Resource("csinodes"), n.Name, errors.New("changed"))
	}
	s.csi = n
	return n, nil
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	s := &server{node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: map[string]string{"zone": "a"}}}, conflicts: 1}
	a := &Announcer{Client: s, Name: "n1", Log: slog.New(slog.DiscardHandler)}
	registered := make(chan struct{})
	close(registered)
	if err := a.Run(t.Context(),
		registered); err != nil || s.csi == nil || len(s.csi.Spec.Drivers) > 0 || s.csi.OwnerReferences[0].UID != "u" {
		t.Fatalf("at the start: %+v, %v", s.csi, err)
	}
	for _, name := range []string{"d", "e"} {
		if err := a.Announce(t.Context(), name,
			csi.NodeInfo{ID: "id-" + name, MaxVolumes: 3,
				Topology: map[string]string{"zone": "a", "rack": "1"}}); err != nil {
			t.Fatal(err)
		}
	}
	// again, with less to say
	if err := a.Announce(t.Context(), "d",
		csi.NodeInfo{ID: "id-d", Topology: map[string]string{"rack": "1"}}); err != nil {
		t.Fatal(err)
	}
	if got := s.node.Annotations[annotation]; got != `{"d":"id-d","e":"id-e"}` || s.node.Labels["rack"] != "1" {
		t.Errorf("the Node says %s, %v", got, s.node.Labels)
	}
	list := s.csi.Spec.Drivers
	if len(list) != 2 || list[0].Name != "e" || *list[0].Allocatable.Count != 3 || len(list[0].TopologyKeys) != 2 ||
		list[1].NodeID != "id-d" || list[1].Allocatable != nil {
		t.Errorf("drivers %+v", list)
	}
	if err := a.Announce(t.Context(), "f",
		csi.NodeInfo{ID: "id", Topology: map[string]string{"zone": "b"}}); err == nil ||
		err.Error() != `detected topology value collision: driver reported "zone":"b" but existing label is "zone":"a"` {
		t.Errorf("error %v", err)
	}
	for name, most := range map[string]int64{"d": 5, "e": 0, "unknown": 1} {
		if err := a.Limit(t.Context(), name, most); err != nil {
			t.Fatal(err)
		}
	}
	if list := s.csi.Spec.Drivers; len(list) != 2 || list[0].Allocatable != nil || *list[1].Allocatable.Count != 5 ||
		list[1].NodeID != "id-d" {
		t.Errorf("with other limits: %+v", list)
	}
	for _, name := range []string{"d", "e", "e"} {
		if err := a.Withdraw(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if _, says := s.node.Annotations[annotation]; says || len(s.csi.Spec.Drivers) > 0 {
		t.Errorf("left: %v, %+v", s.node.Annotations, s.csi.Spec.Drivers)
	}
	was := s.csi
	if err := a.Run(t.Context(), registered); err != nil || s.csi != was {
		t.Error("what is there is made again")
	}
}
