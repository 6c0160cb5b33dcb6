// Command newversion prints what is new in a release of Kubernetes against ours, as a list of what to do. Run it at the
// root of the repository:
//
//	newversion -version v1.37.2
//	newversion -version v1.37.2 -binaries DIR    also flags and admission plug-ins, by --help of the release's binaries
//	newversion -version v1.37.2 -metrics FILE    a list of metrics in place of the module's; also -metrics-from
//	newversion -version v1.37.2 -from v1.36.3    what is left to do once api/kubeversion names the new release
//
// It reads data files that the release publishes in its Go module k8s.io/kubernetes, and no code. It compares them with
// what we recorded, or with the same file of the release that we follow: each section names which. A difference that
// the release that we follow has, too, is not new: it is only counted. Nothing is written but the list.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"bonsai/api/kubeversion"
)

// patience bounds the whole run: two downloads of some 30 MiB.
const patience = 15 * time.Minute

func main() {
	version := flag.String("version", "", "the release, as its tag names it: v1.37.2")
	from := flag.String("from", kubeversion.Release, "the release to start from, whose differences are not new")
	binaries := flag.String("binaries", "", "directory with the release's kube-apiserver, kubelet, …")
	metrics := flag.String("metrics", "", "the release's documentation-list.yaml, if its module has none")
	metricsFrom := flag.String("metrics-from", "", "that of -from")
	most := flag.Int("most", 300, "most lines of one section")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := run{version: *version, from: *from, binaries: *binaries, metrics: *metrics, metricsFrom: *metricsFrom,
		most: *most}
	if err := r.print(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "newversion:", err)
		os.Exit(1)
	}
}

// run is what the command line asks for.
type run struct {
	version, from, binaries, metrics, metricsFrom string
	most                                          int
}

// print writes the list, once all of it is made: an error leaves no half list.
func (r run) print(ctx context.Context, w io.Writer) error {
	next, archive, err := download(ctx, r.version)
	if err != nil {
		return err
	}
	defer archive.Close()
	current, archive, err := download(ctx, r.from)
	if err != nil {
		return err
	}
	defer archive.Close()
	sections, err := r.sections(ctx, os.DirFS("."), current, next)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("From Kubernetes %s to %s", current.version, next.version)
	return render(w, title, next.place, sections, r.most)
}

// sections are the parts of the list, in the order of the work. root is our repository.
func (r run) sections(ctx context.Context, root fs.FS, current, next release) (sections []section, err error) {
	for _, job := range []func() (section, error){
		func() (section, error) { return versionSection(ctx, root, current, next) },
		func() (section, error) { return notesSection(current, next) },
		func() (section, error) { return resourcesSection(root, current, next) },
		func() (section, error) { return fieldsSection(current, next) },
		func() (section, error) { return gatesSection(root, current, next) },
		func() (section, error) { return metricsSection(current, next, r.metricsFrom, r.metrics) },
		func() (section, error) { return specsSection(current, next) },
		func() (section, error) { return rolesSection(current, next) },
		func() (section, error) { return flagsSection(ctx, root, next, r.binaries) },
		func() (section, error) { return pluginsSection(ctx, next, r.binaries) },
	} {
		s, err := job()
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	return sections, nil
}
