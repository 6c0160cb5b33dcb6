package cri

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// TestFilesystems: a runtime that names no file system of containers has them where images are; what it does not count
// is 0.
func TestFilesystems(t *testing.T) {
	t.Parallel()
	at := func(dir string, bytes, inodes uint64) *runtimeapi.FilesystemUsage {
		return &runtimeapi.FilesystemUsage{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir},
			UsedBytes: &runtimeapi.UInt64Value{Value: bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: inodes}}
	}
	for name, c := range map[string]struct {
		images, containers []*runtimeapi.FilesystemUsage
		want               runtime.Filesystems
	}{
		"both": {[]*runtimeapi.FilesystemUsage{at("/i", 5, 1)}, []*runtimeapi.FilesystemUsage{at("/c", 6, 2)},
			runtime.Filesystems{Images: "/i", Containers: "/c", ImagesUse: runtime.DiskUse{Bytes: 5, Inodes: 1},
				ContainersUse: runtime.DiskUse{Bytes: 6, Inodes: 2}}},
		"images alone": {[]*runtimeapi.FilesystemUsage{at("/i", 5, 1)}, nil,
			runtime.Filesystems{Images: "/i", Containers: "/i", ImagesUse: runtime.DiskUse{Bytes: 5, Inodes: 1},
				ContainersUse: runtime.DiskUse{Bytes: 5, Inodes: 1}}},
		"uncounted": {[]*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/i"}}}, nil,
			runtime.Filesystems{Images: "/i", Containers: "/i"}},
	} {
		if got := filesystems(&runtimeapi.ImageFsInfoResponse{ImageFilesystems: c.images,
			ContainerFilesystems: c.containers}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestImageVolumeFailed: the runtime's word for it is in its message, whatever the code.
func TestImageVolumeFailed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"ImageVolumeMountFailed: no such path": true, "failed to mount": false} {
		if got := ImageVolumeFailed(status.Error(codes.Unknown, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if ImageVolumeFailed(errors.New("no answer")) {
		t.Error("an error that is not the runtime's")
	}
}
