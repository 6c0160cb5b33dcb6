// Package page has the files of the console's page, as `make console` builds them from pkg/console/web.
package page

import (
	"embed"
	"io/fs"
)

//go:embed files
var files embed.FS

// Files returns the page: index.html and what it loads.
func Files() (fs.FS, error) { return fs.Sub(files, "files") }
