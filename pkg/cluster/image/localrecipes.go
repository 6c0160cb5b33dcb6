package image

import (
	"maps"
	"path/filepath"

	"bonsai/pkg/cluster/plan/localimage"
)

// LocalRecipes returns the recipes of the local images by their names. They consist of the programs in binDir and of
// busybox, which brings the shared libraries that it needs from sysroot and gets a link for each applet. All except
// busybox run as users without rights.
func LocalRecipes(binDir, busybox, sysroot string, applets []string) (map[string]Recipe, error) {
	shell, err := withLibraries("bin/busybox", busybox, sysroot)
	if err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, applet := range applets {
		if applet = filepath.Base(applet); applet != "busybox" && applet != "" {
			links["bin/"+applet] = "busybox"
		}
	}
	accounts := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	}
	lookups := map[string]string{"etc/nsswitch.conf": "hosts: files dns\n"}
	maps.Copy(lookups, accounts)
	return map[string]Recipe{
		"pause": {Ref: localimage.Pause, Files: map[string]string{"pause": filepath.Join(binDir, "pause")},
			Entrypoint: []string{"/pause"}, User: "65535:65535"},
		"busybox": {Ref: localimage.Busybox, Files: shell, Links: links, Text: lookups,
			Dirs: []string{"tmp", "root", "var", "usr"}, Cmd: []string{"sh"}},
		"coredns": {Ref: localimage.CoreDNS, Files: map[string]string{"coredns": filepath.Join(binDir, "coredns")},
			Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/coredns"}, User: "65534:65534"},
		"metrics-server": {Ref: localimage.MetricsServer,
			Files: map[string]string{"metrics-server": filepath.Join(binDir, "metrics-server")}, Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/metrics-server"}, User: "65534:65534"},
		"traefik": {Ref: localimage.Traefik, Files: map[string]string{"traefik": filepath.Join(binDir, "traefik")},
			Text: accounts,
			Dirs: []string{"tmp"}, Entrypoint: []string{"/traefik"}, User: "65534:65534"},
		"registry": {Ref: localimage.DockerRegistry,
			Files: map[string]string{"registry": filepath.Join(binDir, "registry")},
			Text:  accounts,
			Dirs:  []string{"tmp"}, Entrypoint: []string{"/registry"}, User: "65534:65534"},
	}, nil
}
