package cluster

import (
	"io/fs"
	"testing/fstest"
)

// manifest is a directory of one add-on.
func manifest(text string) fs.FS { return fstest.MapFS{"a.yaml": {Data: []byte(text)}} }
