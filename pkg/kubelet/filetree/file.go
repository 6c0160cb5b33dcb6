package filetree

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

var errNotRegular = errors.New("not a regular file")

// OpenFile opens a regular file for reading where a pod may have put something else: opening a pipe waits for its
// writer, and opening a device may do anything. It touches neither, and follows no link that is the path's last name.
func OpenFile(path string) (*os.File, error) {
	return openFile(unix.AT_FDCWD, path, unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC})
}

// OpenFileBelow is OpenFile for a path below the directory dir. Links are followed, as those of a configMap's volume,
// but the kernel has none lead out of dir: whoever writes to dir could put one there at any time.
func OpenFileBelow(dir, path string) (*os.File, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(root)
	return openFile(root, path,
		unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// openFile looks at what is there before it opens that very file: between a look by the path and an open by the path a
// pod could exchange it.
func openFile(dir int, path string, how unix.OpenHow) (*os.File, error) {
	fd, err := unix.Openat2(dir, path, &how)
	for err == unix.EINTR || err == unix.EAGAIN { // a rename raced with the resolution
		fd, err = unix.Openat2(dir, path, &how)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	file, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return file, nil
}
