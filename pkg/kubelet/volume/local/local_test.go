package local

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
	testingexec "k8s.io/utils/exec/testing"

	"bonsai/pkg/kubelet/volume"
)

// A disk that does not answer, or is being formatted, holds up no other local volume, neither its end nor its begin.
func TestADiskThatHangs(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	hangs := func(string, ...string) exec.Cmd {
		return &testingexec.FakeCmd{CombinedOutputScript: []testingexec.FakeAction{func() ([]byte, []byte, error) {
			close(asked)
			<-answer
			return nil, nil, errors.New("no such disk")
		}}}
	}
	pods := t.TempDir()
	s := New(Config{Dir: t.TempDir(), PodsDir: pods,
		Mounts: &mount.SafeFormatAndMount{Interface: mount.NewFakeMounter(nil),
			Exec: &testingexec.FakeExec{CommandScript: []testingexec.FakeCommandAction{hangs}}}})
	place := func(name string) volume.Place {
		return volume.Place{Name: name, Dir: filepath.Join(pods, "u", "volumes", "kubernetes.io~local-volume", name)}
	}
	published := make(chan error, 1)
	go func() {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "hangs"}}
		pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/dev/hangs"}
		published <- s.publishDevice(t.Context(), volume.Request{Place: place("hangs"), Spec: volume.Spec{PV: pv}},
			"/dev/hangs")
	}()
	<-asked
	down := make(chan error, 1)
	go func() { down <- s.TakeDown(t.Context(), place("other")) }()
	select {
	case err := <-down:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("another volume waits for it")
	}
	close(answer)
	if err := <-published; err == nil {
		t.Error("a disk that is not there was mounted")
	}
}
