package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
)

// userFile is a user's kubeconfig. If root acts for another user, the caller is that user.
type userFile struct {
	path   string
	caller *sudoCaller // nil: the user who runs this program
}

// sudoCaller is the user who ran this program by sudo.
type sudoCaller struct {
	name     string
	uid, gid int
	groups   []uint32
}

// userFileNow returns the kubeconfig that contexts are written to: the first of $KUBECONFIG; under sudo the file of its
// caller, who runs kubectl without sudo; or ~/.kube/config.
func userFileNow() userFile { return chooseUserFile(os.Geteuid(), os.Getenv, user.LookupId) }

// Check returns an error if the user's kubeconfig could not be written.
func Check(ctx context.Context) error { return userFileNow().check(ctx) }

// chooseUserFile is userFileNow with the process's environment as arguments. A $KUBECONFIG that sudo -E has passed on
// is the caller's if the caller owns it; another one is root's.
func chooseUserFile(euid int, getenv func(string) string, lookup func(uid string) (*user.User, error)) userFile {
	own := userFile{path: clientcmd.NewDefaultPathOptions().GetDefaultFilename()}
	caller, home := callerOf(euid, getenv, lookup)
	switch {
	case caller == nil:
		return own
	case getenv(clientcmd.RecommendedConfigPathEnvVar) == "":
		return userFile{filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName), caller}
	case caller.owns(own.path): // sudo -E
		return userFile{own.path, caller}
	}
	return own
}

// callerOf returns the user who called sudo, and that user's home. It returns nil for root, without sudo, and for a
// user whom this machine does not know.
func callerOf(euid int, getenv func(string) string, lookup func(uid string) (*user.User, error)) (caller *sudoCaller,
	home string) {
	uid := getenv("SUDO_UID")
	if euid != 0 || uid == "" || uid == "0" {
		return nil, ""
	}
	u, err := lookup(uid)
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return nil, "" // no place for a file
	}
	caller = &sudoCaller{name: u.Username}
	texts, err := u.GroupIds()
	for _, text := range texts {
		gid, errGID := strconv.ParseUint(text, 10, 32)
		caller.groups, err = append(caller.groups, uint32(gid)), errors.Join(err, errGID)
	}
	var errUID, errGID error
	caller.uid, errUID = strconv.Atoi(u.Uid)
	caller.gid, errGID = strconv.Atoi(u.Gid)
	if errors.Join(err, errUID, errGID) != nil {
		return nil, ""
	}
	return caller, u.HomeDir
}

// owns reports whether the caller owns a file or, if it does not exist, the directory in which it would be made.
func (s *sudoCaller) owns(path string) bool {
	for {
		info, err := os.Lstat(path)
		if err == nil {
			return int(info.Sys().(*syscall.Stat_t).Uid) == s.uid
		}
		up := filepath.Dir(path)
		if up == path || !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		path = up
	}
}

// as runs do with the caller's rights to files. Whatever do makes belongs to the caller. A link in the caller's home
// cannot lead root to a file that the caller may not use.
//
// The rights are those of one thread (setfsuid(2)), so do must stay on this goroutine.
func (s *sudoCaller) as(do func() error) (err error) {
	if s == nil {
		return do()
	}
	runtime.LockOSThread() // the rights are the thread's
	groups, err := threadGroups()
	if err == nil {
		err = setThreadGroups(s.groups)
	}
	if err != nil {
		runtime.UnlockOSThread() // nothing has changed
		return fmt.Errorf("take the groups of %s: %w", s.name, err)
	}
	gid, errGID := unix.SetfsgidRetGid(s.gid)
	uid, errUID := unix.SetfsuidRetUid(s.uid)
	defer func() {
		restored := errors.Join(unix.Setfsuid(uid), unix.Setfsgid(gid), setThreadGroups(groups))
		// The calls succeed without effect if they are not allowed. A thread that did not get its rights back stays
		// locked, and so ends with this goroutine.
		if now, _ := unix.SetfsuidRetUid(-1); now == uid && restored == nil {
			runtime.UnlockOSThread()
		}
		err = errors.Join(err, restored)
	}()
	if now, _ := unix.SetfsuidRetUid(-1); errors.Join(errGID, errUID) != nil || now != s.uid {
		return errors.Join(fmt.Errorf("take the rights of %s: not allowed", s.name), errGID, errUID)
	}
	return do()
}

// threadGroups returns the supplementary groups of this thread.
func threadGroups() ([]uint32, error) {
	all, err := unix.Getgroups()
	groups := make([]uint32, len(all))
	for i, g := range all {
		groups[i] = uint32(g)
	}
	return groups, err
}

// setThreadGroups sets the supplementary groups of this thread. The functions of Go's libraries set them for all
// threads.
func setThreadGroups(groups []uint32) error {
	if _, _, err := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)),
		uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0); err != 0 {
		return os.NewSyscallError("setgroups", err)
	}
	return nil
}
