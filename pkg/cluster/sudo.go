package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
)

// userFile is a kubeconfig of the user's, and who the user is if root acts for another one.
type userFile struct {
	path   string
	caller *sudoCaller // nil: who runs this program
}

// sudoCaller is the user who ran this program by sudo.
type sudoCaller struct {
	name     string
	uid, gid int
}

// userFileNow is the kubeconfig that contexts are written to: the first of $KUBECONFIG; or by sudo that of who called it, for
// kubectl is run without sudo; or ~/.kube/config.
func userFileNow() userFile { return chooseUserFile(os.Geteuid(), os.Getenv, user.LookupId) }

func chooseUserFile(euid int, getenv func(string) string, lookup func(uid string) (*user.User, error)) userFile {
	own := userFile{path: clientcmd.NewDefaultPathOptions().GetDefaultFilename()}
	if euid != 0 || getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return own
	}
	uid := getenv("SUDO_UID")
	if uid == "" || uid == "0" {
		return own
	}
	u, err := lookup(uid)
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return own // a user whom this machine does not know has no place for a file
	}
	caller := &sudoCaller{name: u.Username}
	var errGID error
	caller.uid, err = strconv.Atoi(u.Uid)
	caller.gid, errGID = strconv.Atoi(u.Gid)
	if errors.Join(err, errGID) != nil {
		return own
	}
	return userFile{filepath.Join(u.HomeDir, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName), caller}
}

// as runs do with the caller's rights to files, so that what it makes is the caller's, and a link in the caller's home leads root to no
// file that the caller may not write. do must stay on this goroutine.
func (s *sudoCaller) as(do func() error) (err error) {
	if s == nil {
		return do()
	}
	runtime.LockOSThread() // the rights are the thread's
	gid, err := unix.SetfsgidRetGid(s.gid)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("take the group of %s: %w", s.name, err)
	}
	uid, err := unix.SetfsuidRetUid(s.uid)
	defer func() {
		err = errors.Join(err, unix.Setfsuid(uid), unix.Setfsgid(gid))
		// The calls succeed without effect where they are not allowed: a thread that did not get its rights back is not used again.
		if now, _ := unix.SetfsuidRetUid(-1); now == uid {
			runtime.UnlockOSThread()
		}
	}()
	if now, _ := unix.SetfsuidRetUid(-1); err != nil || now != s.uid {
		return errors.Join(fmt.Errorf("take the rights of %s: not allowed", s.name), err)
	}
	return do()
}
