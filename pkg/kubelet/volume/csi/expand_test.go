package csi_test

import (
	"errors"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/volume"
)

// TestExpand: what a driver that can is told, and what its answers mean.
func TestExpand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, spec.NodeServiceCapability_RPC_EXPAND_VOLUME)
	h.notAttached(nil)
	s := h.restarted()
	v := persistent()
	v.PV.Spec.CSI.NodeExpandSecretRef = &corev1.SecretReference{Namespace: "s", Name: "expand"}
	r := h.request("a", v)
	got, err := publish(t, s, r)
	if err != nil || !s.Expands(v) {
		t.Fatal(err)
	}
	to := resource.MustParse("2Gi")
	if size, err := s.Expand(t.Context(), r, to); err != nil || size.Cmp(to) != 0 {
		t.Errorf("expanded to %s, %v", size.String(), err)
	}
	x := h.driver.LastExpanded()
	if x.VolumePath != got.HostPath || x.StagingTargetPath != h.driver.LastStaged().StagingTargetPath ||
		x.CapacityRange.RequiredBytes != 2<<30 || x.Secrets["from"] != "s/expand" ||
		x.VolumeCapability.GetMount().GetFsType() != "ext4" {
		t.Errorf("expanded with %v", x)
	}
	for code, infeasible := range map[codes.Code]bool{codes.OutOfRange: true, codes.InvalidArgument: true,
		codes.NotFound: true, codes.Internal: false, codes.FailedPrecondition: false} {
		h.driver.Fail(status.Error(code, "no"))
		_, err := s.Expand(t.Context(), r, to)
		if why, ok := errors.AsType[*volume.ExpandError](err); !ok || why.Infeasible != infeasible {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted} {
		h.driver.Fail(status.Error(code, "later"))
		_, err := s.Expand(t.Context(), r, to)
		if _, final := errors.AsType[*volume.ExpandError](err); err == nil || final {
			t.Errorf("%s: %v", code, err)
		}
	}
	if newHouse(t).restarted().Expands(v) {
		t.Error("a driver that cannot expands")
	}
}
