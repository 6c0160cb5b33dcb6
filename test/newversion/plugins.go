package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"bonsai/pkg/apiserver/admission"
)

// pluginsSection has the admission plug-ins, and which are on by default, by --help of the release's kube-apiserver.
func pluginsSection(ctx context.Context, next release, binaries string) (section, error) {
	s := section{title: "Admission plug-ins"}
	if binaries == "" {
		s.remarks = []string{"No file of the module has the plug-ins. Run again with BINARIES=dir, or compare " +
			"`--enable-admission-plugins` in `--help` of the release's kube-apiserver with " +
			"pkg/apiserver/admission/names.go."}
		return s, nil
	}
	s.against = "the plug-ins that we know (pkg/apiserver/admission/names.go)"
	text, err := help(ctx, binaries, "kube-apiserver", next.version)
	if err != nil {
		return s, err
	}
	all := pluginFacts(text)
	if len(all) == 0 {
		return s, fmt.Errorf("--help of kube-apiserver in %s lists no admission plug-ins", binaries)
	}
	ours := pluginFacts(admission.Usage("", nil))
	found, _ := compare(ours, ours, all)
	s.tasks = words{"Add", "Change the default of", "Remove"}.lines(found, nil)
	s.remarks = []string{"The order in which new plug-ins run stands in no output."}
	return s, nil
}

// pluginList is how the help of a flag lists the plug-ins: those that are on by default, then all.
var pluginList = regexp.MustCompile(`\(([\w, ]+)\)\. Comma-delimited list of admission plugins: ([\w, ]+)\.`)

// pluginFacts reads the plug-ins of a help, on or off by default.
func pluginFacts(help string) facts {
	m := pluginList.FindStringSubmatch(help)
	if m == nil {
		return nil
	}
	f := facts{}
	for name := range strings.SplitSeq(m[2], ", ") {
		f[name] = "off"
	}
	for name := range strings.SplitSeq(m[1], ", ") {
		f[name] = "on"
	}
	return f
}
