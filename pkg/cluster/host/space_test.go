package host

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEnoughSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fs   unix.Statfs_t
		want string
	}{
		{"enough", unix.Statfs_t{Bsize: 4096, Blocks: 1 << 20, Bavail: 1 << 19, Files: 100, Ffree: 50}, ""},
		{"no inodes to count", unix.Statfs_t{Bsize: 4096, Blocks: 1 << 20, Bavail: 1 << 19}, ""},
		{"too little", unix.Statfs_t{Bsize: 4096, Blocks: 1 << 20, Bavail: 1 << 15},
			"128 MiB are free, 256 MiB are needed"},
		{"too little of much", unix.Statfs_t{Bsize: 4096, Blocks: 1 << 24, Bavail: 1 << 18},
			"less than 3% of the file system"},
		{"too few inodes", unix.Statfs_t{Bsize: 4096, Blocks: 1 << 20, Bavail: 1 << 19, Files: 1000, Ffree: 9},
			"less than 1% of the file system's inodes"},
	} {
		err := EnoughSpace(&c.fs, 256<<20)
		if (err == nil) != (c.want == "") ||
			err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, unix.ENOSPC)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
